/*
 * spans.c: sorted lists of spans (spans.h). Sorting merges the ascending runs that are there: events of a track come in order, so there are
 * few runs, and a single run costs one pass. The end of the file measures how long groups of tracks were busy.
 */
#include "analyze/steps/spans.h"

#include "base/vec.h"

bool spans_add(struct span_list *list, struct mem *mem, int64_t begin, int64_t end)
{
	struct span *last = list->count ? &list->items[list->count - 1] : NULL;

	if (begin >= end)
		return true;
	if (last && begin >= last->begin && begin <= last->end) {
		last->end = MAX(last->end, end);
		return true;
	}
	return vec_push(mem, list->items, list->count, list->cap, (struct span){ begin, end });
}

bool spans_add_all(struct span_list *list, struct mem *mem, const struct span_list *from)
{
	for (size_t i = 0; i < from->count; i++)
		if (!spans_add(list, mem, from->items[i].begin, from->items[i].end))
			return false;
	return true;
}

void spans_release(struct span_list *list, struct mem *mem)
{
	mem_free(mem, list->items, list->cap * sizeof(*list->items));
	*list = (struct span_list){ 0 };
}

/* Returns the end of the ascending run that starts at `from`. */
static size_t run_end(const struct span *items, size_t from, size_t count)
{
	while (++from < count && items[from - 1].begin <= items[from].begin)
		;
	return from;
}

static void merge(const struct span *items, size_t a, size_t b, size_t end, struct span *to)
{
	size_t i = a, k = b;

	for (size_t at = a; at < end; at++)
		to[at] = k == end || (i < b && items[i].begin <= items[k].begin) ? items[i++]
										 : items[k++];
}

/* Merges neighbouring runs pairwise into `to`; returns the number of merged runs. */
static size_t merge_runs(const struct span *items, size_t count, struct span *to)
{
	size_t runs = 0;

	for (size_t a = 0; a < count; runs++) {
		size_t b = run_end(items, a, count);
		size_t end = b < count ? run_end(items, b, count) : b;

		merge(items, a, b, end, to);
		a = end;
	}
	return runs;
}

static bool sort(struct span_list *list, struct mem *mem)
{
	size_t bytes = list->cap * sizeof(*list->items);
	struct span *other, *swap;
	size_t runs;

	if (run_end(list->items, 0, list->count) >= list->count)
		return true;
	other = mem_alloc(mem, bytes);
	if (!other)
		return false;
	do {
		runs = merge_runs(list->items, list->count, other);
		swap = list->items;
		list->items = other;
		other = swap;
	} while (runs > 1);
	mem_free(mem, other, bytes);
	return true;
}

bool spans_finish(struct span_list *list, struct mem *mem)
{
	size_t kept = 0;

	if (!list->count)
		return true;
	if (!sort(list, mem))
		return false;
	for (size_t i = 1; i < list->count; i++) {
		struct span *last = &list->items[kept], next = list->items[i];

		if (next.begin <= last->end)
			last->end = MAX(last->end, next.end);
		else
			list->items[++kept] = next;
	}
	list->count = kept + 1;
	return true;
}

size_t spans_after(const struct span_list *list, int64_t t)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list->items[middle].end > t)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Adds the filtered events to the spans of their group, and counts them. */
static bool collect_spans(const struct model *m, const struct event_filter *filter,
			  const uint32_t *group, struct span_list *lists, struct busy *out)
{
	for (uint32_t i = 1; i < m->event.count; i++) {
		uint32_t g = group[m->event.track[i].v];
		int64_t begin = m->event.ts_ns[i], end = event_end(m, i);

		if (g == UINT32_MAX || !filter_step(filter, m->event.step[i]) ||
		    !filter_track(filter, m, m->event.track[i]) ||
		    !filter_clip(filter, &begin, &end))
			continue;
		out[g].events++;
		if (!spans_add(&lists[g], m->mem, begin, end))
			return false;
	}
	return true;
}

/* Returns the length of the intersection of two finished lists. */
static int64_t length_of_both(const struct span_list *a, const struct span_list *b)
{
	int64_t sum = 0;

	for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
		const struct span *x = &a->items[i], *y = &b->items[k];

		sum = span_add(sum, span_length(MAX(x->begin, y->begin), MIN(x->end, y->end)));
		if (x->end < y->end)
			i++;
		else
			k++;
	}
	return sum;
}

static bool add_up(struct mem *mem, struct span_list *lists, uint32_t count,
		   const struct span_list *within, struct busy *out)
{
	for (uint32_t g = 0; g < count; g++) {
		if (!spans_finish(&lists[g], mem))
			return false;
		if (within)
			out[g].within_ns = length_of_both(&lists[g], &within[g]);
		for (size_t i = 0; i < lists[g].count; i++)
			out[g].busy_ns =
				span_add(out[g].busy_ns, span_length(lists[g].items[i].begin,
								     lists[g].items[i].end));
	}
	return true;
}

ow_status busy_measure(const struct model *m, const struct event_filter *filter,
		       const uint32_t *group, uint32_t count, const struct span_list *within,
		       struct busy *out, struct ow_error *err)
{
	size_t bytes = (size_t)count * sizeof(struct span_list);
	struct span_list *lists;
	bool ok;

	if (!count || m->event.count <= 1)
		return OW_OK;
	lists = mem_zalloc(m->mem, bytes);
	if (!lists)
		return error_no_memory(err);
	ok = collect_spans(m, filter, group, lists, out) &&
	     add_up(m->mem, lists, count, within, out);
	for (uint32_t g = 0; g < count; g++)
		spans_release(&lists[g], m->mem);
	mem_free(m->mem, lists, bytes);
	return ok ? OW_OK : error_no_memory(err);
}
