/* new_file.c: see new_file.h. */
#include "live/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* A link to a file that is not there: it is made by opening the link. */
static int open_missing(struct new_file *file, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0 && !realpath(path, file->made))
		file->made[0] = '\0';
	return fd;
}

/* O_EXCL: the name is easy to guess, and what is there may lead elsewhere. */
static int open_beside(struct new_file *file)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
	int fd, len = snprintf(file->made, sizeof(file->made), "%s.part-%d", file->target,
			       (int)getpid());

	if (len >= (int)sizeof(file->made)) {
		errno = ENAMETOOLONG;
		fd = -1;
	} else {
		fd = open(file->made, flags, 0600);
		if (fd < 0 && errno == EEXIST && unlink(file->made) == 0)
			fd = open(file->made, flags, 0600);
	}
	if (fd < 0)
		file->made[0] = '\0';
	return fd;
}

int new_file_open(struct new_file *file, const char *path)
{
	struct stat st;
	int len;

	file->made[0] = file->target[0] = '\0';
	if (stat(path, &st) == 0) {
		if (!S_ISREG(st.st_mode))
			return open(path, O_RDWR | O_CLOEXEC);
		if (!realpath(path, file->target))
			return -1;
		return open_beside(file);
	}
	if (lstat(path, &st) == 0)
		return open_missing(file, path);
	len = snprintf(file->target, sizeof(file->target), "%s", path);
	if (len < (int)sizeof(file->target))
		return open_beside(file);
	errno = ENAMETOOLONG;
	return -1;
}

bool new_file_appear(struct new_file *file)
{
	if (file->target[0] && rename(file->made, file->target) != 0)
		return false;
	file->made[0] = file->target[0] = '\0';
	return true;
}

void new_file_drop(struct new_file *file)
{
	if (file->made[0])
		unlink(file->made);
	file->made[0] = file->target[0] = '\0';
}
