/* job.c: runs src/ranks over the recordings of a run for the relations job_…; see job.h. */
#include "relation/job.h"

ow_status rows_of_job(struct table_part *part,
		      ow_status (*make)(struct table_part *part, const struct ranks_job *job,
					struct ow_error *err),
		      struct ow_error *err)
{
	struct ranks_job job;
	ow_status status;

	ranks_init(&job, part->arena.mem);
	status = ranks_add(&job, part->m, STR(""), err);
	if (status == OW_OK && job.worker_count)
		status = ranks_finish(&job, err);
	if (status == OW_OK)
		status = make(part, &job, err);
	ranks_release(&job);
	return status;
}

struct str job_group(const struct ranks_job *job, uint64_t group)
{
	for (size_t i = 0; group && i < job->group_count; i++)
		if (job->groups[i].hash == group)
			return job->groups[i].name;
	return (struct str){ 0 };
}
