/*
 * where.c: where a cost is: the op with the largest sum, or the line of Python code. Called by the rules. Python functions have no op:
 * their times are summed by line. A range of the user's code only says what runs in it: where the thread's functions were recorded,
 * its time is theirs.
 */
#include "advise/advice.h"

#include "analyze/samples/samples.h"

#define DEEPEST 256

/* The Python functions of a thread, read in order of time. */
struct calls {
	const struct model *m;
	uint32_t track, next; /* the next event of the track */
	uint32_t open[DEEPEST], depth;
};

struct places {
	struct advice *a;
	struct calls calls;
	int64_t *ops, *lines; /* one entry for each op; one for each frame */
	uint32_t *node_of;    /* per op: one of its nodes, + 1 */
};

/* The first event of a track; events are sorted by track and time. */
static uint32_t first_of_track(const struct model *m, uint32_t track)
{
	uint32_t low = 1, high = m->event.count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (m->event.track[middle].v < track)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Opens and closes functions up to t. Nodes of a thread come in order of time; another thread begins anew. */
static void advance(struct calls *f, uint32_t track, int64_t t)
{
	const struct event_table *e = &f->m->event;

	if (f->track != track) {
		f->track = track;
		f->next = first_of_track(f->m, track);
		f->depth = 0;
	}
	for (; f->next < e->count && e->track[f->next].v == track && e->ts_ns[f->next] <= t;
	     f->next++) {
		while (f->depth && event_end(f->m, f->open[f->depth - 1]) <= e->ts_ns[f->next])
			f->depth--;
		if (event_is_slice(f->m, f->next) && f->depth < DEEPEST)
			f->open[f->depth++] = f->next;
	}
	while (f->depth && event_end(f->m, f->open[f->depth - 1]) <= t)
		f->depth--;
}

/* The own line of an event's stack, as a frame, or 0. */
static uint32_t line_of(const struct session *s, uint32_t event)
{
	uint32_t stack = event ? COLUMN_GET(s->g.m->event.stack, event).v : 0;

	return s->own_line && stack ? s->own_line[stack] : 0;
}

/* Adds the time of a range to the lines of the functions that run in it; returns the remaining time. */
static int64_t add_functions(struct places *p, const struct lane *lane, int64_t from, int64_t to)
{
	struct calls *f = &p->calls;
	int64_t left = 0;

	while (from < to) {
		int64_t until = to;
		uint32_t frame;

		advance(f, lane->functions.v, from);
		if (f->next < f->m->event.count && f->m->event.track[f->next].v == f->track)
			until = MIN(until, f->m->event.ts_ns[f->next]);
		if (f->depth)
			until = MIN(until, event_end(f->m, f->open[f->depth - 1]));
		frame = f->depth ? line_of(&p->a->s, f->open[f->depth - 1]) : 0;
		if (frame)
			p->lines[frame] = span_add(p->lines[frame], span_length(from, until));
		else
			left = span_add(left, span_length(from, until));
		from = until;
	}
	return left;
}

static bool is_range(const struct graph *g, uint32_t node)
{
	return g->kind[node] == NODE_HOST && !node_is_operator(g, node) &&
	       g->m->op.flags[node_op(g, node).v] & OP_WRAPS;
}

static void add_place(struct places *p, uint32_t node)
{
	const struct graph *g = &p->a->s.g;
	const struct lane *lane = lane_of_node(g, node);
	uint32_t op = node_op(g, node).v, frame = op ? 0 : line_of(&p->a->s, g->event[node]);
	int64_t time_ns = g->weight_ns[node];

	if (frame) {
		p->lines[frame] = span_add(p->lines[frame], time_ns);
		return;
	}
	if (lane->functions.v && is_range(g, node))
		time_ns = add_functions(p, lane, g->start_ns[node], node_end(g, node));
	p->ops[op] = span_add(p->ops[op], time_ns);
	if (!p->node_of[op])
		p->node_of[op] = node + 1;
}

static uint32_t largest(const int64_t *sums, uint32_t count)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < count; i++)
		if (sums[i] > sums[best])
			best = i;
	return best;
}

struct str cost_where_line(struct advice *a, const struct cost *cost, struct str *line)
{
	const struct model *m = a->m;
	struct places p = { .a = a,
			    .calls = { .m = m },
			    .ops = ARENA_ARRAY(&a->scratch, int64_t, (size_t)m->op.count + 1),
			    .lines = ARENA_ARRAY(&a->scratch, int64_t, (size_t)m->frame.count + 1),
			    .node_of =
				    ARENA_ARRAY(&a->scratch, uint32_t, (size_t)m->op.count + 1) };
	uint32_t op, frame;
	char text[200];

	*line = STR("");
	if (!p.ops || !p.lines || !p.node_of)
		return (struct str){ 0 };
	for (size_t i = 0; i < cost->count; i++)
		add_place(&p, cost->nodes[i]);
	op = largest(p.ops, m->op.count);
	frame = largest(p.lines, m->frame.count);
	if (frame && p.lines[frame] > p.ops[op]) {
		own_line_name(m, frame, text, sizeof(text));
		*line = advice_text(a, "%s", text);
		return *line;
	}
	if (!p.node_of[op])
		return STR("");
	node_line(&a->s, p.node_of[op] - 1, text, sizeof(text));
	*line = advice_text(a, "%s", text);
	return advice_text(a, "%.*s%s%s", STR_ARG(node_name(&a->s, p.node_of[op] - 1)),
			   *text ? ", " : "", text);
}

struct str cost_where(struct advice *a, const struct cost *cost)
{
	struct str line;

	return cost_where_line(a, cost, &line);
}
