/* sweep.c: see sweep.h. */
#include "live/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PREFIX "opwatch-"
#define RANDOM_CHARACTERS 6
#define OLD_SECONDS 60 /* a collector that is starting has a folder before it listens */

static bool is_old(const struct stat *st)
{
	return time(NULL) - st->st_mtime >= OLD_SECONDS;
}

/* Nobody listens any more. */
static bool is_abandoned(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, refused;

	if (strlen(path) >= sizeof(address.sun_path))
		return false;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	refused = connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 &&
		  errno == ECONNREFUSED;
	close(fd);
	return refused;
}

static void look_at(const char *base, const char *name)
{
	char folder[128], path[160];
	struct stat st;

	if (snprintf(folder, sizeof(folder), "%s/%s", base, name) >= (int)sizeof(folder) ||
	    lstat(folder, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 0066) || !is_old(&st))
		return;
	snprintf(path, sizeof(path), "%s/s", folder);
	if (lstat(path, &st) == 0) {
		if (!S_ISSOCK(st.st_mode) || !is_old(&st) || !is_abandoned(path))
			return;
		unlink(path);
	}
	rmdir(folder); /* only when nothing else is in it */
}

void sweep_sockets(const char *base)
{
	DIR *dir = opendir(base);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL)
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0 &&
		    strlen(entry->d_name) == strlen(PREFIX) + RANDOM_CHARACTERS)
			look_at(base, entry->d_name);
	if (dir)
		closedir(dir);
}
