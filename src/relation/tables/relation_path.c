/*
 * relation_path.c: the relation `path`: the critical path of a step, piece by piece; the analysis is in src/replay. The
 * relation has a parameter, so export and push leave it out. A recording that cannot be replayed has no rows; `opwatch
 * path` prints the reason.
 */
#include "model/backing.h"
#include "relation/columns.h"
#include "replay/session.h"

struct row {
	struct str op, line, track, kind;
	int64_t event, rank, ts, dur;
	double share;
};

static const struct row_member members[] = {
	ROW_MEMBER(TYPE_INT, UNIT_NONE, event,
		   "id of the event; NULL for time in which nothing was recorded"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, op,
		   "name of the work, or of the work that follows a latency"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, line, "line of code of the user's program"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, rank, "the rank"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, track, "track that the work ran on"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, kind,
		   "kind of the piece: kernel, launch, host, host_gap, input, latency, …"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, ts, "start of this part of the path, in the replay"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, dur, "duration of the piece; all rows sum to the step"),
	ROW_MEMBER(TYPE_REAL, UNIT_NONE, share, "share of the piece in the step"),
	{ NULL, NULL, 0, 0, 0, NULL },
};

static const struct table_param params[] = {
	{ "step", "number of the step; default: the steady step nearest the median", TYPE_INT },
	{ NULL, NULL, 0 },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	columns_need(t, TABLES_ALL);
	return rows_describe(t, members, sizeof(struct row), err);
}

static struct str copy_text(struct arena *arena, const struct table *from, uint32_t row,
			    const char *name, bool *failed)
{
	uint32_t column = table_find_column(from, str_from(name));
	struct str text = { 0 };

	if (column != UINT32_MAX && from->columns[column].texts[row].len) {
		text = arena_str(arena, from->columns[column].texts[row]);
		*failed |= !text.ptr;
	}
	return text;
}

static int64_t copy_int(const struct table *from, uint32_t row, const char *name)
{
	const struct table_column *c = &from->columns[table_find_column(from, str_from(name))];

	return !c->known || c->known[row] ? c->ints[row] : ROW_UNKNOWN;
}

static ow_status copy_rows(struct table_part *part, const struct table *from, struct ow_error *err)
{
	struct row *rows = ARENA_ARRAY(&part->arena, struct row, (size_t)from->row_count + 1);
	uint32_t share = table_find_column(from, STR("share"));
	bool failed = !rows;

	for (uint32_t i = 0; !failed && i < from->row_count; i++)
		rows[i] = (struct row){
			.op = copy_text(&part->arena, from, i, "op", &failed),
			.line = copy_text(&part->arena, from, i, "line", &failed),
			.track = copy_text(&part->arena, from, i, "track", &failed),
			.kind = copy_text(&part->arena, from, i, "kind", &failed),
			.event = copy_int(from, i, "event"),
			.rank = copy_int(from, i, "rank"),
			.ts = copy_int(from, i, "ts_ns"),
			.dur = copy_int(from, i, "dur_ns"),
			.share = from->columns[share].reals[i],
		};
	if (failed)
		return error_no_memory(err);
	rows_set(part, rows, from->row_count);
	return OW_OK;
}

static ow_status prepare(struct table *t, struct table_part *part, struct ow_error *err)
{
	struct event_filter all = EVENT_FILTER_ALL;
	struct table *path = table_new(part->arena.mem, "path", err);
	int64_t step = TIME_UNKNOWN;
	ow_status status;

	if (!path)
		return OW_E_NO_MEMORY;
	for (size_t i = 0; i < t->arg_count; i++)
		step = t->args[i].number;
	status = path_table(part->m, &all, step, NULL, path, err);
	if (status == OW_OK && path->status != OW_OK)
		status = error_no_memory(err);
	if (status == OW_OK)
		status = copy_rows(part, path, err);
	table_free(path);
	return status;
}

const struct table_source relation_path = {
	.name = "path",
	.doc = "the critical path of a steady step: what it waits for, one after the other",
	.params = params,
	.describe = describe,
	.prepare = prepare,
};
