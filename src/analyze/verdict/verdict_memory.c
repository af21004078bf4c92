/*
 * verdict_memory.c: writes the sentence for an input that has memory over time and no durations: the peak, when it was, what was in use
 * then, and what was left at the end. verdict.c calls it. The numbers are those of the views heaps and memory_peak.
 */
#include "analyze/verdict/verdict.h"

#include "analyze/memory/heaps.h"
#include "base/human.h"

#define NAME_COLUMNS 60
/* smallest unused part of reserved memory, in percent, that is mentioned */
#define NOTICED_PERCENT 20.0

static void add_bytes(struct buf *text, int64_t bytes)
{
	char number[HUMAN_SIZE];

	human_int(number, bytes, HUMAN_UNIT_BYTES, false);
	buf_puts(text, number);
}

/* Returns the largest group: by purpose, else by line of code, else by op. NULL if none was
 * recorded. */
static const struct heap_group *largest_group(const struct heap_alive *alive)
{
	static const enum heap_grouping order[] = { GROUP_PURPOSE, GROUP_LINE, GROUP_OP };

	for (size_t k = 0; k < ARRAY_COUNT(order); k++)
		for (uint32_t i = 0; i < alive->count; i++)
			if (alive->groups[i].by == order[k] && alive->groups[i].name.len &&
			    alive->groups[i].name.ptr[0] != '(')
				return &alive->groups[i];
	return NULL;
}

/* The bytes in use that no group of this kind has. */
static int64_t unknown_bytes(const struct heap *heap, const struct heap_alive *alive,
			     enum heap_grouping by)
{
	int64_t known = 0;

	for (uint32_t i = 0; i < alive->count; i++)
		if (alive->groups[i].by == by)
			known = sum_add(known, alive->groups[i].bytes);
	return heap->peak - known;
}

/* Writes a percentage, "84 %"; a part above zero is never shown as 0 %. */
static void add_percent(struct buf *text, int64_t part, int64_t all)
{
	double percent = 100.0 * (double)part / (double)all;

	if (percent < 1)
		buf_puts(text, "under 1 %");
	else
		buf_printf(text, "%.0f %%", percent);
}

static void add_group(const struct heap *heap, const struct heap_alive *alive,
		      const struct heap_group *g, struct buf *text)
{
	struct str name = human_fit_end(g->name, NAME_COLUMNS);
	int64_t unknown = unknown_bytes(heap, alive, g->by);

	buf_puts(text, ": ");
	if (unknown > g->bytes) {
		add_percent(text, unknown, heap->peak);
		buf_puts(text, " of it (");
		add_bytes(text, unknown);
		buf_puts(text, ") was allocated before the recording began, or has no recorded "
			       "stack; ");
	}
	add_percent(text, g->bytes, heap->peak);
	buf_puts(text, unknown > g->bytes ? " is " : " of it is ");
	buf_puts(text, g->by == GROUP_PURPOSE ? "" : "from ");
	buf_puts(text, name.len < g->name.len ? "…" : "");
	buf_add_str(text, name);
	buf_puts(text, " (");
	add_bytes(text, g->bytes);
	buf_printf(text, " in %llu block%s)", (unsigned long long)g->count,
		   g->count == 1 ? "" : "s");
}

/* Adds the memory that the allocator holds and no tensor uses. */
static void add_reserved(const struct heap *heap, struct buf *text)
{
	int64_t unused = heap->reserved_at_peak - heap->peak;

	if (!heap->has_reserved || heap->reserved_at_peak <= 0 ||
	    100.0 * (double)unused < NOTICED_PERCENT * (double)heap->reserved_at_peak)
		return;
	buf_puts(text, "; the allocator had reserved ");
	add_bytes(text, heap->reserved_at_peak);
	buf_printf(text, ", %.0f %% of it unused",
		   100.0 * (double)unused / (double)heap->reserved_at_peak);
}

static void write_heap(const struct heaps *h, const struct heap *heap,
		       const struct heap_alive *alive, struct buf *text)
{
	const struct heap_group *g = largest_group(alive);
	const struct heap_list *list = &h->lists[heap->list];
	int64_t when = heap->peak_row ? list->ts_ns[heap->peak_row] : TIME_UNKNOWN;
	struct str device = model_str(h->m, heap->device);
	char time[HUMAN_SIZE];

	buf_puts(text, "The file has memory, not durations. Memory in use");
	if (device.len && !str_eq(device, STR("device"))) {
		buf_puts(text, " on ");
		buf_add_str(text, device);
	}
	buf_puts(text, " peaks at ");
	add_bytes(text, heap->peak);
	if (when != TIME_UNKNOWN) {
		human_int(time, when - h->origin_ns, HUMAN_UNIT_NS, false);
		buf_printf(text, ", %s after the first record", time);
	}
	if (g && g->bytes > 0)
		add_group(heap, alive, g, text);
	add_reserved(heap, text);
	buf_puts(text, "; ");
	add_bytes(text, heap->end.in_use);
	buf_puts(text, heap->end.in_use == 1 ? " is" : " are");
	buf_puts(text, " in use at the end.");
	if (heap->failures)
		buf_printf(text, " %llu allocation%s failed for lack of memory.",
			   (unsigned long long)heap->failures, heap->failures == 1 ? "" : "s");
}

ow_status verdict_memory(struct model *m, const struct event_filter *filter, struct buf *text,
			 bool *written, struct ow_error *err)
{
	struct view_options options;
	struct heap_alive *alive = NULL;
	struct heaps h;
	ow_status status;

	*written = false;
	if (filter_has_time(filter))
		return OW_OK; /* the peak within a part of the time is left to the views */
	view_options_init(&options);
	options.rank = filter->rank;
	if (filter->step)
		options.step = m->step.number[filter->step];
	status = heaps_find(&h, m, &options, err);
	if (status == OW_OK)
		status = heaps_alive(&h, NULL, &alive);
	if (status == OW_OK && h.count > 1 && h.items[h.order[0]].peak > 0) {
		write_heap(&h, &h.items[h.order[0]], &alive[h.order[0]], text);
		*written = true;
	}
	heaps_release(&h);
	return status;
}
