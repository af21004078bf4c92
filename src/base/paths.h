/*
 * paths.h: the files that paths stand for. A path is a file, "-" (standard input), a directory (all files below it) or
 * a glob pattern that the shell did not expand. Used to open, merge and hash inputs. Opens no file.
 */
#ifndef BASE_PATHS_H
#define BASE_PATHS_H

#include "base/arena.h"
#include "base/error.h"

struct path {
	char *name;
	bool found; /* the file was found in a directory, so it need not be a profile */
};

struct path_list {
	struct arena arena;
	struct path *items;
	size_t count, cap;
	/* path of a file that is already listed under another path; or NULL */
	const char *repeated;
	/* number of directories below the given ones that could not be read */
	size_t unreadable;
	struct ow_error why; /* error of the first unreadable directory */
};

/* Fills the list with each file once; files of a directory are sorted. The caller releases list->arena,
 * also on failure. */
ow_status paths_expand(struct path_list *list, struct mem *mem, const char *const *paths,
		       size_t count, struct ow_error *err);

#endif
