/*
 * xspace_loops.c: iterations of a loop inside of a TensorFlow graph as steps, as XProf groups by them: the executor tells of each
 * time that it runs which call it runs for (id) and which iteration (iter_num). A call with iterations other than only the first
 * is a loop. Called by xspace_roots.c; loops inside of tf.data are none.
 */
#include "import/xspace_int.h"

/* When the executor ran for one iteration of a call. */
struct xiteration {
	uint64_t id;
	int64_t number, start, end;
};

ow_status xspace_take_iteration(struct xspace *x, uint64_t id, int64_t number, int64_t start,
				int64_t end)
{
	uint64_t hash = map_hash_u64(id, (uint64_t)number);
	void *all = x->iterations;

	for (struct map_iter it = map_find(&x->iteration_map, hash); it.value;
	     it = map_next(&x->iteration_map, it)) {
		struct xiteration *known = &x->iterations[it.value - 1];

		if (known->id != id || known->number != number)
			continue;
		known->start = MIN(known->start, start);
		known->end = MAX(known->end, end);
		return OW_OK;
	}
	if (x->iteration_count >= UINT32_MAX - 1 ||
	    !mem_grow(x->mem, &all, &x->iteration_cap, x->iteration_count + 1,
		      sizeof(*x->iterations)))
		return xspace_no_memory(x);
	x->iterations = all;
	x->iterations[x->iteration_count++] = (struct xiteration){ id, number, start, end };
	return map_add(&x->iteration_map, hash, (uint32_t)x->iteration_count) ? OW_OK
									      : xspace_no_memory(x);
}

void xspace_release_iterations(struct xspace *x)
{
	mem_free(x->mem, x->iterations, x->iteration_cap * sizeof(*x->iterations));
	map_release(&x->iteration_map);
	x->iterations = NULL;
	x->iteration_count = x->iteration_cap = 0;
}

static int by_call(const void *a, const void *b)
{
	const struct xiteration *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static int by_start(const void *a, const void *b)
{
	const struct xiteration *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Leaves those of loops that nobody captured; returns of how many calls they are. */
static size_t keep_loops(struct xspace *x, const uint64_t *captured, size_t captured_count)
{
	struct xiteration *all = x->iterations;
	size_t kept = 0, calls = 0, last;

	qsort(all, x->iteration_count, sizeof(*all), by_call);
	for (size_t first = 0; first < x->iteration_count; first = last) {
		bool loop;

		for (last = first; last < x->iteration_count && all[last].id == all[first].id;)
			last++;
		loop = last - first > 1 || all[first].number != 0;
		if (!loop ||
		    bsearch(&all[first].id, captured, captured_count, sizeof(*captured), by_value))
			continue;
		memmove(all + kept, all + first, (last - first) * sizeof(*all));
		kept += last - first;
		calls++;
	}
	x->iteration_count = kept;
	return calls;
}

/* One begins where the one before it ends, at the latest: iterations may run into each other. */
ow_status xspace_steps_of_loops(struct xspace *x, uint64_t *captured, size_t captured_count)
{
	size_t calls;

	if (x->iteration_count < 2)
		return OW_OK;
	qsort(captured, captured_count, sizeof(*captured), by_value);
	calls = keep_loops(x, captured, captured_count);
	if (x->iteration_count < 2)
		return OW_OK;
	qsort(x->iterations, x->iteration_count, sizeof(*x->iterations), by_start);
	for (size_t i = 0; i < x->iteration_count; i++) {
		const struct xiteration *it = &x->iterations[i];
		int64_t end = it->end;

		if (i + 1 < x->iteration_count)
			end = MIN(end, it[1].start);
		OW_TRY(xspace_mark(x, XSTEP_ROOT, it->start, MAX(end, it->start),
				   calls == 1 ? it->number : INT64_MIN, (str_id){ 0 }));
	}
	return OW_OK;
}
