/*
 * place.c: the folders of an export: the target, the hidden staging folder inside it where everything is written first,
 * and the renames that make tables appear. See format.h.
 */
#include "export/format.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Makes the folders of a path one after the other; *first is the length of the first one that did not exist. */
static ow_status make_folders(char *path, size_t *first, struct ow_error *err)
{
	*first = 0;
	for (char *at = path + 1;; at++) {
		char was = *at;

		if (was && was != '/')
			continue;
		*at = 0;
		if (mkdir(path, 0777) == 0)
			*first = *first ? *first : (size_t)(at - path);
		else if (errno != EEXIST)
			return error_errno(err, errno, "%s", path);
		*at = was;
		if (!was)
			return OW_OK;
	}
}

ow_status place_folders(const char *path, struct mem *mem, struct ow_error *err)
{
	size_t len = strlen(path), first;
	char *copy = mem_alloc(mem, len + 1);
	ow_status status;

	if (!copy)
		return error_no_memory(err);
	memcpy(copy, path, len + 1);
	while (len > 1 && copy[len - 1] == '/')
		copy[--len] = 0;
	status = make_folders(copy, &first, err);
	mem_free(mem, copy, strlen(path) + 1);
	return status;
}

/* Walks a tree; children come before their folders. */
static FTS *walk(const char *path)
{
	char *const paths[] = { (char *)(uintptr_t)path, NULL };

	return fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
}

static void remove_all(const char *path)
{
	FTS *tree = walk(path);
	FTSENT *entry;

	while (tree && (entry = fts_read(tree)))
		if (entry->fts_info != FTS_D)
			remove(entry->fts_accpath);
	if (tree)
		fts_close(tree);
}

ow_status place_measure(const char *path, uint64_t *files, uint64_t *bytes, struct ow_error *err)
{
	FTS *tree = walk(path);
	FTSENT *entry;

	if (!tree)
		return error_errno(err, errno, "%s", path);
	while ((entry = fts_read(tree)))
		if (entry->fts_info == FTS_F) {
			++*files;
			*bytes += (uint64_t)entry->fts_statp->st_size;
		}
	fts_close(tree);
	return OW_OK;
}

ow_status place_name_unknown(const char *path, const char *name, const char *wanted,
			     struct ow_error *err)
{
	FTS *tree = walk(path);
	ow_status status = OW_OK;
	char to[PATH_MAX];
	FTSENT *entry;

	if (!tree)
		return error_errno(err, errno, "%s", path);
	while (status == OW_OK && (entry = fts_read(tree))) {
		size_t len = entry->fts_pathlen - entry->fts_namelen;

		if (entry->fts_info != FTS_DP || strcmp(entry->fts_name, name) != 0)
			continue;
		if (len + strlen(wanted) >= sizeof(to)) {
			status = error_set(err, OW_E_LIMIT, "%s: the path is too long", path);
			break;
		}
		memcpy(to, entry->fts_path, len);
		memcpy(to + len, wanted, strlen(wanted) + 1);
		if (rename(entry->fts_path, to) != 0)
			status = error_errno(err, errno, "%s", to);
	}
	fts_close(tree);
	return status;
}

#define STAGING ".opwatch-export-"
/* younger staging folders are kept: the process id in their name may have been reused */
#define STAGING_AGE_S 60

/* Whether the folder has files of the user that were moved there and exist nowhere else. */
static bool holds_files(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	bool found = false;

	while (dir && (entry = readdir(dir)))
		found |= strncmp(entry->d_name, "replaced-", 9) == 0;
	if (dir)
		closedir(dir);
	return found;
}

/* Whether a staging folder is abandoned: its writer holds a lock on it, which the system releases when the writer
 * ends. */
static bool is_abandoned(const char *path, const char *name)
{
	long pid = strtol(name + strlen(STAGING), NULL, 10);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	bool free;

	if (fd < 0)
		return false;
	free = flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 &&
	       (time(NULL) - st.st_mtime > STAGING_AGE_S ||
		(pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH)) &&
	       !holds_files(path);
	close(fd);
	return free;
}

static void remove_abandoned(struct place *place)
{
	DIR *dir = opendir(place->dir);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char *path;

		if (strncmp(entry->d_name, STAGING, strlen(STAGING)) != 0)
			continue;
		path = arena_printf(&place->arena, "%s/%s", place->dir, entry->d_name);
		if (path && is_abandoned(path, entry->d_name))
			remove_all(path);
	}
	if (dir)
		closedir(dir);
}

static ow_status open_dir(struct place *place, struct ow_error *err)
{
	char *path = arena_cstr(&place->arena, str_from(place->dir));
	struct stat st;
	size_t first;

	if (!path)
		return error_no_memory(err);
	if (!*path)
		return error_set(err, OW_E_USAGE, "the name of the folder is empty");
	if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
		return error_set(err, OW_E_USAGE, "%s is not a folder", path);
	for (size_t len = strlen(path); len > 1 && path[len - 1] == '/';)
		path[--len] = 0;
	place->dir = path;
	OW_TRY(make_folders(path, &first, err));
	if (first)
		place->created = arena_cstr(&place->arena, str_make(path, first));
	return first && !place->created ? error_no_memory(err) : OW_OK;
}

ow_status place_open(struct place *place, struct mem *mem, const char *dir, struct ow_error *err)
{
	ow_status status;
	char *staging;

	*place = (struct place){ .mem = mem, .dir = dir, .lock = -1 };
	arena_init(&place->arena, mem);
	status = open_dir(place, err);
	if (status == OW_OK) {
		remove_abandoned(place);
		staging = arena_printf(&place->arena, "%s/" STAGING "%ld-XXXXXX", place->dir,
				       (long)getpid());
		if (!staging)
			status = error_no_memory(err);
		else if (!mkdtemp(staging))
			status = error_errno(err, errno, "%s: cannot write there", place->dir);
		else
			place->staging = staging;
		place->lock = place->staging
				      ? open(place->staging, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
				      : -1;
		if (place->lock >= 0)
			/* some file systems have no locks */
			(void)flock(place->lock, LOCK_EX | LOCK_NB);
	}
	if (status != OW_OK)
		place_close(place, true);
	return status;
}

/* Removes the folders that were created, from the innermost to the outermost, as long as they are empty. */
static void remove_created(struct place *place)
{
	char *path = arena_cstr(&place->arena, str_from(place->dir));
	size_t least = strlen(place->created);

	while (path && strlen(path) >= least && rmdir(path) == 0) {
		char *slash = strrchr(path, '/');

		if (!slash || slash == path)
			return;
		*slash = 0;
	}
}

void place_close(struct place *place, bool failed)
{
	if (place->staging)
		remove_all(place->staging);
	if (place->lock >= 0)
		close(place->lock);
	if (failed && place->created)
		remove_created(place);
	arena_release(&place->arena);
}

static ow_status move_away(struct place *place, const char *to, bool overwrite,
			   struct ow_error *err)
{
	struct stat st;
	char *old;

	if (lstat(to, &st) < 0)
		return OW_OK;
	if (!overwrite)
		return error_set(err, OW_E_USAGE, "%s already exists; --overwrite replaces it", to);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
		return error_set(err, OW_E_USAGE, "%s is not a file or folder; it is not replaced",
				 to);
	old = arena_printf(&place->arena, "%s/replaced-%u", place->staging, place->replaced++);
	if (!old)
		return error_no_memory(err);
	return rename(to, old) == 0 ? OW_OK : error_errno(err, errno, "%s", to);
}

static bool can_replace(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 &&
	       (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode));
}

ow_status place_publish(struct place *place, const char *name, bool overwrite, struct ow_error *err)
{
	size_t len = strlen(name);
	char *from, *to;

	len -= len && name[len - 1] == '/';
	from = arena_printf(&place->arena, "%s/%.*s", place->staging, (int)len, name);
	to = arena_printf(&place->arena, "%s/%.*s", place->dir, (int)len, name);
	if (!from || !to)
		return error_no_memory(err);
	/* One atomic rename, if the file system supports it: if the process were killed between two, an older file
	 * would be lost. */
	if (overwrite && can_replace(to) &&
	    renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0)
		return OW_OK;
	OW_TRY(move_away(place, to, overwrite, err));
	return rename(from, to) == 0 ? OW_OK : error_errno(err, errno, "%s", to);
}

ow_status place_write(struct place *place, const char *name, struct str bytes, unsigned mode,
		      bool overwrite, struct ow_error *err)
{
	char *path = arena_printf(&place->arena, "%s/%s", place->staging, name);
	struct stream s;

	if (!path)
		return error_no_memory(err);
	OW_TRY(stream_open(&s, place->mem, path, PACK_NONE, err));
	buf_add_str(&s.in, bytes);
	OW_TRY(stream_close(&s, OW_OK, err));
	if (mode && chmod(path, mode) < 0)
		return error_errno(err, errno, "%s", path);
	return place_publish(place, name, overwrite, err);
}

char *place_escape(struct arena *arena, struct str value)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789_-.";
	char *text = arena_push(arena, value.len * 3 + 2), *to = text;

	for (size_t i = 0; text && i < value.len; i++) {
		unsigned char c = (unsigned char)value.ptr[i];

		if (c && strchr(plain, c))
			*to++ = (char)c;
		else
			to += snprintf(to, 4, "%%%02X", c);
	}
	return text;
}
