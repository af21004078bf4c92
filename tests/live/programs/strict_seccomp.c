/* Enters the strict mode of seccomp, in which only read, write and exit are left and the processor's counter may not be read, and
 * works on. ENTER is how: others include this. */
#define _GNU_SOURCE
#include "raw_seccomp.h"

#include <fcntl.h>
#include <stdio.h>

#ifndef ENTER
#define ENTER() prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0)
#endif

int main(void)
{
	char text[8];
	int fd = open("/etc/passwd", O_RDONLY), child = open("/dev/null", O_WRONLY);

	for (int i = 0; i < 1000; i++)
		if (pread(fd, text, 4, 0) != 4 || write(child, text, 4) != 4)
			return 5;
	if (ENTER() != 0)
		return 2;
	for (int i = 0; i < 1000; i++)
		if (read(fd, text, 4) < 0 || write(child, text, 4) != 4)
			return 3;
	(void)!write(1, "read\n", 5);
	raw(SYS_exit, 7, 0, 0);
	return 4;
}
