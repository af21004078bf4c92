/*
 * replay.h: runs a graph again with other durations: how long steps take then, which nodes decide that (the critical
 * path), and how well the graph predicts at all. Used by path, what-if and the advice. Times are whole nanoseconds;
 * every replay is one pass over the nodes.
 */
#ifndef REPLAY_REPLAY_H
#define REPLAY_REPLAY_H

#include "replay/graph.h"

/* How a replay differs from the recording: arrays with one entry for each node; NULL = as recorded. */
struct scenario {
	int64_t *weight_ns;
	uint8_t *drop;	  /* bits of enum drop_flags */
	bool no_inferred; /* ignore inferred edges */
};

enum drop_flags {
	DROP_WAITS = 1 << 0,  /* the node does not wait for device work or another thread */
	DROP_LAGS = 1 << 1,   /* there is no launch latency and no gap before the node */
	DROP_SLACK = 1 << 2,  /* there is no unexplained delay before the node */
	DROP_LAUNCH = 1 << 3, /* the node does not wait for its launch */
	DROP_CHAIN = 1 << 4,  /* the node does not wait for the work before it on its stream */
};

struct replay {
	const struct graph *g;
	struct scenario scenario;
	int64_t *begin_ns, *end_ns; /* one entry for each node */
	/* one entry for each step of the graph; -1 for steps that are not used */
	int64_t *step_ns;
	int64_t *step_begin_ns, *step_end_ns;
	int64_t *times;	   /* memory for one value per step */
	int64_t median_ns; /* median of the steady steps */
};

/* Memory for replays of the graph, one after the other. Everything is in the arena. */
ow_status replay_make(const struct graph *g, struct arena *arena, struct replay *out,
		      struct ow_error *err);

/* Makes a replay without a scenario take as long as the recording; called once, before any replay. Clocks that disagree and causes that are
 * concluded from times can ask for more than the recording took: the lags of such edges get shorter, until no node begins later than
 * it did. Where nodes end before their step, the difference is the step's rest. */
void replay_fit(struct graph *g, struct replay *r);

/* Replays in the memory of an earlier replay, whose results are lost; scenario NULL = as recorded. */
void replay_again(struct replay *r, const struct scenario *scenario);

/* Replays the graph with a scenario, in new memory: replay_make and replay_again. */
ow_status replay_run(const struct graph *g, const struct scenario *scenario, struct arena *arena,
		     struct replay *out, struct ow_error *err);

/* Makes a scenario that equals the recording, with arrays that the caller may change. */
ow_status scenario_make(const struct graph *g, struct arena *arena, struct scenario *out,
			struct ow_error *err);
/* Makes the arrays of a scenario as recorded again. */
void scenario_reset(const struct graph *g, struct scenario *s);

/* One piece of a critical path: [begin, end) is spent in `node`, or in the lag or slack before it (`kind`). */
struct path_piece {
	uint32_t node;
	enum node_kind kind;
	int64_t dur_ns;
};

struct critical_path {
	struct path_piece *items; /* sorted by time; they sum to the step */
	uint32_t count;
	int64_t step_ns, unexplained_ns;
};

/* Finds the critical path of one step of a replay; without an arena only its sums. */
ow_status path_find(const struct replay *r, uint32_t step, struct arena *arena,
		    struct critical_path *out, struct ow_error *err);

/* The used steady step whose length is nearest to the median; UINT32_MAX when there is none. */
uint32_t median_step(const struct graph *g);

/* The share of all steady steps' critical paths without a known cause, 0 to 1. */
ow_status unexplained_share(const struct replay *base, double *out, struct ow_error *err);

/* How well steps are predicted: the structure of each step with the durations of the next one, compared with the next one. Both are medians,
 * and negative when there are no two steps that are alike. */
struct replay_accuracy {
	double step;  /* error of the step's time, as a part of it */
	double start; /* distance of the begins of device work, as a part of the step */
};

/* Checks predictions: replays each step with the durations of the next step. The scenario and the replay are only memory for that. */
ow_status replay_check(const struct graph *g, struct scenario *scenario, struct replay *r,
		       struct arena *arena, struct replay_accuracy *out, struct ow_error *err);

#endif
