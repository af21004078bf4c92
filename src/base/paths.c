/*
 * paths.c: expands paths to files. Hidden files in directories are left out. A file that is reached twice, by two names
 * or through links, counts once: its times must not be added up twice.
 */
#include "base/paths.h"

#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <sys/stat.h>

#define DIRECTORY_DEPTH 8
#define FILES_MAX 100000 /* largest number of files, and of directories */

/* A file or directory that was seen before; links may lead to it again, also in circles. */
struct met {
	uint64_t dev, ino;
	size_t path; /* index of the file in the list; SIZE_MAX: a directory */
};

struct expansion {
	struct path_list *list;
	struct arena names; /* memory for the names of all directories on the way */
	struct map map;	    /* maps (device, inode) to the index in `met` + 1 */
	struct met *met;
	size_t met_count, met_cap;
};

static ow_status add_path(struct path_list *list, const char *name, bool found,
			  struct ow_error *err)
{
	struct path *items;

	if (list->count == FILES_MAX)
		return error_set(err, OW_E_LIMIT, "more than %d files; name fewer", FILES_MAX);
	items = arena_grow(&list->arena, list->items, list->count, &list->cap, sizeof(*items));
	if (!items)
		return error_no_memory(err);
	list->items = items;
	list->items[list->count].name = arena_cstr(&list->arena, str_from(name));
	list->items[list->count].found = found;
	if (!list->items[list->count].name)
		return error_no_memory(err);
	list->count++;
	return OW_OK;
}

static struct met *find_met(const struct expansion *x, const struct stat *st)
{
	struct map_iter it = map_find(&x->map, map_hash_u64(st->st_dev, st->st_ino));

	for (; it.value; it = map_next(&x->map, it)) {
		struct met *met = &x->met[it.value - 1];

		if (met->dev == st->st_dev && met->ino == st->st_ino)
			return met;
	}
	return NULL;
}

static ow_status add_met(struct expansion *x, const struct stat *st, size_t path,
			 struct ow_error *err)
{
	void *met = x->met;

	if (x->met_count == (size_t)2 * FILES_MAX)
		return error_set(err, OW_E_LIMIT, "more than %d files and directories; name fewer",
				 2 * FILES_MAX);
	if (!mem_grow(x->map.mem, &met, &x->met_cap, x->met_count + 1, sizeof(*x->met)))
		return error_no_memory(err);
	x->met = met;
	x->met[x->met_count++] = (struct met){ st->st_dev, st->st_ino, path };
	if (!map_add(&x->map, map_hash_u64(st->st_dev, st->st_ino), (uint32_t)x->met_count))
		return error_no_memory(err);
	return OW_OK;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct name_list {
	char **items;
	size_t count, cap;
};

/* Lists the entries of a directory in sorted order, so that the order of files does not depend on chance. */
static ow_status list_names(struct expansion *x, const char *path, DIR *dir,
			    struct name_list *names, struct ow_error *err)
{
	size_t len = strlen(path);
	struct dirent *entry;

	while (len > 1 && path[len - 1] == '/')
		len--;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (!vec_reserve(x->map.mem, names->items, names->cap, names->count + 1))
			return error_no_memory(err);
		names->items[names->count] =
			arena_printf(&x->names, "%.*s/%s", (int)len, path, entry->d_name);
		if (!names->items[names->count])
			return error_no_memory(err);
		names->count++;
	}
	if (names->count)
		qsort(names->items, names->count, sizeof(*names->items), by_text);
	return OW_OK;
}

/* Handles an unreadable directory: an error if the caller named it; directories below that are
 * only counted. */
static ow_status not_readable(struct expansion *x, const char *path, int depth,
			      struct ow_error *err)
{
	struct ow_error why = { 0 };
	ow_status status = error_errno(&why, errno, "%s", path);

	if (depth) {
		if (!x->list->unreadable++)
			x->list->why = why;
		return OW_OK;
	}
	if (err)
		*err = why;
	return status;
}

static ow_status add_entry(struct expansion *x, const char *path, int depth, struct ow_error *err);

static ow_status add_directory(struct expansion *x, const char *path, int depth,
			       struct ow_error *err)
{
	struct name_list names = { 0 };
	ow_status status;
	DIR *dir;

	if (depth >= DIRECTORY_DEPTH)
		return OW_OK;
	dir = opendir(path);
	if (!dir)
		return not_readable(x, path, depth, err);
	status = list_names(x, path, dir, &names, err);
	closedir(dir);
	for (size_t i = 0; status == OW_OK && i < names.count; i++)
		status = add_entry(x, names.items[i], depth + 1, err);
	mem_free(x->map.mem, names.items, names.cap * sizeof(*names.items));
	return status;
}

static ow_status add_entry(struct expansion *x, const char *path, int depth, struct ow_error *err)
{
	struct stat st = { 0 }; /* stays zero for a dangling link, which is not a regular file */
	bool exists = stat(path, &st) == 0, directory = exists && S_ISDIR(st.st_mode);
	struct met *met = exists ? find_met(x, &st) : NULL;

	if (met) {
		if (met->path != SIZE_MAX && !depth) {
			x->list->items[met->path].found = false;
			x->list->repeated = x->list->items[met->path].name;
		}
		return OW_OK;
	}
	if (depth > 0 && !directory && !S_ISREG(st.st_mode))
		return OW_OK;
	if (exists && st.st_ino) /* some file systems do not give numbers to their files */
		OW_TRY(add_met(x, &st, directory ? SIZE_MAX : x->list->count, err));
	return directory ? add_directory(x, path, depth, err)
			 : add_path(x->list, path, depth > 0, err);
}

static ow_status add_pattern(struct expansion *x, const char *pattern, struct ow_error *err)
{
	glob_t found = { 0 };
	ow_status status = OW_OK;
	struct stat st;

	if (stat(pattern, &st) == 0 || !strpbrk(pattern, "*?[") ||
	    glob(pattern, 0, NULL, &found) != 0) {
		globfree(&found);
		return add_entry(x, pattern, 0, err);
	}
	for (size_t i = 0; status == OW_OK && i < found.gl_pathc; i++)
		status = add_entry(x, found.gl_pathv[i], 0, err);
	globfree(&found);
	return status;
}

static ow_status add_words(struct expansion *x, const char *const *words, size_t count,
			   struct ow_error *err)
{
	bool standard_input = false; /* standard input can be read only once */

	for (size_t i = 0; i < count; i++) {
		if (strcmp(words[i], "-") != 0) {
			OW_TRY(add_pattern(x, words[i], err));
		} else if (!standard_input) {
			standard_input = true;
			OW_TRY(add_path(x->list, "-", false, err));
		}
	}
	return OW_OK;
}

ow_status paths_expand(struct path_list *list, struct mem *mem, const char *const *paths,
		       size_t count, struct ow_error *err)
{
	struct expansion x = { .list = list };
	ow_status status;

	*list = (struct path_list){ 0 };
	arena_init(&list->arena, mem);
	arena_init(&x.names, mem);
	map_init(&x.map, mem);
	status = add_words(&x, paths, count, err);
	arena_release(&x.names);
	map_release(&x.map);
	mem_free(mem, x.met, x.met_cap * sizeof(*x.met));
	OW_TRY(status);
	if (list->count)
		return OW_OK;
	if (list->unreadable && err)
		*err = list->why;
	return list->unreadable ? list->why.status
				: error_set(err, OW_E_NOT_FOUND, "%s: the folder has no files",
					    count ? paths[0] : "input");
}
