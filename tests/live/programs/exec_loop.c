/* Executes itself 100 times, with a file read each time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **args)
{
	int round = count > 1 ? atoi(args[1]) : 0;
	char text[16], next[16];
	int fd = open("/etc/passwd", O_RDONLY);

	if (fd != 3 || read(fd, text, sizeof(text)) != (ssize_t)sizeof(text))
		return 2;
	close(fd);
	if (round == 100) {
		puts("done");
		return 0;
	}
	snprintf(next, sizeof(next), "%d", round + 1);
	execl("/proc/self/exe", args[0], next, (char *)NULL);
	return 3;
}
