/* The filter applies to all threads at once, also to those that a recorder may have started. The library that is loaded
 * first is a reason to start one. Goes on for more than a second, so that such a thread would be due. */
#define _GNU_SOURCE
#include "raw_seccomp.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(void)
{
	static const int calls[] = { SYS_read, SYS_write, SYS_exit_group };
	int fd = open("/dev/zero", O_RDONLY), file = open("/etc/passwd", O_RDONLY);
	double end;
	char text[65536];

	if (!dlopen("libm.so.6", RTLD_NOW))
		return 5;
	usleep(150000);
	if (allow_only(calls, 3, SECCOMP_FILTER_FLAG_TSYNC) != 0)
		return 2;
	end = now() + 1.2;
	do {
		if (read(fd, text, sizeof(text)) < 0 || read(file, text, 8) < 0)
			return 3;
	} while (now() < end);
	(void)!write(1, "read\n", 5);
	raw(SYS_exit_group, 0, 0, 0);
	return 4;
}
