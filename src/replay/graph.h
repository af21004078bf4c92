/*
 * graph.h: what waits for what in a recording, as nodes that can be replayed with other durations. advise/ and the commands
 * path and what-if use it. It reads events, links and windows; it makes no tables and gives no advice.
 *
 * A host thread is a chain of nodes: each is the innermost event at that time, or a gap in which unrecorded code ran. A stream is a
 * chain of its kernels and copies. Edges join chains: a launch and what it launched, work and the call that waits for it, a thread
 * and the thread that it waits for. In a replay a node begins when the node before it on the chain and all its edges are done:
 *
 *	begin = max(end before + lag, end (or begin) of each edge's source + its lag) + slack
 *	end   = begin + weight
 *
 * A lag has a named cause: launch latency, the gap between two kernels. A wait without a cause is slack, and is reported as
 * unexplained. A synchronising call has only the weight that is left after the work it waits for.
 */
#ifndef REPLAY_GRAPH_H
#define REPLAY_GRAPH_H

#include "analyze/steps/phases.h"

enum node_kind {
	NODE_HOST,   /* an operator, a range, any recorded host code */
	NODE_GAP,    /* host code between recorded events */
	NODE_INPUT,  /* getting the next batch */
	NODE_LAUNCH, /* a call of the device's runtime */
	NODE_ALLOC,  /* a call that takes memory from the device or gives it back */
	NODE_SYNC,   /* what is left of a synchronising call after the wait */
	NODE_HOST_COMMUNICATION,
	NODE_KERNEL,
	NODE_TO_DEVICE,
	NODE_TO_HOST,
	NODE_COMMUNICATION,
	NODE_LAG,	  /* of paths only: launch latency, or the gap between two kernels */
	NODE_UNEXPLAINED, /* of paths only: slack */
	NODE_KINDS
};

extern const char *const node_kind_names[NODE_KINDS];

enum node_flags {
	NODE_IN_INPUT = 1 << 0,	   /* inside a wait for input, whatever it is itself */
	NODE_AFTER_BEGIN = 1 << 1, /* begins after the begin of the node before it: they overlap */
	NODE_FREE = 1 << 2,	   /* does not wait for the node before it */
	NODE_BLOCKS = 1 << 3,	   /* a copy that the calling thread waits for */
	NODE_DEVICE = 1 << 4,
	NODE_ONCE = 1 << 5, /* initialisation: a call that programs make once */
	NODE_JOINS =
		1 << 6, /* the transfer of a collective, after the node of the rank's arrival */
};

#define GRAPH_ROUNDING_NS                                                                          \
	1000 /* times are rounded to this unit: an overlap of less does not count */

enum edge_kind { EDGE_LAUNCH, EDGE_WAIT, EDGE_STREAM, EDGE_THREAD, EDGE_LOADER, EDGE_RANKS };

struct edge {
	uint32_t src, dst;
	int64_t lag_ns;
	uint8_t kind;
	bool from_begin; /* of the source; else from its end */
	bool inferred;	 /* not recorded: concluded from times */
};

struct lane {
	track_id track, functions; /* functions: the Python functions of a thread, or nil */
	source_id source;
	uint32_t first, count; /* nodes */
	bool device;
	bool main; /* the thread that runs the steps of its source */
};

/* A step of a source: what begins and ends it. */
struct graph_step {
	uint32_t window; /* of phases */
	step_id step;
	source_id source;
	int64_t measured_ns;
	int64_t begin_ns, marker_end_ns; /* of the marker on the host */
	uint32_t
		begin_after; /* the node whose end is the begin of the marker; UINT32_MAX: begin_ns */
	uint32_t end_first, end_count; /* nodes in ends: the step ends with the last of them … */
	int64_t rest_ns; /* … and this much later; time that no node explains is kept */
	bool marked;	 /* the source has a marker; else the step is all of the recording */
	bool steady;	 /* medians use it */
	bool used;	 /* it is in the graph */
};

struct graph {
	struct arena arena;
	struct model *m;
	struct phases phases;
	bool has_device;
	int64_t step_ns; /* the median of steady steps */
	/* per node */
	int64_t *start_ns; /* when it began, after the wait */
	int64_t *weight_ns, *lag_ns, *slack_ns;
	uint32_t *event;  /* the innermost event; 0 for a gap outside all events */
	uint32_t *launch; /* node of the call that launched it + 1; 0 = unknown or a host node */
	uint32_t *step;	  /* in steps + 1; 0 = in none */
	uint8_t *kind, *flags;
	uint32_t node_count;
	struct lane *lanes;
	uint32_t lane_count;
	struct edge *edges;   /* by destination */
	uint32_t *edge_first; /* per node, and the end */
	uint32_t edge_count, inferred_count;
	uint32_t *order; /* the nodes such that sources come first */
	struct graph_step *steps;
	uint32_t step_count, steady_count;
	uint32_t
		replayed_count; /* steady steps that are used; fewer than steady_count in long recordings */
	uint32_t *ends;
	uint32_t end_count;
	int64_t launch_latency_ns, kernel_gap_ns; /* typical ones: medians of this recording */
	uint64_t device_slices, launched;
	uint32_t joined_count; /* collectives in which ranks wait for each other */
	/* Why there is no replay; empty when there is one. Steps and phases are filled all the same. */
	char refused[256];
};

/* Long recordings are cut to their last steady steps; `until` is the number of the last step that is wanted, or TIME_UNKNOWN. With
 * `shares` the phases of all steps are measured; a replay alone needs only which steps there are. graph_release is due in any case. */
ow_status graph_make(struct model *m, const struct event_filter *filter, int64_t until, bool shares,
		     struct graph *g, struct ow_error *err);
void graph_release(struct graph *g);

/* The op of a node, or nil. */
static inline op_id node_op(const struct graph *g, uint32_t node)
{
	return g->event[node] ? g->m->event.op[g->event[node]] : (op_id){ 0 };
}

static inline int64_t node_end(const struct graph *g, uint32_t node)
{
	return span_add(g->start_ns[node], g->weight_ns[node]);
}

/* Whether device work is a message from one rank to another, unlike collectives. */
bool node_is_message(const struct graph *g, uint32_t node);

/* The lane of a node. */
const struct lane *lane_of_node(const struct graph *g, uint32_t node);

/* The first node of a lane that begins at or after t; the lane's end when there is none. */
uint32_t lane_at(const struct graph *g, const struct lane *lane, int64_t t);

/* ---- parts of graph_make ---- */

/* What of a source is replayed; from >= to: nothing. */
struct part {
	int64_t from_ns, to_ns;
	uint32_t first, end; /* steps */
};

struct burst_list; /* graph_gaps.c */

#define GAPS_DEEPEST 512

/* The gaps of a thread, from first to last. */
struct gaps {
	struct build *b;
	uint32_t track;
	const uint32_t *events; /* Python functions of the thread, by begin */
	uint32_t count, next;
	uint32_t open[GAPS_DEEPEST], depth;
	int64_t until; /* the end of the gap that is looked at … */
	bool whole;    /* … which is not cut, or cut around the pause */
	int64_t pause_begin, pause_end;
};

struct build {
	struct graph *g;
	const struct event_filter *filter;
	int64_t until;	    /* number of the last step; TIME_UNKNOWN: the last there is */
	struct part *parts; /* per source */
	struct arena scratch;
	struct mem *mem;
	struct ow_error *err;
	uint8_t *work;	   /* per track: enum track_work */
	uint32_t *node_of; /* per event: its first node + 1 (a device's only one) */
	uint32_t *lane_of; /* per track: its lane + 1 */
	uint32_t *main_of; /* per source: the lane of its main thread + 1 */
	struct edge *edges;
	size_t edge_count, edge_cap;
	size_t node_cap;
	uint32_t *
		joins; /* per node of a main thread: the last node of the thread it waits for + 1 */
	uint32_t blocking; /* copies */
	/* recorded waits, as lists by who waits: per node the first + 1, and per wait the next + 1 */
	uint32_t *wait_first, *wait_next, *wait_work;
	bool has_ranks; /* several ranks of one job */
	/* graph_gaps.c: per track the events, first to last; the track of a thread's Python functions; threads that launch work */
	const uint32_t *first, *events;
	uint32_t *frames_of;
	struct burst_list *bursts; /* those of a source follow each other by `next` */
	uint32_t burst_count;
	uint32_t *first_burst; /* per source: + 1; 0 = none */
};

ow_status graph_add_lanes(struct build *b);
/* A lane of nodes without time that wait for nothing but their edges. */
ow_status graph_add_free_nodes(struct build *b, uint32_t count);
/* Which step each node belongs to; launches have to be known. */
void graph_mark_nodes(struct build *b);
/* graph_gaps.c: what a thread does between its events. The first two before any lane is added, the last for each gap from `at` to `to`:
 * returns the end of the part that begins at `at`, and the Python function that ran, or 0. */
ow_status graph_list_gaps(struct build *b, const uint32_t *first, const uint32_t *events);
void gaps_open(struct gaps *gaps, struct build *b, uint32_t track);
int64_t gaps_next(struct gaps *gaps, int64_t at, int64_t to, uint32_t *event);
/* graph_ranks.c */
bool build_has_ranks(const struct build *b);
ow_status graph_join_ranks(struct build *b);
ow_status graph_add_edges(struct build *b);
ow_status graph_add_steps(struct build *b);
ow_status graph_order(struct build *b);
ow_status build_edge(struct build *b, struct edge edge);
int64_t median_of(int64_t *values, uint32_t count); /* Sorts the values; 0 when there are none. */

#endif
