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

/* An array that is filled at once and not zeroed before; for counts of 32 bits. */
#define RAW_ARRAY(arena, type, count)                                                              \
	((type *)arena_push_aligned(arena, (count) * sizeof(type), 16))

enum node_kind {
	NODE_HOST,   /* an operator, a range, any recorded host code */
	NODE_GAP,    /* host code between recorded events */
	NODE_INPUT,  /* a wait for the next batch of input */
	NODE_LAUNCH, /* a call of the device's runtime */
	NODE_ALLOC,  /* a call that allocates or frees device memory */
	NODE_SYNC,   /* the rest of a synchronising call after its wait */
	NODE_HOST_COMMUNICATION,
	NODE_KERNEL,
	NODE_TO_DEVICE,
	NODE_TO_HOST,
	NODE_COMMUNICATION,
	NODE_LAG,	  /* only in paths: launch latency, or the gap between two kernels */
	NODE_UNEXPLAINED, /* only in paths: slack, a delay without a known cause */
	NODE_KINDS
};

extern const char *const node_kind_names[NODE_KINDS];

enum node_flags {
	/* the node lies inside a wait for input, whatever its own kind is */
	NODE_IN_INPUT = 1 << 0,
	/* begins after the begin of the previous node on the chain: the two overlap */
	NODE_AFTER_BEGIN = 1 << 1,
	NODE_FREE = 1 << 2,   /* does not wait for the previous node on the chain */
	NODE_BLOCKS = 1 << 3, /* a copy that the calling thread waits for */
	NODE_DEVICE = 1 << 4,
	NODE_ONCE = 1 << 5, /* initialisation: a call that programs make once */
	/* the transfer of a collective; the node before it is the arrival of the rank */
	NODE_JOINS = 1 << 6,
	NODE_FIRST = 1 << 7, /* the first of its lane */
};

#define GRAPH_ROUNDING_NS 1000 /* times are rounded to this unit; smaller overlaps are ignored */

enum edge_kind { EDGE_LAUNCH, EDGE_WAIT, EDGE_STREAM, EDGE_THREAD, EDGE_LOADER, EDGE_RANKS };

struct edge {
	uint32_t src, dst;
	int64_t lag_ns;
	uint8_t kind;
	bool from_begin; /* the edge starts at the begin of its source node; false: at the end */
	bool inferred;	 /* the edge is not recorded but concluded from times */
};

struct lane {
	/* functions: the track of the thread's Python functions, or nil */
	track_id track, functions;
	source_id source;
	uint32_t first, count; /* range of nodes */
	bool device;
	bool main; /* the thread that runs the steps of its source */
};

/* A step of a source: the nodes that begin and end it. */
struct graph_step {
	uint32_t window; /* index of the window in `phases` */
	step_id step;
	source_id source;
	int64_t measured_ns;
	int64_t begin_ns, marker_end_ns; /* begin and end of the step's marker on the host */
	/* begin_after: the node whose end is the begin of the marker; UINT32_MAX: the step begins at begin_ns */
	uint32_t begin_after;
	/* range in `ends`: the step ends with the last of these nodes, plus rest_ns */
	uint32_t end_first, end_count;
	/* time at the end of the step that no node explains; it is kept in a replay */
	int64_t rest_ns;
	/* the source has a marker for the step; false: the step is the whole recording */
	bool marked;
	bool steady; /* the step counts for medians */
	bool used;   /* the nodes of the step are in the graph */
	/* length of the recording if the graph has only a part of it as this step; else 0 */
	int64_t part_of_ns;
};

struct graph {
	struct arena arena;
	struct model *m;
	struct phases phases;
	bool has_device;
	int64_t step_ns; /* median length of the steady steps */
	/* Arrays with one entry for each node. */
	int64_t *start_ns; /* time at which the node began, after its wait */
	int64_t *weight_ns, *lag_ns, *slack_ns;
	uint32_t *event; /* the innermost event; 0 for a gap outside all events */
	/* 1 + node of the call that launched the node; 0 = unknown, or a host node */
	uint32_t *launch;
	uint32_t *step; /* 1 + index in `steps`; 0 = in no step */
	uint8_t *kind, *flags;
	uint32_t node_count;
	struct lane *lanes;
	uint32_t lane_count;
	struct edge *edges; /* sorted by destination */
	/* for each node: index of its first edge; one more entry marks the end */
	uint32_t *edge_first;
	uint32_t edge_count, inferred_count;
	uint32_t *order; /* all nodes, sorted so that the source of every edge comes first */
	struct graph_step *steps;
	uint32_t step_count, steady_count;
	/* replayed_count: steady steps that are used; fewer than steady_count in long recordings */
	uint32_t replayed_count;
	uint32_t *ends;
	uint32_t end_count;
	int64_t launch_latency_ns, kernel_gap_ns; /* typical values: medians of this recording */
	uint64_t device_slices, launched;
	uint32_t joined_count; /* number of collectives in which ranks wait for each other */
	/* The reason why no replay is possible; empty when one is. Steps and phases are filled in any case. */
	char refused[256];
};

/* Which steps the graph is made of. Long recordings are cut to their last steady steps. */
struct graph_extent {
	int64_t until; /* number of the last step; TIME_UNKNOWN: the last one of the recording */
	bool shares;   /* measure the phases of all steps, too; a replay alone does not need them */
	/* a long recording without steps is cut to a part in its middle; else all of it counts */
	bool part;
	uint32_t events_most; /* limit of events in the steps; 0: the default */
};

/* Builds the graph. The caller calls graph_release, also after a failure. */
ow_status graph_make(struct model *m, const struct event_filter *filter,
		     const struct graph_extent *extent, struct graph *g, struct ow_error *err);
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

/* Whether device work is a message from one rank to another, not a collective. */
bool node_is_message(const struct graph *g, uint32_t node);

/* The lane that contains a node. */
const struct lane *lane_of_node(const struct graph *g, uint32_t node);

/* The first node of a lane that begins at or after t; the end of the lane when there is none. */
uint32_t lane_at(const struct graph *g, const struct lane *lane, int64_t t);

/* The part of a source that is replayed; from >= to: nothing. */
struct part {
	int64_t from_ns, to_ns;
	uint32_t first, end; /* range of steps */
};

struct burst_list; /* defined in graph_gaps.c */

#define GAPS_DEEPEST 512

/* State while the gaps of a thread are visited, from first to last. */
struct gaps {
	struct build *b;
	uint32_t track;
	const uint32_t *events; /* Python functions of the thread, sorted by begin */
	uint32_t count, next;
	uint32_t open[GAPS_DEEPEST], depth;
	int64_t until; /* end of the current gap */
	bool whole;    /* the current gap stays whole; false: it is split around the pause */
	int64_t pause_begin, pause_end;
};

struct build {
	struct graph *g;
	const struct event_filter *filter;
	struct graph_extent extent;
	struct part *parts; /* one entry for each source */
	struct arena scratch;
	struct mem *mem;
	struct ow_error *err;
	uint8_t *work;	   /* for each track: enum track_work */
	uint32_t *node_of; /* for each event: 1 + its first node (device events have one node) */
	uint32_t *lane_of; /* for each track: 1 + its lane */
	uint32_t *main_of; /* for each source: 1 + the lane of its main thread */
	struct edge *edges;
	size_t edge_count, edge_cap;
	size_t node_cap;
	/* joins: for each node of a main thread, 1 + the last node of the thread that it waits for */
	uint32_t *joins;
	uint32_t blocking; /* number of copies that block their calling thread */
	/* Recorded waits as linked lists: for each waiting node 1 + its first wait, and for each wait 1 + the next. */
	uint32_t *wait_first, *wait_next, *wait_work;
	bool has_ranks; /* the recording has several ranks of one job */
	/* For graph_gaps.c: for each track its events, first to last; the track of a thread's Python functions;
	 * threads that launch work. */
	const uint32_t *first, *events;
	uint32_t *frames_of;
	struct burst_list *bursts; /* lists of one source are linked by `next` */
	uint32_t burst_count;
	uint32_t *first_burst; /* for each source: 1 + its first list; 0 = none */
};

ow_status graph_add_lanes(struct build *b);
/* Adds a lane of nodes with zero duration that wait only for their edges. */
ow_status graph_add_free_nodes(struct build *b, uint32_t count);
/* Sets the step of each node; launches must be known. */
void graph_mark_nodes(struct build *b);
/* graph_gaps.c: finds what a thread does between its events. The first two functions are called before any lane is
 * added; the last one for each gap from `at` to `to`: it returns the end of the part that begins at `at`, and the
 * Python function that ran, or 0.
 */
ow_status graph_list_gaps(struct build *b, const uint32_t *first, const uint32_t *events);
void gaps_open(struct gaps *gaps, struct build *b, uint32_t track);
int64_t gaps_next(struct gaps *gaps, int64_t at, int64_t to, uint32_t *event);
/* in graph_ranks.c */
bool build_has_ranks(const struct build *b);
ow_status graph_join_ranks(struct build *b);
ow_status graph_add_edges(struct build *b);
ow_status graph_add_steps(struct build *b);
ow_status graph_order(struct build *b);
ow_status build_edge(struct build *b, struct edge edge);
int64_t median_of(int64_t *values, uint32_t count); /* sorts the values; 0 when there are none */
/* Computes the same in linear time, for many values; changes the order of the values. */
int64_t median_of_many(int64_t *values, uint32_t count);

#endif
