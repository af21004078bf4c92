/*
 * mean_links.c: which call launched which work of a device: by the correlation number that both carry, or
 * by the name of the op.
 */
#include "import/mean_int.h"

ow_status mean_add_link(struct meaning *x, uint32_t src, uint32_t dst, enum link_kind kind)
{
	builder_add_link(
		x->b, &(struct link_row){ .src = { src }, .dst = { dst }, .kind = (uint8_t)kind });
	return builder_status(x->b);
}

/* ---- by correlation ---- */

/* From a number to the call that has it. Numbers are mostly given out one after the other. */
struct calls {
	struct meaning *x;
	uint32_t lowest, span; /* a table of span places, or, when 0, the map */
	uint32_t *table;
	struct map map;
};

static uint32_t correlation_of(const struct meaning *x, uint32_t event)
{
	return x->m->event.correlation[event];
}

static ow_status measure(struct calls *c)
{
	const struct meaning *x = c->x;
	uint32_t lowest = UINT32_MAX, highest = 0, count = 0;

	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct mean_track *track = mean_track(x, t);

		if (!mean_on_host(x, t))
			continue;
		for (uint32_t e = track->first; e < track->last; e++) {
			uint32_t number = correlation_of(x, e);

			if (!number)
				continue;
			lowest = MIN(lowest, number);
			highest = MAX(highest, number);
			count++;
		}
	}
	c->lowest = lowest;
	if (count && highest - lowest < (uint64_t)count * 16 + 65536) {
		c->span = highest - lowest + 1;
		c->table = mem_zalloc(x->mem, (size_t)c->span * sizeof(*c->table));
		return c->table ? OW_OK : mean_no_memory(c->x);
	}
	return map_reserve(&c->map, count) ? OW_OK : mean_no_memory(c->x);
}

static uint32_t find_call(const struct calls *c, uint32_t number)
{
	uint64_t hash;

	if (c->span)
		return number - c->lowest < c->span ? c->table[number - c->lowest] : 0;
	hash = map_hash_u64(number, 1);
	for (struct map_iter it = map_find(&c->map, hash); it.value; it = map_next(&c->map, it))
		if (correlation_of(c->x, it.value) == number)
			return it.value;
	return 0;
}

/* The first call of a number counts: a driver's call lies inside the runtime's. */
static bool add_call(struct calls *c, uint32_t number, uint32_t event)
{
	if (find_call(c, number))
		return true;
	if (!c->span)
		return map_add(&c->map, map_hash_u64(number, 1), event);
	c->table[number - c->lowest] = event;
	return true;
}

static ow_status collect_calls(struct calls *c)
{
	const struct meaning *x = c->x;

	OW_TRY(measure(c));
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct mean_track *track = mean_track(x, t);

		if (!mean_on_host(x, t))
			continue;
		for (uint32_t e = track->first; e < track->last; e++)
			if (correlation_of(x, e) && !add_call(c, correlation_of(x, e), e))
				return mean_no_memory(c->x);
	}
	return OW_OK;
}

static ow_status link_work(struct calls *c)
{
	struct meaning *x = c->x;

	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct mean_track *track = mean_track(x, t);

		if (!mean_on_device(x, t))
			continue;
		for (uint32_t e = track->first; e < track->last; e++) {
			uint32_t number = correlation_of(x, e);
			uint32_t call = number ? find_call(c, number) : 0;

			if (call)
				OW_TRY(mean_add_link(x, call, e, LINK_LAUNCH));
		}
	}
	return OW_OK;
}

ow_status mean_link_correlations(struct meaning *x)
{
	struct calls c = { .x = x };
	ow_status status;

	if (!x->m->event.correlation)
		return OW_OK;
	map_init(&c.map, x->mem);
	status = collect_calls(&c);
	if (status == OW_OK)
		status = link_work(&c);
	mem_free(x->mem, c.table, (size_t)c.span * sizeof(*c.table));
	map_release(&c.map);
	return status;
}

/* ---- by op ---- */

/* Calls and work of one op, by time. */
struct run {
	int64_t ts;
	uint32_t op, event;
	bool work;
};

static int by_op_and_time(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	if (x->work != y->work)
		return x->work ? 1 : -1;
	return (x->event > y->event) - (x->event < y->event);
}

struct runs {
	struct run *list;
	uint32_t *start; /* per op */
	size_t count;
};

/* Tracks whose slices take part: 1 = calls, 2 = work. */
static int part_of(const struct meaning *x, uint32_t t,
		   bool (*is_call)(const struct meaning *x, uint32_t track))
{
	if (mean_on_device(x, t))
		return 2;
	return mean_on_host(x, t) && is_call(x, t) ? 1 : 0;
}

/* Counts per op first, so that the sort that follows is one of many short lists. */
static ow_status collect_runs(struct meaning *x, struct runs *r,
			      bool (*is_call)(const struct meaning *x, uint32_t track))
{
	const struct event_table *e = &x->m->event;

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t t = x->first_track; t < x->last_track; t++) {
			const struct mean_track *track = mean_track(x, t);
			int part = part_of(x, t, is_call);

			for (uint32_t i = track->first; part && i < track->last; i++) {
				if (!mean_is_slice(x, i))
					continue;
				if (pass)
					r->list[r->start[e->op[i].v]++] =
						(struct run){ e->ts_ns[i], e->op[i].v, i,
							      part == 2 };
				else
					r->start[e->op[i].v + 1]++;
			}
		}
		if (pass)
			break;
		for (uint32_t op = 0; op < x->m->op.count; op++)
			r->start[op + 1] += r->start[op];
		r->count = r->start[x->m->op.count];
		r->list = mem_alloc(x->mem, MAX(r->count, (size_t)1) * sizeof(*r->list));
		if (!r->list)
			return mean_no_memory(x);
	}
	return OW_OK;
}

static void sort_runs(const struct runs *r)
{
	for (size_t first = 0, n; first < r->count; first += n) {
		bool sorted = true;

		for (n = 1; first + n < r->count && r->list[first + n].op == r->list[first].op; n++)
			sorted &= by_op_and_time(&r->list[first + n - 1], &r->list[first + n]) <= 0;
		if (!sorted)
			qsort(r->list + first, n, sizeof(*r->list), by_op_and_time);
	}
}

static ow_status link_runs(struct meaning *x, const struct runs *r)
{
	uint32_t op = 0, call = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct run *run = &r->list[i];

		if (run->op != op) {
			op = run->op;
			call = 0;
		}
		if (!run->work)
			call = run->event;
		else if (call)
			OW_TRY(mean_add_link(x, call, run->event, LINK_LAUNCH));
	}
	return OW_OK;
}

ow_status mean_link_ops(struct meaning *x, bool (*is_call)(const struct meaning *x, uint32_t track))
{
	size_t size = ((size_t)x->m->op.count + 1) * sizeof(uint32_t);
	struct runs r = { .start = mem_zalloc(x->mem, size) };
	ow_status status = r.start ? collect_runs(x, &r, is_call) : mean_no_memory(x);

	if (status == OW_OK) {
		sort_runs(&r);
		status = link_runs(x, &r);
	}
	mem_free(x->mem, r.list, r.list ? MAX(r.count, (size_t)1) * sizeof(*r.list) : 0);
	mem_free(x->mem, r.start, size);
	return status;
}
