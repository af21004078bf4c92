/*
 * heaps.h: memory over time, for the memory views. A heap is what one allocator of one device did, according to one source. Its changes come
 * from the table `heap`; profiles of TensorFlow 1 have them in `alloc` and `memory`, from which a list of the same form is made. All views
 * replay the changes with heap_apply, so they agree.
 */
#ifndef ANALYZE_HEAPS_H
#define ANALYZE_HEAPS_H

#include "analyze/view.h"

/* Changes in the order of time. Rows are those of the table, or of the list that was made. */
struct heap_list {
	uint32_t first, count; /* rows [first, count) */
	const int64_t *ts_ns, *size;
	const uint8_t *kind;
	const op_id *op;
	const device_id *device;   /* or NULL, and then */
	const str_id *device_name; /* this one is there */
	const str_id *allocator;   /* may be NULL, as all below */
	const source_id *source;
	const uint64_t *address;
	const step_id *step;
	const stack_id *stack;
	const int64_t *allocated, *reserved, *available, *peak;
	const double *fragmentation;
	const str_id *purpose;
	uint32_t *heap; /* per row: which heap, from 1; 0 for rows that were not asked for */
};

struct heap_state {
	int64_t in_use, reserved;
};

struct heap {
	uint32_t list; /* which list its changes are in */
	str_id device, allocator;
	source_id source;
	uint64_t allocations, releases, failures;
	struct heap_state start; /* before its first change */
	struct heap_state end;
	int64_t before; /* in use when its first change with a time came */
	int64_t peak, reserved_at_peak, reserved_peak;
	uint32_t peak_row;	   /* 0 when nothing changed in the time asked for */
	int64_t first_ns, last_ns; /* of its changes with a time; TIME_UNKNOWN when there is none */
	double fragmentation;	   /* the last value in the source; negative without any */
	int64_t lifetime_peak;	   /* as the source says, 0 when it does not */
	int64_t available;	   /* at the end, 0 when unknown */
	bool has_reserved;

	/* inside, while the start is not known */
	int64_t sum, low, most, reserved_sum, reserved_low, reserved_most, reserved_at_most;
	uint32_t most_row;
	bool anchored, reserved_anchored;
};

#define HEAP_LISTS 2

/* When a step ran. */
struct heap_span {
	source_id source; /* nil: in all of them */
	step_id step;
	int64_t start_ns, end_ns;
};

struct heaps {
	struct model *m;
	struct event_filter filter;
	struct arena arena;
	struct heap_list lists[HEAP_LISTS];
	struct heap *items; /* from 1 */
	uint32_t count;	    /* with the unused first */
	size_t cap;
	uint32_t *order;	 /* all of them, the one with the largest peak first */
	int64_t origin_ns;	 /* times are counted from here; 0 when there are none */
	struct heap_span *spans; /* of steps, by source and time */
	uint32_t span_count;
	struct map map;
	struct ow_error *err;
};

/* Finds the heaps that the options ask for, with peaks and ends. heaps_release is due in any case. */
ow_status heaps_find(struct heaps *h, struct model *m, const struct view_options *options,
		     struct ow_error *err);
void heaps_release(struct heaps *h);

/* Whether a row changes what is in use. */
static inline bool heap_changes_use(uint8_t kind)
{
	return kind <= HEAP_EXISTING;
}
static inline bool heap_changes_reserved(uint8_t kind)
{
	return kind >= HEAP_SEGMENT_ALLOC && kind <= HEAP_SEGMENT_EXISTING;
}

/* The state after a row; what the source says outweighs the sum. */
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

/* In place of an allocator's name: all that the allocators of a device have in use. */
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

/* The spans of a heap's steps: those of its source, or of all. */
const struct heap_span *heap_spans(const struct heaps *h, const struct heap *heap, uint32_t *count);
/* The step of a change: as the source says, or by its time; nil when it is in none. */
step_id heap_step(const struct heaps *h, const struct heap *heap, uint32_t row);

/* The columns that all memory views begin with, and a row with these filled in. */
enum { HEAP_COLUMN_DEVICE, HEAP_COLUMN_ALLOCATOR, HEAP_COLUMN_RANK, HEAP_COLUMNS };
void heap_columns(struct table *out);
uint32_t heap_row(const struct heaps *h, const struct heap *heap, struct table *out);
void heap_set_known(struct table *out, uint32_t row, uint32_t column, int64_t value, bool known);

/* ---- alive.c: what was in use, in groups ---- */

enum heap_grouping { GROUP_OP, GROUP_SCOPE, GROUP_LINE, GROUP_PURPOSE, GROUP_COUNT };
const char *heap_grouping_name(enum heap_grouping by);

struct heap_group {
	enum heap_grouping by;
	struct str name;
	int64_t bytes;
	uint64_t count;
};

struct heap_alive {
	struct heap_group *groups; /* by grouping, then the largest first */
	uint32_t count;
	int64_t bytes; /* of what is known */
	uint64_t blocks;
};

/* For every heap (index = heap), after the change rows[heap], at its peak if rows is NULL; in the arena of h. */
ow_status heaps_alive(struct heaps *h, const uint32_t *rows, struct heap_alive **alive);

#endif
