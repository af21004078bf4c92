/* ranks.h: reading the files of a job one after the other, for ow_ranks and for merging on fitted clocks. */
#ifndef API_RANKS_H
#define API_RANKS_H

#include "base/paths.h"
#include "opwatch/ranks.h"
#include "ranks/ranks.h"

/* Adds the ranks of all files; each is freed when its summary is made. *skipped counts files of folders that are not traces; may be NULL. */
ow_status api_ranks_read(struct ranks_job *job, const struct path_list *list,
			 const struct ow_ranks_options *options, size_t *skipped,
			 struct ow_error *err);

#endif
