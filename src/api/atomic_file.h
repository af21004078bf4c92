/*
 * atomic_file.h: a file that appears whole or not at all. Regular files are written beside the target,
 * without a name where the file system can do that, and renamed; devices and pipes are written directly, and only from front to back.
 */
#ifndef API_ATOMIC_FILE_H
#define API_ATOMIC_FILE_H

#include "base/error.h"
#include "base/mem.h"

struct atomic_file {
	struct mem *mem;
	const char *path;
	char *name; /* where it is written: the temporary file, or the path itself */
	size_t name_size;
	int fd;
	int failure;   /* errno of the first failure */
	bool seekable; /* a regular file */
	bool unnamed;  /* which has no name yet */
	uint64_t at;   /* where in the file the buffer begins */
	size_t len;
	char *buffer;
};

ow_status atomic_open(struct atomic_file *file, struct mem *mem, const char *path,
		      struct error *err);
/* At the end of what was written last; false after a failure, which atomic_finish tells. */
bool atomic_write(struct atomic_file *file, const void *bytes, size_t len);
/* Anywhere; seekable files only. */
bool atomic_write_at(struct atomic_file *file, uint64_t offset, const void *bytes, size_t len);
/* Makes the file appear when status is OW_OK and nothing failed, else removes it. Gives the status of
 * the whole. */
ow_status atomic_finish(struct atomic_file *file, ow_status status, struct error *err);

#endif
