/*
 * memory.c: adds the memory in use of each heap over time as rows of values in the timeline. Called once, when the
 * files are loaded, before other threads read the tiles. The page Memory does not use it: it shows the memory views.
 */
#include "page/page_int.h"

#include "analyze/memory/heaps.h"

#define HEAPS_SHOWN 16u /* number of heaps shown: those with the largest peaks */

struct series {
	int64_t *ts;
	double *values;
	uint32_t count, cap;
};

static const char *series_name(struct arena *arena, const struct model *m, const struct heap *heap)
{
	struct str device = model_str(m, heap->device), allocator = heap_allocator_name(m, heap);

	return arena_printf(arena, "memory in use%s%.*s%s%.*s", device.len ? ": " : "",
			    STR_ARG(device), allocator.len ? " " : "", STR_ARG(allocator));
}

/* Whether a heap's changes are near the events in time. Changes far away come from another clock, and would shrink
 * the rest of the timeline to a dot. */
static bool near_events(const struct tiles *tiles, const struct heap *heap)
{
	int64_t start = tiles_start(tiles), end = tiles_end(tiles);
	int64_t span = wrap_sub(end, start);

	if (heap->first_ns == TIME_UNKNOWN)
		return false;
	return span <= 0 || ((double)heap->first_ns <= (double)end + (double)span &&
			     (double)heap->last_ns >= (double)start - (double)span);
}

static ow_status add_heap(struct mem *mem, struct heaps *h, uint32_t number, struct tiles *tiles,
			  struct ow_error *err)
{
	const struct heap *heap = &h->items[number];
	const struct heap_list *l = &h->lists[heap->list];
	struct heap_state state = heap->start;
	struct series s = { .cap = l->count };
	const char *name = series_name(&h->arena, h->m, heap);
	ow_status status = name ? OW_OK : error_no_memory(err);

	s.ts = mem_alloc(mem, (size_t)s.cap * sizeof(*s.ts) + 1);
	s.values = mem_alloc(mem, (size_t)s.cap * sizeof(*s.values) + 1);
	if (!s.ts || !s.values)
		status = error_no_memory(err);
	for (uint32_t row = l->first; status == OW_OK && row < l->count; row++) {
		if (l->heap[row] != number)
			continue;
		heap_apply(l, row, &state);
		if (l->ts_ns[row] == TIME_UNKNOWN)
			continue;
		s.ts[s.count] = l->ts_ns[row];
		s.values[s.count++] = (double)state.in_use;
	}
	if (status == OW_OK && name && s.count > 1)
		status = tiles_add_series(tiles, str_from(name), s.ts, s.values, s.count, err);
	mem_free(mem, s.ts, (size_t)s.cap * sizeof(*s.ts) + 1);
	mem_free(mem, s.values, (size_t)s.cap * sizeof(*s.values) + 1);
	return status;
}

ow_status page_add_memory(struct ow_ui *ui, ow_profile *profile, struct tiles *tiles, bool *any,
			  struct ow_error *err)
{
	struct view_options options;
	struct heaps h = { 0 };
	ow_status status;

	view_options_init(&options);
	status = heaps_find(&h, profile->m, &options, err);
	*any = status == OW_OK && h.count > 1; /* the last heap is the sum of all heaps */
	for (uint32_t i = 0; status == OW_OK && i + 1 < h.count && i < HEAPS_SHOWN; i++)
		if (near_events(tiles, &h.items[h.order[i]]))
			status = add_heap(&ui->mem, &h, h.order[i], tiles, err);
	heaps_release(&h);
	return status == OW_E_NOT_FOUND ? OW_OK : status;
}
