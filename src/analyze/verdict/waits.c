/*
 * waits.c: two sentences of the verdict about waiting. How much of a collective is waiting for other ranks: none takes longer than
 * it has to on the rank that enters it last, so what a run of a collective takes longer than the same run on the fastest rank is a wait.
 * Which runs are the same: all ranks leave a collective together, so the sequences of ends of a step are aligned, whatever the clocks of the ranks say and
 * also if some runs are missing. Runs without a partner count as not waiting. And whether the host waits for the device after every launch. verdict.c calls both.
 */
#include "analyze/verdict/verdict.h"

#include "analyze/steps/spans.h"
#include "base/vec.h"

struct collective {
	uint32_t source, step;
	int64_t ts_ns, dur_ns, end_ns;
};

struct collectives {
	struct collective *list;
	size_t count, cap;
};

static int by_step_and_source(const void *a, const void *b)
{
	const struct collective *x = a, *y = b;

	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static bool collect(const struct model *m, const struct event_filter *filter, uint32_t op,
		    struct collectives *c)
{
	const struct event_table *e = &m->event;

	for (uint32_t i = 1; i < e->count; i++) {
		uint32_t source = m->track.source[e->track[i].v].v;

		if (e->op[i].v != op || e->phase[i] != PHASE_COMMUNICATION ||
		    !event_is_slice(m, i) || m->source.rank[source] < 0 ||
		    !filter_step(filter, e->step[i]) || !filter_track(filter, m, e->track[i]))
			continue;
		if (!vec_push(m->mem, c->list, c->count, c->cap,
			      (struct collective){ source, e->step[i].v, e->ts_ns[i], e->dur_ns[i],
						   event_end(m, i) }))
			return false;
	}
	return true;
}

/* Runs of one rank in one step, sorted by their ends. */
struct runs {
	struct collective *list;
	size_t count;
};

#define STEP_RUNS_MOST 4096
#define TRIED 8 /* number of first runs of each side that are tried as partners */
/* largest distance of matching ends, as a part of the time between two runs */
#define NEAR_PART 0.1

/* Returns a - b without overflow; damaged files have any times. */
static int64_t distance(int64_t a, int64_t b)
{
	int64_t d;

	if (__builtin_sub_overflow(a, b, &d))
		return a < b ? -INT64_MAX : INT64_MAX;
	return MAX(d, -INT64_MAX);
}

static bool is_within(int64_t d, int64_t near)
{
	return d <= near && d >= -near;
}

/* Returns the run in `in` that ends nearest to a time; runs are sorted by their ends. */
static size_t nearest(const struct runs *in, int64_t end_ns)
{
	size_t low = 0, high = in->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (in->list[middle].end_ns < end_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == in->count || (low && distance(end_ns, in->list[low - 1].end_ns) <
						distance(in->list[low].end_ns, end_ns)))
		return low - 1;
	return low;
}

/* Returns how far the ends of one run may lie apart: a part of the least time between two ends. */
static int64_t tolerance(const struct runs *in)
{
	int64_t least = INT64_MAX;

	for (size_t i = 1; i < in->count; i++)
		least = MIN(least, distance(in->list[i].end_ns, in->list[i - 1].end_ns));
	return least == INT64_MAX ? 0 : (int64_t)(NEAR_PART * (double)least);
}

static bool is_same(const struct runs *first, const struct collective *run, int64_t offset,
		    int64_t near, size_t *at)
{
	int64_t moved = span_add(run->end_ns, offset);

	*at = nearest(first, moved);
	return is_within(distance(first->list[*at].end_ns, moved), near);
}

/* Finds the clock offset at which most ends agree; false if two offsets are equally good or fewer than two
 * ends agree. */
static bool find_offset(const struct runs *first, const struct runs *other, int64_t near,
			int64_t *offset)
{
	size_t best = 0, second = 0, at;
	int64_t found = 0;

	*offset = distance(first->list[0].end_ns, other->list[0].end_ns);
	if (first->count == 1 && other->count == 1)
		return true; /* each rank has one run in the step */
	for (size_t i = 0; i < MIN(first->count, (size_t)TRIED); i++)
		for (size_t k = 0; k < MIN(other->count, (size_t)TRIED); k++) {
			int64_t tried = distance(first->list[i].end_ns, other->list[k].end_ns);
			size_t agree = 0;

			for (size_t n = 0; n < other->count; n++)
				agree += is_same(first, &other->list[n], tried, near, &at);
			if (best && is_within(distance(tried, found), 2 * near)) {
				best = MAX(best, agree); /* another pair gives the same offset */
			} else if (agree > best) {
				second = best;
				best = agree;
				found = tried;
			} else {
				second = MAX(second, agree);
			}
		}
	*offset = found;
	return best >= 2 && best > second;
}

/* Returns the sum of the waits of a step's runs: the runs of each rank are compared with those
 * of the first rank. */
static double step_wait(struct collective *list, size_t count)
{
	struct runs first = { list, 0 };
	int64_t near, least[STEP_RUNS_MOST];
	double wait = 0;

	while (first.count < count && list[first.count].source == list->source)
		first.count++;
	if (first.count > STEP_RUNS_MOST || first.count == count)
		return 0;
	for (size_t n = 0; n < first.count; n++)
		least[n] = first.list[n].dur_ns;
	near = tolerance(&first);
	for (unsigned pass = 0; pass < 2; pass++)
		for (size_t i = pass ? 0 : first.count, end; i < count; i = end) {
			struct runs other = { &list[i], 0 };
			int64_t offset = 0;
			size_t at;

			for (end = i; end < count && list[end].source == list[i].source; end++)
				other.count++;
			if (i && !find_offset(&first, &other, near, &offset))
				continue;
			for (size_t n = 0; n < other.count; n++) {
				if (!is_same(&first, &other.list[n], offset, near, &at))
					continue;
				least[at] = MIN(least[at], other.list[n].dur_ns);
				wait += pass ? (double)(other.list[n].dur_ns - least[at]) : 0;
			}
		}
	return wait;
}

/* Returns the part of all runs by which they exceed the same run on the fastest rank; 0 for ranks of
 * several jobs. */
static double waiting_part(const struct model *m, const struct collectives *c)
{
	double wait = 0, all = 0;

	for (size_t i = 0; i < c->count; i++) {
		if (m->source.run[c->list[i].source] != m->source.run[c->list[0].source])
			return 0;
		all += (double)c->list[i].dur_ns;
	}
	for (size_t first = 0, end; first < c->count; first = end) {
		for (end = first; end < c->count && c->list[end].step == c->list[first].step;)
			end++;
		wait += step_wait(&c->list[first], end - first);
	}
	return all > 0 ? wait / all : 0;
}

static size_t count_ranks(const struct collectives *c)
{
	size_t ranks = 0;

	for (size_t i = 0; i < c->count && c->list[i].step == c->list[0].step; i++)
		ranks += !i || c->list[i].source != c->list[i - 1].source;
	return ranks;
}

#define WORTH_SAYING 0.1

ow_status verdict_collective_wait(const struct model *m, const struct event_filter *filter,
				  uint32_t op, struct buf *text, struct ow_error *err)
{
	struct collectives c = { 0 };
	bool ok = collect(m, filter, op, &c);

	if (ok && c.count) {
		double part;

		qsort(c.list, c.count, sizeof(*c.list), by_step_and_source);
		part = waiting_part(m, &c);
		if (part >= WORTH_SAYING)
			buf_printf(text,
				   ", of which at least %.0f %% is waiting for the other rank%s",
				   100 * part, count_ranks(&c) > 2 ? "s" : "");
	}
	mem_free(m->mem, c.list, c.cap * sizeof(*c.list));
	return ok ? OW_OK : error_no_memory(err);
}

#define MANY_LAUNCHES 100
#define WAITS_PER_LAUNCH 0.5

static bool waits_for_device(const struct model *m, uint32_t event)
{
	str_id own = COLUMN_GET(m->event.name, event);
	struct str name = model_str(m, own.v ? own : m->op.name[m->event.op[event].v]);

	return str_has(name, STR("ynchronize"));
}

/* Adds " The host waits 8190 times for 8190 launches: …". */
void verdict_sync_calls(const struct model *m, const struct event_filter *filter, struct buf *text)
{
	uint64_t waits = 0, launches = 0;
	uint32_t last = 0;

	for (uint32_t i = 1; i < m->event.count; i++)
		waits += m->event.phase[i] == PHASE_SYNCHRONISATION && event_is_slice(m, i) &&
			 filter_step(filter, m->event.step[i]) &&
			 filter_track(filter, m, m->event.track[i]) && waits_for_device(m, i);
	for (uint32_t i = 1; waits && i < m->link.count; i++) {
		uint32_t call = m->link.src[i].v;

		if (m->link.kind[i] != LINK_LAUNCH || call == last ||
		    m->event.phase[m->link.dst[i].v] != PHASE_COMPUTE ||
		    !filter_step(filter, m->event.step[call]) ||
		    !filter_track(filter, m, m->event.track[call]))
			continue;
		last = call;
		launches++;
	}
	if (launches >= MANY_LAUNCHES && (double)waits >= WAITS_PER_LAUNCH * (double)launches)
		buf_printf(text,
			   " The host waits for the device %" PRIu64 " times for %" PRIu64
			   " launches: it never runs ahead.",
			   waits, launches);
}
