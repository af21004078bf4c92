/*
 * anomaly_hang.c: finds the rank that keeps a stalled job from continuing: reads the stacks of all ranks' processes,
 * and asks src/hang. anomaly.c calls it when a job with several ranks makes no step. anomaly_stack.c reads the stacks;
 * nothing is changed in the job.
 */
#include "watch/anomaly.h"

#include "base/error.h"
#include "hang/hang.h"

/* The value of a variable in an environment block: NAME=VALUE texts, each ending with a NUL. */
static int64_t identity_number(struct str identity, const char *const *names, size_t count)
{
	struct str rest = identity, item;
	int64_t value;

	while (str_split(&rest, '\0', &item))
		for (size_t i = 0; i < count; i++)
			if (str_starts(item, str_from(names[i])) &&
			    str_to_i64(str_skip(item, strlen(names[i])), &value) && value >= 0 &&
			    value < HANG_RANK_MAX)
				return value;
	return -1;
}

static void read_stack(struct hang_job *job, struct hang_process *to, pid_t pid, int64_t *left_ns)
{
	struct buf text;

	buf_init(&text, job->mem);
	if (anomaly_stack(pid, HANG_STACK_FRAMES, left_ns, &text))
		to->stack = hang_text(job, buf_str(&text));
	if (text.failed)
		job->no_memory = true;
	buf_release(&text);
}

/* Adds the process of a rank. The first process of a rank makes its steps; its workers were forked by it. */
static void add_process(struct hang_job *job, const struct anomaly_why *why,
			const struct follow_process *p, int64_t *left_ns)
{
	static const char *const ranks[] = { "RANK=", "OMPI_COMM_WORLD_RANK=", "PMI_RANK=",
					     "SLURM_PROCID=" };
	static const char *const worlds[] = { "WORLD_SIZE=", "OMPI_COMM_WORLD_SIZE=", "PMI_SIZE=",
					      "SLURM_NTASKS=" };
	struct str identity = follow_text(p, LIVE_IDENTITY);
	int64_t rank = identity_number(identity, ranks, ARRAY_COUNT(ranks)),
		world = identity_number(identity, worlds, ARRAY_COUNT(worlds));
	struct hang_process *to;
	uint32_t at;

	if (rank < 0 || (p->row.flags & LIVE_FORKED))
		return;
	for (size_t i = 0; i < job->process_count; i++)
		if (job->processes[i].rank == rank && !job->processes[i].ended)
			return;
	at = hang_add_process(job, str_from(why->file->follow.path));
	if (at == UINT32_MAX)
		return;
	to = &job->processes[at];
	to->rank = (int32_t)rank;
	to->world = world > 0 ? world : 0;
	to->ended = p->ended;
	to->ended_why = hang_text(job, STR("its process is gone"));
	to->stack_since_ns = why->since_ns;
	to->stack_until_ns = why->since_ns + why->stalled_ns;
	if (!p->ended)
		read_stack(job, to, (pid_t)p->row.pid, left_ns);
}

ow_status anomaly_hang(const struct anomaly_why *why, struct table **out, struct ow_error *err)
{
	struct mem *mem = why->watch->mem;
	const struct follow *f = &why->file->follow;
	struct hang_job job;
	ow_status status = OW_OK;
	int64_t left_ns = ANOMALY_STACK_NS;

	*out = NULL;
	hang_init(&job, mem);
	for (size_t i = 0; i < f->process_count && !job.no_memory; i++)
		add_process(&job, why, &f->processes[i], &left_ns);
	if (job.no_memory)
		status = error_no_memory(err);
	if (status == OW_OK && job.process_count > 1) {
		job.files_read = 1;
		*out = table_new(mem, "hang", err);
		status = *out ? hang_table(&job, *out, err) : OW_E_NO_MEMORY;
	}
	hang_release(&job);
	if (status != OW_OK) {
		table_free(*out);
		*out = NULL;
	}
	return status;
}
