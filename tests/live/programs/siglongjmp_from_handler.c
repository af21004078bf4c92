/* A handler of a fast timer leaves whatever it interrupts by siglongjmp, also calls that are recorded. The reads that
 * follow are to be recorded as before. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

static sigjmp_buf back;

static void jump(int number)
{
	(void)number;
	siglongjmp(back, 1);
}

int main(void)
{
	struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { 0 };
	static volatile int jumps;
	char text[8];
	int fd = open("/etc/passwd", O_RDONLY);

	signal(SIGALRM, jump);
	setitimer(ITIMER_REAL, &often, NULL);
	if (sigsetjmp(back, 1))
		jumps++;
	while (jumps < 3000)
		if (pread(fd, text, sizeof(text), 0) < 0)
			return 2;
	setitimer(ITIMER_REAL, &never, NULL);
	for (int i = 0; i < 1000; i++)
		if (pread(fd, text, 1, 0) != 1)
			return 3;
	printf("jumps: %d\n", jumps);
	return 0;
}
