/*
 * ranks_on.h: the ranks of a job whose recordings were pushed to a server (tables job_…), as many runs as there are. Called by ow_ranks_remote. The server
 * chooses the steps that all ranks have and adds up; clocks are fitted here, by src/ranks.
 */
#ifndef PUSH_RANKS_ON_H
#define PUSH_RANKS_ON_H

#include "push/click.h"
#include "ranks/ranks.h"

struct ranks_on {
	struct ow_list runs; /* names of runs, * stands for anything; none: all */
	uint64_t
		collectives_most; /* above it only some of the steps are compared; 0 = the default */
};

/* Adds the ranks and compares them (ranks_finish). *steps: that the ranks have on the server; job->step_count of them were compared. */
ow_status ranks_read_server(struct ranks_job *job, struct click *click, const struct ranks_on *on,
			    uint64_t *steps, struct ow_error *err);

#endif
