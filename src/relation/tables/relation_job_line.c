/* relation_job_line.c: the relation `job_line`: the time that lines of the program take on a rank, from recordings with call stacks. The
 * analysis is in src/ranks. */
#include "relation/job.h"

struct row {
	int64_t number, rank, host, device, name_key;
	struct str line;
};

static const struct row_member members[] = {
	ROW_MEMBER(TYPE_INT, UNIT_NONE, number, "number of the rank's row in job_rank"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, rank, "the rank, from the content of the file"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, line, "file, line and function"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, host, "time of the host in the line, in all steady steps"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, device,
		   "time of the device's work that the line launched, in all steady steps"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, name_key,
		   "hash of the line; equal for the same line on all ranks"),
	{ NULL, NULL, 0, 0, 0, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	columns_need(t, TABLES_ALL);
	return rows_describe(t, members, sizeof(struct row), err);
}

/* Makes a row for each line of each worker. */
static ow_status make_rows(struct table_part *part, const struct ranks_job *job,
			   struct ow_error *err)
{
	size_t count = 0;
	struct row *rows;

	for (size_t i = 0; i < job->worker_count; i++)
		count += job->workers[i].line_count;
	rows = ARENA_ARRAY(&part->arena, struct row, count + 1);
	count = 0;
	for (size_t i = 0; rows && i < job->worker_count; i++)
		for (size_t k = 0; rows && k < job->workers[i].line_count; k++) {
			const struct worker_line *line = &job->workers[i].lines[k];
			struct row *to = &rows[count++];

			*to = (struct row){ .number = (int64_t)i,
					    .rank = job_number(job->workers[i].rank),
					    .host = line->host_ns,
					    .device = line->device_ns,
					    .name_key = (int64_t)(line->name >> 1),
					    .line = arena_str(&part->arena, line->text) };
			if (!to->line.ptr)
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

const struct table_source relation_job_line = {
	.name = "job_line",
	.doc = "the time of lines of the program on a rank of a job",
	.describe = describe,
	.prepare = prepare,
};
