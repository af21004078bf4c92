/*
 * mean_links.c: which call launched which work of a device: by the correlation number that both carry, or
 * by the name of the op.
 */
#include "import/mean_int.h"
#include "import/trace_sort.h"

ow_status mean_add_link(struct meaning *x, uint32_t src, uint32_t dst, enum link_kind kind)
{
	builder_add_link(
		x->b, &(struct link_row){ .src = { src }, .dst = { dst }, .kind = (uint8_t)kind });
	return builder_status(x->b);
}

/* ---- by correlation ---- */

/* Events of a track that have a number, some at a time: most of the host's have none. */
struct numbered {
	const struct meaning *x;
	uint32_t next, last;
	uint32_t count, rows[256];
};

/* Operators have another number there, see trace_sequence. */
OW_ALWAYS_INLINE bool has_correlation(const struct meaning *x, uint32_t event, bool operators)
{
	return x->m->event.correlation[event] &&
	       (!operators || mean_category(x, event) != CATEGORY_OPERATOR);
}

static bool next_numbered(struct numbered *n)
{
	bool operators = n->x->m->event.category != NULL;
	uint32_t last = n->next + MIN(n->last - n->next, (uint32_t)ARRAY_COUNT(n->rows));

	n->count = 0;
	if (n->next == last)
		return false;
	for (uint32_t e = n->next; e < last; e++) {
		n->rows[n->count] = e;
		n->count += has_correlation(n->x, e, operators);
	}
	n->next = last;
	return true;
}

static struct numbered numbered_of(const struct meaning *x, uint32_t t)
{
	return (struct numbered){ .x = x,
				  .next = mean_track(x, t)->first,
				  .last = mean_track(x, t)->last };
}

static void see_calls(const struct meaning *x, struct mean_numbers *calls)
{
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		struct numbered n = numbered_of(x, t);

		while (mean_on_host(x, t) && next_numbered(&n))
			for (uint32_t i = 0; i < n.count; i++)
				mean_numbers_see(calls, x->m->event.correlation[n.rows[i]]);
	}
}

/* Their places are fetched all at once. */
static void look_ahead(const struct numbered *n, const struct mean_numbers *calls)
{
	for (uint32_t i = 0; i < n->count; i++)
		mean_numbers_prefetch(calls, n->x->m->event.correlation[n->rows[i]], 0);
}

/* The first call of a number counts: a driver's call lies inside the runtime's. */
static ow_status collect_calls(struct meaning *x, struct mean_numbers *calls)
{
	see_calls(x, calls);
	if (!mean_numbers_start(x, calls))
		return mean_no_memory(x);
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		struct numbered n = numbered_of(x, t);

		while (mean_on_host(x, t) && next_numbered(&n)) {
			look_ahead(&n, calls);
			for (uint32_t i = 0; i < n.count; i++) {
				uint32_t e = n.rows[i];
				uint32_t *call =
					mean_numbers_place(calls, x->m->event.correlation[e]);

				if (!call)
					return mean_no_memory(x);
				if (!*call)
					*call = e;
			}
		}
	}
	return OW_OK;
}

static ow_status link_work(struct meaning *x, const struct mean_numbers *calls)
{
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		struct numbered n = numbered_of(x, t);

		while (mean_on_device(x, t) && next_numbered(&n)) {
			look_ahead(&n, calls);
			for (uint32_t i = 0; i < n.count; i++) {
				uint32_t e = n.rows[i];
				uint32_t call =
					mean_numbers_find(calls, x->m->event.correlation[e]);

				if (call)
					OW_TRY(mean_add_link(x, call, e, LINK_LAUNCH));
			}
		}
	}
	return OW_OK;
}

ow_status mean_link_correlations(struct meaning *x)
{
	struct mean_numbers calls = { 0 };
	ow_status status;

	if (!x->m->event.correlation)
		return OW_OK;
	status = collect_calls(x, &calls);
	if (status == OW_OK)
		status = link_work(x, &calls);
	mean_numbers_release(&calls);
	return status;
}

/* ---- by op ---- */

/* Calls and work, by op, and by time in each. */
struct runs {
	struct meaning *x;
	struct trace_ref *list; /* row: the event; kind: 1 = work */
	uint32_t *end;		/* per op: behind its last; that is where the next begins */
	size_t count, longest;
	atomic_uint next;
	atomic_bool failed;
};

#define OPS_AT_ONCE 16

/* Tracks whose slices take part: 1 = calls, 2 = work. */
static int part_of(const struct meaning *x, uint32_t t,
		   bool (*is_call)(const struct meaning *x, uint32_t track))
{
	if (mean_on_device(x, t))
		return 2;
	return mean_on_host(x, t) && is_call(x, t) ? 1 : 0;
}

/* Slices of all tracks of one part: counted, or put to those of their op. */
static void collect_part(struct runs *r, int part, bool put,
			 bool (*is_call)(const struct meaning *x, uint32_t track))
{
	const struct meaning *x = r->x;
	const struct event_table *e = &x->m->event;

	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct mean_track *track = mean_track(x, t);

		if (part_of(x, t, is_call) != part)
			continue;
		for (uint32_t i = track->first; i < track->last; i++) {
			if (!mean_is_slice(x, i))
				continue;
			if (put)
				r->list[r->end[e->op[i].v]++] = (struct trace_ref){
					.ts = e->ts_ns[i], .row = i, .kind = part == 2
				};
			else
				r->end[e->op[i].v + 1]++;
		}
	}
}

/* Calls come before work, so that a stable sort by time leaves them before work of the same time. */
static ow_status collect_runs(struct runs *r,
			      bool (*is_call)(const struct meaning *x, uint32_t track))
{
	uint32_t ops = r->x->m->op.count;

	collect_part(r, 1, false, is_call);
	collect_part(r, 2, false, is_call);
	for (uint32_t op = 0; op < ops; op++) {
		r->longest = MAX(r->longest, (size_t)r->end[op + 1]);
		r->end[op + 1] += r->end[op];
	}
	r->count = r->end[ops];
	r->list = mem_alloc(r->x->mem, MAX(r->count, (size_t)1) * sizeof(*r->list));
	if (!r->list)
		return mean_no_memory(r->x);
	collect_part(r, 1, true, is_call);
	collect_part(r, 2, true, is_call);
	return OW_OK;
}

static void sort_runs(void *arg, unsigned thread)
{
	struct runs *r = arg;
	struct mem *mem = r->x->mem;
	size_t size = MAX(r->longest, (size_t)1) * sizeof(struct trace_ref);
	struct trace_ref *scratch = mem_alloc(mem, size);

	(void)thread;
	if (!scratch) {
		atomic_store(&r->failed, true);
		return;
	}
	for (;;) {
		uint32_t op = atomic_fetch_add(&r->next, OPS_AT_ONCE);
		uint32_t last = MIN(op + OPS_AT_ONCE, r->x->m->op.count);

		if (op >= r->x->m->op.count)
			break;
		for (; op < last; op++) {
			uint32_t first = op ? r->end[op - 1] : 0;

			trace_sort(r->list + first, r->end[op] - first, scratch);
		}
	}
	mem_free(mem, scratch, size);
}

static ow_status link_runs(const struct runs *r)
{
	for (uint32_t op = 0, i = 0; op < r->x->m->op.count; op++) {
		uint32_t call = 0;

		for (; i < r->end[op]; i++) {
			if (!r->list[i].kind)
				call = r->list[i].row;
			else if (call)
				OW_TRY(mean_add_link(r->x, call, r->list[i].row, LINK_LAUNCH));
		}
	}
	return OW_OK;
}

ow_status mean_link_ops(struct meaning *x, bool (*is_call)(const struct meaning *x, uint32_t track))
{
	size_t size = ((size_t)x->m->op.count + 1) * sizeof(uint32_t);
	struct runs r = { .x = x, .end = mem_zalloc(x->mem, size) };
	ow_status status = r.end ? collect_runs(&r, is_call) : mean_no_memory(x);

	if (status == OW_OK) {
		parallel_run(mean_threads(x), sort_runs, &r);
		status = atomic_load(&r.failed) ? mean_no_memory(x) : link_runs(&r);
	}
	mem_free(x->mem, r.list, r.list ? MAX(r.count, (size_t)1) * sizeof(*r.list) : 0);
	mem_free(x->mem, r.end, size);
	return status;
}
