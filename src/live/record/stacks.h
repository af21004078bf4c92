/*
 * stacks.h: stacks of running processes, sampled for some time into a model or read once into a table. For the bodies of
 * ow_stacks_record and ow_stacks_now.
 */
#ifndef LIVE_RECORD_STACKS_H
#define LIVE_RECORD_STACKS_H

#include "model/builder.h"
#include "opwatch/record.h"
#include "table/table.h"

/* Samples until the time is over, all processes have ended or options->progress returns false. Adds a source, samples and
 * notes to the builder. Fills *summary, also when it fails on the way. */
ow_status stacks_record(struct builder *b, struct mem *mem, const struct ow_stacks_options *options,
			const int64_t *pids, size_t count, struct ow_stacks_summary *summary,
			struct ow_error *err);
/* Adds columns and one row per frame, innermost first. */
ow_status stacks_now(struct table *r, struct mem *mem, const int64_t *pids, size_t count,
		     bool children, struct ow_error *err);

#endif
