/*
 * write_file.c: ow_result_write_file: a result into a file that appears whole or not at all. Regular
 * files are written beside the target and renamed; devices and pipes are written directly.
 */
#include "api/api_int.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BUFFER ((size_t)256 << 10)

struct file {
	int fd;
	int failure; /* errno of the first failed write */
	size_t len;
	char buffer[FILE_BUFFER];
};

static bool flush(struct file *file)
{
	size_t done = 0;

	while (done < file->len && !file->failure) {
		ssize_t n = write(file->fd, file->buffer + done, file->len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			file->failure = errno;
		else
			done += (size_t)n;
	}
	file->len = 0;
	return !file->failure;
}

static bool write_to_file(void *arg, const void *bytes, size_t len)
{
	struct file *file = arg;
	const char *from = bytes;

	while (len) {
		size_t part = MIN(len, FILE_BUFFER - file->len);

		memcpy(file->buffer + file->len, from, part);
		file->len += part;
		from += part;
		len -= part;
		if (file->len == FILE_BUFFER && !flush(file))
			return false;
	}
	return true;
}

/* The temporary name, or the path itself when it is no regular file. */
static char *open_target(struct mem *mem, const char *path, struct file *file, size_t *size)
{
	size_t len = strlen(path) + 32;
	char *name = mem_alloc(mem, len);
	struct stat st;

	if (!name)
		return NULL;
	*size = len;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		snprintf(name, len, "%s", path);
		file->fd = open(path, O_WRONLY | O_CLOEXEC);
	} else {
		snprintf(name, len, "%s.tmp%ld", path, (long)getpid());
		file->fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	}
	file->failure = file->fd < 0 ? errno : 0;
	return name;
}

static ow_status finish(struct file *file, const char *name, const char *path, ow_status status,
			struct error *err)
{
	bool temporary = strcmp(name, path) != 0;

	flush(file);
	if (close(file->fd) < 0 && !file->failure)
		file->failure = errno;
	if (!file->failure && status == OW_OK && temporary && rename(name, path) < 0)
		file->failure = errno;
	if (file->failure)
		status = error_errno(err, file->failure, "%s", path);
	if (status != OW_OK && temporary)
		unlink(name);
	return status;
}

ow_status ow_result_write_file(ow_result *result, const char *sink,
			       const struct ow_write_options *options, const char *path,
			       struct error *err)
{
	struct mem *mem = &result->profile->mem;
	struct file *file = mem_alloc(mem, sizeof(*file));
	size_t name_size = 0;
	char *name = NULL;
	ow_status status;

	error_clear(err);
	if (!file)
		return error_no_memory(err);
	file->len = 0;
	name = open_target(mem, path, file, &name_size);
	if (!name)
		status = error_no_memory(err);
	else if (file->fd < 0)
		status = error_errno(err, file->failure, "%s", path);
	else
		status = finish(file, name, path,
				ow_result_write(result, sink, options, write_to_file, file, err),
				err);
	if (name)
		mem_free(mem, name, name_size);
	mem_free(mem, file, sizeof(*file));
	return status;
}
