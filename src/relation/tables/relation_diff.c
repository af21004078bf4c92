/*
 * relation_diff.c: the relation `diff`: compares each run with the base, by default the first run. The comparison
 * itself is in src/diff; `opwatch diff` also prints conclusions. The relation has a parameter, so export and push,
 * which write one run, leave it out.
 */
#include "diff/diff.h"
#include "model/backing.h"
#include "relation/columns.h"

#include <stdlib.h>

struct row {
	struct str base_run, phase, op, line, change, matched_by, new_op, base_part, new_part, file;
	int64_t rank, base_ns, new_ns, delta_ns, line_number;
	double base_count, new_count;
};

static const struct row_member members[] = {
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, base_run,
		   "name of the run that this run is compared with"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, phase,
		   "phase of the step; unexplained: nothing was recorded"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, op,
		   "name of the operator or other work; in the base, if the base has it"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, line, "line of code of the user's program"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, rank, "the rank"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, base_ns, "time in a mean steady step of the base"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, new_ns, "time in a mean steady step of this run"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, delta_ns,
		   "new_ns - base_ns; all rows sum to the difference of the steps"),
	ROW_MEMBER(TYPE_REAL, UNIT_NONE, base_count,
		   "how often the work begins in a step of the base"),
	ROW_MEMBER(TYPE_REAL, UNIT_NONE, new_count,
		   "how often the work begins in a step of this run"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, change,
		   "kind of the change: new, gone, count, duration, renamed, split or fused"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, matched_by, "how the rows of the two runs were matched"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, new_op, "name in this run, when it differs"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, base_part, "costliest kernel or call of the base"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, new_part, "costliest kernel or call of this run"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, file, "file that contains the line"),
	ROW_MEMBER(TYPE_INT, UNIT_NONE, line_number, "number of the line in its file"),
	{ NULL, NULL, 0, 0, 0, NULL },
};

static const struct table_param params[] = {
	{ "base", "name of the run to compare with; default: the first run", TYPE_TEXT },
	{ NULL, NULL, 0 },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	columns_need(t, TABLES_ALL);
	return rows_describe(t, members, sizeof(struct row), err);
}

static const struct table_column *column_of(const struct table *t, const char *name)
{
	for (uint32_t c = 0; c < t->column_count; c++)
		if (strcmp(t->columns[c].name, name) == 0)
			return &t->columns[c];
	return NULL;
}

struct copy {
	const struct table *t;
	struct arena *arena;
	bool failed;
};

static struct str copy_text(struct copy *from, const char *name, uint32_t row)
{
	const struct table_column *c = column_of(from->t, name);
	struct str text = { 0 };

	if (c && c->texts[row].len) {
		text = arena_str(from->arena, c->texts[row]);
		from->failed = from->failed || !text.ptr;
	}
	return text;
}

static int64_t copy_int(const struct table *t, const char *name, uint32_t row)
{
	const struct table_column *c = column_of(t, name);

	return c && (!c->known || c->known[row]) ? c->ints[row] : ROW_UNKNOWN;
}

static double copy_real(const struct table *t, const char *name, uint32_t row)
{
	const struct table_column *c = column_of(t, name);

	return c ? c->reals[row] : 0;
}

static void copy_row(struct copy *from, uint32_t i, struct row *to)
{
	const struct table *t = from->t;

	*to = (struct row){
		.phase = copy_text(from, "phase", i),
		.op = copy_text(from, "op", i),
		.line = copy_text(from, "line", i),
		.rank = copy_int(t, "rank", i),
		.base_ns = copy_int(t, "base_ns", i),
		.new_ns = copy_int(t, "new_ns", i),
		.delta_ns = copy_int(t, "delta_ns", i),
		.base_count = copy_real(t, "base_count", i),
		.new_count = copy_real(t, "new_count", i),
		.change = copy_text(from, "change", i),
		.matched_by = copy_text(from, "matched_by", i),
		.new_op = copy_text(from, "new_op", i),
		.base_part = copy_text(from, "base_part", i),
		.new_part = copy_text(from, "new_part", i),
		.file = copy_text(from, "file", i),
		.line_number = copy_int(t, "line_number", i),
	};
}

static int64_t extra_int(const struct table *t, const char *name)
{
	const char *text = table_extra(t, name);

	return text ? strtoll(text, NULL, 10) : 0;
}

/* Adds the row for the time of both sides in which nothing was recorded, so that the rows sum to the steps. */
static void add_rest(const struct table *t, const struct row *rows, struct row *rest)
{
	*rest = (struct row){ .phase = STR("unexplained"),
			      .rank = ROW_UNKNOWN,
			      .line_number = ROW_UNKNOWN,
			      .base_ns = extra_int(t, "base_step_ns"),
			      .new_ns = extra_int(t, "new_step_ns"),
			      .delta_ns = extra_int(t, "unexplained_ns") };
	for (uint32_t i = 0; i < t->row_count; i++) {
		rest->base_ns -= rows[i].base_ns;
		rest->new_ns -= rows[i].new_ns;
	}
}

static ow_status copy_rows(struct table_part *part, const struct table *t, struct str base,
			   struct ow_error *err)
{
	struct row *rows = ARENA_ARRAY(&part->arena, struct row, (size_t)t->row_count + 1);
	struct copy from = { t, &part->arena, !rows };

	for (uint32_t i = 0; i < t->row_count && !from.failed; i++)
		copy_row(&from, i, &rows[i]);
	if (from.failed)
		return error_no_memory(err);
	add_rest(t, rows, &rows[t->row_count]);
	for (uint32_t i = 0; i <= t->row_count; i++)
		rows[i].base_run = base;
	rows_set(part, rows, (uint64_t)t->row_count + 1);
	return OW_OK;
}

static ow_status compare(struct table_part *part, const struct table_part *base,
			 struct diff_run *runs, struct ow_error *err)
{
	static const struct diff_options none;
	enum diff_gate gate;
	struct table *t;
	ow_status status;

	OW_TRY(diff_run_read(base->m, &(struct diff_read_options){ 0 }, &runs[0], err));
	OW_TRY(diff_run_read(part->m, &(struct diff_read_options){ 0 }, &runs[1], err));
	if (!runs[0].steps || !runs[1].steps) {
		rows_set(part, NULL, 0);
		return OW_OK;
	}
	t = table_new(part->arena.mem, "diff", err);
	if (!t)
		return OW_E_NO_MEMORY;
	status = diff_table(runs, 1, 1, &none, t, &gate, err);
	if (status == OW_OK)
		status = copy_rows(part, t, base->run_texts[1], err);
	table_free(t);
	return status;
}

/* Finds the part of the run with the given name, or the first one. */
static ow_status find_base(const struct table *t, const struct table_part **base,
			   struct ow_error *err)
{
	struct str name = { 0 };

	for (size_t i = 0; i < t->arg_count; i++)
		name = t->args[i].text;
	*base = &t->parts[0];
	for (uint32_t i = 0; name.len && i < t->part_count; i++) {
		*base = &t->parts[i];
		if (str_eq(str_from(t->parts[i].run->name), name))
			return OW_OK;
	}
	return !name.len
		       ? OW_OK
		       : error_set(err, OW_E_USAGE, "diff: no run is called '%.*s'", STR_ARG(name));
}

static ow_status prepare(struct table *t, struct table_part *part, struct ow_error *err)
{
	struct diff_run runs[2] = { 0 };
	const struct table_part *base;
	ow_status status;

	OW_TRY(find_base(t, &base, err));
	if (base == part) {
		rows_set(part, NULL, 0);
		return OW_OK;
	}
	status = compare(part, base, runs, err);
	diff_run_release(&runs[0]);
	diff_run_release(&runs[1]);
	return status;
}

const struct table_source relation_diff = {
	.name = "diff",
	.doc = "each run compared with the first one, or with the run that base names; a row is "
	       "one phase, op and line of a steady step"
	       "steady step",
	.params = params,
	.describe = describe,
	.prepare = prepare,
};
