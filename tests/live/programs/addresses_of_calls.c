/* Takes the addresses of functions of the C library in a program that is not position-independent, as Debian's Python is: they are those of stubs
 * within the program, also for other libraries. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static __attribute__((noipa)) int call(int (*function)(int), int fd)
{
	return function(fd);
}

static __attribute__((noipa)) long move(ssize_t (*function)(int, void *, size_t), int fd,
					void *data, size_t size)
{
	return function(fd, data, size);
}

static __attribute__((noipa)) int start(int (*function)(const char *, int, ...), const char *path)
{
	return function(path, O_RDONLY);
}

int main(void)
{
	int fd = memfd_create("file", 0), other, status = 0;
	long bytes = 0;
	char data[16];

	for (int i = 0; i < 1000; i++) {
		status |= call(fsync, fd) | call(fdatasync, fd);
		other = start(open, "/etc/passwd");
		bytes += move(read, other, data, sizeof(data));
		status |= call(close, other);
		bytes += write(fd, data, sizeof(data)) + pread(fd, data, sizeof(data), 0);
	}
	status |= fsync(fd) | close(fd);
	printf("%d %ld\n", status, bytes);
	return 0;
}
