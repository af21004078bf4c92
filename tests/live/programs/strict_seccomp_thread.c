/* One thread of two enters the strict mode of seccomp; both read files before and after. */
#define _GNU_SOURCE
#include "raw_seccomp.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>

static int file;

static int read_some(void)
{
	char text[8];
	int bad = 0;

	for (int i = 0; i < 2000; i++)
		bad += read(file, text, 4) < 0;
	return bad;
}

static void *enter(void *bad)
{
	*(int *)bad += read_some();
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) != 0)
		*(int *)bad += 1000000;
	*(int *)bad += read_some();
	raw(SYS_exit, 0, 0, 0);
	return NULL;
}

int main(void)
{
	pthread_t thread;
	int bad = 0;

	file = open("/etc/passwd", O_RDONLY);
	if (pthread_create(&thread, NULL, enter, &bad) != 0)
		return 2;
	pthread_join(thread, NULL);
	printf("bad: %d\n", bad + read_some());
	return 0;
}
