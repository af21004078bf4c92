/* relation_run.c: the relation `run`: one row for each set of inputs that was opened together. */
#include "model/backing.h"
#include "model/event_filter.h"
#include "relation/columns.h"

struct row {
	int64_t number, sources, tracks, ops, events, steps, start, dur;
	struct str path, format, producer;
	bool damaged;
};

static const struct row_member members[] = {
	ROW_MEMBER(TYPE_INT, UNIT_NONE, number, "number of the run, from 1"),
	ROW_MEMBER(TYPE_INT, UNIT_COUNT, sources, "inputs"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, path, "path of the first input"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, format, "its format"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, producer, "program that wrote the input, when known"),
	ROW_MEMBER(TYPE_INT, UNIT_COUNT, tracks, "number of rows in the table track"),
	ROW_MEMBER(TYPE_INT, UNIT_COUNT, ops, "number of rows in the table op"),
	ROW_MEMBER(TYPE_INT, UNIT_COUNT, events, "number of rows in the table event"),
	ROW_MEMBER(TYPE_INT, UNIT_COUNT, steps, "number of rows in the table step"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, start, "begin of the first event"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, dur,
		   "time from the begin of the first event to the end of the last one"),
	ROW_MEMBER(TYPE_BOOL, UNIT_NONE, damaged,
		   "true: parts of the inputs were lost; see the table loss"),
	{ NULL, NULL, 0, 0, 0, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	columns_need(t, TABLE_BIT(source) | TABLE_BIT(event) | TABLE_BIT(track));
	return rows_describe(t, members, sizeof(struct row), err);
}

static struct str text_of(const struct model *m, str_id id)
{
	return id.v ? model_str(m, id) : (struct str){ 0 };
}

static void find_times(const struct model *m, struct row *row)
{
	int64_t start = INT64_MAX, end = INT64_MIN;

	for (uint32_t i = 1; i < m->event.count; i++) {
		start = MIN(start, m->event.ts_ns[i]);
		end = MAX(end, event_end(m, i));
	}
	row->start = start == INT64_MAX ? ROW_UNKNOWN : start;
	if (row->start == ROW_UNKNOWN || __builtin_sub_overflow(end, start, &row->dur))
		row->dur = ROW_UNKNOWN;
}

static ow_status prepare(struct table *t, struct table_part *part, struct ow_error *err)
{
	struct row *row = ARENA_NEW(&part->arena, struct row);
	const struct model *m = part->m;

	(void)t;
	if (!row)
		return error_no_memory(err);
	row->number = part->run->number;
	row->sources = (int64_t)model_table_rows(m, TABLE_source);
	row->tracks = (int64_t)model_table_rows(m, TABLE_track);
	row->ops = (int64_t)model_table_rows(m, TABLE_op);
	row->events = (int64_t)model_table_rows(m, TABLE_event);
	row->steps = (int64_t)model_table_rows(m, TABLE_step);
	row->damaged = m->damaged;
	if (row->sources) {
		row->path = text_of(m, m->source.path[1]);
		row->format = text_of(m, m->source.format[1]);
		row->producer = text_of(m, m->source.producer[1]);
	}
	find_times(m, row);
	rows_set(part, row, 1);
	return OW_OK;
}

const struct table_source relation_run = {
	.name = "run",
	.doc = "one set of inputs that was opened together",
	.describe = describe,
	.prepare = prepare,
};
