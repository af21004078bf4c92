/*
 * view_memory_peak.c: the view `memory_peak`: memory in use at the peak of a heap, summed by operation, scope, line of code and purpose, the
 * largest first. What the source does not say is a row of its own. A limit counts rows of each grouping. alive.c finds what was in use.
 */
#include "analyze/memory/heaps.h"

enum { COLUMN_BY = HEAP_COLUMNS, COLUMN_NAME, COLUMN_BYTES, COLUMN_PERCENT, COLUMN_BLOCKS };

static void add_columns(struct table *out)
{
	heap_columns(out);
	table_add_column(out, "grouped_by", "by", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "name", "name", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "bytes", "in use", TYPE_INT, UNIT_BYTES);
	table_add_column(out, "percent", "of peak", TYPE_REAL, UNIT_PERCENT);
	table_add_column(out, "blocks", "blocks", TYPE_INT, UNIT_COUNT);
}

static void add_row(const struct heaps *h, const struct heap *heap, const struct heap_group *g,
		    struct table *out)
{
	uint32_t row = heap_row(h, heap, out);

	table_set_model_text(out, row, COLUMN_BY, str_from(heap_grouping_name(g->by)));
	table_set_text(out, row, COLUMN_NAME, g->name);
	table_set_int(out, row, COLUMN_BYTES, g->bytes);
	if (heap->peak > 0)
		table_set_real(out, row, COLUMN_PERCENT,
			       100.0 * (double)g->bytes / (double)heap->peak);
	else
		table_set_unknown(out, row, COLUMN_PERCENT);
	heap_set_known(out, row, COLUMN_BLOCKS, (int64_t)g->count, g->count > 0);
}

/* Adds the groups of one kind and a row for the remaining memory. */
static uint32_t add_grouping(const struct heaps *h, const struct heap *heap,
			     const struct heap_alive *alive, uint32_t first, uint32_t limit,
			     struct table *out)
{
	enum heap_grouping by = alive->groups[first].by;
	int64_t known = 0;
	uint32_t i = first;

	for (; i < alive->count && alive->groups[i].by == by; i++) {
		known = wrap_add(known, alive->groups[i].bytes);
		if (!limit || i - first < limit)
			add_row(h, heap, &alive->groups[i], out);
	}
	if (known != heap->peak)
		add_row(h, heap,
			&(struct heap_group){ by, STR("(unknown)"), wrap_sub(heap->peak, known),
					      0 },
			out);
	return i;
}

static void add_heap(const struct heaps *h, const struct heap *heap, const struct heap_alive *alive,
		     uint32_t limit, struct table *out)
{
	for (uint32_t i = 0; i < alive->count;)
		i = add_grouping(h, heap, alive, i, limit, out);
}

static ow_status run_memory_peak_view(struct model *m, const struct view_options *options,
				      struct table *out, struct ow_error *err)
{
	struct heap_alive *alive = NULL;
	struct heaps h;
	ow_status status = heaps_find(&h, m, options, err);

	add_columns(out);
	if (status == OW_OK)
		status = heaps_alive(&h, NULL, &alive);
	for (uint32_t i = 0; status == OW_OK && i + 1 < h.count; i++)
		add_heap(&h, &h.items[h.order[i]], &alive[h.order[i]], options->limit, out);
	heaps_release(&h);
	OW_TRY(status);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_memory_peak = {
	.name = "memory_peak",
	.summary = "memory in use at the peak, by op, scope, line and purpose",
	.uses = VIEW_USES_PART,
	.run = run_memory_peak_view,
};
