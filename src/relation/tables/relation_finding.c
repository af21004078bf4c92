/* relation_finding.c: the relation `finding`: advice as rows; the rules are in src/advise. */
#include "advise/advice.h"
#include "model/backing.h"
#include "relation/columns.h"

struct row {
	struct str rule, why_not, what, location, advice, falsified_by, basis, confidence, evidence;
	uint32_t severity;
	int64_t saving_low, saving_high, saving_after;
	bool checked;
};

static const struct row_member members[] = {
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, rule, "name of the rule that made the finding"),
	{ "severity", "severity of the finding: info, low, medium or high", TYPE_TEXT, UNIT_ENUM,
	  offsetof(struct row, severity), &words_severity },
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, what, "one sentence that says what was found"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, location,
		   "op, line, rank or device that the finding is about"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, advice, "change that the user should try"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, falsified_by,
		   "observation that would show that the finding is wrong"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, saving_low, "at least this much time is saved in a step"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, saving_high, "at most this much time is saved in a step"),
	ROW_MEMBER(TYPE_INT, UNIT_NS, saving_after,
		   "time that is saved in addition to the findings above"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, basis,
		   "step that the saving refers to: median or mean; bound: the most that the peak "
		   "rates of the device allow"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, confidence,
		   "confidence in the finding: low, medium or high"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, evidence,
		   "events and times that show the finding, as JSON"),
	ROW_MEMBER(TYPE_BOOL, UNIT_NONE, checked, "false when the rule lacked its data"),
	ROW_MEMBER(TYPE_TEXT, UNIT_NONE, why_not, "reason why the rule was not checked"),
	{ NULL, NULL, 0, 0, 0, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	columns_need(t, TABLES_ALL);
	return rows_describe(t, members, sizeof(struct row), err);
}

static struct str or_null(struct str text)
{
	return text.len ? text : (struct str){ 0 };
}

static void set_row(const struct advice_row *from, struct row *to)
{
	*to = (struct row){
		.rule = str_from(from->rule->name),
		.why_not = or_null(from->why_not),
		.what = or_null(from->what),
		.location = or_null(from->where),
		.advice = or_null(from->advice),
		.falsified_by = or_null(from->falsified_by),
		.severity = from->checked ? (uint32_t)from->severity + 1 : 0,
		.saving_low = from->has_saving ? from->low_ns : ROW_UNKNOWN,
		.saving_high = from->has_saving ? from->high_ns : ROW_UNKNOWN,
		.saving_after = from->has_after ? from->after_ns : ROW_UNKNOWN,
		.evidence = or_null(from->evidence),
		.checked = from->checked,
	};
	if (from->has_saving)
		to->basis = from->is_bound  ? STR("bound")
			    : from->by_mean ? STR("mean")
					    : STR("median");
	if (from->checked)
		to->confidence = str_from(confidence_names[from->confidence]);
}

static ow_status prepare(struct table *t, struct table_part *part, struct ow_error *err)
{
	struct findings tfprof = { .arena = &part->arena };
	struct advice *a = ARENA_NEW(&part->arena, struct advice);
	struct row *rows = NULL;
	ow_status status;

	(void)t;
	if (!a)
		return error_no_memory(err);
	status = advice_make(part->m, NULL, &part->arena, a, &tfprof, err);
	if (status == OW_OK) {
		rows = ARENA_ARRAY(&part->arena, struct row, a->row_count + 1);
		status = rows ? OW_OK : error_no_memory(err);
	}
	for (size_t i = 0; status == OW_OK && i < a->row_count; i++)
		set_row(&a->rows[i], &rows[i]);
	if (status == OW_OK)
		rows_set(part, rows, a->row_count);
	advice_close(a);
	return status;
}

const struct table_source relation_finding = {
	.name = "finding",
	.doc = "advice: what is slow or wasteful, and what to try",
	.describe = describe,
	.prepare = prepare,
};
