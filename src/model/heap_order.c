/*
 * heap_order.c: the part of model_freeze that sorts the rows of `heap` by time. Sources write one sorted list per
 * device, so runs are found and merged; rows of the same time keep their order. Only freeze.c calls it.
 */
#include "model/heap_order.h"

struct merge {
	const int64_t *ts;
	uint32_t *from, *to;
	uint32_t count; /* number of rows; the nil row is at 0 and stays */
};

/* The end of the sorted run that starts at `at`. */
static uint32_t run_end(const struct merge *s, uint32_t at)
{
	uint32_t end = at + 1;

	while (end < s->count && s->ts[s->from[end]] >= s->ts[s->from[end - 1]])
		end++;
	return end;
}

static void merge_two(const struct merge *s, uint32_t a, uint32_t middle, uint32_t end)
{
	uint32_t b = middle, at = a;

	while (a < middle && b < end)
		s->to[at++] = s->ts[s->from[b]] < s->ts[s->from[a]] ? s->from[b++] : s->from[a++];
	memcpy(s->to + at, s->from + a, (size_t)(middle - a) * sizeof(*s->to));
	at += middle - a;
	memcpy(s->to + at, s->from + b, (size_t)(end - b) * sizeof(*s->to));
}

/* Merges neighbouring runs; false when there is only one. */
static bool merge_once(const struct merge *s)
{
	uint32_t at = 1;

	while (at < s->count) {
		uint32_t middle = run_end(s, at), end;

		if (at == 1 && middle == s->count)
			return false;
		end = middle < s->count ? run_end(s, middle) : middle;
		merge_two(s, at, middle, end);
		at = end;
	}
	return true;
}

static bool is_in_order(const struct heap_table *t)
{
	for (uint32_t i = 2; i < t->count; i++)
		if (t->ts_ns[i] < t->ts_ns[i - 1])
			return false;
	return true;
}

static ow_status order_rows(struct builder *b, uint32_t *order, uint32_t *other)
{
	struct merge s = { b->m->heap.ts_ns, order, other, b->m->heap.count };

	for (uint32_t i = 0; i < s.count; i++)
		order[i] = i;
	other[0] = 0;
	while (merge_once(&s)) {
		uint32_t *done = s.to;

		s.to = s.from;
		s.from = done;
	}
	return builder_permute(b, TABLE_heap, s.from);
}

ow_status order_heap(struct builder *b)
{
	struct mem *mem = b->m->mem;
	size_t size = (size_t)b->m->heap.count * sizeof(uint32_t);
	uint32_t *order, *other;
	ow_status status;

	if (is_in_order(&b->m->heap))
		return OW_OK;
	order = mem_alloc(mem, size);
	other = order ? mem_alloc(mem, size) : NULL;
	status = other ? order_rows(b, order, other) : builder_no_memory(b);
	mem_free(mem, other, size);
	mem_free(mem, order, size);
	return status;
}
