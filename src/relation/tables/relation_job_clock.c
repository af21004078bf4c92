/*
 * relation_job_clock.c: the relation `job_clock`: converts the clock of a rank to that of the lowest rank, a row for
 * each piece: a clock that was set during the recording has several. ts + shift + drift × (ts - origin) is the time of
 * the job. The analysis is in src/ranks; a job without fitted clocks has no rows.
 */
#include "relation/job.h"

struct row {
	int64_t number, rank, source_id, from_ts, origin_ts;
	double shift, drift;
};

static const struct row_member members[] = {
	ROW_MEMBER(TYPE_INT, UNIT_NONE, number, "number of the rank's row in job_rank"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, rank, "the rank, from the content of the file"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, source_id, "the input"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, from_ts,
		   "first time at which this piece of the clock applies, on the rank's own clock; "
		   "NULL: from the beginning"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, origin_ts,
		   "time at which shift_ns is exact, on the rank's own clock"),
	ROW_MEMBER(TYPE_REAL, UNIT_NS, shift,
		   "nanoseconds to add to the rank's time at that point"),
	ROW_MEMBER(TYPE_REAL, UNIT_NONE, drift, "further shift per nanosecond after that point"),
	{ NULL, NULL, 0, 0, 0, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	columns_need(t, TABLES_ALL);
	return rows_describe(t, members, sizeof(struct row), err);
}

/* Makes a row for each piece of each worker's clock. */
static ow_status make_rows(struct table_part *part, const struct ranks_job *job,
			   struct ow_error *err)
{
	size_t count = 0;
	struct row *rows;

	for (size_t i = 0; i < job->worker_count; i++)
		count += job->workers[i].piece_count + 1;
	rows = ARENA_ARRAY(&part->arena, struct row, count + 1);
	if (!rows)
		return error_no_memory(err);
	count = 0;
	for (size_t i = 0; i < job->worker_count; i++) {
		const struct worker *w = &job->workers[i];

		for (size_t k = 0; w->has_clock && k < MAX(w->piece_count, (size_t)1); k++) {
			const struct clock_piece *piece = w->piece_count ? &w->pieces[k] : NULL;

			rows[count++] = (struct row){
				.number = (int64_t)i,
				.rank = job_number(w->rank),
				.source_id = part->id_base + w->source,
				.from_ts = piece ? piece->from_ns : ROW_UNKNOWN,
				.origin_ts = piece ? piece->origin_ns : w->first_ns,
				.shift = piece ? piece->offset_ns : 0,
				.drift = piece ? piece->drift : 0,
			};
		}
	}
	rows_set(part, rows, count);
	return OW_OK;
}

static ow_status prepare(struct table *t, struct table_part *part, struct ow_error *err)
{
	(void)t;
	return rows_of_job(part, make_rows, err);
}

const struct table_source relation_job_clock = {
	.name = "job_clock",
	.doc = "clock of a rank, compared with the clock of the lowest rank",
	.describe = describe,
	.prepare = prepare,
};
