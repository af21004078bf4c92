/* relation_job_op.c: the relation `job_op`: the own work of a rank for each operation, up to 512 of them. The
 * analysis is in src/ranks. */
#include "relation/job.h"

struct row {
	int64_t number, rank, dur, runs, float_ops, name_key;
	struct str op;
};

static const struct row_member members[] = {
	ROW_MEMBER(TYPE_INT, UNIT_NONE, number, "number of the rank's row in job_rank"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, rank, "the rank, from the content of the file"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, op, "what ran"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, dur, "time of all runs of the operation"),
	ROW_MEMBER(TYPE_INT, UNIT_COUNT, runs, "how often the operation ran"),
	ROW_MEMBER(TYPE_INT, UNIT_COUNT, float_ops,
		   "float operations of one run, NULL when unknown"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, name_key,
		   "hash of the name; equal for operations of one name"),
	{ NULL, NULL, 0, 0, 0, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	columns_need(t, TABLES_ALL);
	return rows_describe(t, members, sizeof(struct row), err);
}

/* Makes a row for each operation of each worker. */
static ow_status make_rows(struct table_part *part, const struct ranks_job *job,
			   struct ow_error *err)
{
	size_t count = 0;
	struct row *rows;

	for (size_t i = 0; i < job->worker_count; i++)
		count += job->workers[i].op_count;
	rows = ARENA_ARRAY(&part->arena, struct row, count + 1);
	count = 0;
	for (size_t i = 0; rows && i < job->worker_count; i++)
		for (size_t k = 0; rows && k < job->workers[i].op_count; k++) {
			const struct worker_op *op = &job->workers[i].ops[k];
			struct row *to = &rows[count++];

			*to = (struct row){ .number = (int64_t)i,
					    .rank = job_number(job->workers[i].rank),
					    .dur = op->ns,
					    .runs = (int64_t)op->count,
					    .float_ops = op->float_ops ? (int64_t)op->float_ops
								       : ROW_UNKNOWN,
					    .name_key = (int64_t)(op->name >> 1),
					    .op = arena_str(&part->arena, op->text) };
			if (!to->op.ptr)
				rows = NULL;
		}
	if (!rows)
		return error_no_memory(err);
	rows_set(part, rows, count);
	return OW_OK;
}

static ow_status prepare(struct table *t, struct table_part *part, struct ow_error *err)
{
	(void)t;
	return rows_of_job(part, make_rows, err);
}

const struct table_source relation_job_op = {
	.name = "job_op",
	.doc = "the own work of a rank of a job, by operation",
	.describe = describe,
	.prepare = prepare,
};
