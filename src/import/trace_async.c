/*
 * trace_async.c: joins asynchronous begins and ends: b, n, e (nestable) and the older S, T, p, F. Events
 * of one (category, scope, id) belong together, the older ones also by name. Each pair becomes a slice
 * on the process's asynchronous track, where slices overlap freely; steps and points become instants.
 */
#include "import/trace_int.h"

#define MATCH_DEPTH 4096

struct async_ref {
	uint64_t key;
	uint32_t number; /* in file order */
	uint32_t row;
	uint32_t worker;
};

struct open_async {
	const struct trace_point *begin;
	uint32_t worker;
	int64_t limit;
};

struct joining {
	struct trace *t;
	struct open_async *open;
	size_t count, cap;
	int64_t end_of_trace;
};

static bool is_async(const struct trace_point *p)
{
	return !(p->flags & (POINT_NO_TS | POINT_ODD_PH)) && p->ph && strchr("bneSTpF", p->ph);
}

static uint64_t key_of(const struct trace *t, const struct trace_point *p)
{
	uint64_t key = map_hash_u64(p->category, p->scope);
	bool old = strchr("STpF", p->ph) != NULL;

	key = map_hash_u64(key, map_hash_u64((uint64_t)p->id, p->id_kind));
	if (p->flags & POINT_LOCAL_ID)
		key = map_hash_u64(key, (uint64_t)t->lanes[p->track].process + 1);
	if (!p->id_kind)
		key = map_hash_u64(key, (uint64_t)p->track + 1);
	return map_hash_u64(key, old ? (uint64_t)p->name + 1 : 0);
}

static int by_key(const void *a, const void *b)
{
	const struct async_ref *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static uint32_t async_lane(struct trace *t, const struct trace_point *p)
{
	struct trace_track key = { .pid = t->lanes[p->track].key.pid, .layer = LAYER_ASYNC };

	return trace_lane_of(t, &key);
}

/* A slice (or, without a duration, an instant) for the point, with its id beside it. */
static bool add(struct joining *j, const struct trace_point *p, uint32_t worker, int64_t dur,
		uint8_t flags, const struct trace_point *end)
{
	struct trace_worker *w = &j->t->workers[worker];
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
	return trace_add_slice(j->t, worker, &row, dur, lane) && trace_add_mark(w, &mark);
}

static bool begin(struct joining *j, const struct trace_point *p, uint32_t worker)
{
	void *open = j->open;

	if (!mem_grow(j->t->mem, &open, &j->cap, j->count + 1, sizeof(*j->open)))
		return false;
	j->open = open;
	j->open[j->count++] = (struct open_async){ p, worker, TIME_UNKNOWN };
	return true;
}

static int64_t span(int64_t from, int64_t to)
{
	int64_t dur;

	return __builtin_sub_overflow(to, from, &dur) ? INT64_MAX : MAX(dur, (int64_t)0);
}

static bool end(struct joining *j, const struct trace_point *p, uint32_t worker)
{
	size_t lowest = j->count > MATCH_DEPTH ? j->count - MATCH_DEPTH : 0;

	for (size_t i = j->count; i-- > lowest;) {
		struct open_async *o = &j->open[i];

		if (p->name && o->begin->name != p->name)
			continue;
		if (!add(j, o->begin, o->worker, span(o->begin->ts, p->ts), 0, p))
			return false;
		for (size_t k = i + 1; k < j->count; k++)
			if (j->open[k].limit == TIME_UNKNOWN)
				j->open[k].limit = p->ts;
		j->count--;
		memmove(o, o + 1, (j->count - i) * sizeof(*o));
		return true;
	}
	j->t->unmatched_async++;
	return add(j, p, worker, TIME_UNKNOWN, EVENT_UNMATCHED, NULL);
}

static bool close_rest(struct joining *j)
{
	for (size_t i = 0; i < j->count; i++) {
		const struct open_async *o = &j->open[i];
		int64_t to = o->limit != TIME_UNKNOWN ? o->limit : j->end_of_trace;

		j->t->unmatched_async++;
		if (!add(j, o->begin, o->worker, span(o->begin->ts, to), EVENT_UNFINISHED, NULL))
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
		const struct trace_point *p = &j->t->workers[refs[i].worker].points[refs[i].row];
		bool ok;

		switch (p->ph) {
		case 'b':
		case 'S':
			ok = begin(j, p, refs[i].worker);
			break;
		case 'e':
		case 'F':
			ok = end(j, p, refs[i].worker);
			break;
		default:
			ok = add(j, p, refs[i].worker, TIME_UNKNOWN, 0, NULL);
		}
		if (!ok)
			return false;
	}
	return close_rest(j);
}

static size_t collect(const struct trace *t, struct async_ref *refs)
{
	size_t count = 0;

	for (size_t i = 0; i < t->accepted_count; i++) {
		const struct trace_part *part = &t->accepted[i];
		const struct trace_worker *w = &t->workers[part->worker];

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

static bool join_all(struct trace *t, const struct async_ref *refs, size_t count,
		     struct trace_ref *group)
{
	struct joining j = { .t = t,
			     .end_of_trace = MAX(t->tallies[0].max_ts, t->tallies[0].max_x_end) };
	bool ok = true;

	for (size_t first = 0, n; first < count && ok; first += n) {
		for (n = 0; first + n < count && refs[first + n].key == refs[first].key; n++) {
			const struct async_ref *ref = &refs[first + n];

			group[n] = (struct trace_ref){ t->workers[ref->worker].points[ref->row].ts,
						       ref->row, (uint16_t)ref->worker, 0 };
		}
		ok = join_group(&j, group, n, group + count);
	}
	mem_free(t->mem, j.open, j.cap * sizeof(*j.open));
	return ok;
}

ow_status trace_pair_async(struct trace *t)
{
	size_t count = collect(t, NULL);
	struct async_ref *refs;
	struct trace_ref *group;
	bool ok = false;

	if (!count)
		return OW_OK;
	refs = mem_alloc(t->mem, count * sizeof(*refs));
	group = refs ? mem_alloc(t->mem, 2 * count * sizeof(*group)) : NULL;
	if (group) {
		collect(t, refs);
		qsort(refs, count, sizeof(*refs), by_key);
		ok = join_all(t, refs, count, group);
	}
	mem_free(t->mem, group, 2 * count * sizeof(*group));
	mem_free(t->mem, refs, count * sizeof(*refs));
	return ok ? OW_OK : error_no_memory(t->ctx->err);
}
