/* The first calls that are recorded are made in a signal handler on the smallest stack that POSIX allows for it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char text[16];

static void on_signal(int number)
{
	int fd = open("/etc/passwd", O_RDONLY);

	(void)number;
	if (fd >= 0) {
		(void)!read(fd, text, 4);
		close(fd);
	}
}

int main(void)
{
	size_t size = 8192;
	char *pages = mmap(NULL, size + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = { .ss_sp = pages + 4096, .ss_size = size };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	mprotect(pages + 4096, size, PROT_READ | PROT_WRITE);
	if (sigaltstack(&stack, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0)
		return 2;
	raise(SIGUSR1);
	printf("%.4s\n", text);
	return 0;
}
