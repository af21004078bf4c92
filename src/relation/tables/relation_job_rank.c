/*
 * relation_job_rank.c: the relation `job_rank`: one rank of a job: its identity, its clock compared with the lowest
 * rank's, the parts of its steps, and whether it is slower than its peers. The analysis is in src/ranks; docs/ranks.md
 * explains the values.
 */
#include "relation/job.h"

struct row {
	int64_t source_id, rank, world_size, dp, stage, tp;
	struct str host, file, clock, straggler, cause;
	int64_t pid, first_ts, last_ts, events, fingerprint, resolution;
	int64_t steps, step, own_work, wait, transfer;
	int64_t clock_offset, clock_likely, clock_proven, pairs_used, pairs_rejected;
	double clock_drift_ppm, slowdown_caused, frequency;
	int64_t number;
	bool has_device, whole_job, left_out;
};

static const struct row_member members[] = {
	ROW_MEMBER(TYPE_INT, UNIT_NONE, number, "number of the row, the same in all tables job_…"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, rank, "the rank, from the content of the file"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, world_size, "number of ranks of the job, as the file says"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, dp, "data-parallel number"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, stage, "pipeline stage"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, tp, "tensor-parallel number"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, host, "name of the host, as the file says"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, file, "path of the input"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, source_id, "the input"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, pid, "process"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, first_ts, "begin of the rank's first work, on its own clock"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, last_ts, "end of the rank's last work, on its own clock"),
	ROW_MEMBER(TYPE_INT, UNIT_COUNT, events, "number of slices of work"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, fingerprint,
		   "hash of the times of all slices: equal in copies"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, resolution, "resolution of the times in the file"),
	ROW_MEMBER(TYPE_BOOL, UNIT_NONE, has_device, "true: work of a device was recorded"),
	ROW_MEMBER(TYPE_BOOL, UNIT_NONE, whole_job,
		   "true: the file holds several ranks, and this is one of them"),
	ROW_MEMBER(TYPE_BOOL, UNIT_NONE, left_out,
		   "true: a copy, or from another job; the rank is not compared"),
	ROW_MEMBER(TYPE_REAL, UNIT_NONE, frequency,
		   "frequency of the device in the unit of the counter that reports it"),
	ROW_MEMBER(TYPE_INT, UNIT_COUNT, steps, "number of steps that are steady on all ranks"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, step, "median duration of these steps"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, own_work, "mean time of the rank's own work in these steps"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, wait, "mean time of waiting for other ranks in collectives"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, transfer, "mean time of collectives without waiting"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, clock,
		   "state of the job's clocks: shared, fitted or impossible"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, clock_offset,
		   "nanoseconds to add to get the clock of the lowest rank, at the middle of the "
		   "recording"),
	ROW_MEMBER(TYPE_REAL, UNIT_NONE, clock_drift_ppm, "how the clock offset grows with time"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, clock_likely, "±, 95 %"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, clock_proven, "±, certain"),
	ROW_MEMBER(TYPE_INT, UNIT_COUNT, pairs_used,
		   "number of collectives that the clock was fitted to"),
	ROW_MEMBER(TYPE_INT, UNIT_COUNT, pairs_rejected,
		   "number of collectives that contradict the fitted clock"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, straggler,
		   "kind of straggler: none, persistent, transient or periodic"),
	ROW_MEMBER(
		TYPE_REAL, UNIT_NONE, slowdown_caused,
		"duration of the step, divided by its duration if this rank were like its peers"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, cause,
		   "cause: the kind of work of which a straggler has more than its peers"),
	{ NULL, NULL, 0, 0, 0, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	columns_need(t, TABLES_ALL);
	return rows_describe(t, members, sizeof(struct row), err);
}

static void set_times(const struct ranks_job *job, const struct worker *w, struct row *to)
{
	struct rank_means mean;
	bool steps = ranks_means(job, w, &mean);

	to->steps = job_time(steps, (int64_t)mean.count);
	to->step = job_time(steps, mean.step_ns);
	to->own_work = job_time(steps && mean.own_ns > 0, mean.own_ns);
	to->wait = job_time(steps && ranks_waits_known(job, w), mean.wait_ns);
	to->transfer = job_time(steps && ranks_waits_known(job, w), mean.transfer_ns);
}

static void set_row(const struct table_part *part, const struct ranks_job *job, size_t number,
		    struct row *to)
{
	const struct worker *w = &job->workers[number];
	bool fitted = w->has_clock && w->piece_count;

	*to = (struct row){
		.number = (int64_t)number,
		.source_id = part->id_base + w->source,
		.rank = job_number(w->rank),
		.world_size = job_number(w->world),
		.dp = job_number(w->dp),
		.stage = job_number(w->stage),
		.tp = job_number(w->tp),
		.pid = w->pid,
		.first_ts = w->first_ns,
		.last_ts = w->last_ns,
		.events = (int64_t)w->events,
		/* >> 1 keeps the hash positive: INT64_MIN stands for NULL */
		.fingerprint = (int64_t)(w->hash >> 1),
		.resolution = w->resolution_ns,
		.has_device = w->has_device,
		.whole_job = w->many,
		.left_out = w->left_out,
		.clock = str_from(clock_names[job->clock]),
		.clock_offset = job_time(w->has_clock, w->offset_ns),
		.clock_drift_ppm = w->has_clock ? w->drift_ppm : __builtin_nan(""),
		.clock_likely = job_time(w->has_clock, w->likely_ns),
		.clock_proven = job_time(w->has_clock, w->proven_ns),
		.pairs_used = job_time(fitted, (int64_t)w->pairs_used),
		.pairs_rejected = job_time(fitted, (int64_t)w->pairs_rejected),
		.straggler = str_from(straggler_names[w->straggler]),
		.slowdown_caused = w->slowdown_caused,
		.frequency = w->frequency > 0 ? w->frequency : __builtin_nan(""),
	};
	if (w->straggler != STRAGGLER_NONE && cause_names[w->cause])
		to->cause = str_from(cause_names[w->cause]);
	set_times(job, w, to);
}

/* Copies the texts of a worker, because the job's texts are freed with the job. */
static bool copy_texts(struct arena *arena, const struct worker *w, struct row *to)
{
	to->file = arena_str(arena, w->path);
	if (w->host.len)
		to->host = arena_str(arena, w->host);
	return to->file.ptr && (!w->host.len || to->host.ptr);
}

static ow_status make_rows(struct table_part *part, const struct ranks_job *job,
			   struct ow_error *err)
{
	struct row *rows = ARENA_ARRAY(&part->arena, struct row, job->worker_count + 1);

	for (size_t i = 0; rows && i < job->worker_count; i++) {
		set_row(part, job, i, &rows[i]);
		if (!copy_texts(&part->arena, &job->workers[i], &rows[i]))
			rows = NULL;
	}
	if (!rows)
		return error_no_memory(err);
	rows_set(part, rows, job->worker_count);
	return OW_OK;
}

static ow_status prepare(struct table *t, struct table_part *part, struct ow_error *err)
{
	(void)t;
	return rows_of_job(part, make_rows, err);
}

const struct table_source relation_job_rank = {
	.name = "job_rank",
	.doc = "one rank of a job: its clock, its own work, waits and transfers, and whether it is "
	       "a straggler",
	.describe = describe,
	.prepare = prepare,
};
