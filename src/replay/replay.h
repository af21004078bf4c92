/*
 * replay.h: runs a graph again with other durations: how long steps take then, which nodes decide that (the critical path), and how well
 * the graph predicts at all. Used by path, what-if and the advice. Whole nanoseconds; every replay is one pass over the nodes.
 */
#ifndef REPLAY_REPLAY_H
#define REPLAY_REPLAY_H

#include "replay/graph.h"

/* How a replay differs from the recording: arrays per node, NULL = as recorded. */
struct scenario {
	int64_t *weight_ns;
	uint8_t *drop;	  /* enum drop_flags */
	bool no_inferred; /* without inferred edges */
};

enum drop_flags {
	DROP_WAITS = 1 << 0,  /* the node waits for no device work or other thread */
	DROP_LAGS = 1 << 1,   /* no launch latency, no gap before it */
	DROP_SLACK = 1 << 2,  /* no unexplained delay */
	DROP_LAUNCH = 1 << 3, /* it does not wait for its launch */
	DROP_CHAIN = 1 << 4,  /* it does not wait for the work before it on its stream */
};

struct replay {
	const struct graph *g;
	struct scenario scenario;
	int64_t *begin_ns, *end_ns; /* per node */
	int64_t *step_ns;	    /* per step of the graph that is used; -1 for others */
	int64_t *step_begin_ns, *step_end_ns;
	int64_t median_ns; /* of the steady steps */
};

/* Makes a replay without a scenario take as long as the recording; called once, before any replay. Clocks that disagree and causes that are
 * concluded from times can ask for more than the recording took: the lags of such edges get shorter, until no node begins later than
 * it did. Where nodes end before their step, the difference is the step's rest. */
ow_status replay_fit(struct graph *g, struct arena *arena, struct ow_error *err);

/* Everything is in the arena. */
ow_status replay_run(const struct graph *g, const struct scenario *scenario, struct arena *arena,
		     struct replay *out, struct ow_error *err);

/* A scenario as recorded, whose arrays may be changed. */
ow_status scenario_make(const struct graph *g, struct arena *arena, struct scenario *out,
			struct ow_error *err);

/* One stretch of a critical path: [begin, end) is spent in `node`, or in the lag or slack before it (kind). */
struct path_piece {
	uint32_t node;
	enum node_kind kind;
	int64_t dur_ns;
};

struct critical_path {
	struct path_piece *items; /* by time; they sum to the step */
	uint32_t count;
	int64_t step_ns, unexplained_ns;
};

/* The critical path of one step of a replay. */
ow_status path_find(const struct replay *r, uint32_t step, struct arena *arena,
		    struct critical_path *out, struct ow_error *err);

/* The used steady step whose time is nearest the median; UINT32_MAX when there is none. */
uint32_t median_step(const struct graph *g);

/* The part of all steady steps' critical paths without a cause, 0 to 1. */
ow_status unexplained_share(const struct replay *base, struct arena *arena, double *out,
			    struct ow_error *err);

/* The structure of each step with the durations of the next one, compared with what the next one took: the median relative error.
 * Negative when there are no two steps that are alike. */
ow_status replay_check(const struct graph *g, struct arena *arena, double *error,
		       struct ow_error *err);

#endif
