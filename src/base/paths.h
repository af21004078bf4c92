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
	bool found; /* in a directory: it need not be a profile */
};

struct path_list {
	struct arena arena;
	struct path *items;
	size_t count, cap;
	const char *repeated; /* a path whose file is listed already; or NULL */
	size_t unreadable;    /* directories below the given ones that could not be read */
	struct ow_error why;  /* of the first of them */
};

/* Fills the list: each file once, the files of a directory sorted. The caller releases list->arena, also on failure. */
ow_status paths_expand(struct path_list *list, struct mem *mem, const char *const *paths,
		       size_t count, struct ow_error *err);

#endif
