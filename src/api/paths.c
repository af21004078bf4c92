/*
 * paths.c: what the words on a command line mean: a file, "-", a directory (all files below it) or a
 * glob pattern that the shell did not expand. Hidden files are left out of directories.
 */
#include "api/api_int.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <sys/stat.h>

#define DIRECTORY_DEPTH 8
#define FILES_MAX 100000

static ow_status add_path(struct path_list *list, const char *path, bool found, struct error *err)
{
	if (list->count == FILES_MAX)
		return error_set(err, OW_E_LIMIT, "more than %d files; name fewer", FILES_MAX);
	if (list->count == list->cap) {
		size_t cap = list->cap ? list->cap * 2 : 16;
		struct path *items = ARENA_ARRAY(&list->arena, struct path, cap);

		if (!items)
			return error_no_memory(err);
		if (list->count)
			memcpy(items, list->items, list->count * sizeof(*items));
		list->items = items;
		list->cap = cap;
	}
	list->items[list->count].name = arena_cstr(&list->arena, str_from(path));
	list->items[list->count].found = found;
	if (!list->items[list->count].name)
		return error_no_memory(err);
	list->count++;
	return OW_OK;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct path *)a)->name, ((const struct path *)b)->name);
}

static ow_status add_entry(struct path_list *list, const char *path, int depth, struct error *err);

static ow_status add_directory(struct path_list *list, const char *path, int depth,
			       struct error *err)
{
	DIR *dir = depth < DIRECTORY_DEPTH ? opendir(path) : NULL;
	size_t first = list->count, len = strlen(path);
	ow_status status = OW_OK;
	struct dirent *entry;

	if (!dir)
		return depth < DIRECTORY_DEPTH ? error_errno(err, errno, "%s", path) : OW_OK;
	while (len > 1 && path[len - 1] == '/')
		len--;
	while (status == OW_OK && (entry = readdir(dir))) {
		char *inner;

		if (entry->d_name[0] == '.')
			continue;
		inner = arena_printf(&list->arena, "%.*s/%s", (int)len, path, entry->d_name);
		status = inner ? add_entry(list, inner, depth + 1, err) : error_no_memory(err);
	}
	closedir(dir);
	if (list->count > first)
		qsort(list->items + first, list->count - first, sizeof(*list->items), by_name);
	return status;
}

static ow_status add_entry(struct path_list *list, const char *path, int depth, struct error *err)
{
	struct stat st = { 0 }; /* a link to nothing is no regular file */

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return add_directory(list, path, depth, err);
	if (depth > 0 && !S_ISREG(st.st_mode))
		return OW_OK;
	return add_path(list, path, depth > 0, err);
}

static ow_status add_pattern(struct path_list *list, const char *pattern, struct error *err)
{
	glob_t found = { 0 };
	ow_status status = OW_OK;
	struct stat st;

	if (stat(pattern, &st) == 0 || !strpbrk(pattern, "*?[") ||
	    glob(pattern, 0, NULL, &found) != 0) {
		globfree(&found);
		return add_entry(list, pattern, 0, err);
	}
	for (size_t i = 0; status == OW_OK && i < found.gl_pathc; i++)
		status = add_entry(list, found.gl_pathv[i], 0, err);
	globfree(&found);
	return status;
}

ow_status paths_expand(struct path_list *list, struct mem *mem, const char *const *paths,
		       size_t count, struct error *err)
{
	*list = (struct path_list){ 0 };
	arena_init(&list->arena, mem);
	for (size_t i = 0; i < count; i++)
		OW_TRY(strcmp(paths[i], "-") == 0 ? add_path(list, paths[i], false, err)
						  : add_pattern(list, paths[i], err));
	if (!list->count)
		return error_set(err, OW_E_NOT_FOUND, "%s: no files in it",
				 count ? paths[0] : "input");
	return OW_OK;
}
