/* Closes every number there is, in four ways, and goes on; says which were open. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static int read_file(void)
{
	int fd = open("/etc/passwd", O_RDONLY), low = fd;
	char text[16];

	for (int i = 0; i < 500; i++)
		if (pread(fd, text, sizeof(text), 0) != (ssize_t)sizeof(text))
			return -1;
	close(fd);
	return low;
}

int main(void)
{
	int open_before = 0;

	dlopen("libm.so.6", RTLD_NOW);
	usleep(100000);
	for (int fd = 3; fd < 2000; fd++)
		open_before += close(fd) == 0;
	printf("closed: %d, next: %d\n", open_before, read_file());
	closefrom(3);
	printf("next: %d\n", read_file());
	printf("close_range: %d\n", close_range(3, ~0u, 0));
	printf("next: %d\n", read_file());
	for (int fd = 3; fd < 2000; fd++)
		syscall(SYS_close, fd);
	usleep(300000);
	printf("next: %d\n", read_file());
	return 0;
}
