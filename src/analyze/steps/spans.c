/*
 * spans.c: see spans.h. Sorting merges the ascending runs that are there: events of a track come in
 * order, so that there are few, and one run costs one pass.
 */
#include "analyze/spans.h"

int64_t span_length(int64_t begin, int64_t end)
{
	uint64_t len;

	if (end <= begin)
		return 0;
	len = (uint64_t)end - (uint64_t)begin;
	return len > INT64_MAX ? INT64_MAX : (int64_t)len;
}

int64_t span_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b > 0 ? INT64_MAX : INT64_MIN;
	return sum;
}

bool spans_add(struct span_list *list, struct mem *mem, int64_t begin, int64_t end)
{
	struct span *last = list->count ? &list->items[list->count - 1] : NULL;
	void *items = list->items;

	if (begin >= end)
		return true;
	if (last && begin >= last->begin && begin <= last->end) {
		last->end = MAX(last->end, end);
		return true;
	}
	if (!mem_grow(mem, &items, &list->cap, list->count + 1, sizeof(*list->items)))
		return false;
	list->items = items;
	list->items[list->count++] = (struct span){ begin, end };
	return true;
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

/* Where the ascending run that starts at `from` ends. */
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

/* Merges neighbouring runs pairwise into `to`; returns how many there are then. */
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
