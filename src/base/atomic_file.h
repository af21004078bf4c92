/*
 * atomic_file.h: files that appear whole or not at all. Everything that opwatch writes and that may replace another
 * file goes through here: output of commands, recordings, Parquet files that DuckDB writes.
 *
 * Only regular files are replaced. A symbolic link is followed: the file it leads to is replaced, also when that does
 * not exist yet. A pipe or a character device is written to as it is. Directories, block devices and sockets are
 * refused.
 *
 * struct atomic_path is for code that writes by file descriptor or by name; struct atomic_file adds a buffer.
 */
#ifndef BASE_ATOMIC_FILE_H
#define BASE_ATOMIC_FILE_H

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

#include <limits.h>
#include <sys/stat.h>

struct atomic_path {
	char target[PATH_MAX]; /* path of the file that appears, with links followed */
	char temp[PATH_MAX];   /* name while it is written: TARGET.tmpPID; empty when `direct` */
	bool direct;	       /* the target is a pipe or a device: it is written directly */
};

/* Finds where a file of that path would be written. Creates nothing. */
ow_status atomic_path_find(struct atomic_path *to, const char *path, struct ow_error *err);
/* Finds the target for formats that cannot be written to a pipe or device. `what` ("a Parquet file")
 * appears in the message. */
ow_status atomic_path_find_regular(struct atomic_path *to, const char *path, const char *what,
				   struct ow_error *err);
/* Creates the temporary file, or opens the pipe or device. `access` is O_WRONLY or O_RDWR. Returns a descriptor, or -1
 * with errno set. */
int atomic_path_open(const struct atomic_path *to, int access, mode_t mode);
/* Renames the temporary file to the target, unless the target is something else than a regular file by now. On failure
 * the temporary file stays. */
ow_status atomic_path_publish(const struct atomic_path *to, struct ow_error *err);
/* Removes the temporary file of an output that failed. */
void atomic_path_discard(const struct atomic_path *to);

/* Writes a small file of opwatch at once, for instance the state of a job. Refuses to replace a link. */
ow_status atomic_write_whole(const char *path, struct str bytes, mode_t mode, struct ow_error *err);

struct atomic_file {
	struct mem *mem;
	struct atomic_path where;
	const char *path; /* path as the caller gave it, for messages */
	int fd;
	int failure;   /* errno of the first failure, or 0 */
	bool seekable; /* the target is a regular file */
	bool unnamed;  /* the file has no name yet: if the process is killed now, nothing remains */
	uint64_t at;   /* offset in the file at which the buffer begins */
	size_t len;
	char *buffer;
};

ow_status atomic_open(struct atomic_file *file, struct mem *mem, const char *path,
		      struct ow_error *err);
/* Appends bytes after the last write. Returns false after a failure, which atomic_finish
 * reports. */
bool atomic_write(struct atomic_file *file, const void *bytes, size_t len);
/* Writes bytes at any offset of a seekable file. */
bool atomic_write_at(struct atomic_file *file, uint64_t offset, const void *bytes, size_t len);
/* Makes the file appear if status is OW_OK and no write failed; otherwise removes it. Returns
 * the overall status. */
ow_status atomic_finish(struct atomic_file *file, ow_status status, struct ow_error *err);

#endif
