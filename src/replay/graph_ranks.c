/*
 * graph_ranks.c: adds edges for collectives that several ranks take part in: none ends before the last rank has
 * arrived. Part of graph_make, for recordings of several ranks of one job. Each collective is two nodes on its stream:
 * the arrival of the rank, then the transfer of data. A node without duration between them waits for the arrivals of
 * all ranks. All ranks leave a collective at the same time. So the shortest of its durations is the transfer, the rest
 * of the others is a wait, and the difference of the ends is the difference of the clocks, which therefore need not
 * agree. Collectives are matched by step, order and name; steps in which the ranks differ are not changed.
 */
#include "replay/graph.h"

struct taking_part {
	uint32_t step, source; /* rows of the model */
	uint32_t node;	       /* node of the arrival; the next node is the transfer */
	int64_t start_ns;
};

static int by_place(const void *x, const void *y)
{
	const struct taking_part *a = x, *b = y;

	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	if (a->source != b->source)
		return a->source < b->source ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a->node > b->node) - (a->node < b->node);
}

bool build_has_ranks(const struct build *b)
{
	const struct model *m = b->g->m;
	uint32_t first = 0;

	for (uint32_t i = 1; i < m->source.count; i++) {
		if (!b->parts[i].end || m->source.rank[i] < 0)
			continue;
		if (first && m->source.run[i] == m->source.run[first] &&
		    m->source.rank[i] != m->source.rank[first])
			return true;
		first = first ? first : i;
	}
	return false;
}

static ow_status list_parts(struct build *b, struct taking_part **out, uint32_t *count)
{
	const struct graph *g = b->g;

	*count = 0;
	for (uint32_t i = 0; i < g->node_count; i++)
		*count += (g->flags[i] & NODE_JOINS) != 0;
	*out = ARENA_ARRAY(&b->scratch, struct taking_part, (size_t)*count + 1);
	if (!*out)
		return error_no_memory(b->err);
	*count = 0;
	for (uint32_t l = 0; l < g->lane_count; l++)
		for (uint32_t i = g->lanes[l].first; i < g->lanes[l].first + g->lanes[l].count; i++)
			if (g->flags[i] & NODE_JOINS && g->step[i])
				(*out)[(*count)++] = (struct taking_part){
					.step = g->steps[g->step[i] - 1].step.v,
					.source = g->lanes[l].source.v,
					.node = i - 1,
					.start_ns = g->start_ns[i - 1],
				};
	qsort(*out, *count, sizeof(**out), by_place);
	return OW_OK;
}

/* For one step, the number of ranks with collectives and the number of collectives of each; 0 ranks when these
 * numbers differ. */
static void compare_ranks(const struct build *b, const struct taking_part *parts, uint32_t count,
			  uint32_t *ranks, uint32_t *each)
{
	const struct graph *g = b->g;
	const struct model *m = g->m;

	*each = 0;
	*ranks = 0;
	while (*each < count && parts[*each].source == parts[0].source)
		++*each;
	if (count % *each || count == *each)
		return;
	for (uint32_t i = 0; i < count; i++) {
		const struct taking_part *first = &parts[i % *each];

		if (parts[i].source != parts[i - i % *each].source ||
		    node_op(g, parts[i].node).v != node_op(g, first->node).v ||
		    m->source.run[parts[i].source] != m->source.run[first->source])
			return;
	}
	*ranks = count / *each;
}

/* Joins the k-th collective of the ranks of a step. Times are on the first rank's clock. */
static ow_status join_collective(struct build *b, const struct taking_part *parts, uint32_t ranks,
				 uint32_t each, uint32_t hub)
{
	struct graph *g = b->g;
	int64_t least = INT64_MAX, end = node_end(g, parts[0].node + 1);

	for (uint32_t r = 0; r < ranks; r++)
		least = MIN(least, g->weight_ns[parts[r * each].node + 1]);
	g->start_ns[hub] = end - least;
	for (uint32_t r = 0; r < ranks; r++) {
		uint32_t arrival = parts[r * each].node, transfer = arrival + 1;
		int64_t own_end = node_end(g, transfer), clock = own_end - end;

		g->weight_ns[transfer] = least;
		g->start_ns[transfer] = own_end - least;
		OW_TRY(build_edge(b, (struct edge){ .src = arrival,
						    .dst = hub,
						    .lag_ns = -clock,
						    .kind = EDGE_RANKS }));
		OW_TRY(build_edge(b, (struct edge){ .src = hub,
						    .dst = transfer,
						    .lag_ns = clock,
						    .kind = EDGE_RANKS }));
	}
	return OW_OK;
}

/* The time of a collective on the first rank's clock, by which the joining nodes are sorted. */
struct meeting {
	const struct taking_part *parts;
	uint32_t ranks, each;
	int64_t at_ns;
};

static int by_meeting(const void *x, const void *y)
{
	const struct meeting *a = x, *b = y;

	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	return (a->parts > b->parts) - (a->parts < b->parts);
}

static ow_status list_meetings(struct build *b, struct meeting **out, uint32_t *count)
{
	struct taking_part *parts;
	uint32_t all;

	OW_TRY(list_parts(b, &parts, &all));
	*out = ARENA_ARRAY(&b->scratch, struct meeting, (size_t)all + 1);
	*count = 0;
	if (!*out)
		return error_no_memory(b->err);
	for (uint32_t first = 0, end; first < all; first = end) {
		uint32_t ranks, each;

		for (end = first + 1; end < all && parts[end].step == parts[first].step; end++)
			;
		compare_ranks(b, parts + first, end - first, &ranks, &each);
		for (uint32_t k = 0; ranks > 1 && k < each; k++)
			(*out)[(*count)++] =
				(struct meeting){ parts + first + k, ranks, each,
						  node_end(b->g, parts[first + k].node + 1) };
	}
	qsort(*out, *count, sizeof(**out), by_meeting);
	return OW_OK;
}

ow_status graph_join_ranks(struct build *b)
{
	struct graph *g = b->g;
	struct meeting *meetings;
	uint32_t count, first = g->node_count;

	if (!b->has_ranks)
		return OW_OK;
	OW_TRY(list_meetings(b, &meetings, &count));
	if (!count)
		return OW_OK;
	OW_TRY(graph_add_free_nodes(b, count));
	for (uint32_t i = 0; i < count; i++)
		OW_TRY(join_collective(b, meetings[i].parts, meetings[i].ranks, meetings[i].each,
				       first + i));
	g->joined_count = count;
	return OW_OK;
}
