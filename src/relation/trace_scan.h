/*
 * trace_scan.h: the events of a Chrome trace as they stand in the file: every element of traceEvents in order,
 * metadata, flows and counters included, with the values as written. Made when trace_events is asked for; the
 * model has the same events sorted, paired and in nanoseconds.
 */
#ifndef RELATION_TRACE_SCAN_H
#define RELATION_TRACE_SCAN_H

#include "relation/relation.h"

#define TRACE_NO_NUMBER INT64_MIN
#define TRACE_BLOCK 65536 /* rows */

/* Elements, column by column. Texts are codes of the dictionary, 0 = none; times are microseconds, NaN = none. */
struct trace_block {
	double ts[TRACE_BLOCK], dur[TRACE_BLOCK];
	int64_t pid[TRACE_BLOCK], tid[TRACE_BLOCK]; /* TRACE_NO_NUMBER when absent or text */
	uint64_t args_offset[TRACE_BLOCK];
	uint32_t args_size[TRACE_BLOCK], source[TRACE_BLOCK], index[TRACE_BLOCK];
	uint32_t ph[TRACE_BLOCK], cat[TRACE_BLOCK], name[TRACE_BLOCK];
	uint32_t arg_name[TRACE_BLOCK], arg_op[TRACE_BLOCK];
};

struct trace_rows {
	struct mem *mem;
	struct trace_block **blocks;
	size_t block_count, block_cap;
	uint64_t count;
	struct str *texts; /* the dictionary */
	size_t text_count, text_cap;
	struct map map;
	struct arena arena;    /* of the texts */
	uint32_t letters[256]; /* codes of ph */
	uint32_t last_cat;
};

void trace_rows_init(struct trace_rows *r, struct mem *mem);
void trace_rows_release(struct trace_rows *r);
/* Appends the elements of an input. */
ow_status trace_rows_scan(struct trace_rows *r, const struct input *in, uint32_t source,
			  struct error *err);
/* Appends the events of a source that is no trace. */
ow_status trace_rows_add_events(struct trace_rows *r, const struct model *m, uint32_t source,
				struct error *err);

#endif
