/*
 * mean_numbers.c: from a number that events carry (a correlation, a sequence number) to one of the events.
 * Such numbers are mostly given out one after the other, so that a plain table does; where they are far
 * apart a map takes its place. Which event counts, of several with one number, is the caller's choice.
 */
#include "import/mean_int.h"

#define SPREAD 16 /* places of the table per event */
#define SPREAD_FREE 65536

void mean_numbers_see(struct mean_numbers *n, uint32_t number)
{
	n->lowest = n->seen ? MIN(n->lowest, number) : number;
	n->highest = MAX(n->highest, number);
	n->seen++;
}

bool mean_numbers_start(const struct meaning *x, struct mean_numbers *n)
{
	uint64_t most = (uint64_t)n->seen * SPREAD + SPREAD_FREE;

	n->x = x;
	map_init(&n->map, x->mem);
	if (!n->seen)
		return true;
	if (n->highest - n->lowest >= most)
		return map_reserve(&n->map, n->seen);
	n->span = n->highest - n->lowest + 1;
	n->table = mem_zalloc(x->mem, (size_t)n->span * sizeof(*n->table));
	return n->table != NULL;
}

void mean_numbers_release(struct mean_numbers *n)
{
	if (!n->x)
		return;
	mem_free(n->x->mem, n->table, (size_t)n->span * sizeof(*n->table));
	mem_free(n->x->mem, n->list, n->cap * sizeof(*n->list));
	map_release(&n->map);
}

static uint32_t *find_listed(const struct mean_numbers *n, uint32_t number, uint64_t hash)
{
	for (struct map_iter it = map_find(&n->map, hash); it.value; it = map_next(&n->map, it))
		if (n->list[it.value].number == number)
			return &n->list[it.value].event;
	return NULL;
}

void mean_numbers_prefetch(const struct mean_numbers *n, uint32_t far, uint32_t near)
{
	if (!n->span) {
		if (far && n->map.count)
			__builtin_prefetch(&n->map.slots[map_hash_u64(far, 1) >> 32 & n->map.mask]);
		if (near && n->list)
			__builtin_prefetch(
				&n->list[map_find(&n->map, map_hash_u64(near, 1)).value]);
		return;
	}
	if (far && far - n->lowest < n->span)
		__builtin_prefetch(&n->table[far - n->lowest]);
	if (near && near - n->lowest < n->span)
		__builtin_prefetch(&n->x->m->event.ts_ns[n->table[near - n->lowest]]);
}

uint32_t mean_numbers_find(const struct mean_numbers *n, uint32_t number)
{
	const uint32_t *event;

	if (n->span)
		return number - n->lowest < n->span ? n->table[number - n->lowest] : 0;
	event = find_listed(n, number, map_hash_u64(number, 1));
	return event ? *event : 0;
}

uint32_t *mean_numbers_place(struct mean_numbers *n, uint32_t number)
{
	uint64_t hash = map_hash_u64(number, 1);
	void *list = n->list;
	uint32_t *event;

	if (n->span)
		return &n->table[number - n->lowest];
	event = find_listed(n, number, hash);
	if (event)
		return event;
	/* Row 0 is not used: the map has no value 0. */
	if (!mem_grow(n->x->mem, &list, &n->cap, (size_t)n->count + 2, sizeof(*n->list)))
		return NULL;
	n->list = list;
	if (!map_add(&n->map, hash, n->count + 1))
		return NULL;
	n->list[++n->count] = (struct mean_number){ .number = number };
	return &n->list[n->count].event;
}

static int by_number(const void *a, const void *b)
{
	const struct mean_number *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

ow_status mean_numbers_each(struct mean_numbers *n, mean_number_fn take, void *arg)
{
	if (n->count)
		qsort(n->list + 1, n->count, sizeof(*n->list), by_number);
	for (uint32_t i = 1; i <= n->count; i++)
		OW_TRY(take(arg, n->list[i].number, n->list[i].event));
	for (uint32_t i = 0; i < n->span; i++)
		if (n->table[i])
			OW_TRY(take(arg, n->lowest + i, n->table[i]));
	return OW_OK;
}
