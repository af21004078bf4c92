/*
 * ranks_on.h: analyses the ranks of a job whose recordings were pushed to a server (tables job_…), as many runs as
 * there are. Called by ow_ranks_remote. The server selects the steps that all ranks have and sums; src/ranks fits the
 * clocks here.
 */
#ifndef PUSH_RANKS_ON_H
#define PUSH_RANKS_ON_H

#include "push/click.h"
#include "ranks/ranks.h"

struct ranks_on {
	struct ow_list runs; /* names of runs, in which * stands for any text; empty: all */
	/* collectives_most: with more collectives only some of the steps are compared; 0 = the default */
	uint64_t collectives_most;
};

/* Adds the ranks and compares them (ranks_finish). *steps receives the number of steps on the server;
 * job->step_count of them were compared. */
ow_status ranks_read_server(struct ranks_job *job, struct click *click, const struct ranks_on *on,
			    uint64_t *steps, struct ow_error *err);

#endif
