/*
 * spans.h: sets of moments as disjoint spans in order. Events are added as they come; what overlaps
 * the span before it is joined at once, so that nested events take no memory of their own. After
 * spans_finish the list is sorted and disjoint and may be read. Knows nothing of phases or tracks.
 */
#ifndef ANALYZE_SPANS_H
#define ANALYZE_SPANS_H

#include "base/mem.h"

struct span {
	int64_t begin, end; /* begin < end; end is not part of it */
};

struct span_list {
	struct span *items;
	size_t count, cap;
};

/* Empty spans are ignored; false without memory. */
bool spans_add(struct span_list *list, struct mem *mem, int64_t begin, int64_t end) OW_MUST_CHECK;
/* Adds all of `from`. */
bool spans_add_all(struct span_list *list, struct mem *mem,
		   const struct span_list *from) OW_MUST_CHECK;
/* Sorts and joins; false without memory. */
bool spans_finish(struct span_list *list, struct mem *mem) OW_MUST_CHECK;
void spans_release(struct span_list *list, struct mem *mem);

/* The first span that ends after t; count when there is none. The list must be finished. */
size_t spans_after(const struct span_list *list, int64_t t);

/* end - begin without overflow; 0 when negative. */
int64_t span_length(int64_t begin, int64_t end);
/* Sums that stay at the end of the range instead of wrapping. */
int64_t span_add(int64_t a, int64_t b);

#endif
