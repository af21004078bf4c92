/*
 * view_memory_steps.c: the view `memory_steps`: memory in use at the start, the peak and the end of each step, and how much more that is than
 * at the end of the step before. Growth in every step is a leak.
 */
#include "analyze/memory/heaps.h"

#include "base/vec.h"

/* largest product of heaps and steps; only hostile files have more */
#define RECORDS_MAX ((size_t)1 << 20)

enum {
	COLUMN_STEP = HEAP_COLUMNS,
	COLUMN_START,
	COLUMN_PEAK,
	COLUMN_END,
	COLUMN_GROWTH,
	COLUMN_ALLOCATIONS,
	COLUMN_ALLOCATED
};

struct record {
	uint32_t heap;
	step_id step;
	int64_t start_ns, end_ns;
	int64_t start, peak, end;
	uint64_t allocations;
	int64_t allocated;
};

/* The position of a heap among its steps. */
struct cursor {
	const struct heap_span *spans;
	uint32_t at, count;
	struct heap_state state;
	struct record open; /* record of the open step; its heap is 0 if no step is open */
};

struct steps {
	struct heaps h;
	struct cursor *cursors; /* position of each heap */
	struct record *records;
	size_t count, cap;
};

static void add_columns(struct table *out)
{
	heap_columns(out);
	table_add_column(out, "step", "step", TYPE_INT, UNIT_NONE);
	table_add_column(out, "start_bytes", "at the start", TYPE_INT, UNIT_BYTES);
	table_add_column(out, "peak_bytes", "peak", TYPE_INT, UNIT_BYTES);
	table_add_column(out, "end_bytes", "at the end", TYPE_INT, UNIT_BYTES);
	table_add_column(out, "growth_bytes", "growth", TYPE_INT, UNIT_BYTES);
	table_add_column(out, "allocations", "allocations", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "allocated_bytes", "allocated", TYPE_INT, UNIT_BYTES);
}

static void open_step(struct cursor *c, uint32_t heap)
{
	c->open = (struct record){ .heap = heap,
				   .step = c->spans[c->at].step,
				   .start_ns = c->spans[c->at].start_ns,
				   .end_ns = c->spans[c->at].end_ns,
				   .start = c->state.in_use,
				   .peak = c->state.in_use };
}

static ow_status close_step(struct steps *s, struct cursor *c, uint32_t heap)
{
	if (!c->open.heap)
		open_step(c, heap);
	c->open.end = c->state.in_use;
	if (s->count < RECORDS_MAX) {
		if (!vec_push(s->h.m->mem, s->records, s->count, s->cap, c->open))
			return error_no_memory(s->h.err);
	}
	c->open.heap = 0;
	c->at++;
	return OW_OK;
}

static ow_status follow(struct steps *s, const struct heap_list *l, uint32_t row)
{
	uint32_t heap = l->heap[row];
	struct cursor *c = &s->cursors[heap];
	int64_t ts = l->ts_ns[row];

	while (c->at < c->count && ts > c->spans[c->at].end_ns)
		OW_TRY(close_step(s, c, heap));
	if (c->at < c->count && !c->open.heap && ts >= c->spans[c->at].start_ns)
		open_step(c, heap);
	heap_apply(l, row, &c->state);
	if (!c->open.heap)
		return OW_OK;
	c->open.peak = MAX(c->open.peak, c->state.in_use);
	if (l->kind[row] == HEAP_ALLOC) {
		c->open.allocations++;
		c->open.allocated = wrap_add(c->open.allocated, l->size[row]);
	}
	return OW_OK;
}

static ow_status measure(struct steps *s)
{
	struct heaps *h = &s->h;

	s->cursors = ARENA_ARRAY(&h->arena, struct cursor, h->count);
	if (!s->cursors)
		return error_no_memory(h->err);
	for (uint32_t i = 1; i < h->count; i++) {
		s->cursors[i].spans = heap_spans(h, &h->items[i], &s->cursors[i].count);
		s->cursors[i].state = h->items[i].start;
	}
	for (uint32_t list = 0; list < HEAP_LISTS; list++) {
		const struct heap_list *l = &h->lists[list];

		for (uint32_t row = l->first; l->heap && row < l->count; row++)
			if (l->heap[row])
				OW_TRY(follow(s, l, row));
	}
	for (uint32_t i = 1; i < h->count; i++)
		while (s->cursors[i].at < s->cursors[i].count && s->count < RECORDS_MAX)
			OW_TRY(close_step(s, &s->cursors[i], i));
	return OW_OK;
}

static void add_record(const struct heaps *h, const struct record *r, const struct record *before,
		       struct table *out)
{
	uint32_t row = heap_row(h, &h->items[r->heap], out);

	table_set_int(out, row, COLUMN_STEP, h->m->step.number[r->step.v]);
	table_set_int(out, row, COLUMN_START, r->start);
	table_set_int(out, row, COLUMN_PEAK, r->peak);
	table_set_int(out, row, COLUMN_END, r->end);
	table_set_int(out, row, COLUMN_GROWTH, wrap_sub(r->end, (before ? before->end : r->start)));
	table_set_int(out, row, COLUMN_ALLOCATIONS, (int64_t)r->allocations);
	table_set_int(out, row, COLUMN_ALLOCATED, r->allocated);
}

/* Returns whether a part of the step is in the chosen range of time. */
static bool is_inside(const struct event_filter *filter, const struct record *r)
{
	return r->start_ns < filter->to_ns &&
	       (r->end_ns > filter->from_ns || r->start_ns >= filter->from_ns);
}

static ow_status list_records(struct steps *s, struct table *out)
{
	struct heaps *h = &s->h;
	uint32_t *first = ARENA_ARRAY(&h->arena, uint32_t, (size_t)h->count + 1);
	uint32_t *order = ARENA_ARRAY(&h->arena, uint32_t, s->count + 1);

	if (!first || !order)
		return error_no_memory(h->err);
	for (size_t i = 0; i < s->count; i++)
		first[s->records[i].heap]++;
	for (uint32_t i = 0, at = 0; i + 1 < h->count; i++) {
		uint32_t count = first[h->order[i]];

		first[h->order[i]] = at;
		at += count;
	}
	for (size_t i = 0; i < s->count; i++)
		order[first[s->records[i].heap]++] = (uint32_t)i;
	for (size_t i = 0; i < s->count; i++) {
		const struct record *r = &s->records[order[i]];
		const struct record *before = i ? &s->records[order[i - 1]] : NULL;

		if (h->filter.step ? r->step.v != h->filter.step : !is_inside(&h->filter, r))
			continue;
		add_record(h, r, before && before->heap == r->heap ? before : NULL, out);
	}
	return OW_OK;
}

static ow_status run_memory_steps_view(struct model *m, const struct view_options *options,
				       struct table *out, struct ow_error *err)
{
	struct steps s = { 0 };
	ow_status status = heaps_find(&s.h, m, options, err);

	add_columns(out);
	if (status == OW_OK)
		status = measure(&s);
	if (status == OW_OK)
		status = list_records(&s, out);
	mem_free(m->mem, s.records, s.cap * sizeof(*s.records));
	heaps_release(&s.h);
	OW_TRY(status);
	if (options->limit)
		table_limit(out, options->limit);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_memory_steps = {
	.name = "memory_steps",
	.summary = "memory from step to step, and how much it grows",
	.uses = VIEW_USES_PART,
	.run = run_memory_steps_view,
};
