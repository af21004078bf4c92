/* advise.c: ow_advise: runs the rules and makes one table of their findings. */
#include "api/api_int.h"

enum {
	COLUMN_RULE,
	COLUMN_SEVERITY,
	COLUMN_WHAT,
	COLUMN_WHERE,
	COLUMN_ADVICE,
	COLUMN_GAIN,
	COLUMN_CONFIDENCE,
	COLUMN_CHECKED
};

static const char *const severities[] = { "info", "low", "medium", "high" };

static void add_columns(struct result *r)
{
	result_column(r, "rule", "rule", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "severity", "severity", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "what", "what", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "where", "where", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "advice", "what to try", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "gain_ns", "gain per step", RESULT_INT, RESULT_NS);
	result_column(r, "confidence", "confidence", RESULT_REAL, RESULT_PLAIN);
	result_column(r, "checked", "checked", RESULT_BOOL, RESULT_PLAIN);
}

static void add_finding(struct result *r, const struct rule *rule, const struct finding *finding)
{
	uint32_t row = result_row(r, 0);

	result_set_model_text(r, row, COLUMN_RULE, str_from(rule->name));
	result_set_model_text(r, row, COLUMN_SEVERITY, str_from(severities[finding->severity]));
	result_set_text(r, row, COLUMN_WHAT, finding->what);
	result_set_text(r, row, COLUMN_WHERE, finding->where);
	result_set_text(r, row, COLUMN_ADVICE, finding->advice);
	if (finding->gain_ns)
		result_set_int(r, row, COLUMN_GAIN, finding->gain_ns);
	else
		result_set_unknown(r, row, COLUMN_GAIN);
	result_set_real(r, row, COLUMN_CONFIDENCE, finding->confidence);
	result_set_int(r, row, COLUMN_CHECKED, 1);
}

static void add_not_checked(struct result *r, const struct rule *rule, struct str why)
{
	uint32_t row = result_row(r, 0);

	result_set_model_text(r, row, COLUMN_RULE, str_from(rule->name));
	result_set_model_text(r, row, COLUMN_SEVERITY, str_from(severities[SEVERITY_INFO]));
	result_set_text(r, row, COLUMN_WHAT, why);
	result_set_unknown(r, row, COLUMN_GAIN);
	result_set_unknown(r, row, COLUMN_CONFIDENCE);
}

static bool wanted(const struct rule *rule, const struct ow_list *names)
{
	if (!names)
		return true;
	for (size_t i = 0; i < names->count; i++)
		if (strcmp(names->items[i], rule->name) == 0 ||
		    (rule->checker && strcmp(names->items[i], rule->checker) == 0))
			return true;
	return false;
}

/* Messages move into the result's own arena: the findings' is gone afterwards. */
static ow_status keep_messages(ow_result *result, const struct findings *found, struct error *err)
{
	struct arena *arena = &result->r->arena;
	size_t old = result->message_count;
	struct str *all = ARENA_ARRAY(arena, struct str, old + found->message_count + 1);

	if (!all)
		return error_no_memory(err);
	if (old)
		memcpy(all, result->messages, old * sizeof(*all));
	for (size_t i = 0; i < found->message_count; i++) {
		all[old + i] = arena_str(arena, found->messages[i]);
		if (!all[old + i].ptr)
			return error_no_memory(err);
	}
	result->messages = all;
	result->message_count = old + found->message_count;
	return OW_OK;
}

static ow_status run_rule(ow_profile *p, const struct rule *rule, ow_result *result,
			  struct error *err)
{
	struct arena arena;
	struct findings found = { .arena = &arena };
	ow_status status;

	arena_init(&arena, &p->mem);
	status = rule->check(p->m, &found, err);
	for (size_t i = 0; status == OW_OK && i < found.count; i++)
		add_finding(result->r, rule, &found.items[i]);
	if (status == OW_OK && found.not_checked.len)
		add_not_checked(result->r, rule, found.not_checked);
	if (status == OW_OK)
		status = keep_messages(result, &found, err);
	arena_release(&arena);
	return status;
}

ow_status ow_advise(ow_profile *p, const struct ow_list *names, ow_result **out, struct error *err)
{
	struct reading reading;
	struct result *r;
	ow_status status;

	error_clear(err);
	*out = NULL;
	if (!p->frozen)
		return error_set(err, OW_E_USAGE, "the profile is still being loaded");
	r = result_new(&p->mem, "advise", err);
	if (!r)
		return OW_E_NO_MEMORY;
	add_columns(r);
	OW_TRY(api_wrap_result(p, r, out, err));
	status = api_read_begin(p, TABLES_ALL, &reading, err);
	if (status == OW_OK) {
		for (size_t i = 0; status == OW_OK && i < rule_count; i++)
			if (wanted(rules[i], names))
				status = run_rule(p, rules[i], *out, err);
		status = api_read_end(p, &reading, status, err);
	}
	if (status == OW_OK && r->status != OW_OK)
		status = error_no_memory(err);
	if (status != OW_OK) {
		ow_result_free(*out);
		*out = NULL;
	}
	return status;
}
