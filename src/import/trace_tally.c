/*
 * trace_tally.c: one pass over all rows that count: the numbers of their worker become those of the
 * model, and what the facts and notes need is added up. Threads take workers; each has its own sums.
 */
#include "import/trace_int.h"

struct array {
	void **ptr;
	size_t size;
};

#define TALLY_ARRAYS(t)                                                                            \
	{                                                                                          \
		{ (void **)&(t)->category_count, sizeof(uint64_t) },                               \
			{ (void **)&(t)->category_dur, sizeof(int64_t) },                          \
			{ (void **)&(t)->category_x, 1 },                                          \
			{ (void **)&(t)->x_count, sizeof(uint64_t) },                              \
			{ (void **)&(t)->x_dur, sizeof(int64_t) },                                 \
			{ (void **)&(t)->odd_ph, sizeof(uint64_t) },                               \
	}

static bool init_tally(struct trace *t, struct trace_tally *tally)
{
	struct array arrays[] = TALLY_ARRAYS(tally);

	tally->min_ts = tally->max_ts = tally->max_x_end = TIME_UNKNOWN;
	for (size_t i = 0; i < ARRAY_COUNT(arrays); i++) {
		*arrays[i].ptr = mem_zalloc(t->mem, t->local_count * arrays[i].size);
		if (!*arrays[i].ptr)
			return false;
	}
	tally->lane_slices = mem_zalloc(t->mem, t->lane_count * sizeof(*tally->lane_slices));
	return tally->lane_slices;
}

static void release_tally(struct trace *t, struct trace_tally *tally)
{
	struct array arrays[] = TALLY_ARRAYS(tally);

	for (size_t i = 0; i < ARRAY_COUNT(arrays); i++) {
		mem_free(t->mem, *arrays[i].ptr, t->local_count * arrays[i].size);
		*arrays[i].ptr = NULL;
	}
	mem_free(t->mem, tally->lane_slices, t->tally_lanes * sizeof(*tally->lane_slices));
	tally->lane_slices = NULL;
}

void trace_tallies_release(struct trace *t)
{
	if (!t->tallies)
		return;
	for (unsigned i = 0; i < t->worker_count; i++)
		release_tally(t, &t->tallies[i]);
	mem_free(t->mem, t->tallies, t->worker_count * sizeof(*t->tallies));
	t->tallies = NULL;
}

/* ---- counting ---- */

OW_ALWAYS_INLINE int64_t add_times(int64_t a, int64_t b)
{
	int64_t sum;

	if (OW_UNLIKELY(__builtin_add_overflow(a, b, &sum)))
		return a < 0 ? -INT64_MAX : INT64_MAX;
	return sum;
}

OW_ALWAYS_INLINE void count_time(struct trace_tally *y, int64_t ts)
{
	if (OW_UNLIKELY(y->min_ts == TIME_UNKNOWN || ts < y->min_ts))
		y->min_ts = ts;
	if (ts > y->max_ts) /* TIME_UNKNOWN is below all */
		y->max_ts = ts;
}

OW_ALWAYS_INLINE void count_complete(struct trace_tally *y, uint32_t name, uint32_t category,
				     int64_t dur)
{
	y->x_count[name]++;
	y->category_x[category] = 1;
	if (OW_UNLIKELY(dur == TIME_UNKNOWN)) {
		y->x_without_dur++;
		return;
	}
	y->x_dur[name] = add_times(y->x_dur[name], dur);
	y->category_dur[category] = add_times(y->category_dur[category], dur);
}

/* Letters that mean something; the others are kept as points in time and counted. */
static bool is_known_ph(uint8_t ph)
{
	return ph && strchr("XBEiIRbnestfSTpFCPNODMvVc()", ph);
}

static void tally_slices(struct trace *t, struct trace_worker *w, const struct trace_part *part,
			 struct trace_tally *y)
{
	struct trace_slices *s = &w->slices;
	const uint32_t *strings = w->strings, *locals = w->locals, *tracks = w->track_map;

	(void)t;
	y->slices += part->last.slices - part->first.slices;
	for (size_t i = part->first.slices; i < part->last.slices; i++) {
		uint32_t name = locals[s->name[i]], category = locals[s->category[i]];
		uint32_t label = s->label ? strings[s->label[i]] : 0;
		int64_t ts = s->ts[i];
		uint8_t ph = s->ph[i];

		s->name[i] = strings[s->name[i]];
		s->category[i] = strings[s->category[i]];
		s->track[i] = tracks[s->track[i]];
		y->lane_slices[s->track[i]]++;
		y->by_ph[ph]++;
		y->category_count[category]++;
		if (label)
			s->label[i] = label;
		count_time(y, ts);
		if (OW_LIKELY(ph == 'X')) {
			int64_t dur = s->dur[i];
			int64_t end = dur == TIME_UNKNOWN ? ts : add_times(ts, dur);

			count_complete(y, name, category, dur);
			if (end > y->max_x_end)
				y->max_x_end = end;
		}
	}
}

static int64_t model_id(const struct trace_worker *w, int64_t id, uint8_t kind)
{
	return kind == ID_TEXT ? (int64_t)w->strings[id] : id;
}

static void tally_point(struct trace_worker *w, struct trace_point *p, struct trace_tally *y)
{
	uint32_t name = w->locals[p->name], category = w->locals[p->category];
	uint32_t letter = p->flags & POINT_ODD_PH && p->id_kind == ID_TEXT ? w->locals[p->id] : 0;

	p->name = w->strings[p->name];
	p->category = w->strings[p->category];
	p->scope = w->strings[p->scope];
	p->track = w->track_map[p->track];
	p->id = model_id(w, p->id, p->id_kind);
	if (p->flags & (POINT_OF_SLICE | POINT_SAMPLE))
		return; /* its slice is counted; no event of the list */
	if (!(p->flags & POINT_ODD_PH))
		y->by_ph[p->ph]++;
	else if (letter)
		y->odd_ph[letter]++;
	else
		y->by_ph[0]++;
	y->category_count[category]++;
	if (!(p->flags & POINT_NO_TS))
		count_time(y, p->ts);
	else if (p->ph || p->id_kind) /* an event without ph is padding: {} */
		y->no_ts++;
	if (p->ph == 'X')
		count_complete(y, name, category, p->id);
}

static void tally_rest(struct trace_worker *w, const struct trace_part *part, struct trace_tally *y)
{
	for (size_t i = part->first.points; i < part->last.points; i++)
		tally_point(w, &w->points[i], y);
	for (size_t i = part->first.counters; i < part->last.counters; i++) {
		struct trace_counter *c = &w->counters[i];
		uint32_t category = w->locals[c->category];

		c->name = w->strings[c->name];
		c->series = w->strings[c->series];
		c->instance = w->strings[c->instance];
		c->category = w->strings[c->category];
		c->track = w->track_map[c->track];
		if (!c->first)
			continue;
		y->by_ph['C']++;
		y->category_count[category]++;
		if (c->no_ts)
			y->no_ts++;
		else
			count_time(y, c->ts);
	}
	for (size_t i = part->first.metas; i < part->last.metas; i++) {
		y->by_ph['M']++;
		y->category_count[w->locals[w->metas[i].category]]++;
	}
	for (size_t i = part->first.marks; i < part->last.marks; i++) {
		struct trace_mark *m = &w->marks[i];

		m->id.value = model_id(w, m->id.value, m->id.kind);
		m->frame.value = model_id(w, m->frame.value, m->frame.kind);
		m->scope = w->strings[m->scope];
	}
}

static void tally_worker(struct trace *t, unsigned number)
{
	for (size_t i = 0; i < t->accepted_count; i++) {
		const struct trace_part *part = &t->accepted[i];

		if (part->worker != number)
			continue;
		tally_slices(t, &t->workers[number], part, &t->tallies[number]);
		tally_rest(&t->workers[number], part, &t->tallies[number]);
	}
}

static void run(void *arg, unsigned thread)
{
	struct trace *t = arg;

	(void)thread;
	for (;;) {
		size_t i = atomic_fetch_add(&t->next_part, 1);

		if (i >= t->worker_count)
			return;
		tally_worker(t, (unsigned)i);
	}
}

/* ---- adding up ---- */

static void add_tally(const struct trace *t, struct trace_tally *to, const struct trace_tally *y)
{
	for (size_t i = 0; i < 256; i++)
		to->by_ph[i] += y->by_ph[i];
	to->x_without_dur += y->x_without_dur;
	to->slices += y->slices;
	to->no_ts += y->no_ts;
	if (y->min_ts != TIME_UNKNOWN) {
		count_time(to, y->min_ts);
		count_time(to, y->max_ts);
	}
	to->max_x_end = MAX(to->max_x_end, y->max_x_end);
	for (size_t i = 0; i < t->local_count; i++) {
		to->category_count[i] += y->category_count[i];
		to->category_dur[i] = add_times(to->category_dur[i], y->category_dur[i]);
		to->category_x[i] |= y->category_x[i];
		to->x_count[i] += y->x_count[i];
		to->x_dur[i] = add_times(to->x_dur[i], y->x_dur[i]);
		to->odd_ph[i] += y->odd_ph[i];
	}
}

static void finish(struct trace *t)
{
	struct trace_tally *y = &t->tallies[0];

	for (unsigned i = 0; i < t->worker_count; i++)
		for (uint32_t lane = 0; lane < t->lane_count; lane++)
			t->lanes[lane].count += t->tallies[i].lane_slices[lane];
	for (unsigned i = 1; i < t->worker_count; i++)
		add_tally(t, y, &t->tallies[i]);
	for (size_t ph = 0; ph < 256; ph++) {
		y->events += y->by_ph[ph];
		if (ph && !is_known_ph((uint8_t)ph))
			y->unknown_ph += y->by_ph[ph];
	}
	for (size_t i = 0; i < t->local_count; i++) {
		y->events += y->odd_ph[i];
		y->unknown_ph += y->odd_ph[i];
		t->has_categories |= i && y->category_count[i];
	}
}

ow_status trace_tally(struct trace *t)
{
	t->tally_lanes = t->lane_count;
	t->tallies = mem_zalloc(t->mem, t->worker_count * sizeof(*t->tallies));
	if (!t->tallies)
		return error_no_memory(t->ctx->err);
	for (unsigned i = 0; i < t->worker_count; i++)
		if (!init_tally(t, &t->tallies[i]))
			return error_no_memory(t->ctx->err);
	atomic_store(&t->next_part, 0);
	parallel_run(t->options.threads, run, t);
	finish(t);
	for (unsigned i = 1; i < t->worker_count; i++)
		release_tally(t, &t->tallies[i]);
	return OW_OK;
}
