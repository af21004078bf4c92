/*
 * graph_gaps.c: finds what ran in the gaps of a host thread, between its recorded events: Python functions of the same
 * thread, or another thread that launches work while this one waits for it, as in backward passes. Gaps are split
 * accordingly, so that each part is a node. Part of graph_make; graph_edges.c then decides which parts are waits.
 */
#include "replay/graph.h"

#define CUT_NS 50000	  /* shorter gaps are not split */
#define FUNCTION_NS 20000 /* shorter Python calls are counted as part of their caller */
/* limit of the time between the begin of a pause and the work of the other thread */
#define HAND_OVER_NS 20000
#define BUSY 50 /* the other thread must work in this percentage of the pause */

/* The outermost events of a thread, which do not overlap. */
struct burst_list {
	uint32_t track;
	int64_t *start, *end, *busy; /* busy: sum of the durations up to this event */
	uint32_t count;
	uint32_t next;	 /* 1 + index of the next list of the same source; 0 = none */
	uint32_t cursor; /* the first event that begins at or after the previous gap */
	bool launches, computes;
};

/* Counts the outermost events of the part that is replayed, and lists them if `list` has room. */
static void list_outermost(const struct build *b, const uint32_t *events, uint32_t count,
			   struct burst_list *out)
{
	const struct model *m = b->g->m;
	const struct part *part = &b->parts[m->track.source[out->track].v];
	int64_t sum = 0, covered = INT64_MIN;

	out->count = 0;
	for (uint32_t i = 0; i < count; i++) {
		int64_t start = m->event.ts_ns[events[i]], end = event_end(m, events[i]);

		if (!event_is_slice(m, events[i]) || end <= part->from_ns || start >= part->to_ns)
			continue;
		out->launches |= m->event.phase[events[i]] == PHASE_LAUNCH;
		out->computes |= m->event.phase[events[i]] == PHASE_COMPUTE;
		if (start < covered)
			continue;
		covered = end;
		if (out->start) {
			sum = span_add(sum, span_length(start, end));
			out->start[out->count] = start;
			out->end[out->count] = end;
			out->busy[out->count] = sum;
		}
		out->count++;
	}
}

static ow_status list_bursts(struct build *b, uint32_t track, const uint32_t *events,
			     uint32_t count, struct burst_list *out)
{
	uint32_t *first = &b->first_burst[b->g->m->track.source[track].v];

	*out = (struct burst_list){ .track = track };
	list_outermost(b, events, count, out);
	if (!out->launches && !out->computes)
		return OW_OK;
	out->end = ARENA_ARRAY(&b->scratch, int64_t, (size_t)out->count + 1);
	out->busy = ARENA_ARRAY(&b->scratch, int64_t, (size_t)out->count + 1);
	out->start = ARENA_ARRAY(&b->scratch, int64_t, (size_t)out->count + 1);
	if (!out->start || !out->end || !out->busy)
		return error_no_memory(b->err);
	list_outermost(b, events, count, out);
	out->next = *first;
	*first = ++b->burst_count;
	return OW_OK;
}

/* The first event from index `low` on that begins at or after t. */
static uint32_t burst_at(const struct burst_list *list, uint32_t low, int64_t t)
{
	uint32_t high = list->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (list->start[middle] < t)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Finds the part of a pause in which the other thread works; false when that thread also works before or after the
 * pause, or hardly works. The gaps of a thread are visited in order, so the list's cursor only moves forward. */
static bool works_in(struct burst_list *list, int64_t *begin, int64_t *end)
{
	int64_t busy, from, to, least;
	uint32_t first, stop;

	while (list->cursor < list->count && list->start[list->cursor] < *begin)
		list->cursor++;
	first = list->cursor;
	if (first == list->count || list->start[first] >= *end)
		return false;
	stop = burst_at(list, first, *end);
	if ((first && list->end[first - 1] > *begin) || list->end[stop - 1] > *end)
		return false;
	from = list->start[first];
	to = list->end[stop - 1];
	busy = list->busy[stop - 1] - (first ? list->busy[first - 1] : 0);
	/* A thread that launches nothing may do unrelated work, unless it fills the pause. */
	least = list->launches ? to - from : *end - *begin;
	if (to - from < CUT_NS || busy < least / 100 * BUSY)
		return false;
	*begin = from - *begin < HAND_OVER_NS ? *begin : from;
	*end = *end - to < HAND_OVER_NS ? *end : to;
	return true;
}

struct thread {
	uint32_t source, track;
	int64_t pid, tid;
};

static int by_thread(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;

	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

static struct thread thread_of(const struct model *m, uint32_t track)
{
	return (struct thread){ m->track.source[track].v, track, m->track.pid[track],
				m->track.tid[track] };
}

/* Finds the tracks of Python functions: they have the pid and tid of their thread. */
static ow_status find_frames(struct build *b)
{
	const struct model *m = b->g->m;
	struct thread *frames = ARENA_ARRAY(&b->scratch, struct thread, (size_t)m->track.count + 1);
	uint32_t count = 0;

	b->frames_of = ARENA_ARRAY(&b->scratch, uint32_t, (size_t)m->track.count + 1);
	if (!frames || !b->frames_of)
		return error_no_memory(b->err);
	for (uint32_t i = 1; i < m->track.count; i++)
		if (m->track.kind[i] == TRACK_FRAMES &&
		    (COLUMN_GET(m->track.flags, i) & TRACK_SLICES))
			frames[count++] = thread_of(m, i);
	if (!count)
		return OW_OK;
	qsort(frames, count, sizeof(*frames), by_thread);
	for (uint32_t i = 1; i < m->track.count; i++) {
		struct thread key = thread_of(m, i), *found;

		if (b->work[i] != WORK_HOST || m->track.kind[i] == TRACK_FRAMES)
			continue;
		found = bsearch(&key, frames, count, sizeof(*frames), by_thread);
		b->frames_of[i] = found ? found->track : 0;
	}
	return OW_OK;
}

ow_status graph_list_gaps(struct build *b, const uint32_t *first, const uint32_t *events)
{
	const struct model *m = b->g->m;

	b->first = first;
	b->events = events;
	b->bursts = ARENA_ARRAY(&b->scratch, struct burst_list, (size_t)m->track.count + 1);
	b->first_burst = ARENA_ARRAY(&b->scratch, uint32_t, MAX(m->source.count, 1u));
	if (!b->bursts || !b->first_burst)
		return error_no_memory(b->err);
	for (uint32_t i = 1; i < m->track.count; i++)
		if (b->work[i] == WORK_HOST && b->parts[m->track.source[i].v].end &&
		    m->track.kind[i] != TRACK_FRAMES &&
		    (COLUMN_GET(m->track.flags, i) & TRACK_SLICES))
			OW_TRY(list_bursts(b, i, events + first[i], first[i + 1] - first[i],
					   &b->bursts[b->burst_count]));
	return find_frames(b);
}

void gaps_open(struct gaps *gaps, struct build *b, uint32_t track)
{
	uint32_t frames = b->frames_of[track];

	*gaps = (struct gaps){ .b = b, .track = track, .until = INT64_MIN };
	for (uint32_t i = b->first_burst[b->g->m->track.source[track].v]; i;
	     i = b->bursts[i - 1].next)
		b->bursts[i - 1].cursor = 0;
	if (!frames)
		return;
	gaps->events = b->events + b->first[frames];
	gaps->count = b->first[frames + 1] - b->first[frames];
}

/* Opens and closes Python functions up to time t. */
static void advance(struct gaps *gaps, int64_t t)
{
	const struct model *m = gaps->b->g->m;

	for (; gaps->next < gaps->count && m->event.ts_ns[gaps->events[gaps->next]] <= t;
	     gaps->next++) {
		uint32_t event = gaps->events[gaps->next];

		if (!event_is_slice(m, event) || m->event.dur_ns[event] < FUNCTION_NS)
			continue;
		while (gaps->depth &&
		       event_end(m, gaps->open[gaps->depth - 1]) <= m->event.ts_ns[event])
			gaps->depth--;
		if (gaps->depth < GAPS_DEEPEST)
			gaps->open[gaps->depth++] = event;
	}
	while (gaps->depth && event_end(m, gaps->open[gaps->depth - 1]) <= t)
		gaps->depth--;
}

/* The begin of the next Python function that is not too short. */
static int64_t next_call(struct gaps *gaps, int64_t to)
{
	const struct model *m = gaps->b->g->m;

	for (; gaps->next < gaps->count; gaps->next++) {
		uint32_t event = gaps->events[gaps->next];

		if (m->event.ts_ns[event] >= to)
			break;
		if (event_is_slice(m, event) && m->event.dur_ns[event] >= FUNCTION_NS)
			return m->event.ts_ns[event];
	}
	return to;
}

static void find_pause(struct gaps *gaps, int64_t at, int64_t to)
{
	const struct build *b = gaps->b;
	struct burst_list *list;
	int64_t most = 0;

	gaps->pause_begin = gaps->pause_end = to;
	for (uint32_t i = b->first_burst[b->g->m->track.source[gaps->track].v]; i; i = list->next) {
		int64_t begin = at, end = to;

		list = &b->bursts[i - 1];
		/* if two threads work equally long the first one counts */
		if (list->track == gaps->track || !works_in(list, &begin, &end) ||
		    end - begin < most)
			continue;
		most = end - begin;
		gaps->pause_begin = begin;
		gaps->pause_end = end;
	}
}

int64_t gaps_next(struct gaps *gaps, int64_t at, int64_t to, uint32_t *event)
{
	int64_t stop;

	*event = 0;
	if (gaps->until != to) { /* the caller asks about another gap */
		gaps->until = to;
		gaps->whole = to - at < CUT_NS;
		if (!gaps->whole)
			find_pause(gaps, at, to);
	}
	if (gaps->whole)
		return to;
	if (at >= gaps->pause_begin && at < gaps->pause_end)
		return gaps->pause_end;
	stop = at < gaps->pause_begin ? gaps->pause_begin : to;
	advance(gaps, at);
	if (gaps->depth) {
		*event = gaps->open[gaps->depth - 1];
		stop = MIN(stop, event_end(gaps->b->g->m, *event));
	}
	return MIN(stop, next_call(gaps, stop));
}
