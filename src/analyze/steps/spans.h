/*
 * spans.h: sets of moments as lists of disjoint spans, and how long tracks were busy with overlapping events counted once. Events are added
 * in any order; a span that overlaps the one before is joined at once, so nested events need no memory. After spans_finish the list is
 * sorted and disjoint and may be read. Used by phases.c and by the views of steps, devices and tracks. Knows no phases.
 */
#ifndef ANALYZE_SPANS_H
#define ANALYZE_SPANS_H

#include "model/event_filter.h"
#include "base/mem.h"

struct span {
	int64_t begin, end; /* begin < end; the span does not include `end` */
};

struct span_list {
	struct span *items;
	size_t count, cap;
};

/* Adds a span; empty spans are ignored. False if memory runs out. */
bool spans_add(struct span_list *list, struct mem *mem, int64_t begin, int64_t end) OW_MUST_CHECK;
/* Adds all spans of `from`. */
bool spans_add_all(struct span_list *list, struct mem *mem,
		   const struct span_list *from) OW_MUST_CHECK;
/* Sorts and joins the spans; false if memory runs out. */
bool spans_finish(struct span_list *list, struct mem *mem) OW_MUST_CHECK;
void spans_release(struct span_list *list, struct mem *mem);

/* Returns the index of the first span that ends after t; `count` if there is none. The list must
 * be finished. */
size_t spans_after(const struct span_list *list, int64_t t);

/* Returns end - begin without overflow; 0 if negative. */
static inline int64_t span_length(int64_t begin, int64_t end)
{
	uint64_t len;

	if (end <= begin)
		return 0;
	len = (uint64_t)end - (uint64_t)begin;
	return len > INT64_MAX ? INT64_MAX : (int64_t)len;
}

/* Adds two numbers; the sum stays at the limit of the type instead of wrapping. */
static inline int64_t span_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b > 0 ? INT64_MAX : INT64_MIN;
	return sum;
}

struct busy {
	int64_t busy_ns;   /* length of the union of the events' spans */
	int64_t within_ns; /* part of busy_ns that lies in `within` */
	uint64_t events;   /* number of events, with or without a duration */
};

/* group[track] says to which of `count` groups a track's events belong; UINT32_MAX = to none. `within`: per group, finished spans; NULL =
 * none. `out` has `count` zeroed items. */
ow_status busy_measure(const struct model *m, const struct event_filter *filter,
		       const uint32_t *group, uint32_t count, const struct span_list *within,
		       struct busy *out, struct ow_error *err);

#endif
