/* runtime_dir.c: see runtime_dir.h. */
#include "live/runtime_dir.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOT_DIR "/run/opwatch"
#define SOCKET_NAME "socket"

void runtime_dir(char *to, size_t size)
{
	const char *base = getenv("XDG_RUNTIME_DIR");

	if (geteuid() == 0)
		snprintf(to, size, ROOT_DIR);
	else if (base && base[0] == '/' && strlen(base) < 80)
		snprintf(to, size, "%s/opwatch", base);
	else
		snprintf(to, size, "/tmp/opwatch-%u", (unsigned)geteuid());
}

/* Whether a folder is one that nobody else can have put there. */
static bool is_ours(const char *path, uid_t owner)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == owner &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

bool runtime_socket(unsigned index, char *to, size_t size)
{
	const char *named = getenv("OPWATCH_SOCKET");
	char folder[96];

	if (named && *named) {
		snprintf(to, size, "%s", named);
		return index == 0;
	}
	switch (index) {
	case 0:
		runtime_dir(folder, sizeof(folder));
		break;
	case 1: /* a daemon that was started without XDG_RUNTIME_DIR */
		snprintf(folder, sizeof(folder), "/tmp/opwatch-%u", (unsigned)geteuid());
		break;
	case 2:
		snprintf(folder, sizeof(folder), ROOT_DIR);
		break;
	default:
		return false;
	}
	to[0] = '\0';
	if (is_ours(folder, index == 2 ? 0 : geteuid()))
		snprintf(to, size, "%s/%s", folder, SOCKET_NAME);
	return true;
}

void runtime_usual_socket(char *to, size_t size)
{
	const char *named = getenv("OPWATCH_SOCKET");
	char folder[96];

	runtime_dir(folder, sizeof(folder));
	if (named && *named)
		snprintf(to, size, "%s", named);
	else
		snprintf(to, size, "%s/%s", folder, SOCKET_NAME);
}

void runtime_data_dir(char *to, size_t size)
{
	if (geteuid() == 0)
		snprintf(to, size, "/var/lib/opwatch");
	else
		snprintf(to, size, "/var/tmp/opwatch-%u", (unsigned)geteuid());
}

ow_status runtime_make_dir(const char *path, mode_t mode, struct error *err)
{
	struct stat st;

	if (mkdir(path, mode) == 0)
		return OW_OK;
	if (errno != EEXIST)
		return error_errno(err, errno, "%s", path);
	if (lstat(path, &st) != 0)
		return error_errno(err, errno, "%s", path);
	if (!S_ISDIR(st.st_mode))
		return error_set(err, OW_E_PERMISSION, "%s: is no folder", path);
	if (st.st_uid != geteuid())
		return error_set(err, OW_E_PERMISSION,
				 "%s: belongs to another user; name another place with --dir and "
				 "--socket",
				 path);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return error_set(err, OW_E_PERMISSION,
				 "%s: others may write there; chmod 700 it, or name another place",
				 path);
	return OW_OK;
}
