/*
 * temp_file.c: opens and writes unlinked temporary files in TMPDIR or /tmp. Streams (input.c), unpacked containers
 * (spool.c), merge and large results call it; recordings use temp_file_fits. A write is refused when it would leave
 * less than 1 GiB free, or less than 5 % of a small disk. Files are not read or mapped here: the caller owns the
 * descriptor.
 */
#include "base/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define KEEP_FREE ((uint64_t)1 << 30)

static const char *directory(void)
{
	const char *dir = getenv("TMPDIR");

	return dir && *dir ? dir : "/tmp";
}

int temp_file_open(struct ow_error *err)
{
	const char *dir = directory();
	char path[4096];
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	if (snprintf(path, sizeof(path), "%s/opwatch-XXXXXX", dir) >= (int)sizeof(path)) {
		error_set(err, OW_E_IO, "the path in TMPDIR is too long");
		return -1;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0) {
		error_errno(err, errno, "cannot make a temporary file in %s (set TMPDIR)", dir);
		return -1;
	}
	unlink(path);
	return fd;
}

bool temp_file_fits(uint64_t total, uint64_t free, uint64_t len)
{
	uint64_t keep = MIN(total / 20, KEEP_FREE);

	/* some file systems report no sizes */
	return !total || (len <= free && free - len >= keep);
}

/* Checks the free space as the system reports it; the write itself may still fail. */
static ow_status check_room(int fd, uint64_t offset, size_t len, struct ow_error *err)
{
	struct statvfs st;

	if (fstatvfs(fd, &st) < 0 || temp_file_fits((uint64_t)st.f_blocks * st.f_frsize,
						    (uint64_t)st.f_bavail * st.f_frsize, len))
		return OW_OK;
	return error_set(err, OW_E_LIMIT,
			 "after %" PRIu64 " MB the temporary copy would fill %s; set TMPDIR to a "
			 "directory with more room",
			 offset / 1000000, directory());
}

ow_status temp_file_write(int fd, uint64_t offset, const void *bytes, size_t len,
			  struct ow_error *err)
{
	OW_TRY(check_room(fd, offset, len, err));
	while (len) {
		ssize_t n = pwrite(fd, bytes, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_errno(err, errno,
					   "cannot write a temporary file in %s (set TMPDIR to a "
					   "directory with more room)",
					   directory());
		bytes = (const char *)bytes + n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return OW_OK;
}
