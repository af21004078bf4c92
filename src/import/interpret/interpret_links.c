/*
 * interpret_links.c: links events: which call launched which work of a device, by the correlation number that both have
 * or by the name of the op; and the flows of the source, bound to the slices at their ends. It also has the table from
 * a number to an event, which producers use for sequence numbers. Called by interpret.c and producers.
 */
#include "import/interpret/interpret_int.h"

#include "base/vec.h"
#include "import/chrome/trace_sort.h"

#define SPREAD 16 /* entries of the table for each event */
#define SPREAD_FREE 65536

void interpret_numbers_see(struct interpret_numbers *n, uint32_t number)
{
	n->lowest = n->seen ? MIN(n->lowest, number) : number;
	n->highest = MAX(n->highest, number);
	n->seen++;
}

bool interpret_numbers_start(const struct interpret *x, struct interpret_numbers *n)
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

void interpret_numbers_release(struct interpret_numbers *n)
{
	if (!n->x)
		return;
	mem_free(n->x->mem, n->table, (size_t)n->span * sizeof(*n->table));
	mem_free(n->x->mem, n->list, n->cap * sizeof(*n->list));
	map_release(&n->map);
}

static uint32_t *find_listed(const struct interpret_numbers *n, uint32_t number, uint64_t hash)
{
	for (struct map_iter it = map_find(&n->map, hash); it.value; it = map_next(&n->map, it))
		if (n->list[it.value].number == number)
			return &n->list[it.value].event;
	return NULL;
}

void interpret_numbers_prefetch(const struct interpret_numbers *n, uint32_t far, uint32_t near)
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

uint32_t interpret_numbers_find(const struct interpret_numbers *n, uint32_t number)
{
	const uint32_t *event;

	if (n->span)
		return number - n->lowest < n->span ? n->table[number - n->lowest] : 0;
	event = find_listed(n, number, map_hash_u64(number, 1));
	return event ? *event : 0;
}

uint32_t *interpret_numbers_place(struct interpret_numbers *n, uint32_t number)
{
	uint64_t hash = map_hash_u64(number, 1);
	uint32_t *event;

	if (n->span)
		return &n->table[number - n->lowest];
	event = find_listed(n, number, hash);
	if (event)
		return event;
	/* item 0 is not used, because the map has no value 0 */
	if (!vec_reserve(n->x->mem, n->list, n->cap, (size_t)n->count + 2))
		return NULL;
	if (!map_add(&n->map, hash, n->count + 1))
		return NULL;
	n->list[++n->count] = (struct interpret_number){ .number = number };
	return &n->list[n->count].event;
}

static int by_number(const void *a, const void *b)
{
	const struct interpret_number *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

ow_status interpret_numbers_each(struct interpret_numbers *n, interpret_number_fn take, void *arg)
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

ow_status interpret_add_link(struct interpret *x, uint32_t src, uint32_t dst, enum link_kind kind)
{
	builder_add_link(
		x->b, &(struct link_row){ .src = { src }, .dst = { dst }, .kind = (uint8_t)kind });
	return builder_status(x->b);
}

/* Events of a track that have a number, collected in batches; most events of the host have none. */
struct numbered {
	const struct interpret *x;
	uint32_t next, last;
	uint32_t count, rows[256];
};

static bool next_numbered(struct numbered *n)
{
	const uint32_t *correlation = n->x->m->event.correlation;
	uint32_t last = n->next + MIN(n->last - n->next, (uint32_t)ARRAY_COUNT(n->rows));

	n->count = 0;
	if (n->next == last)
		return false;
	for (uint32_t e = n->next; e < last; e++) {
		n->rows[n->count] = e;
		n->count += correlation[e] != 0;
	}
	n->next = last;
	return true;
}

static struct numbered numbered_of(const struct interpret *x, uint32_t t)
{
	return (struct numbered){ .x = x,
				  .next = interpret_track(x, t)->first,
				  .last = interpret_track(x, t)->last };
}

static void see_calls(const struct interpret *x, struct interpret_numbers *calls)
{
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		struct numbered n = numbered_of(x, t);

		while (interpret_on_host(x, t) && next_numbered(&n))
			for (uint32_t i = 0; i < n.count; i++)
				interpret_numbers_see(calls, x->m->event.correlation[n.rows[i]]);
	}
}

/* Prefetches the table entries of a batch. */
static void look_ahead(const struct numbered *n, const struct interpret_numbers *calls)
{
	for (uint32_t i = 0; i < n->count; i++)
		interpret_numbers_prefetch(calls, n->x->m->event.correlation[n->rows[i]], 0);
}

ow_status interpret_collect_calls(struct interpret *x, struct interpret_numbers *calls)
{
	see_calls(x, calls);
	if (!interpret_numbers_start(x, calls))
		return interpret_no_memory(x);
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		struct numbered n = numbered_of(x, t);

		while (interpret_on_host(x, t) && next_numbered(&n)) {
			look_ahead(&n, calls);
			for (uint32_t i = 0; i < n.count; i++) {
				uint32_t e = n.rows[i];
				uint32_t *call =
					interpret_numbers_place(calls, x->m->event.correlation[e]);

				if (!call)
					return interpret_no_memory(x);
				if (!*call)
					*call = e;
			}
		}
	}
	return OW_OK;
}

static ow_status link_work(struct interpret *x, const struct interpret_numbers *calls)
{
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		struct numbered n = numbered_of(x, t);

		while (interpret_on_device(x, t) && next_numbered(&n)) {
			look_ahead(&n, calls);
			for (uint32_t i = 0; i < n.count; i++) {
				uint32_t e = n.rows[i];
				uint32_t call =
					interpret_numbers_find(calls, x->m->event.correlation[e]);

				if (call)
					OW_TRY(interpret_add_link(x, call, e, LINK_LAUNCH));
			}
		}
	}
	return OW_OK;
}

ow_status interpret_link_correlations(struct interpret *x)
{
	struct interpret_numbers calls = { 0 };
	ow_status status;

	if (!x->m->event.correlation)
		return OW_OK;
	status = interpret_collect_calls(x, &calls);
	if (status == OW_OK)
		status = link_work(x, &calls);
	interpret_numbers_release(&calls);
	return status;
}

/* Calls and work, sorted by op and then by time. */
struct runs {
	struct interpret *x;
	struct trace_ref *list; /* row: the event; kind: 1 = work */
	/* for each op: position behind its last item, where the next op begins */
	uint32_t *end;
	size_t count, longest;
	atomic_uint next;
	atomic_bool failed;
};

#define OPS_AT_ONCE 16

/* Returns the part of a track: 1 = calls, 2 = work. */
static int part_of(const struct interpret *x, uint32_t t,
		   bool (*is_call)(const struct interpret *x, uint32_t track))
{
	if (interpret_on_device(x, t))
		return 2;
	return interpret_on_host(x, t) && is_call(x, t) ? 1 : 0;
}

/* Counts slices of all tracks of one part, or adds them to their op. */
static void collect_part(struct runs *r, int part, bool put,
			 bool (*is_call)(const struct interpret *x, uint32_t track))
{
	const struct interpret *x = r->x;
	const struct event_table *e = &x->m->event;

	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		if (part_of(x, t, is_call) != part)
			continue;
		for (uint32_t i = track->first; i < track->last; i++) {
			if (!interpret_is_slice(x, i))
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

/* Collects calls before work, so that a stable sort by time keeps them before work of the same
 * time. */
static ow_status collect_runs(struct runs *r,
			      bool (*is_call)(const struct interpret *x, uint32_t track))
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
		return interpret_no_memory(r->x);
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
				OW_TRY(interpret_add_link(r->x, call, r->list[i].row, LINK_LAUNCH));
		}
	}
	return OW_OK;
}

ow_status interpret_link_ops(struct interpret *x,
			     bool (*is_call)(const struct interpret *x, uint32_t track))
{
	size_t size = ((size_t)x->m->op.count + 1) * sizeof(uint32_t);
	struct runs r = { .x = x, .end = mem_zalloc(x->mem, size) };
	ow_status status = r.end ? collect_runs(&r, is_call) : interpret_no_memory(x);

	if (status == OW_OK) {
		parallel_run(interpret_threads(x), sort_runs, &r);
		status = atomic_load(&r.failed) ? interpret_no_memory(x) : link_runs(&r);
	}
	mem_free(x->mem, r.list, r.list ? MAX(r.count, (size_t)1) * sizeof(*r.list) : 0);
	mem_free(x->mem, r.end, size);
	return status;
}

#define WALK_MAX 64 /* number of slices that end at the same moment and are tried */

/* How well a slice fits; the smallest value is best. */
enum fit { FIT_NAMED, FIT_START, FIT_INSIDE, FIT_END, FIT_NONE };

struct flow_end {
	int64_t ts;
	uint32_t flow, group; /* flow, and group: first of tracks, later of ids */
	uint32_t event;	      /* slice that the end is bound to, 0 = none */
	uint8_t fit, kind;    /* fit: how well the slice fits; kind: enum link_kind */
};

struct flows {
	struct interpret *x;
	struct flow_end *ends, *other; /* other: buffer for sorting */
	size_t count, cap;
	uint32_t *open; /* slices that are open at the current time */
	size_t open_count, open_cap;
};

static int link_of(const struct interpret *x, str_id category)
{
	return x->producer->flow_link ? x->producer->flow_link(x, model_str(x->m, category))
				      : LINK_FLOW;
}

static ow_status choose(struct flows *f)
{
	struct interpret *x = f->x;
	const struct flow_table *t = &x->m->flow;
	str_id category = { UINT32_MAX };
	int kind = -1;

	f->cap = x->last_flow - x->first_flow;
	f->ends = mem_alloc(x->mem, f->cap * sizeof(*f->ends));
	f->other = f->ends ? mem_alloc(x->mem, f->cap * sizeof(*f->other)) : NULL;
	if (!f->other)
		return interpret_no_memory(x);
	for (uint32_t i = x->first_flow; i < x->last_flow; i++) {
		if (t->category[i].v != category.v) {
			category = t->category[i];
			kind = link_of(x, category);
		}
		if (kind < 0 || t->track[i].v < x->first_track)
			continue;
		f->ends[f->count++] = (struct flow_end){ .ts = t->ts_ns[i],
							 .flow = i,
							 .event = COLUMN_GET(t->event, i).v,
							 .fit = FIT_NONE,
							 .kind = (uint8_t)kind };
	}
	return OW_OK;
}

static uint8_t ph_of(const struct flows *f, const struct flow_end *end)
{
	return f->x->m->flow.ph[end->flow];
}

static int by_time(const void *a, const void *b, void *arg)
{
	const struct flow_end *x = a, *y = b;
	bool x_starts = ph_of(arg, x) == 's', y_starts = ph_of(arg, y) == 's';

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	if (x_starts != y_starts)
		return x_starts ? -1 : 1;
	return (x->flow > y->flow) - (x->flow < y->flow);
}

/* Sorts ends by group and then by time; mostly they are in order of time already. */
static ow_status sort_ends(struct flows *f, uint32_t groups)
{
	size_t size = ((size_t)groups + 1) * sizeof(uint32_t);
	uint32_t *start = mem_zalloc(f->x->mem, size);
	struct flow_end *swap;

	if (!start)
		return interpret_no_memory(f->x);
	for (size_t i = 0; i < f->count; i++)
		start[f->ends[i].group + 1]++;
	for (uint32_t g = 0; g < groups; g++)
		start[g + 1] += start[g];
	for (size_t i = 0; i < f->count; i++)
		f->other[start[f->ends[i].group]++] = f->ends[i];
	mem_free(f->x->mem, start, size);
	swap = f->ends;
	f->ends = f->other;
	f->other = swap;
	for (size_t first = 0, n; first < f->count; first += n) {
		bool sorted = true;

		for (n = 1;
		     first + n < f->count && f->ends[first + n].group == f->ends[first].group; n++)
			sorted &= by_time(&f->ends[first + n - 1], &f->ends[first + n], f) <= 0;
		if (!sorted)
			qsort_r(f->ends + first, n, sizeof(*f->ends), by_time, f);
	}
	return OW_OK;
}

static bool may_carry(const struct interpret *x, uint32_t track)
{
	uint8_t kind = x->m->track.kind[track];

	return kind != TRACK_FRAMES && kind != TRACK_SPAN && kind != TRACK_ASYNC &&
	       kind != TRACK_DERIVED;
}

static void offer(const struct interpret *x, struct flow_end *end, uint32_t event, enum fit fit)
{
	if (fit > end->fit ||
	    (fit == end->fit && x->m->event.ts_ns[event] <= x->m->event.ts_ns[end->event]))
		return;
	end->event = event;
	end->fit = (uint8_t)fit;
}

/* Opens slices that start up to ts, and closes those that ended before it. */
static bool advance(struct flows *f, uint32_t *next, uint32_t last, int64_t ts)
{
	const struct interpret *x = f->x;

	for (; *next < last && x->m->event.ts_ns[*next] <= ts; ++*next) {
		if (!interpret_is_slice(x, *next))
			continue;
		while (f->open_count &&
		       interpret_end(x, f->open[f->open_count - 1]) < x->m->event.ts_ns[*next])
			f->open_count--;
		if (!vec_push(x->mem, f->open, f->open_count, f->open_cap, *next))
			return false;
	}
	while (f->open_count && interpret_end(x, f->open[f->open_count - 1]) < ts)
		f->open_count--;
	return true;
}

/* Chooses among the open slices: one that begins now, one around, one that ends now. The start of a flow has the
 * name of the op whose output it carries, which decides where slices touch. */
static void bind_around(struct flows *f, struct flow_end *end)
{
	const struct interpret *x = f->x;
	const struct event_table *e = &x->m->event;
	str_id name = x->m->flow.name[end->flow];
	bool starts = ph_of(f, end) == 's';

	for (size_t i = f->open_count, walked = 0; i-- > 0 && walked < WALK_MAX; walked++) {
		uint32_t event = f->open[i];
		bool ends_now = interpret_end(x, event) == end->ts;

		if (interpret_end(x, event) < end->ts)
			continue;
		if (starts && x->m->op.name[e->op[event].v].v == name.v)
			offer(x, end, event, FIT_NAMED);
		else if (e->ts_ns[event] == end->ts)
			offer(x, end, event, FIT_START);
		else
			offer(x, end, event, ends_now ? FIT_END : FIT_INSIDE);
		if (!ends_now && e->ts_ns[event] != end->ts)
			break;
	}
}

static void bind_next(struct flows *f, struct flow_end *end, const struct interpret_track *track)
{
	const struct interpret *x = f->x;
	uint32_t low = track->first, high = track->last;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (x->m->event.ts_ns[middle] < end->ts)
			low = middle + 1;
		else
			high = middle;
	}
	while (low < track->last && !interpret_is_slice(x, low))
		low++;
	if (low < track->last &&
	    (!end->event || x->m->event.ts_ns[low] < x->m->event.ts_ns[end->event]))
		end->event = low;
}

static bool binds_to_next(const struct flows *f, const struct flow_end *end)
{
	const struct flow_table *t = &f->x->m->flow;

	return t->ph[end->flow] == 'f' && !COLUMN_GET(t->enclosing, end->flow);
}

static ow_status bind_on(struct flows *f, uint32_t t, struct flow_end *ends, size_t count)
{
	const struct interpret_track *track = interpret_track(f->x, t);
	uint32_t next = track->first;

	f->open_count = 0;
	for (size_t i = 0; i < count; i++) {
		if (COLUMN_GET(f->x->m->flow.event, ends[i].flow).v)
			continue;
		if (binds_to_next(f, &ends[i])) {
			bind_next(f, &ends[i], track);
			continue;
		}
		if (!advance(f, &next, track->last, ends[i].ts))
			return OW_E_NO_MEMORY; /* bind() reports the failure */
		bind_around(f, &ends[i]);
	}
	return OW_OK;
}

/* Returns the first track after those of one thread, which are neighbours. */
static uint32_t thread_end(const struct interpret *x, uint32_t track)
{
	const struct track_table *t = &x->m->track;
	uint32_t end = track + 1;

	while (end < x->last_track && t->pid[end] == t->pid[track] && t->tid[end] == t->tid[track])
		end++;
	return end;
}

static ow_status bind_thread(struct flows *f, uint32_t first, uint32_t last, struct flow_end *ends,
			     size_t count)
{
	bool carried = false;

	for (uint32_t t = first; t < last; t++) {
		if (!may_carry(f->x, t) ||
		    interpret_track(f->x, t)->first == interpret_track(f->x, t)->last)
			continue;
		carried = true;
		OW_TRY(bind_on(f, t, ends, count));
	}
	for (uint32_t t = first; t < last && !carried; t++)
		if (f->x->m->track.kind[t] == TRACK_DERIVED)
			OW_TRY(bind_on(f, t, ends, count));
	return OW_OK;
}

/* State of several threads; each takes the ends of one thread of the trace. */
struct binding {
	struct flows *f;
	size_t *starts; /* begins of the groups of ends */
	size_t count;
	atomic_size_t next;
	atomic_bool failed;
};

static void bind_groups(void *arg, unsigned thread)
{
	struct binding *b = arg;
	struct flows mine = *b->f;

	(void)thread;
	mine.open = NULL;
	mine.open_count = mine.open_cap = 0;
	for (;;) {
		size_t i = atomic_fetch_add(&b->next, 1);
		struct flow_end *ends;
		uint32_t first;

		if (i >= b->count)
			break;
		ends = mine.ends + b->starts[i];
		first = ends->group + mine.x->first_track;
		if (bind_thread(&mine, first, thread_end(mine.x, first), ends,
				b->starts[i + 1] - b->starts[i]) != OW_OK)
			atomic_store(&b->failed, true);
	}
	mem_free(mine.x->mem, mine.open, mine.open_cap * sizeof(*mine.open));
}

static ow_status bind(struct flows *f)
{
	struct interpret *x = f->x;
	uint32_t tracks = x->last_track - x->first_track;
	uint32_t *thread = ARENA_ARRAY(&x->scratch, uint32_t, (size_t)tracks + 1);
	struct binding b = { .f = f,
			     .starts = ARENA_ARRAY(&x->scratch, size_t, (size_t)tracks + 2) };

	if (!thread || !b.starts)
		return interpret_no_memory(x);
	for (uint32_t t = x->first_track, end; t < x->last_track; t = end) {
		end = thread_end(x, t);
		for (uint32_t k = t; k < end; k++)
			thread[k - x->first_track] = t - x->first_track;
	}
	for (size_t k = 0; k < f->count; k++)
		f->ends[k].group = thread[x->m->flow.track[f->ends[k].flow].v - x->first_track];
	OW_TRY(sort_ends(f, tracks));
	for (size_t i = 0; i < f->count; i++)
		if (!i || f->ends[i].group != f->ends[i - 1].group)
			b.starts[b.count++] = i;
	b.starts[b.count] = f->count;
	parallel_run(interpret_threads(x), bind_groups, &b);
	return atomic_load(&b.failed) ? interpret_no_memory(x) : OW_OK;
}

/* Numbers the distinct (category, id) pairs. */
static ow_status group_ids(struct flows *f, uint32_t *groups)
{
	const struct flow_table *t = &f->x->m->flow;
	struct map map;
	bool ok = true;

	*groups = 1;
	map_init(&map, f->x->mem);
	for (size_t i = 0; i < f->count && ok; i++) {
		uint32_t flow = f->ends[i].flow;
		uint64_t hash = map_hash_u64(t->id[flow], t->category[flow].v);
		struct map_iter it = map_find(&map, hash);

		/* the map has the first end of each pair (+ 1); its group is that of all ends */
		while (it.value &&
		       (t->id[f->ends[it.value - 1].flow] != t->id[flow] ||
			t->category[f->ends[it.value - 1].flow].v != t->category[flow].v))
			it = map_next(&map, it);
		f->ends[i].group = it.value ? f->ends[it.value - 1].group : (*groups)++;
		ok = it.value || map_add(&map, hash, (uint32_t)i + 1);
	}
	map_release(&map);
	return ok ? OW_OK : interpret_no_memory(f->x);
}

static ow_status match(struct flows *f)
{
	uint32_t groups, group = UINT32_MAX, from = 0;

	OW_TRY(group_ids(f, &groups));
	OW_TRY(sort_ends(f, groups));
	for (size_t i = 0; i < f->count; i++) {
		const struct flow_end *end = &f->ends[i];

		if (end->group != group) {
			group = end->group;
			from = 0;
		}
		if (ph_of(f, end) == 's')
			from = end->event;
		else if (from && end->event && from != end->event)
			OW_TRY(interpret_add_link(f->x, from, end->event,
						  (enum link_kind)end->kind));
	}
	return OW_OK;
}

ow_status interpret_link_flows(struct interpret *x)
{
	struct flows f = { .x = x };
	ow_status status;

	if (x->first_flow == x->last_flow)
		return OW_OK;
	status = choose(&f);
	if (status == OW_OK && f.count)
		status = bind(&f);
	if (status == OW_OK && f.count)
		status = match(&f);
	mem_free(x->mem, f.ends, f.cap * sizeof(*f.ends));
	mem_free(x->mem, f.other, f.cap * sizeof(*f.other));
	mem_free(x->mem, f.open, f.open_cap * sizeof(*f.open));
	return status;
}
