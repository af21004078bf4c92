/*
 * relation_job_step.c: the relation `job_step`: one step of one rank: own work, waits and transfers, and the time of
 * each phase. The analysis is in src/ranks.
 */
#include "relation/job.h"

struct row {
	int64_t number, rank, step, start, dur;
	bool in_means;
	int64_t own_work, peers_own_work, wait, transfer, device_slices;
	int64_t class_ns[CLASS_COUNT];
	uint32_t used_as;
};

static const struct str use_texts[] = {
	{ NULL, 0 }, { "steady", 6 }, { "warm_up", 7 }, { "last", 4 }, { "incomplete", 10 },
};
_Static_assert(ARRAY_COUNT(use_texts) == STEP_USES + 1, "a word for each");
static const struct table_dict use_words = { use_texts, ARRAY_COUNT(use_texts) };

#define MEMBER(type, unit, name, doc)                                                              \
	{                                                                                          \
#name, doc, type, unit, offsetof(struct row, name), NULL                           \
	}
#define SHARE(name, class)                                                                         \
	{                                                                                          \
		name "_share",                                                                     \
			"time of the step that belongs to this phase alone; see the table phase",  \
			TYPE_INT, UNIT_NS, offsetof(struct row, class_ns[class]), NULL             \
	}

static const struct row_member members[] = {
	MEMBER(TYPE_INT, UNIT_NONE, number, "number of the rank's row in job_rank"),
	MEMBER(TYPE_INT, UNIT_NONE, rank, "the rank, from the content of the file"),
	MEMBER(TYPE_INT, UNIT_NONE, step, "number of the step"),
	MEMBER(TYPE_INT, UNIT_NS, start, "begin of the step, on the rank's own clock"),
	MEMBER(TYPE_INT, UNIT_NS, dur, "duration"),
	{ "used_as", "state of the step on this rank: steady, warm_up, last or incomplete",
	  TYPE_TEXT, UNIT_ENUM, offsetof(struct row, used_as), &use_words },
	MEMBER(TYPE_BOOL, UNIT_NONE, in_means,
	       "true: the step is steady on all ranks and counts in the means of job_rank"),
	MEMBER(TYPE_INT, UNIT_NS, own_work,
	       "time of the step minus the time in which only collectives ran"),
	MEMBER(TYPE_INT, UNIT_NS, peers_own_work,
	       "median own work of the other ranks of the same role"),
	MEMBER(TYPE_INT, UNIT_NS, wait, "time in collectives until the last rank arrived"),
	MEMBER(TYPE_INT, UNIT_NS, transfer, "time in collectives after the last rank arrived"),
	MEMBER(TYPE_INT, UNIT_COUNT, device_slices, "number of slices of work on the device"),
	SHARE("compute", CLASS_COMPUTE),
	SHARE("communication", CLASS_COMMUNICATION),
	SHARE("device_to_host", CLASS_DEVICE_TO_HOST),
	SHARE("host_to_device", CLASS_HOST_TO_DEVICE),
	SHARE("input", CLASS_INPUT),
	SHARE("synchronisation", CLASS_SYNCHRONISATION),
	SHARE("initialisation", CLASS_INITIALISATION),
	SHARE("allocation", CLASS_ALLOCATION),
	SHARE("launch", CLASS_LAUNCH),
	SHARE("host", CLASS_HOST),
	SHARE("run_queue", CLASS_RUN_QUEUE),
	SHARE("idle", CLASS_IDLE),
	{ NULL, NULL, 0, 0, 0, NULL },
};
_Static_assert(CLASS_COUNT == 12, "a column for each");

static ow_status describe(struct table *t, struct ow_error *err)
{
	columns_need(t, TABLES_ALL);
	return rows_describe(t, members, sizeof(struct row), err);
}

static bool is_in_means(const struct ranks_job *job, int64_t number)
{
	for (size_t i = 0; i < job->step_count; i++)
		if (job->step_numbers[i] == number)
			return true;
	return false;
}

static void set_row(const struct ranks_job *job, size_t number, const struct worker_step *s,
		    struct row *to)
{
	const struct worker *w = &job->workers[number];
	bool waits = ranks_waits_known(job, w);

	*to = (struct row){
		.number = (int64_t)number,
		.rank = job_number(w->rank),
		.step = s->number,
		.start = s->start_ns,
		.dur = span_length(s->start_ns, s->end_ns),
		.used_as = (uint32_t)s->use + 1,
		.in_means = !w->left_out && is_in_means(job, s->number),
		.own_work = job_time(s->own_ns > 0, s->own_ns),
		.peers_own_work = job_time(s->others_ns > 0 && s->own_ns > 0, s->others_ns),
		.wait = job_time(waits, s->wait_ns),
		.transfer = job_time(waits, s->transfer_ns),
		.device_slices = (int64_t)s->slices,
	};
	memcpy(to->class_ns, s->class_ns, sizeof(to->class_ns));
}

static ow_status make_rows(struct table_part *part, const struct ranks_job *job,
			   struct ow_error *err)
{
	size_t count = 0;
	struct row *rows;

	for (size_t i = 0; i < job->worker_count; i++)
		count += job->workers[i].step_count;
	rows = ARENA_ARRAY(&part->arena, struct row, count + 1);
	if (!rows)
		return error_no_memory(err);
	count = 0;
	for (size_t i = 0; i < job->worker_count; i++)
		for (size_t s = 0; s < job->workers[i].step_count; s++)
			set_row(job, i, &job->workers[i].steps[s], &rows[count++]);
	rows_set(part, rows, count);
	return OW_OK;
}

static ow_status prepare(struct table *t, struct table_part *part, struct ow_error *err)
{
	(void)t;
	return rows_of_job(part, make_rows, err);
}

const struct table_source relation_job_step = {
	.name = "job_step",
	.doc = "one step of one rank of a job: own work, waits and transfers",
	.describe = describe,
	.prepare = prepare,
};
