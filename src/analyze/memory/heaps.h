/*
 * heaps.h: memory over time, for the memory views. A heap is what one allocator of one device did, according to one source. Its changes come
 * from the table `heap`; profiles of TensorFlow 1 have them in `alloc` and `memory`, from which a list of the same form is made. All views
 * replay the changes with heap_apply, so they agree.
 */
#ifndef ANALYZE_HEAPS_H
#define ANALYZE_HEAPS_H

#include "analyze/view.h"

/* Changes of memory in the order of time. Rows are those of the table `heap`, or of a list made
 * for TensorFlow 1. */
struct heap_list {
	uint32_t first, count; /* the rows are [first, count) */
	const int64_t *ts_ns, *size;
	const uint8_t *kind;
	const op_id *op;
	const device_id *device;   /* device of each row, or NULL if device_name is set */
	const str_id *device_name; /* name of the device of each row, if `device` is NULL */
	const str_id *allocator;   /* allocator of each row; may be NULL, as all arrays below */
	const source_id *source;
	const uint64_t *address;
	const step_id *step;
	const stack_id *stack;
	const int64_t *allocated, *reserved, *available, *peak;
	const double *fragmentation;
	const str_id *purpose;
	uint32_t *heap; /* heap of each row, from 1; 0 for rows that the options exclude */
};

struct heap_state {
	int64_t in_use, reserved;
};

struct heap {
	uint32_t list; /* number of the list that has the heap's changes */
	str_id device, allocator;
	source_id source;
	uint64_t allocations, releases, failures;
	struct heap_state start; /* state before the heap's first change */
	struct heap_state end;
	int64_t before; /* memory in use before the first change that has a time */
	int64_t peak, reserved_at_peak, reserved_peak;
	uint32_t peak_row; /* row of the peak; 0 if nothing changed in the chosen time */
	/* times of the first and the last change; TIME_UNKNOWN if no change has a time */
	int64_t first_ns, last_ns;
	double fragmentation; /* last value in the source; negative if there is none */
	/* peak that the source reports for the allocator's lifetime; 0 = unknown */
	int64_t lifetime_peak;
	int64_t available; /* memory still available at the end, 0 when unknown */
	bool has_reserved;

	/* running sums, used while the memory at the start is not known */
	int64_t sum, low, most, reserved_sum, reserved_low, reserved_most, reserved_at_most;
	uint32_t most_row;
	bool anchored, reserved_anchored;
};

#define HEAP_LISTS 2

/* The time of a step. */
struct heap_span {
	source_id source; /* input of the step; nil: all inputs */
	step_id step;
	int64_t start_ns, end_ns;
};

struct heaps {
	struct model *m;
	struct event_filter filter;
	struct arena arena;
	struct heap_list lists[HEAP_LISTS];
	struct heap *items; /* heaps, from index 1 */
	uint32_t count;	    /* number of heaps + 1, because index 0 is unused */
	size_t cap;
	uint32_t *order;	 /* heap numbers, the largest peak first */
	int64_t origin_ns;	 /* time from which times are counted; 0 if there are none */
	struct heap_span *spans; /* spans of steps, sorted by source and time */
	uint32_t span_count;
	struct map map;
	struct ow_error *err;
};

/* Finds the heaps that the options select, with peaks and ends. The caller calls heaps_release
 * in any case. */
ow_status heaps_find(struct heaps *h, struct model *m, const struct view_options *options,
		     struct ow_error *err);
void heaps_release(struct heaps *h);

/* Returns whether a change of this kind alters the memory in use. */
static inline bool heap_changes_use(uint8_t kind)
{
	return kind <= HEAP_EXISTING;
}
static inline bool heap_changes_reserved(uint8_t kind)
{
	return kind >= HEAP_SEGMENT_ALLOC && kind <= HEAP_SEGMENT_EXISTING;
}

/* Computes the state after a row. Totals in the source take precedence over the sum. */
static inline void heap_apply(const struct heap_list *l, uint32_t row, struct heap_state *s)
{
	if (heap_changes_use(l->kind[row]))
		s->in_use = wrap_add(s->in_use, l->size[row]);
	else if (heap_changes_reserved(l->kind[row]))
		s->reserved = wrap_add(s->reserved, l->size[row]);
	if (l->allocated && l->allocated[row])
		s->in_use = l->allocated[row];
	if (l->reserved && l->reserved[row])
		s->reserved = l->reserved[row];
}

static inline str_id heap_device_name(const struct model *m, const struct heap_list *l,
				      uint32_t row)
{
	return l->device ? m->device.name[l->device[row].v] : l->device_name[row];
}

/* Stands in place of an allocator's name: the memory of all allocators of a device. */
#define HEAP_ALL_OF_DEVICE UINT32_MAX

static inline struct str heap_allocator_name(const struct model *m, const struct heap *heap)
{
	return heap->allocator.v == HEAP_ALL_OF_DEVICE ? STR("(all of the device)")
						       : model_str(m, heap->allocator);
}

static inline bool heap_in_time(const struct heaps *h, int64_t ts)
{
	return ts == TIME_UNKNOWN || (ts >= h->filter.from_ns && ts <= h->filter.to_ns);
}

/* Returns the spans of the steps of a heap's source, or of all sources. */
const struct heap_span *heap_spans(const struct heaps *h, const struct heap *heap, uint32_t *count);
/* Returns the step of a change, from the source or by its time; nil if it is in no step. */
step_id heap_step(const struct heaps *h, const struct heap *heap, uint32_t row);

/* The columns with which all memory views begin. */
enum { HEAP_COLUMN_DEVICE, HEAP_COLUMN_ALLOCATOR, HEAP_COLUMN_RANK, HEAP_COLUMNS };
void heap_columns(struct table *out);
uint32_t heap_row(const struct heaps *h, const struct heap *heap, struct table *out);
void heap_set_known(struct table *out, uint32_t row, uint32_t column, int64_t value, bool known);

/* alive.c: memory in use at one time, in groups. */

enum heap_grouping { GROUP_OP, GROUP_SCOPE, GROUP_LINE, GROUP_PURPOSE, GROUP_COUNT };
const char *heap_grouping_name(enum heap_grouping by);

struct heap_group {
	enum heap_grouping by;
	struct str name;
	int64_t bytes;
	uint64_t count;
};

struct heap_alive {
	struct heap_group *groups; /* groups, sorted by grouping and then by size, largest first */
	uint32_t count;
	int64_t bytes; /* sum of the bytes whose allocation is known */
	uint64_t blocks;
};

/* Computes the groups of every heap (index = heap) after the change rows[heap], or at its peak if rows is
 * NULL. The result is in the arena of h. */
ow_status heaps_alive(struct heaps *h, const uint32_t *rows, struct heap_alive **alive);

#endif
