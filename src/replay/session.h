/*
 * session.h: a graph with its base replay, checked: the starting point of path, what-if and the advice. graph.refused
 * gives the reason when there is no replay; steps and phases are filled in any case.
 */
#ifndef REPLAY_SESSION_H
#define REPLAY_SESSION_H

#include "replay/replay.h"
#include "table/table.h"

/* if a larger share of the critical paths is unexplained, there is no replay */
#define UNEXPLAINED_MOST 0.05
/* if the median error of replay_check is larger, there is no replay */
#define REPLAY_ERROR_MOST 0.2

struct session {
	struct graph g;
	struct arena arena;
	struct replay base;
	/* memory for one replay with changes, which every caller may use for a while: scenario_reset, replay_again */
	struct replay trial;
	struct scenario changed;
	double unexplained;  /* share of the steady steps' critical paths without a known cause */
	double replay_error; /* median relative error of replay_check; negative: unknown */
	double start_error;  /* `start` of replay_check; negative: unknown */
	/* for each stack: its frame in the user's own code; NULL if there are no stacks */
	uint32_t *own_line;
};

/* The caller calls session_close, also after a failure. */
ow_status session_open(struct model *m, const struct event_filter *filter,
		       const struct graph_extent *extent, struct session *s, struct ow_error *err);
void session_close(struct session *s);

static inline bool session_replays(const struct session *s)
{
	return !*s->g.refused;
}

/* Writes "train.py:42 main", the line of a node or event, or an empty text. `to` has `size` bytes. */
void event_line(const struct session *s, uint32_t event, char *to, size_t size);
void node_line(const struct session *s, uint32_t node, char *to, size_t size);
/* The name to show for a node: its op; for a gap, the code around it. */
struct str node_name(const struct session *s, uint32_t node);
track_id node_track(const struct graph *g, uint32_t node);

/* The critical path of a step by number (TIME_UNKNOWN: the steady step nearest to the median). by: NULL = its
 * pieces; op, line, kind or rank = sums. */
ow_status path_table(struct model *m, const struct event_filter *filter, int64_t step,
		     const char *by, struct table *out, struct ow_error *err);
/* Adds the rows of a path that was found in a replay of the session. */
ow_status path_rows(const struct session *s, const struct critical_path *path, uint32_t step,
		    const char *by, struct table *out, struct ow_error *err);
void path_columns(struct table *out);
/* Adds extra values: how well the replay predicts other steps, and how many of the steady steps it uses. */
void session_extras(const struct session *s, bool known, struct table *out);

/* Predicts the length of the step with the changes. */
ow_status what_if_table(struct model *m, const struct event_filter *filter,
			const char *const *changes, size_t count, struct table *out,
			struct ow_error *err);

#endif
