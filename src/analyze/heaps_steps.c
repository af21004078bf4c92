/*
 * heaps_steps.c: when steps ran, for the memory views, and the columns that these views share. Markers of a
 * source cut its time into steps; where no source has markers, the spans of the steps themselves count.
 */
#include "analyze/heaps.h"

static int by_source(const void *a, const void *b)
{
	const struct heap_span *x = a, *y = b;

	if (x->source.v != y->source.v)
		return x->source.v < y->source.v ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static void add_windows(struct heaps *h)
{
	const struct window_table *w = &h->m->window;

	for (uint32_t i = 1; i < w->count; i++)
		h->spans[h->span_count++] = (struct heap_span){ w->source[i], w->step[i],
								w->start_ns[i], w->end_ns[i] };
}

static void add_steps(struct heaps *h)
{
	const struct step_table *t = &h->m->step;

	for (uint32_t i = 1; i < t->count; i++)
		if (t->start_ns[i] != TIME_UNKNOWN && t->end_ns[i] != TIME_UNKNOWN)
			h->spans[h->span_count++] = (struct heap_span){ .step = { i },
									.start_ns = t->start_ns[i],
									.end_ns = t->end_ns[i] };
}

ow_status heaps_find_spans(struct heaps *h)
{
	const struct model *m = h->m;
	bool windows = m->window.count > 1;

	h->spans =
		ARENA_ARRAY(&h->arena, struct heap_span, windows ? m->window.count : m->step.count);
	if (!h->spans)
		return error_no_memory(h->err);
	if (windows)
		add_windows(h);
	else
		add_steps(h);
	if (h->span_count)
		qsort(h->spans, h->span_count, sizeof(*h->spans), by_source);
	return OW_OK;
}

/* The first span of a source that is not below it. */
static uint32_t first_of(const struct heaps *h, uint32_t source)
{
	uint32_t low = 0, high = h->span_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (h->spans[middle].source.v < source)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct heap_span *heap_spans(const struct heaps *h, const struct heap *heap, uint32_t *count)
{
	uint32_t source = h->span_count && h->spans[0].source.v ? heap->source.v : 0;
	uint32_t first = first_of(h, source);

	*count = first_of(h, source + 1) - first;
	return h->spans + first;
}

step_id heap_step(const struct heaps *h, const struct heap *heap, uint32_t row)
{
	const struct heap_list *l = &h->lists[heap->list];
	uint32_t count, low = 0;
	const struct heap_span *spans = heap_spans(h, heap, &count);
	int64_t ts = l->ts_ns[row];

	if (l->step && l->step[row].v)
		return l->step[row];
	for (uint32_t high = count; low < high;) {
		uint32_t middle = low + (high - low) / 2;

		if (spans[middle].start_ns <= ts)
			low = middle + 1;
		else
			high = middle;
	}
	if (ts == TIME_UNKNOWN || !low || ts > spans[low - 1].end_ns)
		return (step_id){ 0 };
	return spans[low - 1].step;
}

void heap_columns(struct result *out)
{
	result_column(out, "device", "device", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "allocator", "allocator", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "rank", "rank", RESULT_INT, RESULT_PLAIN);
}

void heap_set_known(struct result *out, uint32_t row, uint32_t column, int64_t value, bool known)
{
	if (known)
		result_set_int(out, row, column, value);
	else
		result_set_unknown(out, row, column);
}

uint32_t heap_row(const struct heaps *h, const struct heap *heap, struct result *out)
{
	const struct model *m = h->m;
	uint32_t row = result_row(out, 0);
	int32_t rank = heap->source.v ? m->source.rank[heap->source.v] : -1;
	struct str allocator = heap_allocator_name(m, heap);

	result_set_model_text(out, row, HEAP_COLUMN_DEVICE, model_str(m, heap->device));
	if (allocator.len)
		result_set_model_text(out, row, HEAP_COLUMN_ALLOCATOR, allocator);
	else
		result_set_unknown(out, row, HEAP_COLUMN_ALLOCATOR);
	heap_set_known(out, row, HEAP_COLUMN_RANK, rank, rank >= 0);
	return row;
}
