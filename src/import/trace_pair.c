/*
 * trace_pair.c: joins begins (B) and ends (E) of each track, in order of time. The begin's row gets the
 * duration; the end has no row. As the newer viewer does it: an end closes the innermost open begin of
 * its name (and category, if it has one), an end without a name closes the innermost at all. What stays
 * open ends with the slice around it, or with the track.
 */
#include "import/trace_int.h"

#define MATCH_DEPTH 4096 /* how far down an end looks for its begin */
#define MAX_EARLY 64	 /* ends that may wait for a begin of the same time */

struct open_slice {
	uint32_t row, worker;
	uint32_t name, category;
	int64_t ts;
	int64_t limit; /* end of a slice around it that is closed already; TIME_UNKNOWN when none */
};

struct pairing {
	struct trace *t;
	struct open_slice *open;
	size_t count, cap;
	struct trace_ref early[MAX_EARLY]; /* ends without a begin, of the current time */
	size_t early_count;
};

/* ---- collecting, by track, in file order ---- */

typedef void (*visit_fn)(void *arg, uint32_t lane, struct trace_ref ref);

static void visit_part(const struct trace *t, const struct trace_part *part, visit_fn visit,
		       void *arg)
{
	const struct trace_worker *w = &t->workers[part->worker];
	const struct trace_slices *s = &w->slices;
	size_t p = part->first.points;
	struct trace_ref ref = { .worker = (uint16_t)part->worker };

	for (size_t i = part->first.slices; i <= part->last.slices; i++) {
		for (; p < part->last.points && (w->points[p].at <= i || i == part->last.slices);
		     p++) {
			if (w->points[p].ph != 'E' || w->points[p].flags & POINT_NO_TS)
				continue;
			ref.ts = w->points[p].ts;
			ref.row = (uint32_t)p;
			ref.kind = 'E';
			visit(arg, w->points[p].track, ref);
		}
		if (i == part->last.slices || s->ph[i] != 'B')
			continue;
		ref.ts = s->ts[i];
		ref.row = (uint32_t)i;
		ref.kind = 'B';
		visit(arg, s->track[i], ref);
	}
}

static void count_ref(void *arg, uint32_t lane, struct trace_ref ref)
{
	(void)ref;
	((size_t *)arg)[lane + 1]++;
}

struct fill {
	size_t *next;
	struct trace_ref *refs;
};

static void put_ref(void *arg, uint32_t lane, struct trace_ref ref)
{
	struct fill *fill = arg;

	fill->refs[fill->next[lane]++] = ref;
}

/* ---- one track ---- */

static struct trace_slices *slices_of(const struct pairing *p, const struct trace_ref *ref)
{
	return &p->t->workers[ref->worker].slices;
}

static const struct trace_point *point_of(const struct pairing *p, const struct trace_ref *ref)
{
	return &p->t->workers[ref->worker].points[ref->row];
}

/* The begin takes over the end's arguments, or has both. */
static bool join_args(struct pairing *p, const struct open_slice *begin,
		      const struct trace_point *end)
{
	struct trace_slices *s = &p->t->workers[begin->worker].slices;

	if (!end->args_size)
		return true;
	if (!s->args_size[begin->row]) {
		s->args_size[begin->row] = end->args_size;
		s->args_offset[begin->row] = end->args_offset;
		return true;
	}
	return trace_add_mark(&p->t->workers[begin->worker],
			      &(struct trace_mark){ .slice = begin->row,
						    .args_offset = end->args_offset,
						    .args_size = end->args_size });
}

static int64_t span(int64_t from, int64_t to)
{
	int64_t dur;

	return __builtin_sub_overflow(to, from, &dur) ? INT64_MAX : dur;
}

static bool close_slice(struct pairing *p, size_t index, const struct trace_ref *ref)
{
	struct open_slice *begin = &p->open[index];

	p->t->workers[begin->worker].slices.dur[begin->row] = span(begin->ts, ref->ts);
	if (!join_args(p, begin, point_of(p, ref)))
		return false;
	/* Those inside that never get an end of their own end here. */
	for (size_t i = index + 1; i < p->count; i++)
		if (p->open[i].limit == TIME_UNKNOWN)
			p->open[i].limit = ref->ts;
	p->count--;
	memmove(begin, begin + 1, (p->count - index) * sizeof(*begin));
	return true;
}

static bool end_slice(struct pairing *p, const struct trace_ref *ref)
{
	const struct trace_point *end = point_of(p, ref);
	size_t lowest = p->count > MATCH_DEPTH ? p->count - MATCH_DEPTH : 0;
	bool named = end->name && end->name != p->t->string_count;

	for (size_t i = p->count; i-- > lowest;) {
		const struct open_slice *begin = &p->open[i];

		if (!named || (begin->name == end->name &&
			       (!end->category || begin->category == end->category)))
			return close_slice(p, i, ref);
	}
	if (p->early_count < MAX_EARLY)
		p->early[p->early_count++] = *ref;
	else
		p->t->surplus_ends++;
	return true;
}

/* An end may be written before the begin of its own (empty) slice. */
static bool take_early_end(struct pairing *p, uint32_t name, struct trace_ref *ref)
{
	for (size_t i = 0; i < p->early_count; i++)
		if (name && point_of(p, &p->early[i])->name == name) {
			*ref = p->early[i];
			p->early[i] = p->early[--p->early_count];
			return true;
		}
	return false;
}

static bool begin_slice(struct pairing *p, const struct trace_ref *ref)
{
	const struct trace_slices *s = slices_of(p, ref);
	void *open = p->open;
	struct trace_ref early;

	if (!mem_grow(p->t->mem, &open, &p->cap, p->count + 1, sizeof(*p->open)))
		return false;
	p->open = open;
	p->open[p->count++] = (struct open_slice){ .row = ref->row,
						   .worker = ref->worker,
						   .name = s->name[ref->row],
						   .category = s->category[ref->row],
						   .ts = ref->ts,
						   .limit = TIME_UNKNOWN };
	if (take_early_end(p, s->name[ref->row], &early))
		return close_slice(p, p->count - 1, &early);
	return true;
}

static void forget_early_ends(struct pairing *p)
{
	p->t->surplus_ends += p->early_count;
	p->early_count = 0;
}

/* What is open at the end of the track. Without a slice around it stays unknown for now. */
static bool close_rest(struct pairing *p)
{
	for (size_t i = 0; i < p->count; i++) {
		const struct open_slice *begin = &p->open[i];
		struct trace_worker *w = &p->t->workers[begin->worker];

		if (begin->limit == TIME_UNKNOWN)
			continue;
		w->slices.dur[begin->row] = span(begin->ts, begin->limit);
		p->t->unfinished++;
		if (!trace_add_mark(w, &(struct trace_mark){ .slice = begin->row,
							     .flags = EVENT_UNFINISHED }))
			return false;
	}
	p->count = 0;
	return true;
}

static bool pair_lane(struct pairing *p, struct trace_ref *refs, size_t count,
		      struct trace_ref *scratch)
{
	int64_t now = TIME_UNKNOWN;

	if (!trace_is_sorted(refs, count))
		trace_sort(refs, count, scratch);
	for (size_t i = 0; i < count; i++) {
		if (refs[i].ts != now)
			forget_early_ends(p);
		now = refs[i].ts;
		if (!(refs[i].kind == 'B' ? begin_slice(p, &refs[i]) : end_slice(p, &refs[i])))
			return false;
	}
	forget_early_ends(p);
	return close_rest(p);
}

static ow_status pair_all(struct trace *t, size_t *starts, struct trace_ref *refs)
{
	struct pairing p = { .t = t };
	size_t longest = 0;
	struct trace_ref *scratch;
	bool ok = true;

	for (uint32_t lane = 0; lane < t->lane_count; lane++)
		longest = MAX(longest, starts[lane + 1] - starts[lane]);
	scratch = mem_alloc(t->mem, longest * sizeof(*scratch));
	for (uint32_t lane = 0; lane < t->lane_count && ok && scratch; lane++)
		ok = pair_lane(&p, refs + starts[lane], starts[lane + 1] - starts[lane], scratch);
	mem_free(t->mem, p.open, p.cap * sizeof(*p.open));
	mem_free(t->mem, scratch, longest * sizeof(*scratch));
	return ok && scratch ? OW_OK : error_no_memory(t->ctx->err);
}

static ow_status pair_begins(struct trace *t)
{
	size_t lanes = (size_t)t->lane_count + 1, total;
	size_t *starts = mem_zalloc(t->mem, 2 * lanes * sizeof(*starts));
	struct fill fill = { 0 };
	ow_status status;

	if (!starts)
		return error_no_memory(t->ctx->err);
	for (size_t i = 0; i < t->accepted_count; i++)
		visit_part(t, &t->accepted[i], count_ref, starts);
	for (size_t i = 1; i < lanes; i++)
		starts[i] += starts[i - 1];
	total = starts[lanes - 1];
	fill.next = starts + lanes;
	memcpy(fill.next, starts, lanes * sizeof(*starts));
	fill.refs = mem_alloc(t->mem, total * sizeof(*fill.refs));
	if (fill.refs) {
		for (size_t i = 0; i < t->accepted_count; i++)
			visit_part(t, &t->accepted[i], put_ref, &fill);
		status = pair_all(t, starts, fill.refs);
	} else {
		status = error_no_memory(t->ctx->err);
	}
	mem_free(t->mem, fill.refs, total * sizeof(*fill.refs));
	mem_free(t->mem, starts, 2 * lanes * sizeof(*starts));
	return status;
}

/* ---- slices that stay without an end ---- */

static void find_last_times(struct trace *t)
{
	for (size_t i = 0; i < t->accepted_count; i++) {
		const struct trace_part *part = &t->accepted[i];
		const struct trace_worker *w = &t->workers[part->worker];
		const struct trace_slices *s = &w->slices;

		for (size_t r = part->first.slices; r < part->last.slices; r++) {
			int64_t end = s->ts[r];

			if (s->dur[r] != TIME_UNKNOWN &&
			    __builtin_add_overflow(end, s->dur[r], &end))
				end = INT64_MAX;
			t->lanes[s->track[r]].last_ns = MAX(t->lanes[s->track[r]].last_ns, end);
		}
		for (size_t r = part->first.points; r < part->last.points; r++)
			if (!(w->points[r].flags & POINT_NO_TS))
				t->lanes[w->points[r].track].last_ns =
					MAX(t->lanes[w->points[r].track].last_ns, w->points[r].ts);
	}
}

static ow_status close_open_ends(struct trace *t)
{
	for (size_t i = 0; i < t->accepted_count; i++) {
		const struct trace_part *part = &t->accepted[i];
		struct trace_worker *w = &t->workers[part->worker];
		struct trace_slices *s = &w->slices;

		for (size_t r = part->first.slices; r < part->last.slices; r++) {
			if (OW_LIKELY(s->dur[r] != TIME_UNKNOWN ||
				      (s->ph[r] != 'X' && s->ph[r] != 'B')))
				continue;
			s->dur[r] = span(s->ts[r], t->lanes[s->track[r]].last_ns);
			t->unfinished++;
			if (!trace_add_mark(w, &(struct trace_mark){ .slice = (uint32_t)r,
								     .flags = EVENT_UNFINISHED }))
				return w->status;
		}
	}
	return OW_OK;
}

/* Events of a phase that is not one letter: nobody knows what they mean, but they are shown. */
static ow_status keep_odd(struct trace *t)
{
	for (size_t i = 0; i < t->accepted_count; i++) {
		const struct trace_part *part = &t->accepted[i];
		const struct trace_worker *w = &t->workers[part->worker];

		for (size_t r = part->first.points; r < part->last.points; r++) {
			struct trace_point p = w->points[r];

			if (!(p.flags & POINT_ODD_PH) || p.flags & POINT_NO_TS || !p.id_kind)
				continue;
			p.ph = '?';
			if (!trace_add_slice(t, part->worker, &p, TIME_UNKNOWN, p.track))
				return error_no_memory(t->ctx->err);
		}
	}
	return OW_OK;
}

/* Rows that pairing has added count as a part of their own. */
static ow_status accept_added(struct trace *t, const struct trace_counts *before)
{
	void *accepted = t->accepted;

	if (!mem_grow(t->mem, &accepted, &t->accepted_cap, t->accepted_count + t->worker_count,
		      sizeof(*t->accepted)))
		return error_no_memory(t->ctx->err);
	t->accepted = accepted;
	for (unsigned i = 0; i < t->worker_count; i++)
		t->accepted[t->accepted_count++] = (struct trace_part){
			.worker = i, .first = before[i], .last = trace_worker_counts(&t->workers[i])
		};
	return OW_OK;
}

ow_status trace_pair(struct trace *t)
{
	const struct trace_tally *y = &t->tallies[0];
	struct trace_counts before[PARALLEL_MAX + 1];

	for (unsigned i = 0; i < t->worker_count; i++)
		before[i] = trace_worker_counts(&t->workers[i]);
	if (y->by_ph['B'] + y->by_ph['E'])
		OW_TRY(pair_begins(t));
	if (y->by_ph['B'] || y->x_without_dur) {
		find_last_times(t);
		OW_TRY(close_open_ends(t));
	}
	OW_TRY(trace_pair_async(t));
	OW_TRY(trace_place_samples(t));
	if (y->unknown_ph)
		OW_TRY(keep_odd(t));
	return accept_added(t, before);
}
