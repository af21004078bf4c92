/*
 * new_file.h: a file that is written beside the place it is for, and takes that place when there is something in it: what
 * was there before stays until then. For recording.c, whose files are read while they grow: they appear when the job has
 * begun, not when it has ended. Whoever is killed before that leaves PATH.part-PID behind, which holds nothing yet.
 *
 * Links are followed. What is no regular file, such as a device, is opened as it is.
 */
#ifndef LIVE_NEW_FILE_H
#define LIVE_NEW_FILE_H

#include "base/base.h"

#include <limits.h>

struct new_file {
	char made[PATH_MAX];   /* what goes when it is dropped; empty: nothing */
	char target[PATH_MAX]; /* where it goes; empty: it is there */
};

/* For its owner only, to read and write. A descriptor, or -1 and errno. */
int new_file_open(struct new_file *file, const char *path);
/* False, and errno: it is still where it was made. */
bool new_file_appear(struct new_file *file);
/* Unless it has appeared. */
void new_file_drop(struct new_file *file);

#endif
