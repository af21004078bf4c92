/*
 * relation_what_if.c: the relation `what_if`: one row for each run: the predicted time of a step with the changes of
 * `opwatch what-if`; the analysis is in src/replay. The relation has a parameter, so export and push leave it out.
 * Without a change the row has the measured and the replayed step.
 */
#include "model/backing.h"
#include "relation/columns.h"
#include "replay/session.h"

#include <stdlib.h>

#define CHANGES_MOST 32

struct row {
	struct str change, refused;
	int64_t base_step, replayed_step, new_step, new_low, new_high;
};

static const struct row_member members[] = {
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, change, "text of the changes, as given"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, base_step, "duration of the median steady step"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, replayed_step,
		   "duration of the median steady step in the replay, without a change"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, new_step, "duration of the step with the changes"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, new_low, "lower end of the 90 % interval of the prediction"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, new_high, "upper end of the 90 % interval of the prediction"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, refused, "reason why there is no prediction"),
	{ NULL, NULL, 0, 0, 0, NULL },
};

static const struct table_param params[] = {
	{ "change", "changes as for opwatch what-if, with ';' between them: 'input=0; sync=0'",
	  TYPE_TEXT },
	{ NULL, NULL, 0 },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	columns_need(t, TABLES_ALL);
	return rows_describe(t, members, sizeof(struct row), err);
}

/* Splits a text at ';' and removes blanks around the parts. */
static ow_status split_changes(struct arena *arena, struct str text, const char **out,
			       size_t *count, struct ow_error *err)
{
	*count = 0;
	while (text.len) {
		size_t end = str_find_char(text, ';');
		struct str one = end == STR_NONE ? text : str_first(text, end);

		text = str_skip(text, end == STR_NONE ? text.len : end + 1);
		while (one.len && one.ptr[0] == ' ')
			one = str_skip(one, 1);
		while (one.len && one.ptr[one.len - 1] == ' ')
			one.len--;
		if (!one.len)
			continue;
		if (*count == CHANGES_MOST)
			return error_set(err, OW_E_USAGE, "what_if: more than %d changes",
					 CHANGES_MOST);
		out[*count] = arena_cstr(arena, one);
		if (!out[(*count)++])
			return error_no_memory(err);
	}
	return OW_OK;
}

static int64_t number(const struct table *t, const char *name)
{
	const char *text = table_extra(t, name);

	return text && strcmp(text, "null") != 0 ? strtoll(text, NULL, 10) : ROW_UNKNOWN;
}

/* The reason why there is no prediction, as plain text; the table's footer has it, too. */
static struct str reason(const struct table *t, struct arena *arena)
{
	static const char before[] = "refused: ";

	if (!t->footer || strncmp(t->footer, before, sizeof(before) - 1) != 0)
		return (struct str){ 0 };
	return arena_str(arena, str_from(t->footer + sizeof(before) - 1));
}

static ow_status predict(struct table_part *part, struct str change, const char *const *changes,
			 size_t count, struct ow_error *err)
{
	struct event_filter all = EVENT_FILTER_ALL;
	struct table *t = table_new(part->arena.mem, "what-if", err);
	struct row *row = ARENA_NEW(&part->arena, struct row);
	ow_status status;

	if (!t || !row) {
		table_free(t);
		return error_no_memory(err);
	}
	status = what_if_table(part->m, &all, changes, count, t, err);
	if (status == OW_OK && t->status != OW_OK)
		status = error_no_memory(err);
	*row = (struct row){
		.change = change.len ? arena_str(&part->arena, change) : (struct str){ 0 },
		.base_step = number(t, "base_step_ns"),
		.replayed_step = number(t, "replayed_step_ns"),
		.new_step = count ? number(t, "new_step_ns") : ROW_UNKNOWN,
		.new_low = count ? number(t, "new_low_ns") : ROW_UNKNOWN,
		.new_high = count ? number(t, "new_high_ns") : ROW_UNKNOWN,
		.refused = reason(t, &part->arena),
	};
	if (status == OW_OK)
		rows_set(part, row, 1);
	table_free(t);
	return status;
}

static ow_status prepare(struct table *t, struct table_part *part, struct ow_error *err)
{
	const char *changes[CHANGES_MOST];
	struct str text = { 0 };
	size_t count;

	for (size_t i = 0; i < t->arg_count; i++)
		text = t->args[i].text;
	OW_TRY(split_changes(&part->arena, text, changes, &count, err));
	return predict(part, text, changes, count, err);
}

const struct table_source relation_what_if = {
	.name = "what_if",
	.doc = "prediction, by replay, of how long a step would take with changes",
	.params = params,
	.describe = describe,
	.prepare = prepare,
};
