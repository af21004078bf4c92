/*
 * trace_pair.c: joins begins and ends; it is the stage after the merge. B and E of a track are joined in order of time,
 * as in the newer viewer: an end closes the innermost open begin of its name (and category, if it has one), an end
 * without a name closes the innermost of all. The begin's row gets the duration; the end has no row. A slice that stays
 * open ends with the enclosing slice, or with the track. Asynchronous begins and ends (b, n, e and the older S, T, p,
 * F) belong together by (category, scope, id), the older ones also by name. Each pair becomes a slice on the process's
 * asynchronous track, where slices overlap freely; steps and points become instants. So do samples and events of an
 * unknown phase.
 */
#include "import/chrome/trace_int.h"

#include "base/vec.h"

struct pair_stage {
	const struct trace_job *job;
	struct trace_raw *rows;
	struct trace_names *names;
	const struct trace_tally *tally;
	struct trace_pairs *pairs;
};

#define MATCH_DEPTH 4096 /* number of open slices that are searched for the begin of an end */
#define MAX_EARLY 64	 /* largest number of ends that may wait for a begin of the same time */

struct open_slice {
	uint32_t row, worker;
	uint32_t name, category;
	int64_t ts;
	int64_t limit; /* end of a closed slice around it; TIME_UNKNOWN if there is none */
};

struct pairing {
	struct pair_stage *t;
	struct open_slice *open;
	size_t count, cap;
	struct trace_ref early[MAX_EARLY]; /* ends without a begin, at the current time */
	size_t early_count;
};

typedef void (*visit_fn)(void *arg, uint32_t lane, struct trace_ref ref);

static void visit_part(const struct pair_stage *t, const struct trace_part *part, visit_fn visit,
		       void *arg)
{
	const struct trace_worker *w = &t->rows->workers[part->worker];
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
			visit(arg, w->points[p].where.lane, ref);
		}
		if (i == part->last.slices || s->ph[i] != 'B')
			continue;
		ref.ts = s->ts[i];
		ref.row = (uint32_t)i;
		ref.kind = 'B';
		visit(arg, s->where[i].lane, ref);
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

static struct trace_slices *slices_of(const struct pairing *p, const struct trace_ref *ref)
{
	return &p->t->rows->workers[ref->worker].slices;
}

static const struct trace_point *point_of(const struct pairing *p, const struct trace_ref *ref)
{
	return &p->t->rows->workers[ref->worker].points[ref->row];
}

/* Gives the end's arguments to the begin, which then has both. */
static bool join_args(struct pairing *p, const struct open_slice *begin,
		      const struct trace_point *end)
{
	struct trace_slices *s = &p->t->rows->workers[begin->worker].slices;

	if (!end->args_size)
		return true;
	if (!s->args_size[begin->row]) {
		s->args_size[begin->row] = end->args_size;
		s->args_offset[begin->row] = end->args_offset;
		return true;
	}
	return trace_add_mark(&p->t->rows->workers[begin->worker],
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

	p->t->rows->workers[begin->worker].slices.dur[begin->row] = span(begin->ts, ref->ts);
	if (!join_args(p, begin, point_of(p, ref)))
		return false;
	/* slices inside it without an end of their own end here */
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
	bool named = end->name && end->name != p->t->names->string_count;

	for (size_t i = p->count; i-- > lowest;) {
		const struct open_slice *begin = &p->open[i];

		if (!named || (begin->name == end->name &&
			       (!end->category || begin->category == end->category)))
			return close_slice(p, i, ref);
	}
	if (p->early_count < MAX_EARLY)
		p->early[p->early_count++] = *ref;
	else
		p->t->pairs->surplus_ends++;
	return true;
}

/* Uses an end that was written before the begin of its own (empty) slice. */
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
	struct trace_ref early;

	if (!vec_push(p->t->job->mem, p->open, p->count, p->cap,
		      (struct open_slice){ .row = ref->row,
					   .worker = ref->worker,
					   .name = s->name[ref->row],
					   .category = s->category[ref->row],
					   .ts = ref->ts,
					   .limit = TIME_UNKNOWN }))
		return false;
	if (take_early_end(p, s->name[ref->row], &early))
		return close_slice(p, p->count - 1, &early);
	return true;
}

static void forget_early_ends(struct pairing *p)
{
	p->t->pairs->surplus_ends += p->early_count;
	p->early_count = 0;
}

/* Closes slices that are still open at the end of the track: they end with the enclosing slice. Without one, their
 * end stays unknown for now. */
static bool close_rest(struct pairing *p)
{
	for (size_t i = 0; i < p->count; i++) {
		const struct open_slice *begin = &p->open[i];
		struct trace_worker *w = &p->t->rows->workers[begin->worker];

		if (begin->limit == TIME_UNKNOWN)
			continue;
		w->slices.dur[begin->row] = span(begin->ts, begin->limit);
		p->t->pairs->unfinished++;
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

static ow_status pair_all(struct pair_stage *t, size_t *starts, struct trace_ref *refs)
{
	struct pairing p = { .t = t };
	size_t longest = 0;
	struct trace_ref *scratch;
	bool ok = true;

	for (uint32_t lane = 0; lane < t->names->lane_count; lane++)
		longest = MAX(longest, starts[lane + 1] - starts[lane]);
	scratch = mem_alloc(t->job->mem, longest * sizeof(*scratch));
	for (uint32_t lane = 0; lane < t->names->lane_count && ok && scratch; lane++)
		ok = pair_lane(&p, refs + starts[lane], starts[lane + 1] - starts[lane], scratch);
	mem_free(t->job->mem, p.open, p.cap * sizeof(*p.open));
	mem_free(t->job->mem, scratch, longest * sizeof(*scratch));
	return ok && scratch ? OW_OK : trace_no_memory(t->job);
}

static ow_status pair_begins(struct pair_stage *t)
{
	size_t lanes = (size_t)t->names->lane_count + 1, total;
	size_t *starts = mem_zalloc(t->job->mem, 2 * lanes * sizeof(*starts));
	struct fill fill = { 0 };
	ow_status status;

	if (!starts)
		return trace_no_memory(t->job);
	for (size_t i = 0; i < t->rows->accepted_count; i++)
		visit_part(t, &t->rows->accepted[i], count_ref, starts);
	for (size_t i = 1; i < lanes; i++)
		starts[i] += starts[i - 1];
	total = starts[lanes - 1];
	fill.next = starts + lanes;
	memcpy(fill.next, starts, lanes * sizeof(*starts));
	fill.refs = mem_alloc(t->job->mem, total * sizeof(*fill.refs));
	if (fill.refs) {
		for (size_t i = 0; i < t->rows->accepted_count; i++)
			visit_part(t, &t->rows->accepted[i], put_ref, &fill);
		status = pair_all(t, starts, fill.refs);
	} else {
		status = trace_no_memory(t->job);
	}
	mem_free(t->job->mem, fill.refs, total * sizeof(*fill.refs));
	mem_free(t->job->mem, starts, 2 * lanes * sizeof(*starts));
	return status;
}

/* Finds the end of the last event of each lane; TIME_UNKNOWN if there is none. */
static void find_last_times(const struct pair_stage *t, int64_t *last_ns)
{
	for (uint32_t lane = 0; lane < t->names->lane_count; lane++)
		last_ns[lane] = TIME_UNKNOWN;
	for (size_t i = 0; i < t->rows->accepted_count; i++) {
		const struct trace_part *part = &t->rows->accepted[i];
		const struct trace_worker *w = &t->rows->workers[part->worker];
		const struct trace_slices *s = &w->slices;

		for (size_t r = part->first.slices; r < part->last.slices; r++) {
			int64_t end = s->ts[r];

			if (s->dur[r] != TIME_UNKNOWN &&
			    __builtin_add_overflow(end, s->dur[r], &end))
				end = INT64_MAX;
			last_ns[s->where[r].lane] = MAX(last_ns[s->where[r].lane], end);
		}
		for (size_t r = part->first.points; r < part->last.points; r++) {
			const struct trace_point *p = &w->points[r];

			if (!(p->flags & POINT_NO_TS))
				last_ns[p->where.lane] = MAX(last_ns[p->where.lane], p->ts);
		}
	}
}

static ow_status close_at_last_times(struct pair_stage *t, const int64_t *last_ns)
{
	for (size_t i = 0; i < t->rows->accepted_count; i++) {
		const struct trace_part *part = &t->rows->accepted[i];
		struct trace_worker *w = &t->rows->workers[part->worker];
		struct trace_slices *s = &w->slices;

		for (size_t r = part->first.slices; r < part->last.slices; r++) {
			if (OW_LIKELY(s->dur[r] != TIME_UNKNOWN ||
				      (s->ph[r] != 'X' && s->ph[r] != 'B')))
				continue;
			s->dur[r] = span(s->ts[r], last_ns[s->where[r].lane]);
			t->pairs->unfinished++;
			if (!trace_add_mark(w, &(struct trace_mark){ .slice = (uint32_t)r,
								     .flags = EVENT_UNFINISHED }))
				return w->status;
		}
	}
	return OW_OK;
}

static ow_status close_open_ends(struct pair_stage *t)
{
	size_t size = t->names->lane_count * sizeof(int64_t);
	int64_t *last_ns = mem_alloc(t->job->mem, size);
	ow_status status;

	if (!last_ns)
		return trace_no_memory(t->job);
	find_last_times(t, last_ns);
	status = close_at_last_times(t, last_ns);
	mem_free(t->job->mem, last_ns, size);
	return status;
}

static bool add_slice(struct pair_stage *t, unsigned worker, const struct trace_point *p,
		      int64_t dur, uint32_t lane)
{
	struct trace_worker *w = &t->rows->workers[worker];
	struct trace_slices *s = &w->slices;

	if (!trace_slice_room(w))
		return false;
	s->ts[s->count] = p->ts;
	s->dur[s->count] = dur;
	s->name[s->count] = p->name;
	s->category[s->count] = p->category;
	s->where[s->count].lane = lane;
	s->args_offset[s->count] = p->args_offset;
	s->args_size[s->count] = p->args_size;
	if (s->label)
		s->label[s->count] = 0;
	if (s->number)
		s->number[s->count].correlation = 0;
	s->ph[s->count++] = p->ph;
	t->names->lanes[lane].count++;
	return true;
}

struct async_ref {
	uint64_t key;
	uint32_t number; /* number of the point in file order */
	uint32_t row;
	uint32_t worker;
};

struct open_async {
	const struct trace_point *begin;
	uint32_t worker;
	int64_t limit;
};

struct joining {
	struct pair_stage *t;
	struct open_async *open;
	size_t count, cap;
	int64_t end_of_trace;
};

static bool is_async(const struct trace_point *p)
{
	return !(p->flags & (POINT_NO_TS | POINT_ODD_PH)) && p->ph && strchr("bneSTpF", p->ph);
}

static uint64_t key_of(const struct pair_stage *t, const struct trace_point *p)
{
	uint64_t key = map_hash_u64(p->category, p->scope);
	bool old = strchr("STpF", p->ph) != NULL;

	key = map_hash_u64(key, map_hash_u64((uint64_t)p->id, p->id_kind));
	if (p->flags & POINT_LOCAL_ID)
		key = map_hash_u64(key, (uint64_t)t->names->lanes[p->where.lane].process + 1);
	if (!p->id_kind)
		key = map_hash_u64(key, (uint64_t)p->where.lane + 1);
	return map_hash_u64(key, old ? (uint64_t)p->name + 1 : 0);
}

static int by_key(const void *a, const void *b)
{
	const struct async_ref *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static uint32_t async_lane(struct pair_stage *t, const struct trace_point *p)
{
	struct trace_track key = { .pid = t->names->lanes[p->where.lane].key.pid,
				   .layer = LAYER_ASYNC };

	return trace_lane_of(t->job, t->names, &key);
}

/* Adds a slice (or, without a duration, an instant) for the point, and its id. */
static bool add_async(struct joining *j, const struct trace_point *p, uint32_t worker, int64_t dur,
		      uint8_t flags, const struct trace_point *end)
{
	struct trace_worker *w = &j->t->rows->workers[worker];
	struct trace_mark mark = { .slice = (uint32_t)w->slices.count,
				   .scope = p->scope,
				   .id = { p->id, p->id_kind },
				   .flags = flags };
	struct trace_point row = *p;
	uint32_t lane = async_lane(j->t, p);

	if (lane == TRACE_FULL)
		return false;
	if (end && end->args_size) {
		if (row.args_size) {
			mark.args_offset = end->args_offset;
			mark.args_size = end->args_size;
		} else {
			row.args_offset = end->args_offset;
			row.args_size = end->args_size;
		}
	}
	return add_slice(j->t, worker, &row, dur, lane) && trace_add_mark(w, &mark);
}

static bool begin_async(struct joining *j, const struct trace_point *p, uint32_t worker)
{
	return vec_push(j->t->job->mem, j->open, j->count, j->cap,
			(struct open_async){ p, worker, TIME_UNKNOWN });
}

static int64_t span_not_negative(int64_t from, int64_t to)
{
	int64_t dur;

	return __builtin_sub_overflow(to, from, &dur) ? INT64_MAX : MAX(dur, (int64_t)0);
}

static bool end_async(struct joining *j, const struct trace_point *p, uint32_t worker)
{
	size_t lowest = j->count > MATCH_DEPTH ? j->count - MATCH_DEPTH : 0;

	for (size_t i = j->count; i-- > lowest;) {
		struct open_async *o = &j->open[i];

		if (p->name && o->begin->name != p->name)
			continue;
		if (!add_async(j, o->begin, o->worker, span_not_negative(o->begin->ts, p->ts), 0,
			       p))
			return false;
		for (size_t k = i + 1; k < j->count; k++)
			if (j->open[k].limit == TIME_UNKNOWN)
				j->open[k].limit = p->ts;
		j->count--;
		memmove(o, o + 1, (j->count - i) * sizeof(*o));
		return true;
	}
	j->t->pairs->unmatched_async++;
	return add_async(j, p, worker, TIME_UNKNOWN, EVENT_UNMATCHED, NULL);
}

static bool close_open_async(struct joining *j)
{
	for (size_t i = 0; i < j->count; i++) {
		const struct open_async *o = &j->open[i];
		int64_t to = o->limit != TIME_UNKNOWN ? o->limit : j->end_of_trace;

		j->t->pairs->unmatched_async++;
		if (!add_async(j, o->begin, o->worker, span_not_negative(o->begin->ts, to),
			       EVENT_UNFINISHED, NULL))
			return false;
	}
	j->count = 0;
	return true;
}

static bool join_group(struct joining *j, struct trace_ref *refs, size_t count,
		       struct trace_ref *scratch)
{
	if (!trace_is_sorted(refs, count))
		trace_sort(refs, count, scratch);
	for (size_t i = 0; i < count; i++) {
		const struct trace_point *p =
			&j->t->rows->workers[refs[i].worker].points[refs[i].row];
		bool ok;

		switch (p->ph) {
		case 'b':
		case 'S':
			ok = begin_async(j, p, refs[i].worker);
			break;
		case 'e':
		case 'F':
			ok = end_async(j, p, refs[i].worker);
			break;
		default:
			ok = add_async(j, p, refs[i].worker, TIME_UNKNOWN, 0, NULL);
		}
		if (!ok)
			return false;
	}
	return close_open_async(j);
}

static size_t collect(const struct pair_stage *t, struct async_ref *refs)
{
	size_t count = 0;

	for (size_t i = 0; i < t->rows->accepted_count; i++) {
		const struct trace_part *part = &t->rows->accepted[i];
		const struct trace_worker *w = &t->rows->workers[part->worker];

		for (size_t r = part->first.points; r < part->last.points; r++) {
			if (!is_async(&w->points[r]))
				continue;
			if (refs)
				refs[count] = (struct async_ref){ key_of(t, &w->points[r]),
								  (uint32_t)count, (uint32_t)r,
								  part->worker };
			count++;
		}
	}
	return count;
}

static bool join_all(struct pair_stage *t, const struct async_ref *refs, size_t count,
		     struct trace_ref *group)
{
	struct joining j = { .t = t, .end_of_trace = MAX(t->tally->max_ts, t->tally->max_x_end) };
	bool ok = true;

	for (size_t first = 0, n; first < count && ok; first += n) {
		for (n = 0; first + n < count && refs[first + n].key == refs[first].key; n++) {
			const struct async_ref *ref = &refs[first + n];

			group[n] = (struct trace_ref){
				t->rows->workers[ref->worker].points[ref->row].ts, ref->row,
				(uint16_t)ref->worker, 0
			};
		}
		ok = join_group(&j, group, n, group + count);
	}
	mem_free(t->job->mem, j.open, j.cap * sizeof(*j.open));
	return ok;
}

static ow_status pair_async(struct pair_stage *t)
{
	size_t count = collect(t, NULL);
	struct async_ref *refs;
	struct trace_ref *group;
	bool ok = false;

	if (!count)
		return OW_OK;
	refs = mem_alloc(t->job->mem, count * sizeof(*refs));
	group = refs ? mem_alloc(t->job->mem, 2 * count * sizeof(*group)) : NULL;
	if (group) {
		collect(t, refs);
		qsort(refs, count, sizeof(*refs), by_key);
		ok = join_all(t, refs, count, group);
	}
	mem_free(t->job->mem, group, 2 * count * sizeof(*group));
	mem_free(t->job->mem, refs, count * sizeof(*refs));
	return ok ? OW_OK : trace_no_memory(t->job);
}

/* Returns the track of a sample: that of its thread in any process if it names none. */
static uint32_t sample_lane(const struct pair_stage *t, const struct trace_point *p)
{
	const struct trace_track *key = &t->names->lanes[p->where.lane].key;

	if (key->pid.kind)
		return p->where.lane;
	for (uint32_t i = 1; i < t->names->lane_count; i++) {
		const struct trace_track *other = &t->names->lanes[i].key;

		if (other->pid.kind && other->layer == LAYER_THREAD &&
		    other->tid.kind == key->tid.kind && other->tid.value == key->tid.value)
			return i;
	}
	return p->where.lane;
}

static ow_status add_samples(struct pair_stage *t)
{
	uint32_t last_lane = 0, lane = 0;

	for (size_t i = 0; i < t->rows->accepted_count; i++) {
		const struct trace_part *part = &t->rows->accepted[i];
		struct trace_worker *w = &t->rows->workers[part->worker];

		if (!part->samples)
			continue;
		for (size_t r = part->first.points; r < part->last.points; r++) {
			const struct trace_point *p = &w->points[r];
			struct trace_mark mark = { .slice = (uint32_t)w->slices.count,
						   .frame = { p->id, p->id_kind } };

			if (p->flags & POINT_NO_TS)
				continue;
			if (p->where.lane != last_lane)
				lane = sample_lane(t, p);
			last_lane = p->where.lane;
			if (!add_slice(t, part->worker, p, TIME_UNKNOWN, lane) ||
			    !trace_add_mark(w, &mark))
				return trace_no_memory(t->job);
		}
	}
	return OW_OK;
}

/* Keeps events whose phase is not one letter: their meaning is unknown, but they are shown. */
static ow_status keep_odd(struct pair_stage *t)
{
	for (size_t i = 0; i < t->rows->accepted_count; i++) {
		const struct trace_part *part = &t->rows->accepted[i];
		const struct trace_worker *w = &t->rows->workers[part->worker];

		for (size_t r = part->first.points; r < part->last.points; r++) {
			struct trace_point p = w->points[r];

			if (!(p.flags & POINT_ODD_PH) || p.flags & POINT_NO_TS || !p.id_kind)
				continue;
			p.ph = '?';
			if (!add_slice(t, part->worker, &p, TIME_UNKNOWN, p.where.lane))
				return trace_no_memory(t->job);
		}
	}
	return OW_OK;
}

/* Accepts rows that pairing has added as a separate part. */
static ow_status accept_added(struct pair_stage *t, const struct trace_counts *before)
{
	if (!vec_reserve(t->job->mem, t->rows->accepted, t->rows->accepted_cap,
			 t->rows->accepted_count + t->rows->worker_count))
		return trace_no_memory(t->job);
	for (unsigned i = 0; i < t->rows->worker_count; i++)
		t->rows->accepted[t->rows->accepted_count++] =
			(struct trace_part){ .worker = i,
					     .first = before[i],
					     .last = trace_worker_counts(&t->rows->workers[i]) };
	return OW_OK;
}

ow_status trace_pair(const struct trace_job *job, struct trace_raw *rows, struct trace_names *names,
		     const struct trace_tally *tally, struct trace_pairs *pairs)
{
	struct pair_stage t = { job, rows, names, tally, pairs };
	struct trace_counts before[PARALLEL_MAX + 1];

	for (unsigned i = 0; i < rows->worker_count; i++)
		before[i] = trace_worker_counts(&rows->workers[i]);
	if (tally->by_ph['B'] + tally->by_ph['E'])
		OW_TRY(pair_begins(&t));
	if (tally->by_ph['B'] || tally->x_without_dur)
		OW_TRY(close_open_ends(&t));
	OW_TRY(pair_async(&t));
	OW_TRY(add_samples(&t));
	if (tally->unknown_ph)
		OW_TRY(keep_odd(&t));
	return accept_added(&t, before);
}
