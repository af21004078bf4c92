/*
 * scratch.h: the place where unit tests make their directories: in memory if possible, because some tests write and
 * replace thousands of small files, which takes minutes on a busy disk.
 */
#ifndef SUPPORT_SCRATCH_H
#define SUPPORT_SCRATCH_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Makes a new directory named after the test; false when that fails. */
static inline bool scratch_make(char *path, size_t size, const char *test)
{
	snprintf(path, size, "%s/opwatch-%s-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", test);
	return mkdtemp(path) != NULL;
}

#endif
