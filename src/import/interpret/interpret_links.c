/*
 * mean_flows.c: makes links of flows. Each end of an arrow is bound to a slice of its thread; ends of one
 * (category, id) belong together, and whatever comes after a start is linked from it. Ids may be used again
 * later in the file, as in timelines that were glued together: the nearest start before counts.
 *
 * A start, a step, and an end with bp "e" bind to the slice around them, borders included: TensorFlow puts
 * a start exactly at the end of its slice. Other ends bind to the next slice.
 */
#include "import/mean_int.h"

#define WALK_MAX 64 /* slices that end at the same moment and are tried */

/* How well a slice fits; the least is best. */
enum fit { FIT_NAMED, FIT_START, FIT_INSIDE, FIT_END, FIT_NONE };

struct flow_end {
	int64_t ts;
	uint32_t flow, group; /* group: of tracks first, of ids later */
	uint32_t event;	      /* the slice it is bound to, 0 = none */
	uint8_t fit, kind;    /* kind: enum link_kind */
};

struct flows {
	struct meaning *x;
	struct flow_end *ends, *other; /* `other`: room to sort into */
	size_t count, cap;
	uint32_t *open; /* slices open at a moment */
	size_t open_count, open_cap;
};

/* ---- which flows ---- */

static int link_of(const struct meaning *x, str_id category)
{
	return x->producer->flow_link ? x->producer->flow_link(x, model_str(x->m, category))
				      : LINK_FLOW;
}

static ow_status choose(struct flows *f)
{
	struct meaning *x = f->x;
	const struct flow_table *t = &x->m->flow;
	str_id category = { UINT32_MAX };
	int kind = -1;

	f->cap = x->last_flow - x->first_flow;
	f->ends = mem_alloc(x->mem, f->cap * sizeof(*f->ends));
	f->other = f->ends ? mem_alloc(x->mem, f->cap * sizeof(*f->other)) : NULL;
	if (!f->other)
		return mean_no_memory(x);
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

/* ---- order ---- */

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

/* By group, and by time in each; mostly they come in order of time. */
static ow_status sort_ends(struct flows *f, uint32_t groups)
{
	size_t size = ((size_t)groups + 1) * sizeof(uint32_t);
	uint32_t *start = mem_zalloc(f->x->mem, size);
	struct flow_end *swap;

	if (!start)
		return mean_no_memory(f->x);
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

/* ---- binding ---- */

static bool may_carry(const struct meaning *x, uint32_t track)
{
	uint8_t kind = x->m->track.kind[track];

	return kind != TRACK_FRAMES && kind != TRACK_SPAN && kind != TRACK_ASYNC &&
	       kind != TRACK_DERIVED;
}

static void offer(const struct meaning *x, struct flow_end *end, uint32_t event, enum fit fit)
{
	if (fit > end->fit ||
	    (fit == end->fit && x->m->event.ts_ns[event] <= x->m->event.ts_ns[end->event]))
		return;
	end->event = event;
	end->fit = (uint8_t)fit;
}

/* Opens what starts up to ts, and closes what ended before it. */
static bool advance(struct flows *f, uint32_t *next, uint32_t last, int64_t ts)
{
	const struct meaning *x = f->x;
	void *open;

	for (; *next < last && x->m->event.ts_ns[*next] <= ts; ++*next) {
		if (!mean_is_slice(x, *next))
			continue;
		while (f->open_count &&
		       mean_end(x, f->open[f->open_count - 1]) < x->m->event.ts_ns[*next])
			f->open_count--;
		open = f->open;
		if (!mem_grow(x->mem, &open, &f->open_cap, f->open_count + 1, sizeof(*f->open)))
			return false;
		f->open = open;
		f->open[f->open_count++] = *next;
	}
	while (f->open_count && mean_end(x, f->open[f->open_count - 1]) < ts)
		f->open_count--;
	return true;
}

/* Among the open slices: one that begins now, one around, one that ends now. A start carries the name of
 * the op whose output goes along it, which settles it where slices touch. */
static void bind_around(struct flows *f, struct flow_end *end)
{
	const struct meaning *x = f->x;
	const struct event_table *e = &x->m->event;
	str_id name = x->m->flow.name[end->flow];
	bool starts = ph_of(f, end) == 's';

	for (size_t i = f->open_count, walked = 0; i-- > 0 && walked < WALK_MAX; walked++) {
		uint32_t event = f->open[i];
		bool ends_now = mean_end(x, event) == end->ts;

		if (mean_end(x, event) < end->ts)
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

static void bind_next(struct flows *f, struct flow_end *end, const struct mean_track *track)
{
	const struct meaning *x = f->x;
	uint32_t low = track->first, high = track->last;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (x->m->event.ts_ns[middle] < end->ts)
			low = middle + 1;
		else
			high = middle;
	}
	while (low < track->last && !mean_is_slice(x, low))
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
	const struct mean_track *track = mean_track(f->x, t);
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
			return OW_E_NO_MEMORY; /* told by whoever started the threads */
		bind_around(f, &ends[i]);
	}
	return OW_OK;
}

/* Tracks of one thread are neighbours. Returns the first after them. */
static uint32_t thread_end(const struct meaning *x, uint32_t track)
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
		if (!may_carry(f->x, t) || mean_track(f->x, t)->first == mean_track(f->x, t)->last)
			continue;
		carried = true;
		OW_TRY(bind_on(f, t, ends, count));
	}
	for (uint32_t t = first; t < last && !carried; t++)
		if (f->x->m->track.kind[t] == TRACK_DERIVED)
			OW_TRY(bind_on(f, t, ends, count));
	return OW_OK;
}

/* Threads take the ends of one thread of the trace each. */
struct binding {
	struct flows *f;
	size_t *starts; /* of the groups of ends */
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
	struct meaning *x = f->x;
	uint32_t tracks = x->last_track - x->first_track;
	uint32_t *thread = ARENA_ARRAY(&x->scratch, uint32_t, (size_t)tracks + 1);
	struct binding b = { .f = f,
			     .starts = ARENA_ARRAY(&x->scratch, size_t, (size_t)tracks + 2) };

	if (!thread || !b.starts)
		return mean_no_memory(x);
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
	parallel_run(mean_threads(x), bind_groups, &b);
	return atomic_load(&b.failed) ? mean_no_memory(x) : OW_OK;
}

/* ---- matching ---- */

/* Numbers the (category, id) pairs. */
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

		/* the map has the first end of each pair (+ 1); its group is that of all */
		while (it.value &&
		       (t->id[f->ends[it.value - 1].flow] != t->id[flow] ||
			t->category[f->ends[it.value - 1].flow].v != t->category[flow].v))
			it = map_next(&map, it);
		f->ends[i].group = it.value ? f->ends[it.value - 1].group : (*groups)++;
		ok = it.value || map_add(&map, hash, (uint32_t)i + 1);
	}
	map_release(&map);
	return ok ? OW_OK : mean_no_memory(f->x);
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
			OW_TRY(mean_add_link(f->x, from, end->event, (enum link_kind)end->kind));
	}
	return OW_OK;
}

ow_status mean_link_flows(struct meaning *x)
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
