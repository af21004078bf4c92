/*
 * trace_scan.h: elements of the traceEvents of a file: all of them in order, metadata, flows and counters included,
 * with the values as written; or only those at some places. For trace_list.c, which takes everything else from the
 * model.
 */
#ifndef RELATION_TRACE_SCAN_H
#define RELATION_TRACE_SCAN_H

#include "relation/trace/trace_texts.h"

#include <math.h>

#define TRACE_NO_NUMBER INT64_MIN
#define TRACE_BLOCK 65536 /* rows of a block */

/* Elements in columns. Texts are codes of the dictionary, 0 = none; times are microseconds, NaN = none. */
struct trace_block {
	double ts[TRACE_BLOCK], dur[TRACE_BLOCK];
	/* TRACE_NO_NUMBER if the value is missing or a text */
	int64_t pid[TRACE_BLOCK], tid[TRACE_BLOCK];
	uint64_t args_offset[TRACE_BLOCK];
	uint32_t args_size[TRACE_BLOCK], index[TRACE_BLOCK];
	uint32_t ph[TRACE_BLOCK], cat[TRACE_BLOCK], name[TRACE_BLOCK];
	uint32_t arg_name[TRACE_BLOCK], arg_op[TRACE_BLOCK];
};

struct trace_rows {
	struct mem *mem;
	struct trace_block **blocks;
	size_t block_count, block_cap;
	uint64_t count;
	struct trace_texts texts;
	uint32_t letters[256]; /* for each character: the code of ph with that letter */
	uint32_t last_cat;
};

/* False if memory runs out; the caller calls trace_rows_release in any case. */
bool trace_rows_init(struct trace_rows *r, struct mem *mem, const struct model *m) OW_MUST_CHECK;
void trace_rows_release(struct trace_rows *r);
/* Appends all elements of an input. */
ow_status trace_rows_scan(struct trace_rows *r, const struct input *in, struct ow_error *err);
/* Appends the elements of a listing that the model does not hold in full. Their index is 0. */
ow_status trace_rows_read(struct trace_rows *r, const struct input *in, const uint64_t *elements,
			  size_t count, struct ow_error *err);
/* Finds the code of a text of one letter; false if memory runs out. */
bool trace_rows_letter(struct trace_rows *r, uint8_t letter, uint32_t *code) OW_MUST_CHECK;
/* Nanoseconds as microseconds; NaN for TIME_UNKNOWN. */
static inline double trace_micros(int64_t ns)
{
	/* Times since 1970 in nanoseconds are more than a double holds; in microseconds they are not. */
	int64_t whole = ns / 1000, rest = ns % 1000;

	if (OW_LIKELY(ns < (INT64_C(1) << 53) && ns > -(INT64_C(1) << 53)))
		return (double)ns / 1000.0;
	return ns == TIME_UNKNOWN ? (double)NAN : (double)whole + (double)rest / 1000.0;
}

#endif
