/*
 * session.h: a graph with its base replay, checked: what path, what-if and the advice start from. `refused` of the graph says
 * why there is no replay; steps and phases are there in any case.
 */
#ifndef REPLAY_SESSION_H
#define REPLAY_SESSION_H

#include "replay/replay.h"
#include "table/table.h"

#define UNEXPLAINED_MOST 0.05 /* of the critical paths: above it there is no replay */

struct session {
	struct graph g;
	struct arena arena;
	struct replay base;
	double unexplained;  /* part of the steady steps' critical paths */
	double replay_error; /* negative: unknown */
	uint32_t *own_line;  /* per stack: the frame of the user's own code; NULL without stacks */
};

/* `until` and `shares`: as of graph_make. session_close is due in any case. */
ow_status session_open(struct model *m, const struct event_filter *filter, int64_t until,
		       bool shares, struct session *s, struct ow_error *err);
void session_close(struct session *s);

static inline bool session_replays(const struct session *s)
{
	return !*s->g.refused;
}

/* "train.py:42 main" of a node or event, or an empty text. `to` has `size` bytes. */
void event_line(const struct session *s, uint32_t event, char *to, size_t size);
void node_line(const struct session *s, uint32_t node, char *to, size_t size);
/* The name to show of a node: its op; for a gap what comes around it. */
struct str node_name(const struct session *s, uint32_t node);
track_id node_track(const struct graph *g, uint32_t node);

/* ---- tables ---- */

/* The critical path of the step with the number (TIME_UNKNOWN: the steady step nearest the median); by: NULL = its pieces,
 * or op, line, kind, rank: added up. */
ow_status path_table(struct model *m, const struct event_filter *filter, int64_t step,
		     const char *by, struct table *out, struct ow_error *err);
/* The rows of a path, of a replay of the session. */
ow_status path_rows(const struct session *s, const struct critical_path *path, uint32_t step,
		    const char *by, struct table *out, struct ow_error *err);
void path_columns(struct table *out);
/* Beside the rows: how well the replay predicts other steps, and how many of the steady steps it uses. */
void session_extras(const struct session *s, bool known, struct table *out);

/* What the step would be with the changes. */
ow_status what_if_table(struct model *m, const struct event_filter *filter,
			const char *const *changes, size_t count, struct table *out,
			struct ow_error *err);

#endif
