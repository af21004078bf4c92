/*
 * nest.c: nests the events of tracks and sums them into op_step. freeze.c calls nest_events; deferred.c calls
 * nesting_make on first use. Threads take whole tracks.
 *
 * A slice is the child of the innermost open slice that contains it. A slice that starts inside another and ends
 * after it has no parent: it opens a lane of its own, in which others may nest; nothing is dropped or cut. Self time
 * is the duration less that of the children, clipped to it. On tracks where events do not nest (streams,
 * asynchronous operations) self time is the duration.
 *
 * The same pass runs for two purposes. The freeze sums and finds overlaps. Self times and depths are stored only on
 * demand (model_require_nesting): few reports need them, and ten bytes of fresh memory per event are a good part of
 * the cost of loading.
 */
#include "model/nest.h"
#include "base/parallel.h"
#include "base/vec.h"
#include "model/backing.h"
#include "model/builder.h"

struct sum {
	uint32_t op, step; /* op 0 = empty slot */
	int64_t runs, cpu, accelerator, first, last;
};

struct sums {
	struct mem *mem;
	struct sum *slots;
	size_t slot_count, used;
	uint32_t ops, steps; /* sizes of the dense table; ops 0: the table is hashed instead */
};

/* The slow path of sums_find. */
static struct sum *sums_find_slot(struct sums *s, uint32_t op, uint32_t step);

/* The sum of an op in a step; NULL if memory runs out. */
OW_ALWAYS_INLINE struct sum *sums_find(struct sums *s, uint32_t op, uint32_t step)
{
	if (OW_LIKELY(s->ops && s->slots)) {
		struct sum *sum = &s->slots[(size_t)step * s->ops + op];

		if (OW_LIKELY(sum->op))
			return sum;
	}
	return sums_find_slot(s, op, step);
}

/* Prefetches the sum of an op in a step, which is needed soon. */
OW_ALWAYS_INLINE void sums_prefetch(const struct sums *s, uint32_t op, uint32_t step)
{
	if (OW_LIKELY(s->ops && s->slots))
		__builtin_prefetch(&s->slots[(size_t)step * s->ops + op], 1);
}

/* Adds two times; saturates. */
OW_ALWAYS_INLINE int64_t sums_add_times(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* slots are indexed directly if there are this many events per slot, or few slots (SLOTS_FREE) */
#define EVENTS_PER_SLOT 8
#define SLOTS_FREE 65536 /* up to this number, slots are always indexed directly */
#define SLOTS_MANY ((uint64_t)1 << 18)

static uint64_t slots_of(const struct model *m)
{
	return (uint64_t)m->op.count * m->step.count;
}

static bool has_array_sums(const struct model *m)
{
	return slots_of(m) <= MAX((uint64_t)m->event.count / EVENTS_PER_SLOT, (uint64_t)SLOTS_FREE);
}

/* The number of threads that get separate sums: memory for many of them would take longer than the adding. */
static unsigned sums_threads(const struct model *m, unsigned threads)
{
	return has_array_sums(m) && slots_of(m) > SLOTS_MANY ? 1 : threads;
}

/* Prepares sums without allocating. */
static void sums_init(struct sums *s, const struct model *m)
{
	*s = (struct sums){ .mem = m->mem };
	if (!has_array_sums(m))
		return;
	s->ops = m->op.count;
	s->steps = m->step.count;
}

static void sums_release(struct sums *s)
{
	mem_free(s->mem, s->slots, s->slot_count * sizeof(*s->slots));
	s->slots = NULL;
	s->slot_count = s->used = 0;
}

static size_t hashed_slot(const struct sums *s, uint32_t op, uint32_t step)
{
	uint64_t hash = ((uint64_t)step << 32 | op) * 0x9e3779b97f4a7c15ull;
	size_t mask = s->slot_count - 1, at = (size_t)(hash >> 32) & mask;

	while (s->slots[at].op && (s->slots[at].op != op || s->slots[at].step != step))
		at = (at + 1) & mask;
	return at;
}

static size_t slot_of(const struct sums *s, uint32_t op, uint32_t step)
{
	if (!s->ops)
		return hashed_slot(s, op, step);
	OW_ASSERT(op < s->ops && step < s->steps);
	return (size_t)step * s->ops + op;
}

/* Allocates the first slots, or twice as many; NULL if memory runs out. */
static struct sum *grow(struct sums *s)
{
	struct sums grown = { .mem = s->mem, .ops = s->ops, .steps = s->steps, .used = s->used };

	grown.slot_count =
		s->ops ? (size_t)s->ops * s->steps : MAX(s->slot_count * 2, (size_t)1024);
	grown.slots = mem_zalloc(s->mem, grown.slot_count * sizeof(*grown.slots));
	if (!grown.slots)
		return NULL;
	for (size_t i = 0; s->slots && i < s->slot_count; i++)
		if (s->slots[i].op)
			grown.slots[slot_of(&grown, s->slots[i].op, s->slots[i].step)] =
				s->slots[i];
	mem_free(s->mem, s->slots, s->slot_count * sizeof(*s->slots));
	*s = grown;
	return grown.slots;
}

static struct sum *sums_find_slot(struct sums *s, uint32_t op, uint32_t step)
{
	struct sum *slots = s->slots, *sum;

	if (!slots || (!s->ops && s->used * 2 >= s->slot_count))
		slots = grow(s);
	if (!slots)
		return NULL;
	sum = &slots[slot_of(s, op, step)];
	if (!sum->op) {
		*sum = (struct sum){
			.op = op, .step = step, .first = INT64_MAX, .last = INT64_MIN
		};
		s->used++;
	}
	return sum;
}

/* Adds all sums of `from` to `to`; false if memory runs out. */
static bool sums_add_all(struct sums *to, const struct sums *from)
{
	for (size_t i = 0; i < from->slot_count; i++) {
		const struct sum *s = &from->slots[i];
		struct sum *all;

		if (!s->op)
			continue;
		all = sums_find(to, s->op, s->step);
		if (!all)
			return false;
		all->runs += s->runs;
		all->cpu = sums_add_times(all->cpu, s->cpu);
		all->accelerator = sums_add_times(all->accelerator, s->accelerator);
		all->first = MIN(all->first, s->first);
		all->last = MAX(all->last, s->last);
	}
	return true;
}

static void add_to_rows(struct sums *sums, struct builder *b)
{
	struct op_step_table *t = &b->m->op_step;

	for (uint32_t i = 1; sums->slots && i < t->count; i++) {
		struct sum *s = &sums->slots[slot_of(sums, t->op[i].v, t->step[i].v)];

		if (!s->op || !s->runs)
			continue;
		t->run_count[i] = sums_add_times(t->run_count[i], s->runs);
		t->cpu_ns[i] = sums_add_times(t->cpu_ns[i], s->cpu);
		t->accelerator_ns[i] = sums_add_times(t->accelerator_ns[i], s->accelerator);
		t->first_start_ns[i] =
			t->first_start_ns[i] ? MIN(t->first_start_ns[i], s->first) : s->first;
		t->latest_end_ns[i] = MAX(t->latest_end_ns[i], s->last);
		s->runs = 0; /* the slot has been stored */
	}
}

static void add_row(const struct sum *s, struct builder *b)
{
	builder_add_op_step(b, &(struct op_step_row){ .op = { s->op },
						      .step = { s->step },
						      .run_count = s->runs,
						      .accelerator_ns = s->accelerator,
						      .cpu_ns = s->cpu,
						      .first_start_ns = s->first,
						      .latest_end_ns = s->last });
}

static int by_op_and_step(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;

	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	return (x->step > y->step) - (x->step < y->step);
}

static void store_hashed(struct sums *sums, struct builder *b)
{
	size_t count = 0;

	for (size_t i = 0; i < sums->slot_count; i++)
		if (sums->slots[i].op && sums->slots[i].runs)
			sums->slots[count++] = sums->slots[i];
	if (count)
		qsort(sums->slots, count, sizeof(*sums->slots), by_op_and_step);
	for (size_t i = 0; i < count; i++)
		add_row(&sums->slots[i], b);
}

/* Converts the sums to rows, those of an op next to each other, or adds them to existing rows (of other sources, or
 * of a first freeze). The sums cannot be used afterwards. */
static void sums_store(struct sums *sums, struct builder *b)
{
	add_to_rows(sums, b);
	if (!sums->ops) {
		store_hashed(sums, b);
		return;
	}
	if (sums->used && !builder_grow(b, TABLE_op_step, (uint32_t)sums->used))
		return;
	for (uint32_t op = 0; sums->slots && op < sums->ops; op++)
		for (uint32_t step = 0; step < sums->steps; step++) {
			const struct sum *s = &sums->slots[(size_t)step * sums->ops + op];

			if (s->op && s->runs)
				add_row(s, b);
		}
}

/* limit of lanes: slices that overlap more than this many are kept without nesting */
#define LANES 32
#define ROUNDING_NS 2

static bool is_traced(const struct model *m, track_id track)
{
	return (m->track.flags[track.v] & (TRACK_SLICES | TRACK_NESTED)) == TRACK_SLICES;
}

static bool has_slices(const struct model *m, track_id track)
{
	return m->track.flags[track.v] & TRACK_SLICES;
}

struct open_slice {
	int64_t start, end, children;
	uint32_t row;
};

struct lane {
	struct open_slice *open;
	size_t count, cap;
};

/* Consecutive events of one track. */
struct stretch {
	uint32_t first, last;
};

struct nesting {
	struct builder *b;
	bool stores; /* store self times and depths; false: sum runs */
	struct stretch *stretches;
	size_t count;
	atomic_size_t next;
	atomic_bool failed, unsorted;
	struct sums sums[PARALLEL_MAX];
	uint64_t *overlaps; /* one entry for each source */
};

/* State of one worker thread. */
struct nester {
	struct nesting *n;
	struct model *m;
	struct sums *sums;
	struct lane lanes[LANES];
	unsigned used; /* number of lanes in use; those above are empty */
	int64_t tolerance;
	bool stores, on_host, on_device;
	uint64_t overlaps;
};

static bool kind_nests(uint8_t kind)
{
	switch ((enum track_kind)kind) {
	case TRACK_HOST:
	case TRACK_LOADER:
	case TRACK_FRAMES:
	case TRACK_DERIVED:
	case TRACK_SPAN:
	case TRACK_OTHER:
		return true;
	case TRACK_DEVICE:
	case TRACK_ACCELERATOR:
	case TRACK_STREAM:
	case TRACK_COPY:
	case TRACK_COMMUNICATION:
	case TRACK_ASYNC:
		return false;
	}
	return false;
}

static void choose_sums(struct nester *w, uint8_t kind)
{
	if (w->stores) /* runs are already summed */
		return;
	w->on_host = kind == TRACK_HOST || kind == TRACK_LOADER;
	w->on_device = kind == TRACK_DEVICE || kind == TRACK_ACCELERATOR || kind == TRACK_STREAM ||
		       kind == TRACK_COPY || kind == TRACK_COMMUNICATION;
}

/* Adds a run whose self time is known; false if memory runs out. */
OW_ALWAYS_INLINE bool sum_run(struct nester *w, uint32_t row, int64_t self)
{
	const struct event_table *e = &w->m->event;
	int64_t ts = e->ts_ns[row], dur = e->dur_ns[row], end;
	uint32_t op = e->op[row].v;
	struct sum *sum;

	if (!op || (!w->on_host && !w->on_device))
		return true;
	sum = sums_find(w->sums, op, e->step[row].v);
	if (OW_UNLIKELY(!sum))
		return false;
	end = sums_add_times(ts, dur);
	sum->runs += event_runs(w->m, row);
	if (w->on_host)
		sum->cpu = sums_add_times(sum->cpu, self);
	else
		sum->accelerator = sums_add_times(sum->accelerator, dur);
	sum->first = MIN(sum->first, ts);
	sum->last = MAX(sum->last, end);
	return true;
}

OW_ALWAYS_INLINE void store_self(struct nester *w, uint32_t row, int64_t self)
{
	if (w->stores)
		w->m->event.self_ns[row] = self;
}

OW_ALWAYS_INLINE void store_depth(struct nester *w, uint32_t row, size_t depth)
{
	if (w->stores)
		w->m->event.depth[row] = (uint16_t)MIN(depth, (size_t)UINT16_MAX);
}

OW_ALWAYS_INLINE bool wraps(const struct nester *w, uint32_t row)
{
	return w->m->op.flags[w->m->event.op[row].v] & OP_WRAPS;
}

/* Ends a slice. Self time of a slice that only encloses others, such as the executor of a loop's body, is added to
 * the op that it runs in: `parent`, or NULL. */
static bool finish(struct nester *w, const struct open_slice *slice, struct open_slice *parent)
{
	int64_t dur = w->m->event.dur_ns[slice->row];
	int64_t self = MAX((int64_t)((uint64_t)dur - (uint64_t)slice->children), (int64_t)0);

	if (OW_UNLIKELY(wraps(w, slice->row)) && parent && w->m->event.op[parent->row].v &&
	    !wraps(w, parent->row)) {
		parent->children = (int64_t)((uint64_t)parent->children - (uint64_t)self);
		self = 0;
	}
	store_self(w, slice->row, self);
	return sum_run(w, slice->row, self);
}

static bool finish_last(struct nester *w, struct lane *lane)
{
	size_t last = --lane->count;

	return finish(w, &lane->open[last], last ? &lane->open[last - 1] : NULL);
}

/* Closes slices that ended before or at ts. */
OW_ALWAYS_INLINE bool close_ended(struct nester *w, struct lane *lane, int64_t ts)
{
	while (lane->count && lane->open[lane->count - 1].end <= ts)
		if (!finish_last(w, lane))
			return false;
	return true;
}

static bool push(struct nester *w, struct lane *lane, uint32_t row, int64_t ts, int64_t end)
{
	if (OW_UNLIKELY(!vec_reserve(w->m->mem, lane->open, lane->cap, lane->count + 1)))
		return false;
	store_depth(w, row, lane->count);
	lane->open[lane->count++] = (struct open_slice){ ts, end, 0, row };
	return true;
}

/* Adds a child of the innermost slice of the lane. A slice that ends within the tolerance after its parent counts as
 * ending with it. */
OW_ALWAYS_INLINE bool push_child(struct nester *w, struct lane *lane, uint32_t row, int64_t ts,
				 int64_t end)
{
	struct open_slice *parent = &lane->open[lane->count - 1];

	end = MIN(end, parent->end);
	parent->children = (int64_t)((uint64_t)parent->children + (uint64_t)end - (uint64_t)ts);
	return push(w, lane, row, ts, end);
}

OW_ALWAYS_INLINE bool contains(const struct nester *w, const struct lane *lane, int64_t end)
{
	return end <= sums_add_times(lane->open[lane->count - 1].end, w->tolerance);
}

static void mark_overlap(struct nester *w, uint32_t row)
{
	if (w->stores) /* overlaps are already marked */
		return;
	w->overlaps++;
	w->m->event.flags[row] |= EVENT_OVERLAPS;
}

/* For tracks with overlapping slices: the parent is the innermost slice that contains this one, on any lane. */
static bool push_overlapping(struct nester *w, uint32_t row, int64_t ts, int64_t end)
{
	struct lane *parent = NULL, *empty = NULL;

	for (unsigned i = 0; i < w->used; i++) {
		struct lane *lane = &w->lanes[i];

		if (!close_ended(w, lane, ts))
			return false;
		if (!lane->count) {
			empty = empty ? empty : lane;
			continue;
		}
		if (contains(w, lane, end) &&
		    (!parent ||
		     lane->open[lane->count - 1].start >= parent->open[parent->count - 1].start))
			parent = lane;
	}
	while (w->used && !w->lanes[w->used - 1].count)
		w->used--;
	if (parent)
		return push_child(w, parent, row, ts, end);
	if (w->used == 0) {
		w->used = 1;
		return push(w, &w->lanes[0], row, ts, end);
	}
	mark_overlap(w, row);
	if (!empty && w->used < LANES)
		empty = &w->lanes[w->used];
	if (!empty) { /* too many overlapping slices: no nesting for this one */
		store_depth(w, row, 0);
		return finish(w, &(struct open_slice){ ts, end, 0, row }, NULL);
	}
	w->used = MAX(w->used, (unsigned)(empty - w->lanes) + 1);
	return push(w, empty, row, ts, end);
}

static bool close_all(struct nester *w)
{
	bool ok = true;

	for (unsigned i = 0; i < LANES && ok; i++)
		ok = close_ended(w, &w->lanes[i], INT64_MAX);
	w->used = 0;
	return ok;
}

static bool is_micro(int64_t ns)
{
	return ns % 1000 == 0;
}

/* The tolerance for ends: times in whole microseconds are truncated, so a child may seem to end one later than its
 * parent. */
static int64_t tolerance_of(const struct event_table *e, const struct stretch *s)
{
	for (uint32_t i = s->first; i < s->last; i++)
		if (!is_micro(e->ts_ns[i]) ||
		    (e->dur_ns[i] != TIME_UNKNOWN && !is_micro(e->dur_ns[i])))
			return ROUNDING_NS;
	return 1000;
}

#define AHEAD 16 /* sums are prefetched for this many events ahead */

OW_ALWAYS_INLINE void look_ahead(const struct nester *w, uint32_t row, const struct stretch *s)
{
	const struct event_table *e = &w->m->event;

	if (OW_LIKELY(s->last - row > AHEAD))
		sums_prefetch(w->sums, e->op[row + AHEAD].v, e->step[row + AHEAD].v);
}

/* Handles a slice that has ended when the next event begins: a child of the innermost open one, if any. It need not
 * be stored as open. */
OW_ALWAYS_INLINE bool add_leaf(struct nester *w, struct lane *lane, uint32_t row, int64_t ts,
			       int64_t end)
{
	int64_t dur = w->m->event.dur_ns[row], self = MAX(dur, (int64_t)0);

	if (lane->count) {
		struct open_slice *parent = &lane->open[lane->count - 1];

		parent->children =
			(int64_t)((uint64_t)parent->children + (uint64_t)end - (uint64_t)ts);
	}
	if (lane->count) /* without an open slice, writing would touch memory for nothing */
		store_depth(w, row, lane->count);
	store_self(w, row, self);
	return sum_run(w, row, self);
}

/* Adds a slice on a track on which nothing overlaps so far. */
OW_ALWAYS_INLINE bool push_nested(struct nester *w, uint32_t row, int64_t ts, int64_t end,
				  const struct stretch *s)
{
	struct lane *lane = &w->lanes[0];
	int64_t held = end;

	if (!close_ended(w, lane, ts))
		return false;
	if (lane->count) {
		if (OW_UNLIKELY(!contains(w, lane, end)))
			return push_overlapping(w, row, ts, end);
		held = MIN(end, lane->open[lane->count - 1].end);
	}
	if (row + 1 == s->last || w->m->event.ts_ns[row + 1] >= held)
		return add_leaf(w, lane, row, ts, held);
	w->used = 1;
	return lane->count ? push_child(w, lane, row, ts, end) : push(w, lane, row, ts, end);
}

/* The previous event of the same track, to check the order. */
struct before {
	int64_t ts, dur;
};

#define BEFORE_ANY                                                                                 \
	(struct before)                                                                            \
	{                                                                                          \
		INT64_MIN, INT64_MAX                                                               \
	}

/* Nests a stretch of events; sets n->unsorted when the events turn out to be unsorted. */
static bool nest_stretch(struct nester *w, const struct stretch *s)
{
	struct event_table *e = &w->m->event;
	struct before before = BEFORE_ANY;

	w->tolerance = tolerance_of(e, s);
	for (uint32_t i = s->first; i < s->last; i++) {
		int64_t ts = e->ts_ns[i], dur = e->dur_ns[i], end;

		if (OW_UNLIKELY(ts < before.ts || (ts == before.ts && dur > before.dur)) &&
		    !w->stores) {
			atomic_store(&w->n->unsorted, true);
			break;
		}
		before.ts = ts;
		before.dur = dur;
		look_ahead(w, i, s);
		/* a point event: its depth is the number of open slices */
		if (dur == TIME_UNKNOWN) {
			if (!close_ended(w, &w->lanes[0], ts))
				return false;
			store_depth(w, i, w->lanes[0].count);
			continue;
		}
		end = sums_add_times(ts, dur);
		if (!(OW_LIKELY(w->used <= 1) ? push_nested(w, i, ts, end, s)
					      : push_overlapping(w, i, ts, end)))
			return false;
	}
	return close_all(w);
}

static bool flat_stretch(struct nester *w, const struct stretch *s)
{
	struct event_table *e = &w->m->event;
	struct before before = BEFORE_ANY;

	for (uint32_t i = s->first; i < s->last; i++) {
		int64_t ts = e->ts_ns[i], dur = e->dur_ns[i];

		if (OW_UNLIKELY(ts < before.ts || (ts == before.ts && dur > before.dur)) &&
		    !w->stores) {
			atomic_store(&w->n->unsorted, true);
			break;
		}
		before.ts = ts;
		before.dur = dur;
		look_ahead(w, i, s);
		if (dur == TIME_UNKNOWN)
			continue;
		store_self(w, i, dur);
		if (!sum_run(w, i, dur))
			return false;
	}
	return true;
}

static void nest_thread(void *arg, unsigned thread)
{
	struct nesting *n = arg;
	struct nester w = { .n = n, .m = n->b->m, .sums = &n->sums[thread], .stores = n->stores };

	for (;;) {
		size_t i = atomic_fetch_add(&n->next, 1);
		const struct stretch *s = &n->stretches[i];
		uint32_t track;
		bool ok;

		if (i >= n->count || atomic_load(&n->failed) || atomic_load(&n->unsorted))
			break;
		track = w.m->event.track[s->first].v;
		choose_sums(&w, w.m->track.kind[track]);
		w.overlaps = 0;
		ok = kind_nests(w.m->track.kind[track]) ? nest_stretch(&w, s) : flat_stretch(&w, s);
		if (!ok)
			atomic_store(&n->failed, true);
		if (w.overlaps)
			__atomic_fetch_add(&n->overlaps[w.m->track.source[track].v], w.overlaps,
					   __ATOMIC_RELAXED);
	}
	for (unsigned i = 0; i < LANES; i++)
		mem_free(w.m->mem, w.lanes[i].open, w.lanes[i].cap * sizeof(*w.lanes[i].open));
}

/* Finds the stretches of events of the `wanted` tracks. Sets *sorted to false when a track has several. */
static size_t find_stretches(const struct model *m, bool (*wanted)(const struct model *, track_id),
			     struct stretch *to, bool *sorted)
{
	const track_id *track = m->event.track;
	uint32_t highest = 0;
	size_t count = 0;

	*sorted = true;
	for (uint32_t i = 1, last; i < m->event.count; i = last) {
		for (last = i + 1; last < m->event.count && track[last].v == track[i].v; last++)
			;
		if (!wanted(m, track[i]))
			continue;
		*sorted &= track[i].v > highest;
		highest = track[i].v;
		if (to)
			to[count] = (struct stretch){ i, last };
		count++;
	}
	return count;
}

static void note_overlaps(struct builder *b, const uint64_t *overlaps)
{
	source_id kept = b->source;

	for (uint32_t i = 1; i < b->m->source.count; i++) {
		if (!overlaps[i])
			continue;
		b->source.v = i;
		builder_note_many(b, NOTE_INFO, OW_NO_OFFSET, overlaps[i],
				  "slices partly overlap others of their track: kept beside them");
	}
	b->source = kept;
}

static void free_all_sums(struct nesting *n)
{
	for (unsigned i = 0; i < PARALLEL_MAX; i++)
		sums_release(&n->sums[i]);
}

static unsigned thread_count(const struct nesting *n)
{
	unsigned threads = n->b->m->event.count < 100000 ? 1 : parallel_threads();

	return sums_threads(n->b->m, (unsigned)MIN((size_t)threads, n->count));
}

/* Runs the threads on all tracks. If some are unsorted, n->unsorted is set, and only the marks of overlaps remain. */
static bool run_all(struct nesting *n)
{
	atomic_store(&n->next, 0);
	parallel_run(thread_count(n), nest_thread, n);
	if (atomic_load(&n->unsorted))
		free_all_sums(n);
	return !atomic_load(&n->failed);
}

static ow_status nest_all(struct nesting *n)
{
	struct builder *b = n->b;
	struct model *m = b->m;
	bool ok = !atomic_load(&n->failed);

	for (unsigned i = 1; i < PARALLEL_MAX && ok; i++)
		ok = sums_add_all(&n->sums[0], &n->sums[i]);
	if (ok) {
		sums_store(&n->sums[0], b);
		note_overlaps(b, n->overlaps);
		for (uint32_t i = 1; i < m->track.count; i++)
			m->track.flags[i] |= m->track.flags[i] & TRACK_SLICES ? TRACK_NESTED : 0;
	}
	return ok ? builder_status(b) : builder_no_memory(b);
}

/* Sorts the rows and discards the results of the first attempt. */
static ow_status start_again(struct nesting *n)
{
	struct model *m = n->b->m;

	OW_TRY(nest_order_events(n->b));
	for (uint32_t i = 1; i < m->event.count; i++)
		if (is_traced(m, m->event.track[i]))
			m->event.flags[i] &= (uint8_t)~EVENT_OVERLAPS;
	memset(n->overlaps, 0, m->source.count * sizeof(*n->overlaps));
	atomic_store(&n->unsorted, false);
	return OW_OK;
}

static ow_status nest_sorted(struct nesting *n)
{
	bool sorted;

	find_stretches(n->b->m, is_traced, n->stretches, &sorted);
	if (sorted)
		sorted = run_all(n) && !atomic_load(&n->unsorted);
	if (!sorted && !atomic_load(&n->failed)) {
		/* sorting does not increase the number of stretches */
		OW_TRY(start_again(n));
		n->count = find_stretches(n->b->m, is_traced, n->stretches, &sorted);
		run_all(n);
	}
	return nest_all(n);
}

#define NEED(b, column) builder_need_column(b, TABLE_event, offsetof(struct event_table, column))

ow_status nest_events(struct builder *b)
{
	struct nesting n = { .b = b };
	struct model *m = b->m;
	size_t sources, stretches;
	ow_status status;
	bool sorted;

	if (!m->track.flags)
		return OW_OK;
	n.count = find_stretches(m, is_traced, NULL, &sorted);
	if (!n.count)
		return OW_OK;
	if (!NEED(b, flags))
		return builder_status(b);
	for (unsigned i = 0; i < PARALLEL_MAX; i++)
		sums_init(&n.sums[i], m);
	sources = m->source.count * sizeof(*n.overlaps);
	stretches = n.count * sizeof(*n.stretches);
	n.stretches = mem_alloc(m->mem, stretches);
	n.overlaps = n.stretches ? mem_zalloc(m->mem, sources) : NULL;
	if (n.overlaps)
		status = nest_sorted(&n);
	else
		status = builder_no_memory(b);
	free_all_sums(&n);
	mem_free(m->mem, n.overlaps, sources);
	mem_free(m->mem, n.stretches, stretches);
	return status;
}

static ow_status store_nesting(struct builder *b)
{
	struct nesting n = { .b = b, .stores = true };
	struct model *m = b->m;
	bool sorted, ok;

	n.count = m->track.flags ? find_stretches(m, has_slices, NULL, &sorted) : 0;
	if (!n.count)
		return OW_OK;
	if (!NEED(b, self_ns) || !NEED(b, depth))
		return builder_status(b);
	n.stretches = mem_alloc(m->mem, n.count * sizeof(*n.stretches));
	if (!n.stretches)
		return builder_no_memory(b);
	find_stretches(m, has_slices, n.stretches, &sorted);
	ok = run_all(&n); /* the freeze has sorted the events */
	mem_free(m->mem, n.stretches, n.count * sizeof(*n.stretches));
	return ok ? OW_OK : builder_no_memory(b);
}

ow_status nesting_make(struct model *m, struct ow_error *err)
{
	struct builder b;

	if (m->backing && m->backing->frozen) /* .opw files contain all of this */
		return OW_OK;
	builder_init(&b, m, err);
	return store_nesting(&b);
}
