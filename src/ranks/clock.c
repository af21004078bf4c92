/*
 * clock.c: the clock of every worker in the time of the lowest rank (ranks.h). Workers of one file or one host share a clock. Between two clocks the
 * offset is fitted from the collectives of both (clock_fit.h); of each collective the first member is compared with all, and neighbours with each
 * other, so that the work grows with the members, not with their pairs. The offsets of all clocks are then balanced over this graph by least
 * squares. The certain bounds of an offset follow the shortest path.
 */
#include "ranks/ranks.h"

#include "base/vec.h"
#include "ranks/clock_fit.h"

#include <math.h>
#include <stdlib.h>

#define BALANCE_ROUNDS 200
#define DRIFT_UNSURE 2e-4

/* One clock: workers (of one file or host) whose times can be compared without conversion. */
struct node {
	uint32_t first; /* index of one worker that has this clock */
	bool reached;
	struct {
		double offset, drift;
	} line;
	/* offset to the reference clock at the middle of the recording: certain bounds, and the
	 * estimate with its error */
	double low, high, likely;
	const char *why;
	/* edge to the parent on the path with the smallest error: 2 × edge, + 1 if the parent is
	 * the edge's node b */
	size_t parent;
	/* sorted by time; NULL when one straight line describes the clock */
	struct clock_piece *pieces;
	size_t piece_count;
};

/* One collective that workers of two nodes (clocks) both took part in. */
struct link_pair {
	uint32_t a, b; /* indexes of the two nodes, a < b */
	uint32_t meeting, member_a, member_b;
};

struct edge {
	uint32_t a, b;
	struct clock_fit fit;
};

struct clocks {
	struct ranks_job *job;
	struct ow_error *err;
	struct arena arena;
	uint32_t *node_of; /* node (clock) of each worker */
	struct node *nodes;
	uint32_t node_count;
	/* one entry per node: the middle of its recording, in the node's own time */
	int64_t *middle;
	struct link_pair *pairs;
	size_t pair_count, pair_cap;
	struct edge *edges;
	size_t edge_count, edge_cap;
	struct clock_pair *batch;
	size_t batch_cap;
};

static bool shares_clock(const struct worker *a, const struct worker *b)
{
	if (a->task.len || b->task.len) /* one file has the tasks of many hosts */
		return false;
	return a->file == b->file || (a->host.len && str_eq(a->host, b->host));
}

static ow_status make_nodes(struct clocks *c)
{
	struct ranks_job *job = c->job;

	c->node_of = ARENA_ARRAY(&c->arena, uint32_t, job->worker_count);
	c->nodes = ARENA_ARRAY(&c->arena, struct node, job->worker_count);
	c->middle = ARENA_ARRAY(&c->arena, int64_t, job->worker_count);
	if (!c->node_of || !c->nodes || !c->middle)
		return error_no_memory(c->err);
	for (uint32_t i = 0; i < job->worker_count; i++) {
		const struct worker *w = &job->workers[i];
		uint32_t n = 0;

		if (w->left_out)
			continue;
		while (n < c->node_count && !shares_clock(&job->workers[c->nodes[n].first], w))
			n++;
		if (n == c->node_count) {
			c->nodes[c->node_count++] = (struct node){ .first = i };
			c->middle[n] = w->first_ns + span_length(w->first_ns, w->last_ns) / 2;
		}
		c->node_of[i] = n;
	}
	return OW_OK;
}

static ow_status add_pair(struct clocks *c, uint32_t meeting, uint32_t x, uint32_t y)
{
	const struct member *members = c->job->members;
	uint32_t a = c->node_of[members[x].worker], b = c->node_of[members[y].worker];

	if (a == b)
		return OW_OK;
	if (a > b)
		return add_pair(c, meeting, y, x);
	return vec_push(c->job->mem, c->pairs, c->pair_count, c->pair_cap,
			(struct link_pair){ a, b, meeting, x, y })
		       ? OW_OK
		       : error_no_memory(c->err);
}

static ow_status make_pairs(struct clocks *c)
{
	const struct ranks_job *job = c->job;

	for (uint32_t i = 0; i < job->meeting_count; i++) {
		const struct meeting *m = &job->meetings[i];

		if (!collective_is_mutual(m->kind) && !collective_is_direct(m->kind) &&
		    m->kind != COLLECTIVE_BROADCAST)
			continue;
		for (uint32_t k = 1; k < m->count; k++) {
			OW_TRY(add_pair(c, i, m->first, m->first + k));
			if (k > 1)
				OW_TRY(add_pair(c, i, m->first + k - 1, m->first + k));
		}
	}
	return OW_OK;
}

static int by_edge(const void *x, const void *y)
{
	const struct link_pair *a = x, *b = y;

	if (a->a != b->a)
		return a->a < b->a ? -1 : 1;
	if (a->b != b->b)
		return a->b < b->b ? -1 : 1;
	return (a->meeting > b->meeting) - (a->meeting < b->meeting);
}

static const struct collective *member_collective(const struct ranks_job *job, uint32_t member)
{
	const struct member *m = &job->members[member];

	return &job->workers[m->worker].collectives[m->collective];
}

/* Which of the two workers waits for the other in this collective; false when the collective
 * says nothing about their clocks. */
static bool direction_of(const struct ranks_job *job, const struct link_pair *p, uint8_t *direction)
{
	const struct collective *a = member_collective(job, p->member_a),
				*b = member_collective(job, p->member_b);
	const struct worker *wa = &job->workers[job->members[p->member_a].worker],
			    *wb = &job->workers[job->members[p->member_b].worker];

	if (collective_is_mutual(a->kind)) {
		*direction = PAIR_MUTUAL;
		return true;
	}
	if (collective_is_direct(a->kind)) {
		*direction = a->kind == COLLECTIVE_SEND ? PAIR_A_TO_B : PAIR_B_TO_A;
		return a->kind != b->kind;
	}
	if (a->peer < 0 || (a->peer != wa->rank && a->peer != wb->rank))
		/* a broadcast whose root is unknown, or is not one of these two workers */
		return false;
	*direction = a->peer == wa->rank ? PAIR_A_TO_B : PAIR_B_TO_A;
	return true;
}

static ow_status fit_edge(struct clocks *c, size_t first, size_t end)
{
	struct ranks_job *job = c->job;
	struct edge e = { .a = c->pairs[first].a, .b = c->pairs[first].b };
	int64_t resolution = 1;
	size_t count = 0;

	if (!vec_reserve(job->mem, c->batch, c->batch_cap, end - first))
		return error_no_memory(c->err);
	for (size_t i = first; i < end; i++) {
		const struct link_pair *p = &c->pairs[i];
		const struct collective *a = member_collective(job, p->member_a),
					*b = member_collective(job, p->member_b);
		struct clock_pair pair = { a->start_ns, a->end_ns, b->start_ns, b->end_ns, 0,
					   false,	0 };

		resolution = MAX(resolution,
				 job->workers[job->members[p->member_a].worker].resolution_ns);
		resolution = MAX(resolution,
				 job->workers[job->members[p->member_b].worker].resolution_ns);
		if (direction_of(job, p, &pair.direction))
			c->batch[count++] = pair;
	}
	OW_TRY(clock_fit(c->batch, count, resolution, c->middle[e.b], job->mem, &e.fit, c->err));
	return vec_push(job->mem, c->edges, c->edge_count, c->edge_cap, e)
		       ? OW_OK
		       : error_no_memory(c->err);
}

static ow_status make_edges(struct clocks *c)
{
	if (c->pair_count)
		qsort(c->pairs, c->pair_count, sizeof(*c->pairs), by_edge);
	for (size_t first = 0, end; first < c->pair_count; first = end) {
		for (end = first + 1; end < c->pair_count && c->pairs[end].a == c->pairs[first].a &&
				      c->pairs[end].b == c->pairs[first].b;
		     end++)
			;
		OW_TRY(fit_edge(c, first, end));
	}
	return OW_OK;
}

/* The part of a fit (a clock may have been set in between) that holds at the middle of node b's
 * recording. */
static const struct clock_span *span_of(const struct clocks *c, const struct edge *e)
{
	const struct clock_span *s = e->fit.spans;

	for (unsigned i = 1; i < e->fit.span_count && e->fit.spans[i].from <= c->middle[e->b]; i++)
		s = &e->fit.spans[i];
	return s;
}

/* The offset, with its bounds, that is added when the path to the reference takes an edge. */
struct addition {
	double offset, low, high, drift;
};

/* Whether an edge holds one line between the middles of both recordings: if a clock was set between them, what is known at one middle says nothing
 * about the other. */
static bool is_usable(const struct clocks *c, const struct edge *e, bool forward)
{
	const struct clock_span *s;
	double other;

	if (!e->fit.span_count)
		return false;
	if (e->fit.span_count == 1 || (forward && e->a == 0))
		return true;
	s = span_of(c, e);
	other = (double)c->middle[e->a] - s->offset;
	for (unsigned i = 1; i < e->fit.span_count; i++) {
		double from = (double)e->fit.spans[i].from,
		       until = (double)e->fit.spans[i - 1].until, here = (double)c->middle[e->b];

		if ((from <= other) != (from <= here) || (until < other && other < from) ||
		    (until < here && here < from))
			return false;
	}
	return true;
}

/* Offsets hold at the middle of each recording. If the two middles are different moments, the
 * drift between them is added to the offset, and the possible drift widens the certain bounds. */
static struct addition edge_addition(const struct clocks *c, const struct edge *e, bool forward)
{
	const struct clock_span *s = span_of(c, e);
	const struct node *from = &c->nodes[forward ? e->a : e->b];
	double away, moved, sign = forward ? 1 : -1;

	away = (double)(c->middle[e->b] - c->middle[e->a]) + s->offset;
	moved = from == c->nodes ? 0 : from->line.drift * sign * away;
	if (!forward)
		/* the fit gives the offset at b's middle; the caller wants it at a's middle */
		moved -= s->drift * away;
	away = from == c->nodes && forward ? 0 : fabs(away) * DRIFT_UNSURE;
	return (struct addition){ sign * s->offset + moved,
				  (forward ? s->low : -s->high) + moved - away,
				  (forward ? s->high : -s->low) + moved + away, sign * s->drift };
}

/* Relaxes all edges (as in Bellman-Ford) until nothing changes: finds the tightest certain
 * bounds of every clock and the path to the reference with the smallest error. */
static void reach(struct clocks *c)
{
	bool changed = true;

	c->nodes[0].reached = true;
	for (uint32_t round = 0; changed && round <= c->node_count; round++) {
		changed = false;
		for (size_t i = 0; i < 2 * c->edge_count; i++) {
			const struct edge *e = &c->edges[i / 2];
			bool forward = !(i % 2);
			struct node *from = &c->nodes[forward ? e->a : e->b],
				    *to = &c->nodes[forward ? e->b : e->a];
			struct addition add;
			double likely;

			if (!e->fit.span_count) {
				if (!to->why)
					to->why = e->fit.why;
				continue;
			}
			if (!from->reached || to == &c->nodes[0] || !is_usable(c, e, forward))
				continue;
			add = edge_addition(c, e, forward);
			likely = from->likely + span_of(c, e)->likely;
			if (!to->reached || likely < to->likely - 0.5) {
				if (!to->reached) {
					to->low = from->low + add.low;
					to->high = from->high + add.high;
				}
				to->line.offset = from->line.offset + add.offset;
				to->line.drift = from->line.drift + add.drift;
				to->likely = likely;
				to->parent = i;
				to->reached = changed = true;
			}
			if (from->low + add.low > to->low + 0.5) {
				to->low = from->low + add.low;
				changed = true;
			}
			if (from->high + add.high < to->high - 0.5) {
				to->high = from->high + add.high;
				changed = true;
			}
		}
	}
}

/* Drops certain bounds whose lower limit is above the upper limit: the pairs of several ranks
 * cannot all be right, so nothing is certain about this clock. */
static void drop_contradictions(struct clocks *c)
{
	for (uint32_t n = 1; n < c->node_count; n++)
		if (c->nodes[n].reached && c->nodes[n].low > c->nodes[n].high + 1) {
			c->nodes[n].reached = false;
			c->nodes[n].why =
				"its collectives with several ranks contradict each other";
		}
}

/* Distributes contradictions between edges by least squares; each edge is weighted by how
 * certain its fit is. */
static void balance(struct clocks *c, double *sum, double *weight, double *slope)
{
	for (unsigned round = 0; round < BALANCE_ROUNDS && c->edge_count > c->node_count - 1;
	     round++) {
		double moved = 0;

		memset(sum, 0, c->node_count * sizeof(*sum));
		memset(weight, 0, c->node_count * sizeof(*weight));
		memset(slope, 0, c->node_count * sizeof(*slope));
		for (size_t i = 0; i < 2 * c->edge_count; i++) {
			const struct edge *e = &c->edges[i / 2];
			bool forward = !(i % 2);
			uint32_t from = forward ? e->a : e->b, to = forward ? e->b : e->a;
			struct addition add;
			double w;

			if (!c->nodes[from].reached || !c->nodes[to].reached ||
			    !is_usable(c, e, forward))
				continue;
			add = edge_addition(c, e, forward);
			w = 1 / (span_of(c, e)->likely * span_of(c, e)->likely + 1);
			sum[to] += w * (c->nodes[from].line.offset + add.offset);
			slope[to] += w * (c->nodes[from].line.drift + add.drift);
			weight[to] += w;
		}
		for (uint32_t n = 1; n < c->node_count; n++) {
			double offset, before = c->nodes[n].line.offset;

			if (!(weight[n] > 0))
				continue;
			offset = (before + sum[n] / weight[n]) / 2;
			offset = fmin(fmax(offset, c->nodes[n].low), c->nodes[n].high);
			c->nodes[n].line.offset = offset;
			c->nodes[n].line.drift =
				(c->nodes[n].line.drift + slope[n] / weight[n]) / 2;
			moved = fmax(moved, fabs(offset - before));
		}
		if (moved < 0.5)
			break;
	}
}

/* Converts a part of an edge's fit to a piece of node b's clock, or, inverted, to a piece of
 * node a's clock. */
static struct clock_piece edge_piece(const struct edge *e, unsigned span, bool to_b)
{
	const struct clock_span *s = &e->fit.spans[span];
	bool first = s->from == INT64_MIN;
	double from = first ? 0 : (double)s->from;
	double moved = s->offset + s->drift * (from - (double)s->origin);

	if (to_b)
		return (struct clock_piece){ s->from, s->offset, s->drift, s->origin };
	return (struct clock_piece){ first ? INT64_MIN : span_add(s->from, llround(moved)),
				     -s->offset, -s->drift,
				     span_add(s->origin, llround(s->offset)) };
}

/* Combines two conversions: `one` leads from a clock to its parent's, `next` from the parent's
 * to the reference. The result holds from the later of the two beginnings on. */
static struct clock_piece join_pieces(const struct clock_piece *one, const struct clock_piece *next,
				      int64_t origin)
{
	double there = one->offset_ns + one->drift * ((double)origin - (double)one->origin_ns);
	double at = (double)origin + there - (double)next->origin_ns;
	int64_t from = INT64_MIN;

	if (next->from_ns != INT64_MIN)
		from = span_add(next->from_ns, -llround(there));
	return (struct clock_piece){ .from_ns = MAX(one->from_ns, from),
				     .offset_ns = there + next->offset_ns + next->drift * at,
				     .drift = one->drift + next->drift,
				     .origin_ns = origin };
}

/* How far balancing moved a clock. It is measured from the piece whose offset is nearest to the
 * present one, because around the moment at which a clock was set two pieces may hold. */
static double moved_by(const struct clock_piece *pieces, size_t count, double offset)
{
	double moved = HUGE_VAL;

	for (size_t i = 0; i < count; i++)
		if (fabs(offset - pieces[i].offset_ns) < fabs(moved))
			moved = offset - pieces[i].offset_ns;
	return moved;
}

/*
 * Makes the pieces of a clock that was set during the recording, or whose parent's clock was: the
 * pieces of the edge to the parent, each split where the parent's pieces change. Then all pieces
 * are moved by as much as balancing moved the clock.
 */
static ow_status make_pieces(struct clocks *c, uint32_t n)
{
	struct node *node = &c->nodes[n];
	const struct edge *e = &c->edges[node->parent / 2];
	bool to_b = !(node->parent % 2);
	const struct node *parent = &c->nodes[to_b ? e->a : e->b];
	const struct clock_piece whole = { INT64_MIN, parent->line.offset, parent->line.drift,
					   c->middle[to_b ? e->a : e->b] };
	const struct clock_piece *next = parent->pieces ? parent->pieces : &whole;
	size_t next_count = parent->pieces ? parent->piece_count : 1;
	struct clock_piece *pieces =
		ARENA_ARRAY(&c->arena, struct clock_piece, e->fit.span_count * next_count);
	double moved;

	if (!pieces)
		return error_no_memory(c->err);
	for (unsigned i = 0; i < e->fit.span_count; i++) {
		struct clock_piece one = edge_piece(e, i, to_b);
		int64_t end =
			i + 1 < e->fit.span_count ? edge_piece(e, i + 1, to_b).from_ns : INT64_MAX;

		for (size_t k = 0; k < next_count; k++) {
			struct clock_piece joined = join_pieces(&one, &next[k], c->middle[n]);
			int64_t until =
				k + 1 < next_count
					? join_pieces(&one, &next[k + 1], c->middle[n]).from_ns
					: INT64_MAX;

			if (joined.from_ns < end && until > one.from_ns)
				pieces[node->piece_count++] = joined;
		}
	}
	moved = moved_by(pieces, node->piece_count, node->line.offset);
	for (size_t i = 0; i < node->piece_count; i++)
		pieces[i].offset_ns += moved;
	node->pieces = node->piece_count > 1 ? pieces : NULL;
	return OW_OK;
}

/* Makes the pieces of all clocks; a parent's pieces are made before those of its children. */
static ow_status make_all_pieces(struct clocks *c)
{
	bool *done = ARENA_ARRAY(&c->arena, bool, c->node_count + 1);
	bool changed = true;

	if (!done)
		return error_no_memory(c->err);
	done[0] = true;
	while (changed) {
		changed = false;
		for (uint32_t n = 1; n < c->node_count; n++) {
			const struct edge *e = &c->edges[c->nodes[n].parent / 2];

			if (done[n] || !c->nodes[n].reached ||
			    !done[c->nodes[n].parent % 2 ? e->b : e->a])
				continue;
			OW_TRY(make_pieces(c, n));
			done[n] = changed = true;
		}
	}
	return OW_OK;
}

static ow_status add_pieces(struct clocks *c, struct worker *w, uint32_t n)
{
	const struct node *node = &c->nodes[n];
	const struct clock_piece whole = { INT64_MIN, node->line.offset, node->line.drift,
					   c->middle[n] };

	for (size_t i = 0; i < (node->pieces ? node->piece_count : 1); i++)
		if (!vec_push(c->job->mem, w->pieces, w->piece_count, w->piece_cap,
			      node->pieces ? node->pieces[i] : whole))
			return error_no_memory(c->err);
	return OW_OK;
}

static ow_status set_workers(struct clocks *c)
{
	struct ranks_job *job = c->job;

	for (uint32_t i = 0; i < job->worker_count; i++) {
		struct worker *w = &job->workers[i];
		const struct node *node = &c->nodes[c->node_of[i]];

		if (w->left_out || !node->reached)
			continue;
		w->has_clock = true;
		if (!c->node_of[i])
			continue;
		OW_TRY(add_pieces(c, w, c->node_of[i]));
		w->offset_ns = llround(node->line.offset);
		w->drift_ppm = node->line.drift * 1e6;
		w->proven_ns = llround(
			ceil(fmax(node->high - node->line.offset, node->line.offset - node->low)));
		w->likely_ns = MIN(llround(ceil(node->likely)), w->proven_ns);
	}
	for (size_t i = 0; i < c->edge_count; i++)
		for (uint32_t k = 0; k < job->worker_count; k++)
			if (!job->workers[k].left_out &&
			    (c->node_of[k] == c->edges[i].b || c->node_of[k] == c->edges[i].a) &&
			    (c->edges[i].a == 0 || !job->workers[k].pairs_used)) {
				job->workers[k].pairs_used = c->edges[i].fit.used;
				job->workers[k].pairs_rejected = c->edges[i].fit.rejected;
			}
	return OW_OK;
}

/* Finds the largest set of clocks that fits connect. `set` receives the number of its set for
 * each node; `count` is the size of the largest set. */
static uint32_t largest_set(const struct clocks *c, uint32_t *set, uint32_t *count)
{
	uint32_t best = 0, most = 0;
	bool changed = true;

	for (uint32_t n = 0; n < c->node_count; n++)
		set[n] = n;
	while (changed) {
		changed = false;
		for (size_t i = 0; i < c->edge_count; i++) {
			const struct edge *e = &c->edges[i];
			uint32_t least = MIN(set[e->a], set[e->b]);

			if (!e->fit.span_count || set[e->a] == set[e->b])
				continue;
			set[e->a] = set[e->b] = least;
			changed = true;
		}
	}
	for (uint32_t n = 0; n < c->node_count; n++) {
		uint32_t members = 0;

		for (uint32_t k = 0; k < c->node_count; k++)
			members += set[k] == n;
		if (members > most) {
			most = members;
			best = n;
		}
	}
	*count = most;
	return best;
}

/* Marks workers as members of another run: their collectives contradict those of most other
 * clocks, which agree with each other. */
static ow_status find_outsiders(struct clocks *c)
{
	uint32_t *set = ARENA_ARRAY(&c->arena, uint32_t, c->node_count + 1), members, largest;

	if (!set)
		return error_no_memory(c->err);
	largest = largest_set(c, set, &members);
	for (size_t i = 0; i < c->edge_count && 2 * members > c->node_count && members > 1; i++) {
		const struct edge *e = &c->edges[i];
		uint32_t odd = set[e->a] == largest ? e->b : e->a;

		if (!e->fit.contradicts || set[e->a] == set[e->b] ||
		    (set[e->a] != largest && set[e->b] != largest))
			continue;
		for (size_t k = 0; k < c->job->worker_count; k++)
			if (!c->job->workers[k].left_out && c->node_of[k] == odd)
				c->job->workers[k].outsider =
					"its collectives contradict those of the other ranks: "
					"another run at the same time";
	}
	return OW_OK;
}

static void conclude(struct clocks *c)
{
	struct ranks_job *job = c->job;
	uint32_t reached = 0, lost = UINT32_MAX;

	for (uint32_t n = 0; n < c->node_count; n++) {
		reached += c->nodes[n].reached;
		if (!c->nodes[n].reached && lost == UINT32_MAX)
			lost = n;
	}
	if (c->node_count <= 1) {
		job->clock = CLOCK_SHARED;
		return;
	}
	job->clock = reached >= 2 && 2 * reached > c->node_count ? CLOCK_FITTED : CLOCK_IMPOSSIBLE;
	if (lost != UINT32_MAX) {
		const struct worker *w = &job->workers[c->nodes[lost].first];
		const char *why = c->nodes[lost].why ? c->nodes[lost].why : "no shared collective";

		if (w->rank >= 0)
			snprintf(job->clock_why, sizeof(job->clock_why), "rank %d: %s", w->rank,
				 why);
		else
			snprintf(job->clock_why, sizeof(job->clock_why), "%.*s: %s",
				 (int)MIN(w->path.len, 150u), w->path.ptr, why);
	}
	if (job->clock == CLOCK_IMPOSSIBLE)
		for (size_t i = 0; i < job->worker_count; i++)
			job->workers[i].has_clock = false;
}

static ow_status fit_all(struct clocks *c)
{
	double *sum, *weight, *slope;

	OW_TRY(make_nodes(c));
	if (c->node_count > 1) {
		OW_TRY(make_pairs(c));
		OW_TRY(make_edges(c));
	}
	sum = ARENA_ARRAY(&c->arena, double, c->node_count + 1);
	weight = ARENA_ARRAY(&c->arena, double, c->node_count + 1);
	slope = ARENA_ARRAY(&c->arena, double, c->node_count + 1);
	if (!sum || !weight || !slope)
		return error_no_memory(c->err);
	reach(c);
	drop_contradictions(c);
	balance(c, sum, weight, slope);
	OW_TRY(make_all_pieces(c));
	OW_TRY(set_workers(c));
	conclude(c);
	return find_outsiders(c);
}

ow_status ranks_clocks(struct ranks_job *job, struct ow_error *err)
{
	struct clocks c = { .job = job, .err = err };
	ow_status status;

	arena_init(&c.arena, job->mem);
	status = fit_all(&c);
	vec_free(job->mem, c.pairs, c.pair_cap);
	vec_free(job->mem, c.edges, c.edge_cap);
	vec_free(job->mem, c.batch, c.batch_cap);
	arena_release(&c.arena);
	return status;
}
