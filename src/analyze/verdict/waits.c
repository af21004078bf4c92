/*
 * waits.c: two sentences of the verdict about waiting. How much of a collective is waiting for other ranks: none takes longer than
 * it has to on the rank that enters it last, so what the k-th run of a collective takes longer than on the fastest rank is a wait,
 * whatever the clocks of the ranks say. And whether the host waits for the device after every launch. verdict.c calls both.
 */
#include "analyze/verdict/verdict.h"

#include "base/vec.h"

/* ---- collectives ---- */

struct collective {
	uint32_t source;
	int64_t ts_ns, dur_ns;
};

struct collectives {
	struct collective *list;
	size_t count, cap;
};

static int by_source_and_time(const void *a, const void *b)
{
	const struct collective *x = a, *y = b;

	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return (x->ts_ns > y->ts_ns) - (x->ts_ns < y->ts_ns);
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
			      (struct collective){ source, e->ts_ns[i], e->dur_ns[i] }))
			return false;
	}
	return true;
}

/* Ranks of one job, each with the same number of runs; 0 otherwise. */
static size_t runs_of_each(const struct model *m, const struct collectives *c)
{
	size_t each = 0;

	for (size_t first = 0, end; first < c->count; first = end) {
		for (end = first; end < c->count && c->list[end].source == c->list[first].source;)
			end++;
		if (!each)
			each = end - first;
		if (end - first != each ||
		    m->source.run[c->list[first].source] != m->source.run[c->list[0].source])
			return 0;
	}
	return c->count > each ? each : 0;
}

/* The part of all runs that is longer than the same run on the fastest rank. */
static double waiting_part(const struct collectives *c, size_t each)
{
	double wait = 0, all = 0;

	for (size_t k = 0; k < each; k++) {
		int64_t least = INT64_MAX;

		for (size_t i = k; i < c->count; i += each)
			least = MIN(least, c->list[i].dur_ns);
		for (size_t i = k; i < c->count; i += each) {
			wait += (double)(c->list[i].dur_ns - least);
			all += (double)c->list[i].dur_ns;
		}
	}
	return all > 0 ? wait / all : 0;
}

#define WORTH_SAYING 0.1

ow_status verdict_collective_wait(const struct model *m, const struct event_filter *filter,
				  uint32_t op, struct buf *text, struct ow_error *err)
{
	struct collectives c = { 0 };
	bool ok = collect(m, filter, op, &c);
	size_t each;

	if (ok && c.count) {
		qsort(c.list, c.count, sizeof(*c.list), by_source_and_time);
		each = runs_of_each(m, &c);
		if (each && waiting_part(&c, each) >= WORTH_SAYING)
			buf_printf(text,
				   ", of which at least %.0f %% is waiting for the other rank%s",
				   100 * waiting_part(&c, each), c.count / each > 2 ? "s" : "");
	}
	mem_free(m->mem, c.list, c.cap * sizeof(*c.list));
	return ok ? OW_OK : error_no_memory(err);
}

/* ---- waiting after every launch ---- */

#define MANY_LAUNCHES 100
#define WAITS_PER_LAUNCH 0.5

static bool waits_for_device(const struct model *m, uint32_t event)
{
	str_id own = COLUMN_GET(m->event.name, event);
	struct str name = model_str(m, own.v ? own : m->op.name[m->event.op[event].v]);

	return str_has(name, STR("ynchronize"));
}

/* " The host waits 8190 times for 8190 launches: …" */
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
