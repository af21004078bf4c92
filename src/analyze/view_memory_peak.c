/*
 * view_memory_peak.c: what was in use when a heap was at its peak, summed by operation, by scope, by line of
 * code and by purpose, as far as the source tells them; the largest first. What it does not tell is a row of
 * its own. A limit counts rows of each grouping.
 */
#include "analyze/heaps.h"

enum { COLUMN_BY = HEAP_COLUMNS, COLUMN_NAME, COLUMN_BYTES, COLUMN_PERCENT, COLUMN_BLOCKS };

static void add_columns(struct result *out)
{
	heap_columns(out);
	result_column(out, "grouped_by", "by", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "name", "name", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "bytes", "in use", RESULT_INT, RESULT_BYTES);
	result_column(out, "percent", "of peak", RESULT_REAL, RESULT_PERCENT);
	result_column(out, "blocks", "blocks", RESULT_INT, RESULT_COUNT);
}

static void add_row(const struct heaps *h, const struct heap *heap, const struct heap_group *g,
		    struct result *out)
{
	uint32_t row = heap_row(h, heap, out);

	result_set_model_text(out, row, COLUMN_BY, str_from(heap_grouping_name(g->by)));
	result_set_text(out, row, COLUMN_NAME, g->name);
	result_set_int(out, row, COLUMN_BYTES, g->bytes);
	if (heap->peak > 0)
		result_set_real(out, row, COLUMN_PERCENT,
				100.0 * (double)g->bytes / (double)heap->peak);
	else
		result_set_unknown(out, row, COLUMN_PERCENT);
	heap_set_known(out, row, COLUMN_BLOCKS, (int64_t)g->count, g->count > 0);
}

/* Groups of one kind, and what they leave unexplained. */
static uint32_t add_grouping(const struct heaps *h, const struct heap *heap,
			     const struct heap_alive *alive, uint32_t first, uint32_t limit,
			     struct result *out)
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
			&(struct heap_group){ by, STR("(not told)"), wrap_sub(heap->peak, known),
					      0 },
			out);
	return i;
}

static void add_heap(const struct heaps *h, const struct heap *heap, const struct heap_alive *alive,
		     uint32_t limit, struct result *out)
{
	for (uint32_t i = 0; i < alive->count;)
		i = add_grouping(h, heap, alive, i, limit, out);
}

static ow_status run(struct model *m, const struct view_options *options, struct result *out,
		     struct error *err)
{
	struct heap_alive *alive = NULL;
	struct heaps h;
	ow_status status = heaps_find(&h, m, options, err);

	add_columns(out);
	if (status == OW_OK)
		status = heaps_alive(&h, &alive);
	for (uint32_t i = 0; status == OW_OK && i + 1 < h.count; i++)
		add_heap(&h, &h.items[h.order[i]], &alive[h.order[i]], options->limit, out);
	heaps_release(&h);
	OW_TRY(status);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_memory_peak = {
	.name = "memory_peak",
	.summary = "what was in use at the peak: by op, scope, line and purpose",
	.run = run,
};
