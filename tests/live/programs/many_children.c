/* 500 children, of which some record, some execute a program, some die of a signal. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	int ends[3] = { 0 };

	for (int i = 0; i < 500; i += 20) {
		for (int k = 0; k < 20; k++) {
			pid_t child = fork();

			if (child < 0)
				return 2;
			if (child == 0 && k % 4 == 0) {
				execl("/bin/true", "true", (char *)NULL);
				_exit(9);
			}
			if (child == 0) {
				char text[8];
				int fd = open("/etc/passwd", O_RDONLY);

				for (int n = 0; n < 10; n++)
					(void)!pread(fd, text, sizeof(text), 0);
				if (k % 4 == 1)
					raise(SIGKILL);
				exit(k % 4);
			}
		}
		for (int k = 0; k < 20; k++) {
			int status;

			if (wait(&status) < 0)
				return 3;
			ends[WIFSIGNALED(status) ? 2 : WEXITSTATUS(status) != 0]++;
		}
	}
	printf("good: %d, other status: %d, killed: %d\n", ends[0], ends[1], ends[2]);
	return 0;
}
