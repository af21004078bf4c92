/*
 * view_heaps.c: the view `heaps`: one row per heap (an allocator of a device): its peak and when that was, how much the allocator held, how
 * fragmented that was, and what is left at the end. memory_peak shows what was in use at the peak, memory_time the use over time, and
 * memory_steps the growth from step to step.
 */
#include "analyze/memory/heaps.h"

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

static void add_columns(struct table *out)
{
	heap_columns(out);
	table_add_column(out, "peak_bytes", "peak", TYPE_INT, UNIT_BYTES);
	table_add_column(out, "peak_ns", "at", TYPE_INT, UNIT_NS);
	table_add_column(out, "peak_step", "in step", TYPE_INT, UNIT_NONE);
	table_add_column(out, "start_bytes", "before", TYPE_INT, UNIT_BYTES);
	table_add_column(out, "end_bytes", "at the end", TYPE_INT, UNIT_BYTES);
	table_add_column(out, "reserved_peak_bytes", "most held", TYPE_INT, UNIT_BYTES);
	table_add_column(out, "unused_at_peak_bytes", "unused at peak", TYPE_INT, UNIT_BYTES);
	table_add_column(out, "fragmentation_percent", "broken up", TYPE_REAL, UNIT_PERCENT);
	table_add_column(out, "allocations", "allocations", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "releases", "releases", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "out_of_memory", "failed", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "lifetime_peak_bytes", "peak ever", TYPE_INT, UNIT_BYTES);
	table_add_column(out, "available_bytes", "available", TYPE_INT, UNIT_BYTES);
}

static void add_heap(const struct heaps *h, uint32_t i, struct table *out)
{
	const struct heap *heap = &h->items[i];
	const struct heap_list *l = &h->lists[heap->list];
	uint32_t row = heap_row(h, heap, out);
	int64_t ts = heap->peak_row ? l->ts_ns[heap->peak_row] : TIME_UNKNOWN;
	step_id step = heap->peak_row ? heap_step(h, heap, heap->peak_row) : (step_id){ 0 };

	table_set_int(out, row, COLUMN_PEAK, heap->peak);
	heap_set_known(out, row, COLUMN_PEAK_TS, wrap_sub(ts, h->origin_ns), ts != TIME_UNKNOWN);
	heap_set_known(out, row, COLUMN_PEAK_STEP, h->m->step.number[step.v], step.v != 0);
	table_set_int(out, row, COLUMN_START, heap->before);
	table_set_int(out, row, COLUMN_END, heap->end.in_use);
	heap_set_known(out, row, COLUMN_RESERVED_PEAK, heap->reserved_peak, heap->has_reserved);
	heap_set_known(out, row, COLUMN_UNUSED, wrap_sub(heap->reserved_at_peak, heap->peak),
		       heap->has_reserved);
	if (heap->fragmentation >= 0)
		table_set_real(out, row, COLUMN_FRAGMENTATION, 100 * heap->fragmentation);
	else
		table_set_unknown(out, row, COLUMN_FRAGMENTATION);
	table_set_int(out, row, COLUMN_ALLOCATIONS, (int64_t)heap->allocations);
	table_set_int(out, row, COLUMN_RELEASES, (int64_t)heap->releases);
	table_set_int(out, row, COLUMN_FAILURES, (int64_t)heap->failures);
	heap_set_known(out, row, COLUMN_LIFETIME_PEAK, heap->lifetime_peak,
		       heap->lifetime_peak > 0);
	heap_set_known(out, row, COLUMN_AVAILABLE, heap->available, heap->available > 0);
}

static ow_status run_heaps_view(struct model *m, const struct view_options *options,
				struct table *out, struct ow_error *err)
{
	struct heaps h;
	ow_status status = heaps_find(&h, m, options, err);

	add_columns(out);
	for (uint32_t i = 0; status == OW_OK && i + 1 < h.count; i++)
		add_heap(&h, h.order[i], out);
	heaps_release(&h);
	OW_TRY(status);
	if (options->limit)
		table_limit(out, options->limit);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_heaps = {
	.name = "heaps",
	.summary = "memory per device and allocator: peak, held, at the end",
	.uses = VIEW_USES_PART,
	.run = run_heaps_view,
};
