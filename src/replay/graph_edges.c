/*
 * graph_edges.c: adds the edges between the chains of a graph: launches, calls that wait for the device, streams that
 * wait for each other, threads that wait for threads, input that other threads load. Part of graph_make. Recorded links
 * are used as they are; if a recording does not say what was waited for, times decide, and the edge is marked as
 * inferred.
 */
#include "replay/graph.h"

#include "base/vec.h"

#define TOLERANCE_NS 2000      /* clocks of host and device may differ by this much */
#define LATENCY_LEAST_NS 20000 /* a launch latency up to this value needs no other cause */
/* a launch latency up to this many times the typical one needs no other cause */
#define LATENCY_TIMES 4
#define LATENCY_MOST_NS 300000 /* a longer launch latency is always a wait for something else */
/* a gap between two kernels of a stream up to this value needs no other cause */
#define GAP_LEAST_NS 10000
/* a stream starts at most this long after the other stream's work that it waited for */
#define EVENT_LAG_NS 15000
/* a stream starts within this fraction (1/8) of the whole wait after that work */
#define EVENT_PART 8
#define THREAD_WAIT_NS 20000 /* shorter pauses of a thread are not treated as waits */
#define THREAD_BUSY 50	     /* the other thread must work in this percentage of a pause */
/* limit of consecutive pauses that are joined to one stretch of work of another thread */
#define PAUSES_MOST 16u
#define PAUSES_APART 20 /* between two of these pauses is at most 1/20 of that time */
/* a synchronising call itself takes at most this long; the rest needs a cause */
#define CALL_NS 50000
/* a release of memory that ends at most this long after device work waited for that work */
#define FREE_TAIL_NS 50000
#define STREAMS_MOST 64 /* limit of streams that one synchronisation waits for */

ow_status build_edge(struct build *b, struct edge edge)
{
	if (!vec_push(b->mem, b->edges, b->edge_count, b->edge_cap, edge))
		return error_no_memory(b->err);
	b->g->inferred_count += edge.inferred;
	return OW_OK;
}

/* Finds the first and last node of a call; false when the call is not in the graph. */
static bool call_nodes(const struct build *b, uint32_t event, uint32_t *first, uint32_t *last)
{
	const struct graph *g = b->g;
	const struct model *m = g->m;
	uint32_t lane = b->lane_of[m->event.track[event].v], node = b->node_of[event];

	if (!lane || g->lanes[lane - 1].device)
		return false;
	if (!node) { /* other events cover the call completely */
		node = lane_at(g, &g->lanes[lane - 1], m->event.ts_ns[event]) + 1;
		if (node > g->lanes[lane - 1].first + g->lanes[lane - 1].count)
			return false;
	}
	*first = *last = node - 1;
	if (node_end(g, node - 1) + GRAPH_ROUNDING_NS >= event_end(m, event))
		return true;
	*last = lane_at(g, &g->lanes[lane - 1], event_end(m, event) - GRAPH_ROUNDING_NS);
	*last = *last > *first ? *last - 1 : *first;
	return true;
}

static ow_status add_launches(struct build *b)
{
	struct graph *g = b->g;
	const struct model *m = g->m;

	for (uint32_t i = 1; i < m->link.count; i++) {
		uint32_t call = m->link.src[i].v, work = b->node_of[m->link.dst[i].v], first, last;

		if (m->link.kind[i] != LINK_LAUNCH || !call || !work ||
		    !(g->flags[work - 1] & NODE_DEVICE) || g->launch[work - 1] ||
		    !call_nodes(b, call, &first, &last) ||
		    g->start_ns[first] > g->start_ns[work - 1] + TOLERANCE_NS)
			continue;
		g->launch[work - 1] = last + 1;
		if (work < g->node_count && g->flags[work] & NODE_JOINS)
			g->launch[work] = last + 1;
		g->launched++;
	}
	return OW_OK;
}

static ow_status add_waits(struct build *b)
{
	const struct graph *g = b->g;
	const struct model *m = g->m;
	uint32_t count = 0;

	for (uint32_t i = 1; i < m->link.count; i++)
		count += m->link.kind[i] == LINK_WAIT;
	b->wait_first = ARENA_ARRAY(&b->scratch, uint32_t, (size_t)g->node_count + 1);
	b->wait_next = ARENA_ARRAY(&b->scratch, uint32_t, (size_t)count + 1);
	b->wait_work = ARENA_ARRAY(&b->scratch, uint32_t, (size_t)count + 1);
	if (!b->wait_first || !b->wait_next || !b->wait_work)
		return error_no_memory(b->err);
	count = 0;
	for (uint32_t i = 1; i < m->link.count; i++) {
		uint32_t work = b->node_of[m->link.src[i].v], waits = b->node_of[m->link.dst[i].v];

		if (m->link.kind[i] != LINK_WAIT || !work || !waits ||
		    !(g->flags[work - 1] & NODE_DEVICE))
			continue;
		if (work < g->node_count && g->flags[work] & NODE_JOINS)
			/* the wait lasts until the data has moved: use the transfer node, not the arrival */
			work++;
		b->wait_work[count] = work - 1;
		b->wait_next[count] = b->wait_first[waits - 1];
		b->wait_first[waits - 1] = ++count;
	}
	return OW_OK;
}

/* Among the work that a node is recorded to wait for, the one that ends last and not after t; UINT32_MAX when there
 * is none. */
static uint32_t waits_for(const struct build *b, uint32_t node, int64_t t)
{
	uint32_t last = UINT32_MAX;

	for (uint32_t w = b->wait_first[node]; w; w = b->wait_next[w - 1]) {
		int64_t end = node_end(b->g, b->wait_work[w - 1]);

		if (end <= t && (last == UINT32_MAX || end > node_end(b->g, last)))
			last = b->wait_work[w - 1];
	}
	return last;
}

/* The time at which the launching call started the work: the call's end, or its begin if the work began during the
 * call. */
static int64_t launched_ns(const struct graph *g, uint32_t node, bool *from_begin)
{
	uint32_t call = g->launch[node] - 1;

	*from_begin = node_end(g, call) > g->start_ns[node];
	return *from_begin ? g->start_ns[call] : node_end(g, call);
}

static size_t count_device_nodes(const struct graph *g)
{
	size_t count = 0;

	for (uint32_t l = 0; l < g->lane_count; l++)
		count += g->lanes[l].device ? g->lanes[l].count : 0;
	return count;
}

/* Measures the medians of launch latency and gap between kernels in this recording. */
static ow_status measure_latencies(struct build *b)
{
	struct graph *g = b->g;
	size_t room = count_device_nodes(g) + 1;
	int64_t *latency = RAW_ARRAY(&b->scratch, int64_t, room);
	int64_t *gap = RAW_ARRAY(&b->scratch, int64_t, room);
	uint32_t latencies = 0, gaps = 0;

	if (!latency || !gap)
		return error_no_memory(b->err);
	for (uint32_t l = 0; l < g->lane_count; l++) {
		const struct lane *lane = &g->lanes[l];

		for (uint32_t i = lane->first; lane->device && i < lane->first + lane->count; i++) {
			int64_t before = i > lane->first ? node_end(g, i - 1) : INT64_MIN;
			int64_t launched;
			bool from_begin;

			if (g->flags[i] & NODE_JOINS)
				continue;
			g->device_slices++;
			if (!g->launch[i])
				continue;
			launched = launched_ns(g, i, &from_begin);
			if (launched > before && !from_begin)
				latency[latencies++] = MAX(g->start_ns[i] - launched, 0);
			else if (launched <= before && before <= g->start_ns[i])
				gap[gaps++] = g->start_ns[i] - before;
		}
	}
	g->launch_latency_ns =
		MIN(median_of_many(latency, latencies), LATENCY_MOST_NS / LATENCY_TIMES);
	g->kernel_gap_ns = MIN(median_of_many(gap, gaps), LATENCY_MOST_NS / LATENCY_TIMES);
	return OW_OK;
}

struct ending {
	int64_t end_ns;
	uint32_t node;
};

static int by_end(const void *a, const void *b)
{
	const struct ending *x = a, *y = b;

	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

/* Device work of one source, sorted by end. */
struct endings {
	struct ending *items;
	uint32_t count;
};

static ow_status list_endings(struct build *b, source_id source, struct endings *out)
{
	const struct graph *g = b->g;
	size_t room = 0;

	for (uint32_t l = 0; l < g->lane_count; l++)
		if (g->lanes[l].device && g->lanes[l].source.v == source.v)
			room += g->lanes[l].count;
	*out = (struct endings){ ARENA_ARRAY(&b->scratch, struct ending, room + 1), 0 };
	if (!out->items)
		return error_no_memory(b->err);
	for (uint32_t l = 0; l < g->lane_count; l++)
		for (uint32_t i = 0; g->lanes[l].device && g->lanes[l].source.v == source.v &&
				     i < g->lanes[l].count;
		     i++) {
			uint32_t node = g->lanes[l].first + i;

			if (i + 1 < g->lanes[l].count && g->flags[node + 1] & NODE_JOINS)
				continue; /* the node is an arrival, which does not end work */
			out->items[out->count++] = (struct ending){ node_end(g, node), node };
		}
	qsort(out->items, out->count, sizeof(*out->items), by_end);
	return OW_OK;
}

/* Index of the last work that ends at or before t; `count` when there is none. */
static uint32_t ended_by(const struct endings *e, int64_t t)
{
	uint32_t low = 0, high = e->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (e->items[middle].end_ns <= t)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : e->count;
}

/* Finds work of another stream that ended right before this work began. */
static bool find_stream_event(const struct graph *g, const struct endings *e,
			      const struct lane *lane, uint32_t node, int64_t after,
			      uint32_t *found)
{
	uint32_t at = ended_by(e, g->start_ns[node] + GRAPH_ROUNDING_NS);
	int64_t lag_most = MAX(EVENT_LAG_NS, (g->start_ns[node] - after) / EVENT_PART);

	for (uint32_t tries = 0; at < e->count && tries < 8; tries++, at--) {
		uint32_t other = e->items[at].node;

		if (e->items[at].end_ns <= after ||
		    g->start_ns[node] - e->items[at].end_ns > lag_most)
			return false;
		if (other < lane->first || other >= lane->first + lane->count) {
			*found = other;
			return true;
		}
		if (!at)
			return false;
	}
	return false;
}

/* Adds edges from work of other streams that a kernel or copy is recorded to wait for; *known is when everything
 * else allowed it to begin. */
static ow_status add_stream_waits(struct build *b, uint32_t node, int64_t gap_most, int64_t *known)
{
	const struct graph *g = b->g;
	int64_t start = g->start_ns[node], before = *known;

	for (uint32_t w = b->wait_first[node]; w; w = b->wait_next[w - 1]) {
		int64_t end = node_end(g, b->wait_work[w - 1]);
		int64_t most = end > before ? gap_most : g->kernel_gap_ns;
		int64_t lag = MIN(start - end, most);

		if (end > start + TOLERANCE_NS)
			continue; /* this work ended too late: it cannot have been waited for */
		*known = MAX(*known, end + lag);
		OW_TRY(build_edge(b, (struct edge){ .src = b->wait_work[w - 1],
						    .dst = node,
						    .lag_ns = lag,
						    .kind = EDGE_STREAM }));
	}
	return OW_OK;
}

/* Adds edges that explain when a kernel or copy began; the remaining delay becomes slack. */
static ow_status explain_start(struct build *b, const struct lane *lane, uint32_t node,
			       const struct endings *e)
{
	struct graph *g = b->g;
	int64_t start = g->start_ns[node], known = INT64_MIN, before = INT64_MIN;
	int64_t latency_most = MAX(LATENCY_LEAST_NS, LATENCY_TIMES * g->launch_latency_ns);
	int64_t gap_most = MAX(GAP_LEAST_NS, LATENCY_TIMES * g->kernel_gap_ns);
	uint32_t other = waits_for(b, node, start + TOLERANCE_NS);
	int64_t waited = other == UINT32_MAX ? INT64_MIN : node_end(g, other);

	if (g->flags[node] & NODE_JOINS)
		return OW_OK;
	if (node > lane->first) {
		before = node_end(g, node - 1);
		if (before > start + GRAPH_ROUNDING_NS) { /* the work overlaps the work before it */
			before = g->start_ns[node - 1];
			g->flags[node] |= NODE_AFTER_BEGIN;
			g->lag_ns[node] = start - before;
			known = start;
		}
	}
	if (g->launch[node]) {
		struct edge edge = { .src = g->launch[node] - 1, .dst = node, .kind = EDGE_LAUNCH };
		int64_t launched = launched_ns(g, node, &edge.from_begin);
		bool queued = known == INT64_MIN && MAX(before, waited) > launched;

		edge.lag_ns = MAX(start - launched, 0);
		if (queued || known == start)
			edge.lag_ns = MIN(edge.lag_ns, g->launch_latency_ns);
		else if (!edge.from_begin)
			edge.lag_ns = MIN(edge.lag_ns, latency_most);
		known = MAX(known, launched + edge.lag_ns);
		OW_TRY(build_edge(b, edge));
	}
	if (before != INT64_MIN && !(g->flags[node] & NODE_AFTER_BEGIN)) {
		int64_t most = before + gap_most > MAX(known, waited) ? gap_most : g->kernel_gap_ns;

		g->lag_ns[node] = MIN(start - before, most);
		known = MAX(known, before + g->lag_ns[node]);
	}
	OW_TRY(add_stream_waits(b, node, gap_most, &known));
	if (known >= start || known == INT64_MIN)
		return OW_OK;
	if (find_stream_event(g, e, lane, node, known, &other))
		return build_edge(b, (struct edge){ .src = other,
						    .dst = node,
						    .lag_ns = start - node_end(g, other),
						    .kind = EDGE_STREAM,
						    .inferred = true });
	g->slack_ns[node] = start - known;
	return OW_OK;
}

static bool is_call(const struct graph *g, uint32_t node, const char *word)
{
	return str_has(model_str(g->m, g->m->op.name[node_op(g, node).v]), str_from(word));
}

/* Makes a host node wait for device work: the node keeps only its time after the end of that work. */
static ow_status wait_for(struct build *b, uint32_t node, uint32_t work, bool inferred)
{
	struct graph *g = b->g;
	int64_t end = node_end(g, node), ready = MIN(node_end(g, work), end);

	if (ready > g->start_ns[node]) {
		g->weight_ns[node] = end - ready;
		g->start_ns[node] = ready;
	}
	return build_edge(b, (struct edge){ .src = work,
					    .dst = node,
					    .lag_ns = MIN(end - node_end(g, work), 0),
					    .kind = EDGE_WAIT,
					    .inferred = inferred });
}

/* Makes a synchronisation of the whole device wait for the last work of each stream that was launched before it. */
static ow_status wait_for_streams(struct build *b, uint32_t node, int64_t begin, source_id source,
				  uint32_t except)
{
	const struct graph *g = b->g;
	int64_t end = node_end(g, node);
	uint32_t streams = 0;

	for (uint32_t l = 0; l < g->lane_count && streams < STREAMS_MOST; l++) {
		const struct lane *lane = &g->lanes[l];
		uint32_t at;

		if (!lane->device || lane->source.v != source.v)
			continue;
		at = lane_at(g, lane, end);
		while (at > lane->first &&
		       (node_end(g, at - 1) > end + TOLERANCE_NS ||
			(g->launch[at - 1] && g->start_ns[g->launch[at - 1] - 1] > begin)))
			at--;
		if (at == lane->first || at - 1 == except)
			continue;
		streams++;
		OW_TRY(build_edge(
			b, (struct edge){ .src = at - 1,
					  .dst = node,
					  .lag_ns = MIN(g->start_ns[node] - node_end(g, at - 1), 0),
					  .kind = EDGE_WAIT }));
	}
	return OW_OK;
}

/* Handles a copy that its calling thread waits for: the copy ends inside the call. */
static ow_status explain_copy(struct build *b, uint32_t work)
{
	struct graph *g = b->g;
	uint32_t call = g->launch[work] ? g->launch[work] - 1 : 0;
	int64_t end = node_end(g, work);

	if (!g->launch[work] ||
	    (g->kind[work] != NODE_TO_DEVICE && g->kind[work] != NODE_TO_HOST) ||
	    end > node_end(g, call) + TOLERANCE_NS || g->start_ns[call] >= end)
		return OW_OK;
	g->flags[work] |= NODE_BLOCKS;
	return OW_OK;
}

/* Handles a call that synchronises, or that frees memory, which waits for the device as well. */
static ow_status explain_wait(struct build *b, const struct lane *lane, uint32_t node,
			      const struct endings *e)
{
	struct graph *g = b->g;
	int64_t begin = g->start_ns[node], end = node_end(g, node);
	uint32_t at = ended_by(e, end + TOLERANCE_NS), tries = 0;
	uint32_t recorded = waits_for(b, node, end + TOLERANCE_NS);
	bool sync = g->kind[node] == NODE_SYNC;

	if (recorded != UINT32_MAX)
		OW_TRY(wait_for(b, node, recorded, false));
	if (recorded != UINT32_MAX && node_end(g, recorded) > begin)
		return OW_OK;
	if (!sync && g->kind[node] != NODE_ALLOC)
		return OW_OK;
	for (; recorded == UINT32_MAX && at < e->count && tries < 64 && e->items[at].end_ns > begin;
	     tries++) {
		uint32_t work = e->items[at].node;

		if (!g->launch[work] || g->start_ns[g->launch[work] - 1] < begin) {
			if (!sync && end - e->items[at].end_ns > FREE_TAIL_NS)
				return OW_OK;
			OW_TRY(wait_for(b, node, work, !is_call(g, node, "DeviceSynchronize")));
			if (is_call(g, node, "DeviceSynchronize"))
				OW_TRY(wait_for_streams(b, node, begin, lane->source, work));
			return OW_OK;
		}
		if (!at--)
			break;
	}
	if (sync && g->weight_ns[node] > CALL_NS && g->has_device) {
		g->slack_ns[node] = g->weight_ns[node] - CALL_NS;
		g->start_ns[node] += g->slack_ns[node];
		g->weight_ns[node] = CALL_NS;
	}
	return OW_OK;
}

/* Code that no event covers, or a range of the user's program: neither says that the thread itself works. */
static bool is_pause(const struct graph *g, uint32_t node)
{
	uint8_t phase = g->event[node] ? g->m->event.phase[g->event[node]] : PHASE_UNKNOWN;

	return g->kind[node] == NODE_GAP ||
	       (g->kind[node] == NODE_HOST && (phase == PHASE_HOST || phase == PHASE_UNKNOWN));
}

static bool is_idle_at(const struct graph *g, const struct lane *lane, uint32_t node, int64_t t)
{
	if (node < lane->first || node >= lane->first + lane->count)
		return true;
	return g->kind[node] == NODE_GAP || g->start_ns[node] >= t || node_end(g, node) <= t;
}

/* What another thread does while the main thread pauses: its nodes from first to last. */
struct burst {
	uint32_t first, last;
};

/* When a node of a thread began, its wait included: the nodes of a thread follow each other without gaps. */
static int64_t node_begin(const struct graph *g, const struct lane *lane, uint32_t node)
{
	return node > lane->first ? node_end(g, node - 1) : g->start_ns[node];
}

/* Whether the other thread, which was idle before and is idle afterwards, works most of the time from begin to end. */
static bool works_between(const struct graph *g, const struct lane *other, int64_t begin,
			  int64_t end, struct burst *out)
{
	uint32_t first = lane_at(g, other, begin), last, stop = other->first + other->count;
	int64_t busy = 0;

	*out = (struct burst){ first, first };
	if (first > other->first && !is_idle_at(g, other, first - 1, begin))
		return false;
	while (first < stop && g->kind[first] == NODE_GAP)
		first++;
	if (first < stop && node_begin(g, other, first) < begin)
		return false;
	last = first;
	for (uint32_t i = first; i < stop && node_end(g, i) <= end; i++)
		if (g->kind[i] != NODE_GAP) {
			busy += node_end(g, i) - node_begin(g, other, i);
			last = i;
		}
	*out = (struct burst){ first, last };
	return first < stop && node_end(g, last) <= end &&
	       busy * 100 >= (end - begin) * THREAD_BUSY &&
	       (last + 1 >= stop || g->kind[last + 1] == NODE_GAP || g->start_ns[last + 1] >= end);
}

/* The node of the other thread that runs when a pause ends, or the last one before. */
static uint32_t active_at(const struct graph *g, const struct lane *other,
			  const struct burst *burst, int64_t t)
{
	uint32_t at = lane_at(g, other, t);

	at = at > burst->first ? at - 1 : burst->first;
	while (at > burst->first && g->kind[at] == NODE_GAP)
		at--;
	return MIN(at, burst->last);
}

/* The other thread waits for the begin of the first pause, and what follows each pause waits for the other thread. */
static ow_status join_pauses(struct build *b, const uint32_t *pauses, uint32_t count,
			     const struct lane *other, const struct burst *burst)
{
	struct graph *g = b->g;
	uint32_t first = burst->first;

	g->flags[first] |= NODE_FREE;
	OW_TRY(build_edge(b, (struct edge){ .src = pauses[0],
					    .dst = first,
					    .lag_ns = g->start_ns[first] - g->start_ns[pauses[0]],
					    .kind = EDGE_THREAD,
					    .from_begin = true,
					    .inferred = true }));
	for (uint32_t i = 0; i < count; i++) {
		uint32_t work = i + 1 == count ? burst->last
					       : active_at(g, other, burst, node_end(g, pauses[i]));

		b->joins[pauses[i]] = MAX(b->joins[pauses[i]], work + 1);
	}
	return OW_OK;
}

/*
 * The main thread pauses while another thread works: backward passes run like that. What the main thread itself does between two pauses is
 * short then (gradients of tensors on the host). Returns how many pauses were joined.
 */
static ow_status join_pause(struct build *b, const uint32_t *pauses, uint32_t count,
			    const struct lane *other, uint32_t *joined)
{
	const struct graph *g = b->g;
	int64_t begin = g->start_ns[pauses[0]];
	struct burst burst;

	*joined = 0;
	for (uint32_t i = 0; i < MIN(count, PAUSES_MOST); i++) {
		int64_t end = node_end(g, pauses[i]);

		if (works_between(g, other, begin, end, &burst)) {
			*joined = i + 1;
			return join_pauses(b, pauses, i + 1, other, &burst);
		}
		if (i + 1 >= count ||
		    g->start_ns[pauses[i + 1]] - end > (end - begin) / PAUSES_APART ||
		    (burst.first < other->first + other->count && g->start_ns[burst.first] >= end))
			break;
	}
	return OW_OK;
}

static ow_status join_threads(struct build *b, const struct lane *main)
{
	struct graph *g = b->g;
	uint32_t *pauses = ARENA_ARRAY(&b->scratch, uint32_t, (size_t)main->count + 1), count = 0;

	if (!pauses)
		return error_no_memory(b->err);
	for (uint32_t i = main->first; i < main->first + main->count; i++)
		if (g->weight_ns[i] >= THREAD_WAIT_NS && is_pause(g, i))
			pauses[count++] = i;
	for (uint32_t l = 0; l < g->lane_count; l++) {
		const struct lane *other = &g->lanes[l];

		if (other->device || other == main || other->source.v != main->source.v)
			continue;
		for (uint32_t i = 0, joined; i < count; i += MAX(joined, 1u))
			OW_TRY(join_pause(b, pauses + i, count - i, other, &joined));
	}
	return OW_OK;
}

/* Whether the next node belongs to the same thread. */
static bool is_followed(const struct build *b, uint32_t node)
{
	const struct lane *lane = lane_of_node(b->g, node);

	return node + 1 < lane->first + lane->count;
}

/* Splits each pause that was joined: no time before the other thread's work, the rest after it. The node keeps the
 * begin, and the next node waits for the other thread. */
static ow_status finish_joins(struct build *b)
{
	struct graph *g = b->g;

	for (uint32_t i = 0; i + 1 < g->node_count; i++) {
		uint32_t work = b->joins[i] ? b->joins[i] - 1 : 0;
		int64_t end = node_end(g, i);
		bool goes_on;

		if (!b->joins[i] || !is_followed(b, i))
			continue;
		/* it may go on, after it has given the main thread something to do */
		goes_on = node_end(g, work) > end + GRAPH_ROUNDING_NS && g->start_ns[work] <= end;
		g->weight_ns[i] = 0;
		OW_TRY(build_edge(b, (struct edge){ .src = work,
						    .dst = i + 1,
						    .lag_ns = end - (goes_on ? g->start_ns[work]
									     : node_end(g, work)),
						    .kind = EDGE_THREAD,
						    .from_begin = goes_on,
						    .inferred = true }));
	}
	return OW_OK;
}

static ow_status join_loader(struct build *b, const struct lane *main, const struct lane *loader)
{
	struct graph *g = b->g;

	for (uint32_t i = main->first; i < main->first + main->count; i++) {
		int64_t begin = g->start_ns[i], end = node_end(g, i);
		uint32_t at;

		if (g->kind[i] != NODE_INPUT || g->weight_ns[i] < THREAD_WAIT_NS)
			continue;
		at = lane_at(g, loader, end);
		while (at > loader->first &&
		       (node_end(g, at - 1) > end || g->kind[at - 1] == NODE_GAP))
			at--;
		if (at == loader->first || node_end(g, at - 1) <= begin ||
		    end - node_end(g, at - 1) > THREAD_WAIT_NS * 5)
			continue;
		OW_TRY(wait_for(b, i, at - 1, true));
		b->edges[b->edge_count - 1].kind = EDGE_LOADER;
	}
	return OW_OK;
}

/* The number of steps that begin with an event of the lane, up to a hundred. */
static int64_t steps_begun(const struct build *b, const struct lane *lane)
{
	const struct graph *g = b->g;
	const struct part *part = &b->parts[lane->source.v];
	int64_t count = 0;

	for (uint32_t i = part->first; i < part->end && count < 100; i++) {
		uint32_t at = lane_at(g, lane, g->steps[i].begin_ns);

		count += at < lane->first + lane->count && g->event[at] &&
			 g->m->event.ts_ns[g->event[at]] == g->steps[i].begin_ns;
	}
	return count;
}

/* Finds the main thread of each source: the one with step markers, else the one that launches most, else the
 * busiest. */
static ow_status find_main_lanes(struct build *b)
{
	struct graph *g = b->g;
	const struct model *m = g->m;
	int64_t *score = ARENA_ARRAY(&b->scratch, int64_t, (size_t)g->lane_count + 1);

	b->main_of = ARENA_ARRAY(&b->scratch, uint32_t, MAX(m->source.count, 1u));
	if (!score || !b->main_of)
		return error_no_memory(b->err);
	for (uint32_t i = 0; i < g->node_count; i++)
		if (g->launch[i])
			/* A launch may be in a gap between events; then its node has no event. */
			score[lane_of_node(g, g->launch[i] - 1) - g->lanes] += INT64_C(1) << 40;
	for (uint32_t l = 0; l < g->lane_count; l++) {
		const struct lane *lane = &g->lanes[l];

		for (uint32_t i = lane->first; !lane->device && i < lane->first + lane->count;
		     i++) {
			if (g->event[i] && m->op.flags[node_op(g, i).v] & OP_STEP_MARK)
				score[l] |= INT64_C(1) << 62;
			if (g->kind[i] != NODE_GAP)
				score[l] += g->weight_ns[i] >> 16;
		}
		if (!lane->device)
			score[l] += steps_begun(b, lane) << 50;
		if (!lane->device && (!b->main_of[lane->source.v] ||
				      score[l] > score[b->main_of[lane->source.v] - 1]))
			b->main_of[lane->source.v] = l + 1;
	}
	return OW_OK;
}

static ow_status join_lane(struct build *b, const struct lane *lane, const struct endings *e)
{
	struct graph *g = b->g;

	for (uint32_t i = lane->first; i < lane->first + lane->count; i++)
		OW_TRY(lane->device ? explain_start(b, lane, i, e) : explain_wait(b, lane, i, e));
	for (uint32_t i = lane->first; lane->device && i < lane->first + lane->count; i++) {
		OW_TRY(explain_copy(b, i));
		if (g->flags[i] & NODE_BLOCKS)
			b->blocking++;
	}
	return OW_OK;
}

/* Whether the stream was still working when the call began. */
static bool is_queued(const struct build *b, uint32_t work, int64_t begin)
{
	const struct graph *g = b->g;
	uint32_t lane = b->lane_of[g->m->event.track[g->event[work]].v];

	return lane && work > g->lanes[lane - 1].first && node_end(g, work - 1) > begin;
}

/* Handles the call of a blocking copy: the node after it on the thread waits for the copy. */
static ow_status finish_copies(struct build *b)
{
	struct graph *g = b->g;

	for (uint32_t i = 0; b->blocking && i < g->node_count; i++) {
		uint32_t call = g->launch[i] ? g->launch[i] - 1 : 0;
		int64_t end = node_end(g, call);

		if (!(g->flags[i] & NODE_BLOCKS) || !is_followed(b, call))
			continue;
		/* If no work was queued before the copy, the call's time is preparation; else it is waiting. */
		g->weight_ns[call] =
			MIN(g->weight_ns[call], MAX(g->start_ns[i] - g->start_ns[call], 0));
		if (is_queued(b, i, g->start_ns[call]))
			g->weight_ns[call] =
				MIN(g->weight_ns[call], g->launch_latency_ns + LATENCY_LEAST_NS);
		OW_TRY(build_edge(b, (struct edge){ .src = i,
						    .dst = call + 1,
						    .lag_ns = end - node_end(g, i),
						    .kind = EDGE_WAIT }));
	}
	return OW_OK;
}

static ow_status join_source(struct build *b, source_id source)
{
	struct graph *g = b->g;
	struct endings e;

	OW_TRY(list_endings(b, source, &e));
	for (uint32_t l = 0; l < g->lane_count; l++)
		if (g->lanes[l].source.v == source.v && g->lanes[l].device)
			OW_TRY(join_lane(b, &g->lanes[l], &e));
	for (uint32_t l = 0; l < g->lane_count; l++)
		if (g->lanes[l].source.v == source.v && !g->lanes[l].device)
			OW_TRY(join_lane(b, &g->lanes[l], &e));
	if (!b->main_of[source.v])
		return OW_OK;
	OW_TRY(join_threads(b, &g->lanes[b->main_of[source.v] - 1]));
	for (uint32_t l = 0; l < g->lane_count; l++)
		if (g->lanes[l].source.v == source.v &&
		    g->m->track.kind[g->lanes[l].track.v] == TRACK_LOADER)
			OW_TRY(join_loader(b, &g->lanes[b->main_of[source.v] - 1], &g->lanes[l]));
	return OW_OK;
}

static ow_status sort_edges(struct build *b)
{
	struct graph *g = b->g;
	uint32_t *place;

	if (b->edge_count >= UINT32_MAX)
		return error_set(b->err, OW_E_LIMIT, "more than 4 billion dependencies");
	g->edge_count = (uint32_t)b->edge_count;
	g->edges = RAW_ARRAY(&g->arena, struct edge, b->edge_count + 1);
	g->edge_first = ARENA_ARRAY(&g->arena, uint32_t, (size_t)g->node_count + 2);
	place = RAW_ARRAY(&b->scratch, uint32_t, (size_t)g->node_count + 2);
	if (!g->edges || !g->edge_first || !place)
		return error_no_memory(b->err);
	for (size_t i = 0; i < b->edge_count; i++)
		g->edge_first[b->edges[i].dst + 1]++;
	for (uint32_t i = 0; i < g->node_count; i++)
		g->edge_first[i + 1] += g->edge_first[i];
	memcpy(place, g->edge_first, ((size_t)g->node_count + 1) * sizeof(*place));
	for (size_t i = 0; i < b->edge_count; i++)
		g->edges[place[b->edges[i].dst]++] = b->edges[i];
	return OW_OK;
}

ow_status graph_add_edges(struct build *b)
{
	struct graph *g = b->g;

	OW_TRY(add_launches(b));
	graph_mark_nodes(b);
	OW_TRY(graph_join_ranks(b));
	OW_TRY(add_waits(b));
	b->joins = ARENA_ARRAY(&b->scratch, uint32_t, (size_t)g->node_count + 1);
	if (!b->joins)
		return error_no_memory(b->err);
	OW_TRY(measure_latencies(b));
	OW_TRY(find_main_lanes(b));
	for (uint32_t i = 0; i < MAX(g->m->source.count, 1u); i++)
		if (b->main_of[i])
			g->lanes[b->main_of[i] - 1].main = true;
	for (uint32_t i = 0; i < MAX(g->m->source.count, 1u); i++)
		if (b->parts[i].end)
			OW_TRY(join_source(b, (source_id){ i }));
	OW_TRY(finish_copies(b));
	OW_TRY(finish_joins(b));
	return sort_edges(b);
}
