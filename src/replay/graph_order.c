/*
 * graph_order.c: finds the nodes that begin and end each step, and an order of all nodes in which causes come before
 * effects. Part of graph_make. The order follows each chain until a node waits for another chain, and continues there;
 * edges that close a cycle (clocks that disagree) are dropped. Both are linear in nodes and edges.
 */
#include "replay/graph.h"

/* The step of a source whose marker includes time t, or UINT32_MAX; steps of a source are sorted by time. */
static uint32_t step_at(const struct graph *g, const struct part *part, int64_t t)
{
	uint32_t low = part->first, high = part->end;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (g->steps[middle].begin_ns <= t)
			low = middle + 1;
		else
			high = middle;
	}
	return low > part->first && t < g->steps[low - 1].marker_end_ns ? low - 1 : UINT32_MAX;
}

/* Sets the step of each node: a host node belongs to the step it runs in, device work to the step that launched it. */
void graph_mark_nodes(struct build *b)
{
	struct graph *g = b->g;

	for (uint32_t l = 0; l < g->lane_count; l++) {
		const struct lane *lane = &g->lanes[l];
		const struct part *part = &b->parts[lane->source.v];
		uint32_t step = UINT32_MAX;

		for (uint32_t i = lane->first; i < lane->first + lane->count; i++) {
			uint32_t from = g->launch[i] ? g->launch[i] - 1 : i;
			int64_t t = g->event[from] && g->launch[i]
					    ? g->m->event.ts_ns[g->event[from]]
					    : g->start_ns[from];

			if (step == UINT32_MAX || t < g->steps[step].begin_ns ||
			    t >= g->steps[step].marker_end_ns)
				step = step_at(g, part, t);
			g->step[i] = step == UINT32_MAX ? 0 : step + 1;
		}
	}
}

static bool source_has_device(const struct graph *g, source_id source)
{
	for (uint32_t i = 0; i < g->lane_count; i++)
		if (g->lanes[i].source.v == source.v && g->lanes[i].device)
			return true;
	return false;
}

/* Whether other threads still do work of a marked step after the main thread has ended it: then the step ends with
 * the last thread. `last` is 1 + the last node of the main thread. */
static bool others_end_it(const struct graph *g, const struct graph_step *step, uint32_t last)
{
	return !source_has_device(g, step->source) &&
	       (!last || node_end(g, last - 1) + GRAPH_ROUNDING_NS < step->marker_end_ns);
}

/* Measures a part of a recording: it ends when the last of its work is done. */
static void measure_part(const struct graph *g, struct graph_step *step)
{
	for (uint32_t i = 0; i < step->end_count; i++)
		step->measured_ns =
			MAX(step->measured_ns,
			    span_length(step->begin_ns, node_end(g, g->ends[step->end_first + i])));
}

/* Finds the last node of each lane in each step, and those of the main thread. */
static ow_status find_ends(struct build *b)
{
	struct graph *g = b->g;
	size_t cells = (size_t)g->step_count * g->lane_count;
	uint32_t *last = ARENA_ARRAY(&b->scratch, uint32_t, cells + 1);

	g->ends = ARENA_ARRAY(&g->arena, uint32_t, cells + 1);
	if (!last || !g->ends)
		return error_no_memory(b->err);
	for (uint32_t l = 0; l < g->lane_count; l++)
		for (uint32_t i = g->lanes[l].first; i < g->lanes[l].first + g->lanes[l].count; i++)
			if (g->step[i])
				last[(size_t)(g->step[i] - 1) * g->lane_count + l] = i + 1;
	for (uint32_t s = 0; s < g->step_count; s++) {
		struct graph_step *step = &g->steps[s];
		uint32_t main = b->main_of[step->source.v];
		bool all = !step->marked;

		if (step->used && main && !all)
			all = others_end_it(g, step, last[(size_t)s * g->lane_count + main - 1]);
		step->end_first = g->end_count;
		for (uint32_t l = 0; step->used && l < g->lane_count; l++) {
			uint32_t node = last[(size_t)s * g->lane_count + l];
			bool counts = g->lanes[l].device ? g->phases.extended || !step->marked
							 : main == l + 1 || all;

			if (node && counts)
				g->ends[g->end_count++] = node - 1;
		}
		step->end_count = g->end_count - step->end_first;
		if (step->part_of_ns)
			measure_part(g, step);
	}
	return OW_OK;
}

static void find_begins(struct build *b)
{
	struct graph *g = b->g;

	for (uint32_t s = 0; s < g->step_count; s++) {
		struct graph_step *step = &g->steps[s];
		uint32_t main = b->main_of[step->source.v], at;

		step->begin_after = UINT32_MAX;
		if (!step->used || !main)
			continue;
		at = lane_at(g, &g->lanes[main - 1], step->begin_ns);
		if (at > g->lanes[main - 1].first)
			step->begin_after = at - 1;
	}
}

ow_status graph_add_steps(struct build *b)
{
	OW_TRY(find_ends(b));
	find_begins(b);
	return OW_OK;
}

struct walk {
	struct graph *g;
	uint32_t *next;	   /* for each lane: its first node that is not yet in the order */
	uint32_t *lane_of; /* for each node: its lane */
	uint32_t *stack;   /* lanes; each waits for the one above it */
	uint8_t *open;	   /* for each lane: whether it is in the stack */
	uint32_t depth, placed;
};

/* Drops an edge that closes a cycle, by making it start at its own destination's begin, which has no effect. */
static void drop_edge(struct edge *e)
{
	e->src = e->dst;
}

/* The lane that the next node of a lane waits for, or UINT32_MAX. */
static uint32_t waits_for(struct walk *w, uint32_t node)
{
	struct graph *g = w->g;

	for (uint32_t k = g->edge_first[node]; k < g->edge_first[node + 1]; k++) {
		struct edge *e = &g->edges[k];
		uint32_t lane = w->lane_of[e->src];

		if (e->src == e->dst || e->src < w->next[lane])
			continue;
		if (!w->open[lane])
			return lane;
		drop_edge(e);
	}
	return UINT32_MAX;
}

/* Whether a node still waits for a lane. */
static bool waits_for_lane(const struct walk *w, uint32_t node, uint32_t lane)
{
	const struct graph *g = w->g;

	for (uint32_t k = g->edge_first[node]; k < g->edge_first[node + 1]; k++) {
		const struct edge *e = &g->edges[k];

		if (e->src != e->dst && w->lane_of[e->src] == lane && e->src >= w->next[lane])
			return true;
	}
	return false;
}

static void place_lane(struct walk *w, uint32_t lane)
{
	struct graph *g = w->g;

	w->stack[w->depth++] = lane;
	w->open[lane] = 1;
	while (w->depth) {
		uint32_t at = w->stack[w->depth - 1], node = w->next[at], other;

		if (node == g->lanes[at].first + g->lanes[at].count) {
			w->open[at] = 0;
			w->depth--;
			continue;
		}
		other = waits_for(w, node);
		if (other != UINT32_MAX) {
			w->stack[w->depth++] = other;
			w->open[other] = 1;
			continue;
		}
		g->order[w->placed++] = node;
		w->next[at]++;
		/* return to the waiting lane as soon as the node that it waits for is in the order */
		if (w->depth > 1) {
			uint32_t waiting = w->stack[w->depth - 2];

			if (waits_for_lane(w, w->next[waiting], at))
				continue;
			w->open[at] = 0;
			w->depth--;
		}
	}
}

ow_status graph_order(struct build *b)
{
	struct graph *g = b->g;
	struct walk w = { .g = g };

	g->order = RAW_ARRAY(&g->arena, uint32_t, (size_t)g->node_count + 1);
	w.next = ARENA_ARRAY(&b->scratch, uint32_t, (size_t)g->lane_count + 1);
	w.lane_of = RAW_ARRAY(&b->scratch, uint32_t, (size_t)g->node_count + 1);
	w.stack = ARENA_ARRAY(&b->scratch, uint32_t, (size_t)g->lane_count + 1);
	w.open = ARENA_ARRAY(&b->scratch, uint8_t, (size_t)g->lane_count + 1);
	if (!g->order || !w.next || !w.lane_of || !w.stack || !w.open)
		return error_no_memory(b->err);
	for (uint32_t l = 0; l < g->lane_count; l++) {
		w.next[l] = g->lanes[l].first;
		for (uint32_t i = 0; i < g->lanes[l].count; i++)
			w.lane_of[g->lanes[l].first + i] = l;
	}
	for (uint32_t l = 0; l < g->lane_count; l++)
		place_lane(&w, l);
	return OW_OK;
}
