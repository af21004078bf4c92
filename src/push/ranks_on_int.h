/*
 * ranks_on_int.h: what ranks_on.c and ranks_totals.c share: a job whose recordings are on a server, and questions to that server.
 */
#ifndef PUSH_RANKS_ON_INT_H
#define PUSH_RANKS_ON_INT_H

#include "push/ranks_on.h"

/* Where a worker is on the server. */
struct pushed {
	struct str run;
	int64_t number;
};

struct server {
	struct ranks_job *job;
	struct click *click;
	const struct ranks_on *on;
	struct ow_error *err;
	struct pushed *pushed; /* per worker */
	size_t pushed_count, pushed_cap;
	struct buf where;  /* which runs */
	struct buf steps;  /* which steps: "" or " AND step IN (…)" */
	struct buf answer; /* of the last query */
	struct buf clocks; /* of ranks_totals.c */
	bool sampled;
};

/* Runs a query into s->answer. In it @ stands for the condition on runs, # for that on steps, and ~ for the clocks. */
ow_status server_query(struct server *s, const char *query);
/* The next field of a line; INT64_MIN where it is NULL. */
int64_t server_number(struct str *line);

/* ranks_totals.c: steps, waits and transfers of all steps, computed by the server with the clocks that were fitted here. */
ow_status server_totals(struct server *s);

#endif
