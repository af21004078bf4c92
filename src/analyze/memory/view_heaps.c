/*
 * view_heaps.c: one row per heap (an allocator of a device): how much was in use at its peak and when, how
 * much the allocator held, how broken up that was, and what is left at the end. What was in use at the peak
 * is the view memory_peak, use over time memory_time, growth from step to step memory_steps.
 */
#include "analyze/heaps.h"

enum {
	COLUMN_PEAK = HEAP_COLUMNS,
	COLUMN_PEAK_TS,
	COLUMN_PEAK_STEP,
	COLUMN_START,
	COLUMN_END,
	COLUMN_RESERVED_PEAK,
	COLUMN_UNUSED,
	COLUMN_FRAGMENTATION,
	COLUMN_ALLOCATIONS,
	COLUMN_RELEASES,
	COLUMN_FAILURES,
	COLUMN_LIFETIME_PEAK,
	COLUMN_AVAILABLE
};

static void add_columns(struct result *out)
{
	heap_columns(out);
	result_column(out, "peak_bytes", "peak", RESULT_INT, RESULT_BYTES);
	result_column(out, "peak_ns", "at", RESULT_INT, RESULT_NS);
	result_column(out, "peak_step", "in step", RESULT_INT, RESULT_PLAIN);
	result_column(out, "start_bytes", "before", RESULT_INT, RESULT_BYTES);
	result_column(out, "end_bytes", "at the end", RESULT_INT, RESULT_BYTES);
	result_column(out, "reserved_peak_bytes", "most held", RESULT_INT, RESULT_BYTES);
	result_column(out, "unused_at_peak_bytes", "unused at peak", RESULT_INT, RESULT_BYTES);
	result_column(out, "fragmentation_percent", "broken up", RESULT_REAL, RESULT_PERCENT);
	result_column(out, "allocations", "allocations", RESULT_INT, RESULT_COUNT);
	result_column(out, "releases", "releases", RESULT_INT, RESULT_COUNT);
	result_column(out, "out_of_memory", "failed", RESULT_INT, RESULT_COUNT);
	result_column(out, "lifetime_peak_bytes", "peak ever", RESULT_INT, RESULT_BYTES);
	result_column(out, "available_bytes", "available", RESULT_INT, RESULT_BYTES);
}

static void add_heap(const struct heaps *h, uint32_t i, struct result *out)
{
	const struct heap *heap = &h->items[i];
	const struct heap_list *l = &h->lists[heap->list];
	uint32_t row = heap_row(h, heap, out);
	int64_t ts = heap->peak_row ? l->ts_ns[heap->peak_row] : TIME_UNKNOWN;
	step_id step = heap->peak_row ? heap_step(h, heap, heap->peak_row) : (step_id){ 0 };

	result_set_int(out, row, COLUMN_PEAK, heap->peak);
	heap_set_known(out, row, COLUMN_PEAK_TS, wrap_sub(ts, h->origin_ns), ts != TIME_UNKNOWN);
	heap_set_known(out, row, COLUMN_PEAK_STEP, h->m->step.number[step.v], step.v != 0);
	result_set_int(out, row, COLUMN_START, heap->before);
	result_set_int(out, row, COLUMN_END, heap->end.in_use);
	heap_set_known(out, row, COLUMN_RESERVED_PEAK, heap->reserved_peak, heap->has_reserved);
	heap_set_known(out, row, COLUMN_UNUSED, wrap_sub(heap->reserved_at_peak, heap->peak),
		       heap->has_reserved);
	if (heap->fragmentation >= 0)
		result_set_real(out, row, COLUMN_FRAGMENTATION, 100 * heap->fragmentation);
	else
		result_set_unknown(out, row, COLUMN_FRAGMENTATION);
	result_set_int(out, row, COLUMN_ALLOCATIONS, (int64_t)heap->allocations);
	result_set_int(out, row, COLUMN_RELEASES, (int64_t)heap->releases);
	result_set_int(out, row, COLUMN_FAILURES, (int64_t)heap->failures);
	heap_set_known(out, row, COLUMN_LIFETIME_PEAK, heap->lifetime_peak,
		       heap->lifetime_peak > 0);
	heap_set_known(out, row, COLUMN_AVAILABLE, heap->available, heap->available > 0);
}

static ow_status run(struct model *m, const struct view_options *options, struct result *out,
		     struct error *err)
{
	struct heaps h;
	ow_status status = heaps_find(&h, m, options, err);

	add_columns(out);
	for (uint32_t i = 0; status == OW_OK && i + 1 < h.count; i++)
		add_heap(&h, h.order[i], out);
	heaps_release(&h);
	OW_TRY(status);
	if (options->limit)
		result_limit(out, options->limit);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_heaps = {
	.name = "heaps",
	.summary = "memory of each device and allocator: peak, held, left at the end",
	.run = run,
};
