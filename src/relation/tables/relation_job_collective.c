/*
 * relation_job_collective.c: the relation `job_collective`: one collective of one rank, split into waiting for the last
 * rank and moving data. Rows with the same `meeting` are the same collective on different ranks. The analysis is in
 * src/ranks. The relation also has what a comparison on a server needs: keys of the pairing, and the pause of own work
 * in which the collective ends.
 */
#include "relation/job.h"

struct row {
	int64_t number, rank, step, ts, dur, job_ts;
	struct str kind, group_name;
	int64_t group_key, pair_key, pair_look, name_key, seq, bytes, group_size, peer;
	int64_t meeting, members, wait, transfer;
	int64_t ready_ts, pause_ts, pause_end_ts;
	bool last, launched;
};

static const struct row_member members[] = {
	ROW_MEMBER(TYPE_INT, UNIT_NONE, number, "number of the rank's row in job_rank"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, rank, "the rank, from the content of the file"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, step, "number of the step; NULL outside of all steps"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, ts, "begin of the collective, on the rank's own clock"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, dur, "duration"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, job_ts,
		   "begin of the collective, on the fitted clock of the lowest rank"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, kind,
		   "kind of the collective: all-reduce, all-gather, send, …"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, group_name,
		   "process group: its name, description and ranks"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, group_key,
		   "hash of the group; equal for collectives of one group"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, seq, "sequence number of the collective within its group"),
	ROW_MEMBER(TYPE_INT, UNIT_BYTES, bytes, "bytes of the larger side of the collective"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, group_size, "number of ranks in the group"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, peer, "peer rank: root, source or destination"),
	ROW_MEMBER(
		TYPE_INT, UNIT_NONE, meeting,
		"number of the collective, equal on all ranks that took part; NULL: not matched"),
	ROW_MEMBER(TYPE_INT, UNIT_COUNT, members,
		   "number of ranks among the files that took part in the collective"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, wait, "time until the last rank arrived; NULL when unknown"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, transfer,
		   "time after the last rank arrived; wait and transfer sum to dur"),
	ROW_MEMBER(TYPE_BOOL, UNIT_NONE, last, "true: this rank arrived last"),
	ROW_MEMBER(TYPE_BOOL, UNIT_NONE, launched,
		   "true: the call that started the collective is known"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, ready_ts,
		   "time at which the rank's own work allowed the collective to start"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, pause_ts,
		   "begin of the pause in the rank's own work in which the collective ends"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, pause_end_ts,
		   "end of the pause in the rank's own work in which the collective ends"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, name_key,
		   "hash of the name; equal for collectives of one name"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, pair_key,
		   "hash that is equal for collectives that may be one and the same"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, pair_look,
		   "hash of kind and size; equal on all ranks of one collective"),
	{ NULL, NULL, 0, 0, 0, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	columns_need(t, TABLES_ALL);
	return rows_describe(t, members, sizeof(struct row), err);
}

static void set_meeting(const struct ranks_job *job, const struct worker *w,
			const struct collective *c, struct row *to)
{
	const struct meeting *m = c->meeting ? &job->meetings[c->meeting - 1] : NULL;
	bool known =
		m && !m->rejected && m->last_ns != TIME_UNKNOWN && w->has_clock && job->waits_known;

	if (!m || m->rejected)
		return;
	to->meeting = c->meeting;
	to->members = m->count;
	if (!known)
		return;
	to->wait = ranks_wait(w, c, m);
	to->transfer = to->dur - to->wait;
	to->last = worker_time(w, c->start_ns) >= m->last_ns;
}

static void set_row(const struct ranks_job *job, size_t number, const struct collective *c,
		    struct row *to)
{
	const struct worker *w = &job->workers[number];
	const struct pause *pause = worker_pause(w, c);

	*to = (struct row){
		.number = (int64_t)number,
		.rank = job_number(w->rank),
		.step = c->step,
		.ts = c->start_ns,
		.dur = span_length(c->start_ns, c->end_ns),
		.job_ts = job_time(w->has_clock, worker_time(w, c->start_ns)),
		.kind = str_from(collective_names[c->kind]),
		.group_name = job_group(job, c->group),
		.group_key = c->group ? (int64_t)(c->group >> 1) : ROW_UNKNOWN,
		.name_key = (int64_t)(c->name >> 1),
		.pair_key = (int64_t)(ranks_pair_key(w, c) >> 1),
		.pair_look = (int64_t)(ranks_pair_look(c) >> 1),
		.seq = job_number(c->seq),
		.bytes = job_number(c->bytes),
		.group_size = job_number(c->group_size),
		.peer = job_number(c->peer),
		.meeting = ROW_UNKNOWN,
		.members = ROW_UNKNOWN,
		.wait = ROW_UNKNOWN,
		.transfer = ROW_UNKNOWN,
		.ready_ts = c->ready_ns,
		.pause_ts = job_time(pause != NULL, pause ? pause->begin_ns : 0),
		.pause_end_ts = job_time(pause != NULL, pause ? pause->end_ns : 0),
		.launched = c->launched,
	};
	set_meeting(job, w, c, to);
}

/* Copies the names of groups, each once, because the job's texts are freed with the job. */
static ow_status copy_names(struct table_part *part, const struct ranks_job *job, struct row *rows,
			    size_t count, struct ow_error *err)
{
	struct str *copies = ARENA_ARRAY(&part->arena, struct str, job->group_count + 1);

	if (!copies)
		return error_no_memory(err);
	for (size_t i = 0; i < job->group_count; i++) {
		copies[i] = arena_str(&part->arena, job->groups[i].name);
		if (!copies[i].ptr)
			return error_no_memory(err);
	}
	for (size_t i = 0; i < count; i++)
		for (size_t g = 0; rows[i].group_name.ptr && g < job->group_count; g++)
			if (job->groups[g].name.ptr == rows[i].group_name.ptr) {
				rows[i].group_name = copies[g];
				break;
			}
	return OW_OK;
}

static ow_status make_rows(struct table_part *part, const struct ranks_job *job,
			   struct ow_error *err)
{
	size_t count = 0;
	struct row *rows;

	for (size_t i = 0; i < job->worker_count; i++)
		count += job->workers[i].collective_count;
	rows = ARENA_ARRAY(&part->arena, struct row, count + 1);
	if (!rows)
		return error_no_memory(err);
	count = 0;
	for (size_t i = 0; i < job->worker_count; i++)
		for (size_t k = 0; k < job->workers[i].collective_count; k++)
			set_row(job, i, &job->workers[i].collectives[k], &rows[count++]);
	OW_TRY(copy_names(part, job, rows, count, err));
	rows_set(part, rows, count);
	return OW_OK;
}

static ow_status prepare(struct table *t, struct table_part *part, struct ow_error *err)
{
	(void)t;
	return rows_of_job(part, make_rows, err);
}

const struct table_source relation_job_collective = {
	.name = "job_collective",
	.doc = "one collective of one rank of a job, with its wait and its transfer",
	.describe = describe,
	.prepare = prepare,
};
