/*
 * atomic_file.c: temporary files that take the place of others by rename. Callers are the API (results, timelines,
 * merged files), recordings, the journal of the recorder, SQL's Parquet files and the command line's -o.
 * Temporary files that only this process reads are in temp_file.c; folders of an export in export/place.c.
 */
#include "base/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define FILE_BUFFER ((size_t)256 << 10)
#define LINKS_MAX 40 /* number of symbolic links that are followed, as in the kernel */

static const char *kind_name(mode_t mode)
{
	return S_ISDIR(mode)	? "a directory"
	       : S_ISBLK(mode)	? "a block device"
	       : S_ISSOCK(mode) ? "a socket"
	       : S_ISFIFO(mode) ? "a pipe"
				: "a device";
}

/* In a folder like /tmp, a link or pipe of another user could lead anywhere. The kernel can refuse those as well,
 * but only where fs.protected_symlinks and fs.protected_fifos are on. */
static bool is_foreign(const char *path, const struct stat *st)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	struct stat in;

	if (!S_ISLNK(st->st_mode) && !S_ISFIFO(st->st_mode))
		return false;
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash + 1 - path) : 1,
		 slash ? path : ".");
	return stat(folder, &in) == 0 && in.st_mode & S_ISVTX && in.st_mode & S_IWOTH &&
	       st->st_uid != geteuid() && st->st_uid != in.st_uid;
}

enum link_found { LINK_NONE, LINK_FOLLOWED, LINK_REFUSED };

/* Follows a link: the first `len` bytes of the path are one of its folders, or the whole path. If there is a link,
 * it is replaced by its target. */
static enum link_found follow_link(char path[PATH_MAX], size_t len)
{
	char part[PATH_MAX], to[PATH_MAX], whole[PATH_MAX];
	const char *slash;
	struct stat st;
	ssize_t n;
	int made;

	snprintf(part, sizeof(part), "%.*s", (int)len, path);
	if (lstat(part, &st) != 0)
		return LINK_NONE;
	if (is_foreign(part, &st)) {
		errno = EACCES;
		return LINK_REFUSED;
	}
	n = S_ISLNK(st.st_mode) ? readlink(part, to, sizeof(to) - 1) : -1;
	if (n < 0)
		return LINK_NONE;
	to[n] = '\0';
	slash = to[0] == '/' ? NULL : strrchr(part, '/');
	made = snprintf(whole, sizeof(whole), "%.*s%s%s", slash ? (int)(slash + 1 - part) : 0, part,
			to, path + len);
	if (made >= (int)sizeof(whole)) {
		errno = ENAMETOOLONG;
		return LINK_REFUSED;
	}
	memcpy(path, whole, (size_t)made + 1);
	return LINK_FOLLOWED;
}

/* Replaces all links in the path, also those among its folders, by their targets. Links and pipes of other users in
 * folders like /tmp are refused. */
static bool follow_links(char path[PATH_MAX])
{
	int links = 0;

	for (size_t at = 1;;) {
		const char *slash = path[at - 1] ? strchr(path + at, '/') : NULL;
		size_t len = slash ? (size_t)(slash - path) : strlen(path);
		enum link_found found = follow_link(path, len);

		if (found == LINK_REFUSED)
			return false;
		if (found == LINK_NONE && !slash)
			return true;
		/* an absolute link restarts the path at its beginning */
		at = found == LINK_NONE ? len + 1 : 1;
		if (found == LINK_FOLLOWED && ++links == LINKS_MAX) {
			errno = ELOOP;
			return false;
		}
	}
}

/* Makes the name of the temporary file. `target` may be to->target itself. */
static ow_status name_temp(struct atomic_path *to, const char *target, struct ow_error *err)
{
	to->direct = false;
	if (target != to->target && snprintf(to->target, PATH_MAX, "%s", target) >= PATH_MAX)
		return error_errno(err, ENAMETOOLONG, "%s", target);
	if (snprintf(to->temp, PATH_MAX, "%s.tmp%ld", to->target, (long)getpid()) >= PATH_MAX)
		return error_errno(err, ENAMETOOLONG, "%s", target);
	return OW_OK;
}

ow_status atomic_path_find(struct atomic_path *to, const char *path, struct ow_error *err)
{
	struct stat st;

	OW_TRY(name_temp(to, path, err));
	if (!follow_links(to->target))
		return error_errno(err, errno, "%s", path);
	if (stat(path, &st) != 0) {
		if (errno != ENOENT)
			return error_errno(err, errno, "%s", path);
	} else if (!S_ISREG(st.st_mode)) {
		if (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode))
			return error_set(err, OW_E_IO,
					 "%s is %s; give the name of a file that can be written",
					 path, kind_name(st.st_mode));
		to->direct = true;
		snprintf(to->target, PATH_MAX, "%s", path);
		to->temp[0] = '\0';
		return OW_OK;
	}
	return name_temp(to, to->target, err);
}

ow_status atomic_path_find_regular(struct atomic_path *to, const char *path, const char *what,
				   struct ow_error *err)
{
	struct stat st;

	OW_TRY(atomic_path_find(to, path, err));
	if (!to->direct)
		return OW_OK;
	return error_set(err, OW_E_USAGE, "%s is %s; %s needs the name of a regular file", path,
			 stat(path, &st) == 0 ? kind_name(st.st_mode) : "not a file", what);
}

/* O_EXCL is needed because the name can be guessed: a link placed there would redirect the
 * output. */
int atomic_path_open(const struct atomic_path *to, int access, mode_t mode)
{
	const int flags = access | O_CREAT | O_EXCL | O_CLOEXEC;
	int fd;

	if (to->direct)
		return open(to->target, access | O_CLOEXEC);
	fd = open(to->temp, flags, mode);
	if (fd < 0 && errno == EEXIST && unlink(to->temp) == 0)
		fd = open(to->temp, flags, mode);
	return fd;
}

ow_status atomic_path_publish(const struct atomic_path *to, struct ow_error *err)
{
	struct stat st;

	if (to->direct)
		return OW_OK;
	if (lstat(to->target, &st) == 0 && !S_ISREG(st.st_mode))
		return error_set(err, OW_E_IO,
				 "%s is no longer a regular file, so it was not replaced",
				 to->target);
	return rename(to->temp, to->target) == 0 ? OW_OK
						 : error_errno(err, errno, "%s", to->target);
}

void atomic_path_discard(const struct atomic_path *to)
{
	if (!to->direct)
		unlink(to->temp);
}

ow_status atomic_write_whole(const char *path, struct str bytes, mode_t mode, struct ow_error *err)
{
	struct atomic_path to;
	ow_status status = OW_OK;
	int fd;

	OW_TRY(name_temp(&to, path, err));
	fd = atomic_path_open(&to, O_WRONLY, mode);
	if (fd < 0)
		return error_errno(err, errno, "%s", path);
	while (bytes.len && status == OW_OK) {
		ssize_t n = write(fd, bytes.ptr, bytes.len);

		if (n >= 0)
			bytes = str_skip(bytes, (size_t)n);
		else if (errno != EINTR)
			status = error_errno(err, errno, "%s", path);
	}
	if (close(fd) != 0 && status == OW_OK)
		status = error_errno(err, errno, "%s", path);
	if (status == OW_OK)
		status = atomic_path_publish(&to, err);
	if (status != OW_OK)
		atomic_path_discard(&to);
	return status;
}

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

static bool flush_buffer(struct atomic_file *file)
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
		if (file->len == FILE_BUFFER && !flush_buffer(file))
			return false;
	}
	return !file->failure;
}

bool atomic_write_at(struct atomic_file *file, uint64_t offset, const void *bytes, size_t len)
{
	OW_ASSERT(file->seekable);
	if (offset != file->at + file->len) {
		if (!flush_buffer(file))
			return false;
		file->at = offset;
	}
	if (len < FILE_BUFFER)
		return atomic_write(file, bytes, len);
	if (!flush_buffer(file) || !write_all(file, offset, bytes, len))
		return false;
	file->at = offset + len;
	return true;
}

/* Writes the path in /proc through which an unnamed file is reached. */
static void unnamed_path(int fd, char path[32])
{
	snprintf(path, 32, "/proc/self/fd/%d", fd);
}

/* Opens a file without a name, which disappears if the process is killed. Not every file system
 * supports this. */
static int open_unnamed(const char *target)
{
	char folder[PATH_MAX], path[32], *slash;
	int fd;

	snprintf(folder, sizeof(folder), "%s", target);
	slash = strrchr(folder, '/');
	if (slash)
		slash[1] = '\0';
	fd = open(slash ? folder : ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
	if (fd < 0)
		return -1;
	unnamed_path(fd, path);
	if (access(path, F_OK) == 0)
		return fd;
	close(fd); /* the file could not get a name later */
	return -1;
}

static bool give_name(struct atomic_file *file)
{
	char path[32];

	unnamed_path(file->fd, path);
	unlink(file->where.temp);
	if (linkat(AT_FDCWD, path, AT_FDCWD, file->where.temp, AT_SYMLINK_FOLLOW) < 0)
		return false;
	file->unnamed = false;
	return true;
}

ow_status atomic_open(struct atomic_file *file, struct mem *mem, const char *path,
		      struct ow_error *err)
{
	ow_status status;

	*file = (struct atomic_file){ .mem = mem, .path = path, .fd = -1 };
	OW_TRY(atomic_path_find(&file->where, path, err));
	file->buffer = mem_alloc(mem, FILE_BUFFER);
	if (!file->buffer)
		return error_no_memory(err);
	file->seekable = !file->where.direct;
	if (file->seekable)
		file->fd = open_unnamed(file->where.target);
	file->unnamed = file->fd >= 0;
	if (file->fd < 0)
		file->fd = atomic_path_open(&file->where, O_WRONLY, 0666);
	if (file->fd >= 0)
		return OW_OK;
	status = error_errno(err, errno, "%s", path);
	mem_free(mem, file->buffer, FILE_BUFFER);
	return status;
}

ow_status atomic_finish(struct atomic_file *file, ow_status status, struct ow_error *err)
{
	if (status == OW_OK)
		flush_buffer(file);
	if (status == OW_OK && !file->failure && file->unnamed && !give_name(file))
		file->failure = errno;
	if (close(file->fd) < 0 && !file->failure)
		file->failure = errno;
	if (file->failure)
		status = error_errno(err, file->failure, "%s", file->path);
	else if (status == OW_OK)
		status = atomic_path_publish(&file->where, err);
	if (status != OW_OK && !file->unnamed)
		atomic_path_discard(&file->where);
	mem_free(file->mem, file->buffer, FILE_BUFFER);
	return status;
}
