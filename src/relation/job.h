/*
 * job.h: runs the analysis of a job (src/ranks) for the relations job_rank, job_step, job_collective, job_op, job_line and
 * job_clock. Each relation reads the run's recordings once.
 */
#ifndef RELATION_JOB_H
#define RELATION_JOB_H

#include "ranks/ranks.h"
#include "relation/columns.h"

/* Compares the ranks of a part's recordings and calls `make` with the result. Recordings without timed work have no rows. */
ow_status rows_of_job(struct table_part *part,
		      ow_status (*make)(struct table_part *part, const struct ranks_job *job,
					struct ow_error *err),
		      struct ow_error *err);

/* A number for SQL: values below 0 are unknown (NULL). */
static inline int64_t job_number(int64_t number)
{
	return number < 0 ? ROW_UNKNOWN : number;
}

/* A time for SQL: NULL unless it is known. */
static inline int64_t job_time(bool known, int64_t ns)
{
	return known ? ns : ROW_UNKNOWN;
}

/* The name of a collective's group; no text if the group has no name. */
struct str job_group(const struct ranks_job *job, uint64_t group);

#endif
