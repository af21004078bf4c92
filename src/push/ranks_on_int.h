/*
 * ranks_on_int.h: what ranks_on.c and ranks_totals.c share: a job whose recordings are on a server, and queries to that
 * server.
 */
#ifndef PUSH_RANKS_ON_INT_H
#define PUSH_RANKS_ON_INT_H

#include "push/ranks_on.h"

/* The run and number by which the server knows a worker. */
struct pushed {
	struct str run;
	int64_t number;
};

struct server {
	struct ranks_job *job;
	struct click *click;
	const struct ranks_on *on;
	struct ow_error *err;
	struct pushed *pushed; /* one entry for each worker */
	size_t pushed_count, pushed_cap;
	struct buf where;  /* condition on runs, as SQL */
	struct buf steps;  /* condition on steps, as SQL: "" or " AND step IN (…)" */
	struct buf answer; /* answer to the last query */
	struct buf clocks; /* clocks of the workers as SQL, for ranks_totals.c */
	bool sampled;
};

/* Runs a query; s->answer receives the answer. In the text @ stands for the condition on runs, # for the one on
 * steps, and ~ for the clocks. */
ow_status server_query(struct server *s, const char *query);
/* The next field of a line as a number; INT64_MIN if it is NULL. */
int64_t server_number(struct str *line);

/* ranks_totals.c: steps, waits and transfers of all steps, computed by the server with the clocks that were fitted here. */
ow_status server_totals(struct server *s);

#endif
