/*
 * graph.c: builds the graph of graph.h: first the chains of nodes of host threads and streams (here), then edges
 * (graph_edges.c), steps and an order (graph_order.c). Called by replay users through graph_make. It makes one pass
 * over the events for each part; long recordings are cut to their last steady steps, so that memory and time stay
 * bounded.
 */
#include "replay/graph.h"

#include "base/vec.h"

#define EVENTS_MOST 1000000u /* limit of events in the steps that are replayed */
#define LEAST_STEPS 4u
#define TIME_MOST_NS ((int64_t)1 << 62)
#define SPAN_MOST_NS ((int64_t)1 << 57) /* about 4 years: longer recordings have damaged times */
#define FEW_LAUNCHED                                                                               \
	50 /* if the launch of a smaller percentage of device work is known, there is no replay */

const char *const node_kind_names[NODE_KINDS] = {
	[NODE_HOST] = "host",
	[NODE_GAP] = "host_gap",
	[NODE_INPUT] = "input",
	[NODE_LAUNCH] = "launch",
	[NODE_ALLOC] = "allocation",
	[NODE_SYNC] = "synchronisation",
	[NODE_HOST_COMMUNICATION] = "host_communication",
	[NODE_KERNEL] = "kernel",
	[NODE_TO_DEVICE] = "host_to_device",
	[NODE_TO_HOST] = "device_to_host",
	[NODE_COMMUNICATION] = "communication",
	[NODE_LAG] = "latency",
	[NODE_UNEXPLAINED] = "unexplained",
};

static enum node_kind host_kind(const struct model *m, uint32_t event)
{
	switch (m->event.phase[event]) {
	case PHASE_INPUT:
		return NODE_INPUT;
	case PHASE_LAUNCH:
		return NODE_LAUNCH;
	case PHASE_ALLOCATION:
		return NODE_ALLOC;
	case PHASE_INITIALISATION:
		return NODE_LAUNCH;
	case PHASE_SYNCHRONISATION:
		return NODE_SYNC;
	case PHASE_COMMUNICATION:
		return NODE_HOST_COMMUNICATION;
	case PHASE_UNKNOWN:
		return m->op.flags[m->event.op[event].v] & OP_STEP_MARK ? NODE_GAP : NODE_HOST;
	default:
		return NODE_HOST;
	}
}

static enum node_kind device_kind(uint8_t phase)
{
	switch (phase) {
	case PHASE_HOST_TO_DEVICE:
		return NODE_TO_DEVICE;
	case PHASE_DEVICE_TO_HOST:
		return NODE_TO_HOST;
	case PHASE_COMMUNICATION:
		return NODE_COMMUNICATION;
	default:
		return NODE_KERNEL;
	}
}

struct new_node {
	int64_t start, end;
	uint32_t event;
	enum node_kind kind;
	uint8_t flags;
};

static bool grow_nodes(struct build *b, size_t need)
{
	struct graph *g = b->g;
	size_t cap = b->node_cap, room = MAX(need, cap + cap / 2 + 1024);
	void *columns[] = { &g->start_ns, &g->weight_ns, &g->lag_ns, &g->slack_ns, &g->event,
			    &g->launch,	  &g->step,	 &g->kind,   &g->flags };
	static const uint8_t sizes[] = { 8, 8, 8, 8, 4, 4, 4, 1, 1 };

	if (need <= cap)
		return true;
	if (room >= UINT32_MAX)
		return false;
	for (size_t i = 0; i < ARRAY_COUNT(columns); i++) {
		/* add_node fills each row, so that room that is not used is not touched */
		void *old, *copy = arena_push_aligned(&g->arena, room * sizes[i], 16);

		memcpy(&old, columns[i], sizeof(old));
		if (!copy)
			return false;
		if (cap)
			memcpy(copy, old, cap * sizes[i]);
		memcpy(columns[i], &copy, sizeof(copy));
	}
	b->node_cap = room;
	return true;
}

static bool add_node(struct build *b, const struct new_node *n)
{
	struct graph *g = b->g;
	uint32_t at = g->node_count;

	if (at + 1 >= b->node_cap && !grow_nodes(b, (size_t)at + 2))
		return false;
	g->start_ns[at] = n->start;
	g->weight_ns[at] = span_length(n->start, n->end);
	g->lag_ns[at] = g->slack_ns[at] = 0;
	g->launch[at] = g->step[at] = 0;
	g->event[at] = n->event;
	g->kind[at] = (uint8_t)n->kind;
	g->flags[at] = n->flags;
	if (n->event && !b->node_of[n->event])
		b->node_of[n->event] = at + 1;
	g->node_count++;
	return true;
}

#define DEEPEST 512

struct flatten {
	struct build *b;
	uint32_t stack[DEEPEST];
	int64_t ends[DEEPEST];
	/* number of open events; number of open events that wait for input */
	uint32_t depth, inputs;
	int64_t at;	     /* nodes exist up to this time */
	const int64_t *cuts; /* begins and ends of steps, at which nodes are split */
	uint32_t cut_count, cut;
	struct gaps gaps;
};

/* Adds nodes for a gap between events, split into its known parts. */
static bool emit_gap(struct flatten *f, struct new_node n, int64_t to)
{
	uint32_t around = n.event;

	while (f->at < to) {
		uint32_t function;

		n.start = f->at;
		n.end = gaps_next(&f->gaps, f->at, to, &function);
		n.event = function ? function : around;
		f->at = n.end;
		if (!add_node(f->b, &n))
			return false;
	}
	return true;
}

static bool emit_piece(struct flatten *f, int64_t to)
{
	const struct model *m = f->b->g->m;
	uint32_t event = f->depth ? f->stack[f->depth - 1] : 0;
	struct new_node n = { .start = f->at, .end = to, .event = event, .kind = NODE_GAP };

	if (event)
		n.kind = host_kind(m, event);
	if (event && m->event.phase[event] == PHASE_INITIALISATION)
		n.flags |= NODE_ONCE;
	if (f->inputs)
		n.flags |= NODE_IN_INPUT;
	if (f->inputs && (n.kind == NODE_HOST || n.kind == NODE_GAP))
		n.kind = NODE_INPUT;
	if (n.kind == NODE_GAP && to > f->at)
		return emit_gap(f, n, to);
	f->at = to;
	return add_node(f->b, &n);
}

static bool emit_until(struct flatten *f, int64_t to)
{
	while (f->cut < f->cut_count && f->cuts[f->cut] <= f->at)
		f->cut++;
	while (f->cut < f->cut_count && f->cuts[f->cut] < to)
		if (!emit_piece(f, f->cuts[f->cut++]))
			return false;
	return to <= f->at || emit_piece(f, to);
}

static bool close_until(struct flatten *f, int64_t t)
{
	while (f->depth && f->ends[f->depth - 1] <= t) {
		if (!emit_until(f, f->ends[f->depth - 1]))
			return false;
		f->depth--;
		f->inputs -= f->b->g->m->event.phase[f->stack[f->depth]] == PHASE_INPUT;
	}
	return emit_until(f, t);
}

/* An event that begins slightly before the end of the previous one (within rounding), and ends after it, is made to
 * follow it. */
static void end_before(struct flatten *f, int64_t start, int64_t end)
{
	for (uint32_t d = f->depth; d--;) {
		if (f->ends[d] <= start) /* it has ended, but was not closed yet */
			continue;
		if (f->ends[d] >= end || f->ends[d] - start > GRAPH_ROUNDING_NS)
			break;
		f->ends[d] = start;
	}
}

/* Opens an event; its end is cut to the end of the event that contains it. */
static bool open_event(struct flatten *f, uint32_t event)
{
	const struct model *m = f->b->g->m;
	int64_t start = m->event.ts_ns[event], end = event_end(m, event);

	if (f->depth == DEEPEST)
		return true;
	if (f->depth)
		end = MIN(end, f->ends[f->depth - 1]);
	f->stack[f->depth] = event;
	f->ends[f->depth++] = end;
	f->inputs += m->event.phase[event] == PHASE_INPUT;
	if (end > start)
		return true;
	if (!emit_piece(f, start)) /* calls shorter than a clock tick launch work, too */
		return false;
	f->depth--;
	f->inputs -= m->event.phase[event] == PHASE_INPUT;
	return true;
}

static int by_time(const void *a, const void *b)
{
	const struct graph_step *x = a, *y = b;

	if (x->source.v != y->source.v)
		return x->source.v < y->source.v ? -1 : 1;
	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

static int by_step(const void *a, const void *b)
{
	const struct graph_step *x = a, *y = b;

	if (x->source.v != y->source.v)
		return x->source.v < y->source.v ? -1 : 1;
	return (x->step.v > y->step.v) - (x->step.v < y->step.v);
}

/* Finds the marker of each step: the host event that begins the step; without one, the step itself. */
static void find_markers(struct graph *g)
{
	const struct model *m = g->m;

	for (uint32_t i = 0; i < g->step_count; i++) {
		g->steps[i].begin_ns = g->phases.windows[i].start_ns;
		g->steps[i].marker_end_ns = g->phases.windows[i].end_ns;
	}
	qsort(g->steps, g->step_count, sizeof(*g->steps), by_step);
	for (uint32_t row = 1; row < m->window.count; row++) {
		struct graph_step key = { .source = m->window.source[row],
					  .step = m->window.step[row] };
		int64_t begin = m->window.start_ns[row], end = m->window.end_ns[row];
		struct graph_step *found =
			bsearch(&key, g->steps, g->step_count, sizeof(*g->steps), by_step);

		if (!found || found->marked || begin == TIME_UNKNOWN || end < begin)
			continue;
		found->begin_ns = begin;
		found->marker_end_ns = end;
		found->marked = true;
	}
	qsort(g->steps, g->step_count, sizeof(*g->steps), by_time);
}

static int by_duration(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int64_t median_of(int64_t *values, uint32_t count)
{
	if (!count)
		return 0;
	qsort(values, count, sizeof(*values), by_duration);
	return count % 2 ? values[count / 2]
			 : values[count / 2 - 1] + (values[count / 2] - values[count / 2 - 1]) / 2;
}

/* Puts the value of the given rank at its place, no larger ones before it and no smaller ones after it. */
static void select_rank(int64_t *values, uint32_t count, uint32_t rank)
{
	uint32_t low = 0, high = count;

	while (high - low > 1) {
		int64_t pivot = values[low + (high - low) / 2];
		uint32_t less = low, more = high, at = low;

		while (at < more) {
			int64_t value = values[at];

			if (value < pivot) {
				values[at++] = values[less];
				values[less++] = value;
			} else if (value > pivot) {
				values[at] = values[--more];
				values[more] = value;
			} else {
				at++;
			}
		}
		if (rank >= less && rank < more)
			return;
		if (rank < less)
			high = less;
		else
			low = more;
	}
}

int64_t median_of_many(int64_t *values, uint32_t count)
{
	int64_t middle, below = INT64_MIN;

	if (!count)
		return 0;
	select_rank(values, count, count / 2);
	middle = values[count / 2];
	if (count % 2)
		return middle;
	for (uint32_t i = 0; i < count / 2; i++)
		below = MAX(below, values[i]);
	return below + (middle - below) / 2;
}

/* Lists all steps of the recording; those that medians use are marked steady. */
static ow_status list_steps(struct build *b)
{
	struct graph *g = b->g;
	int64_t *times = ARENA_ARRAY(&b->scratch, int64_t, (size_t)g->phases.window_count + 1);
	uint32_t steady = 0;

	g->steps = ARENA_ARRAY(&g->arena, struct graph_step, (size_t)g->phases.window_count + 1);
	if (!g->steps || !times)
		return error_no_memory(b->err);
	g->step_count = g->phases.window_count;
	for (uint32_t i = 0; i < g->step_count; i++)
		steady += g->phases.windows[i].use == 0;
	for (uint32_t i = 0; i < g->step_count; i++) {
		const struct phase_window *w = &g->phases.windows[i];

		g->steps[i] =
			(struct graph_step){ .window = i,
					     .step = w->step,
					     .source = w->source,
					     .measured_ns = span_length(w->start_ns, w->end_ns),
					     .steady = !steady || w->use == 0 };
		if (g->steps[i].steady)
			times[g->steady_count++] = g->steps[i].measured_ns;
	}
	find_markers(g);
	g->step_ns = median_of(times, g->steady_count);
	return OW_OK;
}

/* For each source, the limit of steps that are replayed: all, or as many as have extent.events_most events. */
static uint32_t *count_most(struct build *b)
{
	const struct graph *g = b->g;
	double part = MIN((double)b->extent.events_most / MAX(g->m->event.count, 1u), 1);
	uint32_t *most = ARENA_ARRAY(&b->scratch, uint32_t, MAX(g->m->source.count, 1u));

	for (uint32_t i = 0; most && i < g->step_count; i++)
		most[g->steps[i].source.v]++;
	for (uint32_t i = 0; most && part < 1 && i < g->m->source.count; i++)
		most[i] = MAX(LEAST_STEPS, (uint32_t)(most[i] * part));
	return most;
}

static bool is_too_late(const struct build *b, const struct graph_step *s)
{
	return b->extent.until != TIME_UNKNOWN && b->g->m->event.count > b->extent.events_most &&
	       b->g->m->step.number[s->step.v] > b->extent.until;
}

/* Without known steps a source has one step, which is the whole recording. */
static bool is_recording(const struct graph *g, const struct graph_step *s)
{
	return !g->phases.windows[s->window].known;
}

#define BUCKETS 4096

/* Events per equal part of the time of a source that has no steps; `of` is its only step. */
struct density {
	struct graph_step *of;
	uint32_t counts[BUCKETS];
};

static int64_t bucket_begin(const struct graph_step *s, uint32_t bucket)
{
	return span_add(s->begin_ns, (int64_t)((double)s->measured_ns / BUCKETS * bucket));
}

static void count_events(const struct build *b, struct density *const *of_source)
{
	const struct model *m = b->g->m;

	for (uint32_t i = 1; i < m->event.count; i++) {
		struct density *d = of_source[m->track.source[m->event.track[i].v].v];
		int64_t t = m->event.ts_ns[i];

		if (!d || t < d->of->begin_ns || t >= d->of->marker_end_ns)
			continue;
		d->counts[MIN((uint32_t)((double)(t - d->of->begin_ns) /
					 (double)d->of->measured_ns * BUCKETS),
			      BUCKETS - 1)]++;
	}
}

/* Cuts a recording to the part around the middle of its events that has at most `part` of them, and no less than a bucket. */
static void cut_recording(struct build *b, struct density *d, double part)
{
	struct graph_step *s = d->of;
	struct part *kept = &b->parts[s->source.v];
	uint64_t all = 0, below = 0, lower = 0, upper = 0;
	uint32_t first = 0, end;

	for (uint32_t i = 0; i < BUCKETS; i++)
		all += d->counts[i];
	while (first + 1 < BUCKETS && below + d->counts[first] < all / 2)
		below += d->counts[first++];
	end = first;
	while (first > 0 || end < BUCKETS) { /* as many events on both sides of the middle */
		bool down = first > 0 && (end == BUCKETS || lower < upper);
		uint32_t more = d->counts[down ? first - 1 : end];

		if (end > first && (double)(lower + upper + more) > part * (double)all)
			break;
		*(down ? &lower : &upper) += more;
		first -= down;
		end += !down;
	}
	if (first == 0 && end == BUCKETS)
		return;
	kept->from_ns = bucket_begin(s, first);
	kept->to_ns = bucket_begin(s, end);
	s->part_of_ns = s->measured_ns;
	s->begin_ns = kept->from_ns;
	s->marker_end_ns = kept->to_ns;
	s->measured_ns = span_length(kept->from_ns, kept->to_ns);
}

/* A path through a whole recording without steps takes as long as loading it, and has millions of pieces. */
static ow_status cut_recordings(struct build *b)
{
	struct graph *g = b->g;
	struct density **of_source =
		ARENA_ARRAY(&b->scratch, struct density *, MAX(g->m->source.count, 1u));

	if (!of_source)
		return error_no_memory(b->err);
	for (uint32_t i = 0; i < g->step_count; i++) {
		struct graph_step *s = &g->steps[i];

		if (!is_recording(g, s) || !s->used || s->measured_ns <= 0)
			continue;
		of_source[s->source.v] = ARENA_NEW(&b->scratch, struct density);
		if (!of_source[s->source.v])
			return error_no_memory(b->err);
		of_source[s->source.v]->of = s;
	}
	count_events(b, of_source);
	for (uint32_t i = 0; i < g->m->source.count; i++)
		if (of_source[i])
			cut_recording(b, of_source[i],
				      (double)b->extent.events_most / (double)g->m->event.count);
	return OW_OK;
}

/* Chooses the steps of each source, from the first to the last steady one; with very many events only the last of
 * them. */
static ow_status choose_parts(struct build *b)
{
	struct graph *g = b->g;
	const struct model *m = g->m;
	uint32_t *most = count_most(b);

	b->parts = ARENA_ARRAY(&b->scratch, struct part, MAX(m->source.count, 1u));
	if (!b->parts || !most)
		return error_no_memory(b->err);
	for (uint32_t i = g->step_count; i-- > 0;) {
		struct graph_step *s = &g->steps[i];
		struct part *part = &b->parts[s->source.v];

		if (!s->steady || is_too_late(b, s) ||
		    (part->end && part->end - i > most[s->source.v]))
			continue;
		g->replayed_count++;
		if (!part->end) {
			part->end = i + 1;
			part->to_ns = s->marker_end_ns;
		}
		part->first = i;
		part->from_ns = s->begin_ns;
	}
	for (uint32_t i = 0; i < m->source.count;
	     i++) { /* includes the previous step, which shows work that is still running */
		struct part *part = &b->parts[i];

		if (part->end && part->first && g->steps[part->first - 1].source.v == i)
			part->from_ns = g->steps[--part->first].begin_ns;
	}
	for (uint32_t i = 0; i < m->source.count; i++)
		for (uint32_t k = b->parts[i].first; k < b->parts[i].end; k++)
			g->steps[k].used = true;
	return b->extent.part && m->event.count > b->extent.events_most ? cut_recordings(b) : OW_OK;
}

static bool is_in_part(const struct build *b, uint32_t event)
{
	const struct model *m = b->g->m;
	const struct part *part = &b->parts[m->track.source[m->event.track[event].v].v];

	return event_is_slice(m, event) && event_end(m, event) > part->from_ns &&
	       m->event.ts_ns[event] < part->to_ns;
}

static bool is_classified(const struct model *m, uint32_t event)
{
	return m->event.phase[event] != PHASE_UNKNOWN && m->event.phase[event] != PHASE_IDLE;
}

/* Lists the step boundaries of a source, at which nodes are split. */
static ow_status list_cuts(struct build *b, const struct part *part, int64_t **cuts,
			   uint32_t *count)
{
	*cuts = ARENA_ARRAY(&b->scratch, int64_t, 2 * (size_t)(part->end - part->first) + 1);
	*count = 0;
	if (!*cuts)
		return error_no_memory(b->err);
	for (uint32_t i = part->first; i < part->end; i++) {
		(*cuts)[(*count)++] = b->g->steps[i].begin_ns;
		(*cuts)[(*count)++] = b->g->steps[i].marker_end_ns;
	}
	qsort(*cuts, *count, sizeof(**cuts), by_duration);
	return OW_OK;
}

static ow_status flatten_track(struct build *b, uint32_t track, const uint32_t *events,
			       uint32_t count, source_id source)
{
	const struct part *part = &b->parts[source.v];
	struct flatten *f = ARENA_NEW(&b->scratch, struct flatten);
	int64_t *cuts;
	bool ok = true;

	if (!f)
		return error_no_memory(b->err);
	OW_TRY(list_cuts(b, part, &cuts, &f->cut_count));
	f->b = b;
	gaps_open(&f->gaps, b, track);
	f->cuts = cuts;
	f->at = INT64_MIN;
	for (uint32_t i = 0; ok && i < count; i++) {
		int64_t start = MAX(b->g->m->event.ts_ns[events[i]], part->from_ns);

		if (!is_in_part(b, events[i]))
			continue;
		if (f->at == INT64_MIN)
			f->at = start;
		end_before(f, start, event_end(b->g->m, events[i]));
		ok = close_until(f, start) && open_event(f, events[i]);
	}
	while (ok && f->depth)
		ok = close_until(f, f->ends[f->depth - 1]);
	return ok ? OW_OK : error_no_memory(b->err);
}

/* Whether a collective's name is that of a message between two ranks. */
static bool is_message(struct str name)
{
	return str_has(name, STR("SendRecv")) || str_has(name, STR("ncclSend")) ||
	       str_has(name, STR("ncclRecv"));
}

bool node_is_message(const struct graph *g, uint32_t node)
{
	return is_message(model_str(g->m, g->m->op.name[node_op(g, node).v]));
}

static bool add_device_node(struct build *b, uint32_t event)
{
	const struct model *m = b->g->m;
	struct new_node n = { .start = m->event.ts_ns[event],
			      .end = event_end(m, event),
			      .event = event,
			      .kind = device_kind(m->event.phase[event]),
			      .flags = NODE_DEVICE };
	struct new_node arrival = n;

	if (!b->has_ranks || n.kind != NODE_COMMUNICATION ||
	    is_message(model_str(m, m->op.name[m->event.op[event].v])))
		return add_node(b, &n);
	arrival.end = arrival.start;
	n.flags |= NODE_JOINS;
	return add_node(b, &arrival) && add_node(b, &n);
}

ow_status graph_add_free_nodes(struct build *b, uint32_t count)
{
	struct graph *g = b->g;

	g->lanes[g->lane_count++] =
		(struct lane){ .first = g->node_count, .count = count, .device = true };
	for (uint32_t i = 0; i < count; i++)
		if (!add_node(b, &(struct new_node){ .kind = NODE_KERNEL,
						     .flags = (uint8_t)(NODE_DEVICE | NODE_JOINS |
									NODE_FREE |
									(i ? 0 : NODE_FIRST)) }))
			return error_no_memory(b->err);
	return OW_OK;
}

/* Whether an event is device work of the replayed part; work that starts after the last step's marker may have been
 * launched inside it. Without steps only the time counts. */
static bool is_device_work(const struct build *b, uint32_t event)
{
	const struct model *m = b->g->m;
	const struct part *part = &b->parts[m->track.source[m->event.track[event].v].v];

	return event_is_slice(m, event) && is_classified(m, event) && part->end &&
	       m->event.ts_ns[event] >= part->from_ns &&
	       (m->event.ts_ns[event] < part->to_ns ||
		!is_recording(b->g, &b->g->steps[part->end - 1]));
}

#define WAITER 100 /* a thread that waits this many times as long as it works is ignored */

/* Whether a thread only sleeps, polls or waits for a condition, and so cannot delay the end of a step. */
static bool only_waits(const struct model *m, const uint32_t *events, uint32_t count)
{
	int64_t waits = 0, work = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t event = events[i];
		int64_t dur = MAX(m->event.dur_ns[event], 0);

		if (m->event.phase[event] != PHASE_UNKNOWN)
			return false;
		if (m->op.flags[m->event.op[event].v] & OP_WAITS)
			waits = span_add(waits, dur);
		else
			work = span_add(work, dur);
	}
	return waits > 0 && work < waits / WAITER;
}

static ow_status add_lane(struct build *b, uint32_t track, const uint32_t *events, uint32_t count)
{
	struct graph *g = b->g;
	struct lane *lane = &g->lanes[g->lane_count];

	*lane = (struct lane){ .track = { track },
			       .functions = { b->frames_of[track] },
			       .source = g->m->track.source[track],
			       .first = g->node_count,
			       .device = b->work[track] == WORK_DEVICE };
	if (!lane->device)
		OW_TRY(flatten_track(b, track, events, count, lane->source));
	for (uint32_t i = 0; lane->device && i < count; i++)
		if (is_device_work(b, events[i]) && !add_device_node(b, events[i]))
			return error_no_memory(b->err);
	lane->count = g->node_count - lane->first;
	if (!lane->count)
		return OW_OK;
	g->has_device |= lane->device;
	g->flags[lane->first] |= NODE_FIRST;
	b->lane_of[track] = ++g->lane_count;
	return OW_OK;
}

/* Lists the events of each track in order; on a track with slices they are sorted by time. */
static ow_status list_events(struct build *b, uint32_t **first, uint32_t **events)
{
	const struct model *m = b->g->m;
	uint32_t *place;

	*first = ARENA_ARRAY(&b->scratch, uint32_t, (size_t)m->track.count + 2);
	place = ARENA_ARRAY(&b->scratch, uint32_t, (size_t)m->track.count + 2);
	*events = RAW_ARRAY(&b->scratch, uint32_t, (size_t)m->event.count + 1);
	if (!*first || !place || !*events)
		return error_no_memory(b->err);
	for (uint32_t i = 1; i < m->event.count; i++)
		(*first)[m->event.track[i].v + 1]++;
	for (uint32_t i = 1; i <= m->track.count; i++)
		(*first)[i] += (*first)[i - 1];
	memcpy(place, *first, m->track.count * sizeof(*place));
	for (uint32_t i = 1; i < m->event.count; i++)
		(*events)[place[m->event.track[i].v]++] = i;
	return OW_OK;
}

static bool is_replayed(const struct build *b, uint32_t track)
{
	const struct model *m = b->g->m;

	return b->work[track] != WORK_NONE && b->parts[m->track.source[track].v].end &&
	       filter_track(b->filter, m, (track_id){ track }) &&
	       (COLUMN_GET(m->track.flags, track) & TRACK_SLICES) &&
	       (b->work[track] == WORK_HOST || b->work[track] == WORK_DEVICE);
}

/* Room for two nodes per event saves copies while lanes are added. */
static size_t expected_nodes(const struct build *b)
{
	const struct graph *g = b->g;
	size_t events = MIN(g->m->event.count, b->extent.events_most);

	for (uint32_t i = 0; i < g->step_count; i++)
		if (g->steps[i].used && is_recording(g, &g->steps[i]) && !g->steps[i].part_of_ns)
			events = g->m->event.count; /* no part is left out */
	return events * 2;
}

ow_status graph_add_lanes(struct build *b)
{
	struct graph *g = b->g;
	const struct model *m = g->m;
	uint32_t *first, *events;

	b->work = ARENA_ARRAY(&b->scratch, uint8_t, m->track.count);
	b->lane_of = ARENA_ARRAY(&b->scratch, uint32_t, m->track.count);
	b->node_of = ARENA_ARRAY(&b->scratch, uint32_t, m->event.count);
	g->lanes = ARENA_ARRAY(&g->arena, struct lane, m->track.count);
	if (!b->work || !b->lane_of || !b->node_of || !g->lanes)
		return error_no_memory(b->err);
	OW_TRY(list_events(b, &first, &events));
	b->has_ranks = build_has_ranks(b);
	for (uint32_t i = 1; i < m->track.count; i++)
		b->work[i] = (uint8_t)track_work(m, (track_id){ i });
	OW_TRY(graph_list_gaps(b, first, events));
	if (!grow_nodes(b, expected_nodes(b) + 64))
		return error_no_memory(b->err);
	for (uint32_t i = 1; i < m->track.count; i++)
		if (is_replayed(b, i) && !only_waits(m, events + first[i], first[i + 1] - first[i]))
			OW_TRY(add_lane(b, i, events + first[i], first[i + 1] - first[i]));
	return OW_OK;
}

const struct lane *lane_of_node(const struct graph *g, uint32_t node)
{
	uint32_t low = 0, high = g->lane_count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (g->lanes[middle].first <= node)
			low = middle;
		else
			high = middle;
	}
	return &g->lanes[low];
}

uint32_t lane_at(const struct graph *g, const struct lane *lane, int64_t t)
{
	uint32_t low = lane->first, high = lane->first + lane->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (g->start_ns[middle] < t)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void refuse(struct graph *g, const char *why)
{
	snprintf(g->refused, sizeof(g->refused), "%s", why);
}

static bool has_host(const struct graph *g)
{
	for (uint32_t i = 0; i < g->lane_count; i++)
		if (!g->lanes[i].device)
			return true;
	return false;
}

/* Whether times are damaged: their sums would overflow. */
static bool is_out_of_range(const struct graph *g)
{
	int64_t first = INT64_MAX, last = INT64_MIN;

	for (uint32_t i = 0; i < g->node_count; i++) {
		first = MIN(first, g->start_ns[i]);
		last = MAX(last, node_end(g, i));
	}
	return first < -TIME_MOST_NS || last > TIME_MOST_NS || last - first > SPAN_MOST_NS;
}

static ow_status make(struct build *b)
{
	struct graph *g = b->g;

	OW_TRY(list_steps(b));
	OW_TRY(choose_parts(b));
	OW_TRY(graph_add_lanes(b));
	if (!g->node_count || !g->step_count)
		refuse(g, "no timed events of host threads are in this recording");
	else if (is_out_of_range(g))
		refuse(g, "some events are years apart: their times are damaged");
	else if (!has_host(g))
		refuse(g,
		       "no host thread was recorded, so it is unknown what the device waits for");
	if (*g->refused)
		return OW_OK;
	OW_TRY(graph_add_edges(b));
	if (g->device_slices && g->launched * 100 < g->device_slices * FEW_LAUNCHED)
		snprintf(g->refused, sizeof(g->refused),
			 "only %u %% of the device work has a known launch: record with "
			 "correlation ids",
			 (unsigned)(g->launched * 100 / g->device_slices));
	OW_TRY(graph_add_steps(b));
	return graph_order(b);
}

ow_status graph_make(struct model *m, const struct event_filter *filter,
		     const struct graph_extent *extent, struct graph *g, struct ow_error *err)
{
	struct build b = { .g = g, .filter = filter, .extent = *extent, .mem = m->mem, .err = err };
	ow_status status;

	if (!b.extent.events_most)
		b.extent.events_most = EVENTS_MOST;
	memset(g, 0, sizeof(*g));
	g->m = m;
	arena_init(&g->arena, m->mem);
	arena_init(&b.scratch, m->mem);
	status = extent->shares ? phases_analyse(m, filter, &g->phases, err)
				: phases_find_windows(m, filter, &g->phases, err);
	if (status == OW_OK)
		status = make(&b);
	vec_free(b.mem, b.edges, b.edge_cap);
	arena_release(&b.scratch);
	return status;
}

void graph_release(struct graph *g)
{
	phases_release(&g->phases);
	arena_release(&g->arena);
}
