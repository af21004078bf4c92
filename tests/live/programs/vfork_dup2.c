/* A child of vfork moves descriptors about, as those who start programs do; its parent's are as they were. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	int fd = open("/etc/passwd", O_RDONLY), other = open("/dev/null", O_RDWR), status = 0,
	    good = 0;
	char text[4];

	for (int i = 0; i < 50; i++) {
		pid_t child = vfork();

		if (child == 0) {
			dup2(other, fd);
			close(0);
			execl("/bin/true", "true", (char *)NULL);
			_exit(9);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
			return 2;
		good += pread(fd, text, sizeof(text), 0) == 4;
	}
	/* One that cannot be started reports through the memory that they share. */
	{
		volatile int error = 0;
		pid_t child = vfork();

		if (child == 0) {
			execl("/no/such/program", "x", (char *)NULL);
			error = errno;
			_exit(1);
		}
		waitpid(child, &status, 0);
		printf("read: %d, error: %d\n", good, error);
	}
	return 0;
}
