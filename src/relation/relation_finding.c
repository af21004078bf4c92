/* relation_finding.c: the relation `finding`: advice as rows; the rules are in src/advise. */
#include "advise/rule.h"
#include "model/backing.h"
#include "relation/rows.h"

struct row {
	struct str rule, what, location, advice;
	uint32_t severity;
	int64_t gain;
	double confidence;
	bool checked;
};

#define MEMBER(type, unit, name, doc)                                                              \
	{                                                                                          \
#name, doc, type, unit, offsetof(struct row, name), NULL                           \
	}

static const struct row_member members[] = {
	MEMBER(RELATION_TEXT, UNIT_NONE, rule, "the rule that found it"),
	{ "severity", "info, low, medium or high", RELATION_TEXT, UNIT_ENUM,
	  offsetof(struct row, severity), &words_severity },
	MEMBER(RELATION_TEXT, UNIT_NONE, what, "what was found; or why it could not be checked"),
	MEMBER(RELATION_TEXT, UNIT_NONE, location, "op, scope, source line or device"),
	MEMBER(RELATION_TEXT, UNIT_NONE, advice, "what to try"),
	MEMBER(RELATION_INT64, UNIT_NS, gain, "estimated saving per step"),
	MEMBER(RELATION_REAL, UNIT_NONE, confidence, "from 0 to 1"),
	MEMBER(RELATION_BOOL, UNIT_NONE, checked, "false when the rule lacked its data"),
	{ NULL, NULL, 0, 0, 0, NULL },
};

static ow_status describe(struct relation_table *t, struct error *err)
{
	columns_need(t, TABLES_ALL);
	return rows_describe(t, members, sizeof(struct row), err);
}

static struct str or_null(struct str text)
{
	return text.len ? text : (struct str){ 0 };
}

static void set_row(const struct rule *rule, const struct finding *f, struct row *to)
{
	*to = (struct row){
		.rule = str_from(rule->name),
		.what = or_null(f->what),
		.location = or_null(f->where),
		.advice = or_null(f->advice),
		.severity = (uint32_t)f->severity + 1,
		.gain = f->gain_ns ? f->gain_ns : ROW_UNKNOWN,
		.confidence = f->confidence,
		.checked = true,
	};
}

static ow_status prepare(struct relation_table *t, struct relation_part *part, struct error *err)
{
	struct findings *found = ARENA_ARRAY(&part->arena, struct findings, rule_count);
	size_t count = 0, at = 0;
	struct row *rows;

	(void)t;
	if (!found)
		return error_no_memory(err);
	for (size_t i = 0; i < rule_count; i++) {
		found[i].arena = &part->arena;
		OW_TRY(rules[i]->check(part->m, &found[i], err));
		count += found[i].count + (found[i].not_checked.len != 0);
	}
	rows = ARENA_ARRAY(&part->arena, struct row, count + 1);
	if (!rows)
		return error_no_memory(err);
	for (size_t i = 0; i < rule_count; i++) {
		for (size_t k = 0; k < found[i].count; k++)
			set_row(rules[i], &found[i].items[k], &rows[at++]);
		if (found[i].not_checked.len) {
			set_row(rules[i], &(struct finding){ .what = found[i].not_checked },
				&rows[at]);
			rows[at].confidence = (double)__builtin_nan("");
			rows[at++].checked = false;
		}
	}
	rows_set(part, rows, count);
	return OW_OK;
}

const struct relation relation_finding = {
	.name = "finding",
	.doc = "advice: what is slow or wasteful, and what to try",
	.describe = describe,
	.prepare = prepare,
};
