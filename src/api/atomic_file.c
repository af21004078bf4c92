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

/* Where the file is reached while it has no name. */
static void unnamed_path(int fd, char path[32])
{
	snprintf(path, 32, "/proc/self/fd/%d", fd);
}

/* A file without a name is gone with the process, however that ends. Not every file system has them. */
static void open_unnamed(struct atomic_file *file)
{
	char *slash = strrchr(file->name, '/'), path[32], after = 0;

	if (slash) { /* name[0 … after the slash] is the directory */
		after = slash[1];
		slash[1] = '\0';
	}
	file->fd = open(slash ? file->name : ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
	if (slash)
		slash[1] = after;
	if (file->fd < 0)
		return;
	unnamed_path(file->fd, path);
	file->unnamed = access(path, F_OK) == 0;
	if (!file->unnamed) { /* it could not get its name later */
		close(file->fd);
		file->fd = -1;
	}
}

/* O_EXCL: the name is easy to guess, and what is there may lead elsewhere. */
static void open_named(struct atomic_file *file)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;

	file->fd = open(file->name, flags, 0666);
	if (file->fd < 0 && errno == EEXIST && unlink(file->name) == 0)
		file->fd = open(file->name, flags, 0666);
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
		open_unnamed(file);
		if (file->fd < 0)
			open_named(file);
	}
	file->failure = file->fd < 0 ? errno : 0;
}

static bool give_name(struct atomic_file *file)
{
	char path[32];

	unnamed_path(file->fd, path);
	unlink(file->name);
	if (linkat(AT_FDCWD, path, AT_FDCWD, file->name, AT_SYMLINK_FOLLOW) < 0)
		return false;
	file->unnamed = false;
	return true;
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
	if (status == OW_OK && !file->failure && file->unnamed && !give_name(file))
		file->failure = errno;
	if (close(file->fd) < 0 && !file->failure)
		file->failure = errno;
	if (!file->failure && status == OW_OK && file->seekable &&
	    rename(file->name, file->path) < 0)
		file->failure = errno;
	if (file->failure)
		status = error_errno(err, file->failure, "%s", file->path);
	if (status != OW_OK && file->seekable && !file->unnamed)
		unlink(file->name);
	release(file);
	return status;
}
