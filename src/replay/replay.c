/*
 * replay.c: runs a graph with given durations, finds the critical path of a step, and checks predictions across steps;
 * replay.h explains them. Called by path, what-if and the advice. It does not decide what to change: what_if.c and the
 * rules do.
 */
#include "replay/replay.h"

#include <math.h>

static bool drops(const struct scenario *s, uint32_t node, uint8_t flag)
{
	return s->drop && (s->drop[node] & flag);
}

static bool edge_counts(const struct scenario *s, const struct edge *e)
{
	if (e->src == e->dst || (s->no_inferred && e->inferred && e->kind != EDGE_THREAD))
		return false;
	if (e->kind == EDGE_LAUNCH)
		return !drops(s, e->dst, DROP_LAUNCH);
	return !drops(s, e->dst, DROP_WAITS);
}

static int64_t edge_time(const struct replay *r, const struct edge *e)
{
	int64_t from = e->from_begin ? r->begin_ns[e->src] : r->end_ns[e->src];
	bool lag = e->lag_ns < 0 || e->kind == EDGE_WAIT || e->kind == EDGE_RANKS ||
		   !drops(&r->scenario, e->dst, DROP_LAGS);

	return lag ? span_add(from, e->lag_ns) : from;
}

/* The earliest begin that the node's predecessor on its chain allows; INT64_MIN when the node does not wait for it. */
static int64_t chain_time(const struct replay *r, uint32_t node)
{
	const struct graph *g = r->g;
	int64_t lag = drops(&r->scenario, node, DROP_LAGS) ? 0 : g->lag_ns[node];

	if (g->flags[node] & (NODE_FIRST | NODE_FREE) || drops(&r->scenario, node, DROP_CHAIN))
		return INT64_MIN;
	if (g->flags[node] & NODE_AFTER_BEGIN)
		return span_add(r->begin_ns[node - 1], lag);
	return span_add(r->end_ns[node - 1], lag);
}

static int64_t node_ready(const struct replay *r, uint32_t node)
{
	const struct graph *g = r->g;
	int64_t ready = chain_time(r, node);

	for (uint32_t k = g->edge_first[node]; k < g->edge_first[node + 1]; k++)
		if (edge_counts(&r->scenario, &g->edges[k]))
			ready = MAX(ready, edge_time(r, &g->edges[k]));
	return ready;
}

static void run_node(struct replay *r, uint32_t node)
{
	const struct graph *g = r->g;
	int64_t weight = r->scenario.weight_ns ? r->scenario.weight_ns[node] : g->weight_ns[node];
	int64_t ready = node_ready(r, node);

	if (ready == INT64_MIN) /* no known cause: the node begins as recorded */
		ready = g->start_ns[node];
	else if (!drops(&r->scenario, node, DROP_SLACK))
		ready = span_add(ready, g->slack_ns[node]);
	r->begin_ns[node] = ready;
	r->end_ns[node] = span_add(ready, weight);
}

/* Computes the least length of each step: the work of a step on one stream takes its time whatever else changes.
 * Applied only to changed durations; a step of the recording stays as it was. */
static void add_device_floors(struct replay *r)
{
	const struct graph *g = r->g;
	int64_t *floors = r->times;

	memset(floors, 0, g->step_count * sizeof(*floors));
	for (uint32_t l = 0; l < g->lane_count; l++) {
		uint32_t step = 0, last = g->lanes[l].first + g->lanes[l].count;
		int64_t sum = 0;

		for (uint32_t i = g->lanes[l].first; g->lanes[l].device && i < last; i++) {
			if (g->step[i] != step) {
				step = g->step[i];
				sum = 0;
			}
			sum = span_add(sum, r->scenario.weight_ns[i]);
			if (step)
				floors[step - 1] = MAX(floors[step - 1], sum);
		}
	}
	for (uint32_t i = 0; i < g->step_count; i++)
		if (r->step_ns[i] >= 0)
			r->step_ns[i] = MAX(r->step_ns[i], MIN(floors[i], g->steps[i].measured_ns));
}

static void measure_step(struct replay *r, uint32_t i)
{
	const struct graph *g = r->g;
	const struct graph_step *step = &g->steps[i];
	bool follows = i && g->steps[i - 1].used && g->steps[i - 1].source.v == step->source.v;
	int64_t begin, end;

	r->step_ns[i] = -1;
	if (!step->used)
		return;
	begin = step->begin_after == UINT32_MAX ? step->begin_ns : r->end_ns[step->begin_after];
	end = begin;
	for (uint32_t k = 0; k < step->end_count; k++)
		end = MAX(end, r->end_ns[g->ends[step->end_first + k]]);
	if (g->phases.extended) /* steps do not overlap; work before the graph stays as recorded */
		begin = MAX(begin, follows ? r->step_end_ns[i - 1]
					   : g->phases.windows[step->window].start_ns);
	r->step_begin_ns[i] = begin;
	r->step_end_ns[i] = span_add(MAX(begin, end), step->rest_ns);
	r->step_ns[i] = span_length(begin, r->step_end_ns[i]);
}

static void measure_steps(struct replay *r)
{
	for (uint32_t i = 0; i < r->g->step_count; i++)
		measure_step(r, i);
}

static void find_median(struct replay *r)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < r->g->step_count; i++)
		if (r->g->steps[i].used && r->g->steps[i].steady)
			r->times[count++] = r->step_ns[i];
	r->median_ns = median_of(r->times, count);
}

ow_status replay_make(const struct graph *g, struct arena *arena, struct replay *out,
		      struct ow_error *err)
{
	size_t nodes = (size_t)g->node_count + 1, steps = (size_t)g->step_count + 1;

	*out = (struct replay){ .g = g,
				.begin_ns = RAW_ARRAY(arena, int64_t, nodes),
				.end_ns = RAW_ARRAY(arena, int64_t, nodes),
				.step_ns = ARENA_ARRAY(arena, int64_t, steps),
				.step_begin_ns = ARENA_ARRAY(arena, int64_t, steps),
				.step_end_ns = ARENA_ARRAY(arena, int64_t, steps),
				.times = ARENA_ARRAY(arena, int64_t, steps) };
	return out->begin_ns && out->end_ns && out->step_ns && out->step_begin_ns &&
			       out->step_end_ns && out->times
		       ? OW_OK
		       : error_no_memory(err);
}

void replay_again(struct replay *r, const struct scenario *scenario)
{
	const struct graph *g = r->g;

	r->scenario = scenario ? *scenario : (struct scenario){ 0 };
	for (uint32_t i = 0; i < g->node_count; i++)
		run_node(r, g->order[i]);
	measure_steps(r);
	if (r->scenario.weight_ns)
		add_device_floors(r);
	find_median(r);
}

ow_status replay_run(const struct graph *g, const struct scenario *scenario, struct arena *arena,
		     struct replay *out, struct ow_error *err)
{
	OW_TRY(replay_make(g, arena, out, err));
	replay_again(out, scenario);
	return OW_OK;
}

/* Shortens the lag of edges that the recording contradicts. Between ranks, lags hold the difference of their clocks. */
static void fit_node(struct replay *r, struct graph *g, uint32_t node)
{
	int64_t latest = span_add(g->start_ns[node], -g->slack_ns[node]);
	int64_t late = chain_time(r, node);

	if (late > latest)
		g->lag_ns[node] = span_add(g->lag_ns[node], latest - late);
	for (uint32_t k = g->edge_first[node]; k < g->edge_first[node + 1]; k++) {
		struct edge *e = &g->edges[k];

		if (e->kind == EDGE_RANKS || e->src == e->dst)
			continue;
		late = edge_time(r, e);
		if (late > latest)
			e->lag_ns = span_add(e->lag_ns, latest - late);
	}
}

void replay_fit(struct graph *g, struct replay *r)
{
	r->scenario = (struct scenario){ 0 };
	for (uint32_t i = 0; i < g->node_count; i++) {
		fit_node(r, g, g->order[i]);
		run_node(r, g->order[i]);
	}
	for (uint32_t i = 0; i < g->step_count; i++) {
		struct graph_step *step = &g->steps[i];

		measure_step(r, i);
		if (!step->used)
			continue;
		step->rest_ns = MAX(step->measured_ns - r->step_ns[i], 0);
		measure_step(r, i);
	}
	find_median(r);
}

ow_status scenario_make(const struct graph *g, struct arena *arena, struct scenario *out,
			struct ow_error *err)
{
	size_t nodes = (size_t)g->node_count + 1;

	*out = (struct scenario){ .weight_ns = RAW_ARRAY(arena, int64_t, nodes),
				  .drop = RAW_ARRAY(arena, uint8_t, nodes) };
	if (!out->weight_ns || !out->drop)
		return error_no_memory(err);
	scenario_reset(g, out);
	return OW_OK;
}

void scenario_reset(const struct graph *g, struct scenario *s)
{
	memcpy(s->weight_ns, g->weight_ns, g->node_count * sizeof(*s->weight_ns));
	memset(s->drop, 0, g->node_count);
	s->no_inferred = false;
}

struct tracing {
	const struct replay *r;
	struct arena *arena;
	struct critical_path *path;
	size_t cap;
	int64_t from_ns, at_ns; /* the path is complete from at_ns on */
};

/* Adds the piece [begin, at) as far as it lies in the step. */
static bool trace_back(struct tracing *t, int64_t begin, uint32_t node, enum node_kind kind)
{
	struct critical_path *p = t->path;
	int64_t dur = span_length(MAX(begin, t->from_ns), t->at_ns);

	t->at_ns = MIN(t->at_ns, MAX(begin, t->from_ns));
	if (!dur)
		return true;
	if (kind == NODE_UNEXPLAINED)
		p->unexplained_ns += dur;
	if (!t->arena) /* only the sums are wanted */
		return true;
	p->items = arena_grow(t->arena, p->items, p->count, &t->cap, sizeof(*p->items));
	if (!p->items)
		return false;
	p->items[p->count++] = (struct path_piece){ node, kind, dur };
	return true;
}

/* Finds what decided when a node began: the node with which the path continues, and whether at its begin or its end.
 * UINT32_MAX: nothing. */
static uint32_t find_cause(const struct replay *r, uint32_t node, int64_t ready, bool *from_begin,
			   enum node_kind *lag_kind, uint32_t *lag_node, int64_t *clock)
{
	const struct graph *g = r->g;

	*clock = 0;
	*lag_kind = NODE_LAG;
	*lag_node = node;
	for (uint32_t k = g->edge_first[node]; k < g->edge_first[node + 1]; k++) {
		const struct edge *e = &g->edges[k];

		if (!edge_counts(&r->scenario, e) || edge_time(r, e) != ready)
			continue;
		*from_begin = e->from_begin;
		/* the path continues on another rank, which has its own clock */
		if (e->kind == EDGE_RANKS)
			*clock = e->lag_ns;
		if (e->from_begin || !(g->flags[node] & NODE_DEVICE)) {
			/* the time lies in the call that launches the work, or in the pause that another thread
			 * fills */
			*lag_kind = (enum node_kind)g->kind[e->src];
			*lag_node = e->src;
		}
		if (e->kind == EDGE_WAIT || e->kind == EDGE_LOADER) {
			bool copy = g->flags[e->src] & NODE_BLOCKS && g->launch[e->src];

			/* the time lies in the rest of the copy's call */
			*lag_node = copy ? g->launch[e->src] - 1 : node;
			*lag_kind = (enum node_kind)g->kind[*lag_node];
		}
		return e->src;
	}
	if (chain_time(r, node) != ready)
		return UINT32_MAX;
	*from_begin = g->flags[node] & NODE_AFTER_BEGIN;
	return node - 1;
}

static bool trace_node(struct tracing *t, uint32_t *node, bool *from_begin)
{
	const struct replay *r = t->r;
	const struct graph *g = r->g;
	uint32_t at = *node, cause, lag_node;
	int64_t begin = r->begin_ns[at], ready, clock;
	enum node_kind lag_kind;

	if (!*from_begin && !trace_back(t, begin, at, (enum node_kind)g->kind[at]))
		return false;
	ready = node_ready(r, at);
	if (ready == INT64_MIN) {
		*node = UINT32_MAX;
		return true;
	}
	if (!trace_back(t, ready, at, NODE_UNEXPLAINED))
		return false;
	*from_begin = false;
	cause = find_cause(r, at, ready, from_begin, &lag_kind, &lag_node, &clock);
	t->at_ns = span_add(t->at_ns, -clock);
	t->from_ns = span_add(t->from_ns, -clock);
	if (cause != UINT32_MAX &&
	    !trace_back(t, *from_begin ? r->begin_ns[cause] : r->end_ns[cause], lag_node, lag_kind))
		return false;
	*node = cause;
	return true;
}

static void reverse(struct critical_path *p)
{
	for (uint32_t i = 0; i < p->count / 2; i++) {
		struct path_piece piece = p->items[i];

		p->items[i] = p->items[p->count - 1 - i];
		p->items[p->count - 1 - i] = piece;
	}
}

ow_status path_find(const struct replay *r, uint32_t step, struct arena *arena,
		    struct critical_path *out, struct ow_error *err)
{
	const struct graph *g = r->g;
	const struct graph_step *s = &g->steps[step];
	struct tracing t = { .r = r,
			     .arena = arena,
			     .path = out,
			     .from_ns = r->step_begin_ns[step],
			     .at_ns = r->step_end_ns[step] };
	uint32_t node = UINT32_MAX, left = g->node_count;
	bool from_begin = false;

	*out = (struct critical_path){ .step_ns = r->step_ns[step] };
	for (uint32_t k = 0; k < s->end_count; k++) {
		uint32_t end = g->ends[s->end_first + k];

		if (r->end_ns[end] == t.at_ns - s->rest_ns)
			node = end;
	}
	if (!trace_back(&t, t.at_ns - s->rest_ns, node == UINT32_MAX ? 0 : node, NODE_UNEXPLAINED))
		return error_no_memory(err);
	while (node != UINT32_MAX && t.at_ns > t.from_ns && left--)
		if (!trace_node(&t, &node, &from_begin))
			return error_no_memory(err);
	/* the recording begins here: earlier causes are unknown */
	if (!trace_back(&t, t.from_ns, node == UINT32_MAX ? 0 : node, NODE_UNEXPLAINED))
		return error_no_memory(err);
	reverse(out);
	return OW_OK;
}

uint32_t median_step(const struct graph *g)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < g->step_count; i++) {
		int64_t far = llabs(g->steps[i].measured_ns - g->step_ns);

		if (g->steps[i].used && g->steps[i].steady &&
		    (best == UINT32_MAX || far < llabs(g->steps[best].measured_ns - g->step_ns)))
			best = i;
	}
	return best;
}

ow_status unexplained_share(const struct replay *base, double *out, struct ow_error *err)
{
	int64_t unexplained = 0, all = 0;

	for (uint32_t i = 0; i < base->g->step_count; i++) {
		struct critical_path path;

		if (!base->g->steps[i].used || !base->g->steps[i].steady)
			continue;
		OW_TRY(path_find(base, i, NULL, &path, err));
		unexplained = span_add(unexplained, path.unexplained_ns);
		all = span_add(all, path.step_ns);
	}
	*out = all > 0 ? (double)unexplained / (double)all : 0;
	return OW_OK;
}

#define LOOK_AHEAD 12 /* how many nodes ahead a counterpart is searched */

struct range {
	uint32_t first, end;
};

/* One number for the kind and op of each node: nodes of two steps with the same number are counterparts. */
static uint64_t *make_keys(const struct graph *g, struct arena *arena)
{
	uint64_t *keys = ARENA_ARRAY(arena, uint64_t, (size_t)g->node_count + 1);

	for (uint32_t i = 0; keys && i < g->node_count; i++)
		keys[i] = (uint64_t)node_op(g, i).v << 8 | g->kind[i];
	return keys;
}

/* Finds the nearest pair of counterparts at or after (i, k) whose neighbours are counterparts as well. */
static bool find_pair(const uint64_t *keys, struct range to, struct range from, uint32_t *i,
		      uint32_t *k)
{
	for (uint32_t sum = 0; sum <= LOOK_AHEAD; sum++)
		for (uint32_t a = 0; a <= sum; a++) {
			uint32_t x = *i + a, y = *k + sum - a;

			if (x >= to.end || y >= from.end || keys[x] != keys[y])
				continue;
			if (sum && x + 1 < to.end && y + 1 < from.end && keys[x + 1] != keys[y + 1])
				continue;
			*i = x;
			*k = y;
			return true;
		}
	return false;
}

/* Copies to the nodes of `to` the durations of their counterparts in `from`; returns how many have one, and in partner
 * 1 + each counterpart. Time of nodes that only `from` has is added to the node before, and nodes that only `to` has take
 * no time, so that the thread's total time is that of `from`.
 */
static uint32_t borrow_durations(const struct graph *g, const uint64_t *keys, struct range to,
				 struct range from, int64_t *weight, uint32_t *partner)
{
	uint32_t i = to.first, k = from.first, last = UINT32_MAX, matched = 0;

	while (i < to.end && k < from.end) {
		uint32_t x = i, y = k;

		if (!find_pair(keys, to, from, &x,
			       &y)) { /* the two chains differ too much here: keep the durations */
			i++;
			k++;
			continue;
		}
		for (; i < x; i++)
			weight[i] = 0;
		for (; k < y; k++)
			if (last != UINT32_MAX)
				weight[last] += g->weight_ns[k];
		weight[x] = g->weight_ns[y];
		partner[x] = y + 1;
		last = x;
		matched++;
		i++;
		k++;
	}
	return matched;
}

/* Finds the nodes of each step in a lane: they are contiguous, except for work out of order. */
static void find_ranges(const struct graph *g, const struct lane *lane, struct range *ranges)
{
	for (uint32_t s = 0; s < g->step_count; s++)
		ranges[s] = (struct range){ 0, 0 };
	for (uint32_t i = lane->first; i < lane->first + lane->count; i++) {
		struct range *range;

		if (!g->step[i])
			continue;
		range = &ranges[g->step[i] - 1];
		if (!range->end)
			range->first = i;
		range->end = i + 1;
	}
}

static bool has_next(const struct graph *g, uint32_t s)
{
	return s + 1 < g->step_count && g->steps[s].used && g->steps[s + 1].used &&
	       g->steps[s].steady && g->steps[s + 1].steady &&
	       g->steps[s].source.v == g->steps[s + 1].source.v;
}

static bool has_pairs(const struct graph *g)
{
	for (uint32_t s = 0; s < g->step_count; s++)
		if (has_next(g, s))
			return true;
	return false;
}

static int by_error(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

#define PARTS 1000000000 /* of a step, in which distances are counted */

/* How far device work begins from where it did, with a counterpart in the next step; `alike` are the steps that count. */
static double start_error(const struct replay *r, const uint32_t *partner, const uint8_t *alike,
			  int64_t *room)
{
	const struct graph *g = r->g;
	uint32_t count = 0;

	for (uint32_t i = 0; i < g->node_count; i++) {
		uint32_t s = g->step[i] - 1;
		const struct graph_step *next;
		int64_t begin, predicted;

		if (!g->step[i] || !partner[i] || !alike[s] || !(g->flags[i] & NODE_DEVICE))
			continue;
		next = &g->steps[s + 1];
		begin = g->phases.windows[next->window].start_ns;
		predicted = r->begin_ns[i] - r->step_begin_ns[s];
		room[count++] = (int64_t)(fabs((double)(predicted -
							(g->start_ns[partner[i] - 1] - begin))) /
					  (double)next->measured_ns * PARTS);
	}
	return count ? (double)median_of_many(room, count) / PARTS : -1;
}

/* The durations of the next step for all steps that have one; returns how many nodes of each step have a counterpart, of how many. */
static void borrow_all(const struct graph *g, const uint64_t *keys, struct range *ranges,
		       int64_t *weight, uint32_t *partner, uint32_t *matched, uint32_t *nodes)
{
	for (uint32_t l = 0; l < g->lane_count; l++) {
		find_ranges(g, &g->lanes[l], ranges);
		for (uint32_t s = 0; s < g->step_count; s++)
			if (has_next(g, s)) {
				nodes[s] += ranges[s].end - ranges[s].first;
				matched[s] += borrow_durations(g, keys, ranges[s], ranges[s + 1],
							       weight, partner);
			}
	}
}

ow_status replay_check(const struct graph *g, struct scenario *scenario, struct replay *r,
		       struct arena *arena, struct replay_accuracy *out, struct ow_error *err)
{
	size_t steps = (size_t)g->step_count + 1, nodes = (size_t)g->node_count + 1;
	struct range *ranges = ARENA_ARRAY(arena, struct range, steps);
	uint32_t *in_step = ARENA_ARRAY(arena, uint32_t, steps);
	uint32_t *matched = ARENA_ARRAY(arena, uint32_t, steps), *partner;
	uint8_t *alike = ARENA_ARRAY(arena, uint8_t, steps);
	double *errors = ARENA_ARRAY(arena, double, steps);
	uint32_t count = 0;
	int64_t *room;
	uint64_t *keys;

	*out = (struct replay_accuracy){ -1, -1 };
	if (!has_pairs(g))
		return OW_OK;
	keys = make_keys(g, arena);
	partner = ARENA_ARRAY(arena, uint32_t, nodes);
	room = RAW_ARRAY(arena, int64_t, nodes);
	if (!ranges || !in_step || !matched || !alike || !errors || !keys || !partner || !room)
		return error_no_memory(err);
	scenario_reset(g, scenario);
	borrow_all(g, keys, ranges, scenario->weight_ns, partner, matched, in_step);
	replay_again(r, scenario);
	for (uint32_t s = 0; s < g->step_count; s++) {
		alike[s] = has_next(g, s) && g->steps[s + 1].measured_ns > 0 &&
			   matched[s] >= in_step[s] - in_step[s] / 5;
		if (alike[s])
			errors[count++] =
				fabs((double)(r->step_ns[s] - g->steps[s + 1].measured_ns)) /
				(double)g->steps[s + 1].measured_ns;
	}
	if (!count)
		return OW_OK;
	qsort(errors, count, sizeof(*errors), by_error);
	out->step = errors[count / 2];
	out->start = start_error(r, partner, alike, room);
	return OW_OK;
}
