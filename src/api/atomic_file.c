/* atomic_file.c: see atomic_file.h. */
#include "api/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BUFFER ((size_t)256 << 10)

static bool write_all(struct atomic_file *file, uint64_t at, const char *bytes, size_t len)
{
	size_t done = 0;

	while (done < len && !file->failure) {
		ssize_t n = file->seekable
				    ? pwrite(file->fd, bytes + done, len - done, (off_t)(at + done))
				    : write(file->fd, bytes + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			file->failure = errno;
		else
			done += (size_t)n;
	}
	return !file->failure;
}

static bool flush(struct atomic_file *file)
{
	bool good = write_all(file, file->at, file->buffer, file->len);

	file->at += file->len;
	file->len = 0;
	return good;
}

bool atomic_write(struct atomic_file *file, const void *bytes, size_t len)
{
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
	return !file->failure;
}

bool atomic_write_at(struct atomic_file *file, uint64_t offset, const void *bytes, size_t len)
{
	OW_ASSERT(file->seekable);
	if (offset != file->at + file->len) {
		if (!flush(file))
			return false;
		file->at = offset;
	}
	if (len < FILE_BUFFER)
		return atomic_write(file, bytes, len);
	if (!flush(file) || !write_all(file, offset, bytes, len))
		return false;
	file->at = offset + len;
	return true;
}

static void open_target(struct atomic_file *file)
{
	struct stat st;

	if (stat(file->path, &st) == 0 && !S_ISREG(st.st_mode)) {
		snprintf(file->name, file->name_size, "%s", file->path);
		file->fd = open(file->path, O_WRONLY | O_CLOEXEC);
	} else {
		file->seekable = true;
		snprintf(file->name, file->name_size, "%s.tmp%ld", file->path, (long)getpid());
		file->fd = open(file->name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	}
	file->failure = file->fd < 0 ? errno : 0;
}

static void release(struct atomic_file *file)
{
	mem_free(file->mem, file->name, file->name_size);
	mem_free(file->mem, file->buffer, FILE_BUFFER);
}

ow_status atomic_open(struct atomic_file *file, struct mem *mem, const char *path,
		      struct error *err)
{
	ow_status status;

	*file = (struct atomic_file){
		.mem = mem, .path = path, .fd = -1, .name_size = strlen(path) + 32
	};
	file->name = mem_alloc(mem, file->name_size);
	file->buffer = file->name ? mem_alloc(mem, FILE_BUFFER) : NULL;
	if (!file->buffer) {
		mem_free(mem, file->name, file->name_size);
		return error_no_memory(err);
	}
	open_target(file);
	if (file->fd >= 0)
		return OW_OK;
	status = error_errno(err, file->failure, "%s", path);
	release(file);
	return status;
}

ow_status atomic_finish(struct atomic_file *file, ow_status status, struct error *err)
{
	if (status == OW_OK)
		flush(file);
	if (close(file->fd) < 0 && !file->failure)
		file->failure = errno;
	if (!file->failure && status == OW_OK && file->seekable &&
	    rename(file->name, file->path) < 0)
		file->failure = errno;
	if (file->failure)
		status = error_errno(err, file->failure, "%s", file->path);
	if (status != OW_OK && file->seekable)
		unlink(file->name);
	release(file);
	return status;
}
