/*
 * advice_table.c: findings as the table of `opwatch advise`: one row per finding, then the rules that could not be checked, and beside
 * the rows the step they are about. Called by the library. The texts are the rules'.
 */
#include "advise/advice.h"

#include <ctype.h>

/* least part of the step that must be known to call a recording healthy */
#define HEALTHY_LEAST 0.5
#define WORTH_NAMING 0.001 /* a lower end of a saving below this part of the step is not printed */

enum {
	COLUMN_RULE,
	COLUMN_CHECKED,
	COLUMN_WHY_NOT,
	COLUMN_SEVERITY,
	COLUMN_WHAT,
	COLUMN_WHERE,
	COLUMN_ADVICE,
	COLUMN_FALSIFIED_BY,
	COLUMN_LOW,
	COLUMN_HIGH,
	COLUMN_AFTER,
	COLUMN_BASIS,
	COLUMN_CONFIDENCE,
	COLUMN_EVIDENCE
};

static void add_columns(struct table *t)
{
	table_add_column(t, "rule", "rule", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "checked", "checked", TYPE_BOOL, UNIT_NONE);
	table_add_column(t, "why_not", "why not checked", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "severity", "severity", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "what", "what", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "where", "where", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "advice", "what to try", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "falsified_by", "falsified by", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "saving_low_ns", "saves at least", TYPE_INT, UNIT_NS);
	table_add_column(t, "saving_high_ns", "saves at most", TYPE_INT, UNIT_NS);
	table_add_column(t, "saving_after_ns", "after those above", TYPE_INT, UNIT_NS);
	table_add_column(t, "basis", "basis", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "confidence", "confidence", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "evidence", "evidence", TYPE_TEXT, UNIT_NONE);
	t->columns[COLUMN_EVIDENCE].json = true;
	t->columns[COLUMN_EVIDENCE].for_programs = true;
}

static void set_saving(struct table *t, uint32_t row, uint32_t column, bool known, int64_t ns)
{
	if (known)
		table_set_int(t, row, column, ns);
	else
		table_set_unknown(t, row, column);
}

static void add_row(struct table *t, const struct advice_row *r)
{
	uint32_t row = table_add_row(t, 0);

	table_set_text(t, row, COLUMN_RULE, str_from(r->rule->name));
	table_set_int(t, row, COLUMN_CHECKED, r->checked);
	table_set_known_text(t, row, COLUMN_WHY_NOT, r->why_not);
	table_set_known_text(t, row, COLUMN_SEVERITY,
			     r->checked ? str_from(severity_names[r->severity]) : STR(""));
	table_set_known_text(t, row, COLUMN_WHAT, r->what);
	table_set_known_text(t, row, COLUMN_WHERE, r->where);
	table_set_known_text(t, row, COLUMN_ADVICE, r->advice);
	table_set_known_text(t, row, COLUMN_FALSIFIED_BY, r->falsified_by);
	set_saving(t, row, COLUMN_LOW, r->has_saving, r->low_ns);
	set_saving(t, row, COLUMN_HIGH, r->has_saving, r->high_ns);
	set_saving(t, row, COLUMN_AFTER, r->has_after, r->after_ns);
	table_set_known_text(t, row, COLUMN_BASIS,
			     !r->has_saving ? STR("")
			     : r->is_bound  ? STR("bound")
			     : r->by_mean   ? STR("mean")
					    : STR("median"));
	table_set_known_text(t, row, COLUMN_CONFIDENCE,
			     r->checked ? str_from(confidence_names[r->confidence]) : STR(""));
	table_set_known_text(t, row, COLUMN_EVIDENCE, r->evidence);
}

static void add_steps(const struct advice *a, struct table *t, struct buf *text)
{
	const struct phases *p = &a->s.g.phases;
	const struct model *m = a->m;

	buf_add_char(text, '[');
	for (uint32_t i = 0; a->steady.known && i < a->steady.used_count; i++)
		buf_printf(text, "%s%lld", i ? ", " : "",
			   (long long)m->step.number[p->windows[a->steady.used[i]].step.v]);
	buf_add_char(text, ']');
	buf_add_char(text, '\0');
	if (!text->failed)
		table_add_extra(t, "steps_used", "%s", text->ptr);
	buf_clear(text);
	buf_add_char(text, '[');
	for (uint32_t i = 0; a->steady.known && i < a->steady.left_out_count; i++) {
		const struct phase_window *w = &p->windows[a->steady.left_out[i]];

		buf_printf(text, "%s{\"step\": %lld, \"reason\": \"%s\"}", i ? ", " : "",
			   (long long)m->step.number[w->step.v], step_use_words[w->use]);
	}
	buf_add_char(text, ']');
	buf_add_char(text, '\0');
	if (!text->failed)
		table_add_extra(t, "steps_left_out", "%s", text->ptr);
}

static void add_number(struct table *t, const char *name, bool known, int64_t value)
{
	if (known)
		table_add_extra(t, name, "%lld", (long long)value);
	else
		table_add_extra(t, name, "null");
}

static void add_settings(const struct advice *a, struct table *t)
{
	char text[SETTINGS_RULES_MOST * 32 + 3];
	size_t at = 1;

	text[0] = '[';
	for (size_t i = 0; i < a->settings.muted_count; i++)
		at += (size_t)snprintf(text + at, 32, "%s\"%.24s\"", i ? ", " : "",
				       a->settings.muted[i]);
	snprintf(text + at, 2, "]");
	table_add_extra(t, "muted", "%s", text);
	table_add_extra(t, "medium_from", "%g", a->settings.medium);
}

/* Returns whether work is launched but the files contain no device events, so that the state of
 * the device is unknown. */
static bool is_unseen(const struct graph *g)
{
	for (uint32_t i = 0; i < g->node_count && !g->has_device; i++)
		if (g->kind[i] == NODE_LAUNCH)
			return true;
	return false;
}

/* Returns whether the recording is known well enough to say that nothing, or only its warm-up, is wrong with it. */
static bool is_known(const struct advice *a)
{
	int64_t known = span_add(a->share_ns[CLASS_COMPUTE], a->share_ns[CLASS_INITIALISATION]);

	return a->has_steps && (double)known > HEALTHY_LEAST * (double)a->step_ns &&
	       !is_unseen(&a->s.g);
}

/* Returns whether one-off initialisation hides the work that repeats: no finding then does not mean that all is well. */
static bool is_warm_up(const struct advice *a)
{
	return is_known(a) && a->share_ns[CLASS_INITIALISATION] > a->share_ns[CLASS_COMPUTE];
}

static bool is_healthy(const struct advice *a)
{
	return is_known(a) && !is_warm_up(a);
}

ow_status advice_table(struct advice *a, struct table *out, struct ow_error *err)
{
	bool replays = advice_replays(a);
	struct buf text;

	add_columns(out);
	for (size_t i = 0; i < a->row_count; i++)
		add_row(out, &a->rows[i]);
	table_add_extra(out, "schema_version", "1");
	add_number(out, "step_ns", a->has_steps, a->step_ns);
	table_add_extra(out, "healthy", a->has_steps ? (is_healthy(a) ? "true" : "false") : "null");
	table_add_extra(out, "warm_up", a->has_steps ? (is_warm_up(a) ? "true" : "false") : "null");
	/* Without steps, step_ns is the duration of the whole recording. */
	table_add_extra(out, "steps_known", a->has_steps && a->steady.known ? "true" : "false");
	buf_init(&text, a->m->mem);
	add_steps(a, out, &text);
	if (text.failed)
		out->status = OW_E_NO_MEMORY;
	buf_release(&text);
	if (a->has_steps)
		table_add_extra(out, "coverage", "%.6f", a->steady.coverage);
	else
		table_add_extra(out, "coverage", "null");
	session_extras(&a->s, replays, out);
	table_add_extra_text(out, "no_replay_because",
			     replays	       ? NULL
			     : *a->s.g.refused ? a->s.g.refused
					       : "no steps with timed work are in this recording");
	add_number(out, "step_if_all_ns", a->has_steps, a->if_all_ns);
	add_settings(a, out);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

/* Returns whether a row recommends a change: checked, of medium or high severity, and not from a
 * rule of tfprof. */
static bool is_finding(const struct advice_row *row)
{
	return row->checked && row->severity >= SEVERITY_MEDIUM && !row->rule->check;
}

static const struct advice_row *first_finding(const struct advice *a)
{
	for (size_t i = 0; i < a->row_count; i++)
		if (is_finding(&a->rows[i]))
			return &a->rows[i];
	return NULL;
}

bool advice_covers_little(const struct advice *a)
{
	return a->has_steps && a->share_ns[CLASS_IDLE] > a->step_ns / 2;
}

bool advice_saves_little(const struct advice *a)
{
	const struct advice_row *first = first_finding(a);

	return first && first->severity < SEVERITY_HIGH;
}

/* The finding and the step without it: the shortest step that the saving allows, or both ends where its lower end is worth naming. */
static void without_first(const struct advice *a, const struct advice_row *first, char *to,
			  size_t size)
{
	char now[TIME_TEXT], shortest[TIME_TEXT], longest[TIME_TEXT];
	bool names_low = (double)first->low_ns > WORTH_NAMING * (double)a->step_ns;
	bool same;

	time_text(now, a->step_ns);
	time_text(shortest, a->step_ns - first->high_ns);
	time_text(longest, a->step_ns - first->low_ns);
	same = strcmp(shortest, longest) == 0;
	snprintf(to, size, "%.*s; without that %s takes %s%s%s%s instead of %s (%s).",
		 (int)MIN(first->what.len, 600), first->what.ptr,
		 a->steady.known ? "a step" : "the recording", names_low ? "" : "as little as ",
		 shortest, names_low && !same ? " to " : "", names_low && !same ? longest : "", now,
		 first->rule->name);
}

void advice_headline(const struct advice *a, char *to, size_t size, struct verdict_subject *subject)
{
	const struct advice_row *first = first_finding(a);
	char step[TIME_TEXT], shortest[TIME_TEXT];

	*to = '\0';
	*subject = (struct verdict_subject){ .class = CLASS_COUNT };
	if (!first && is_warm_up(a))
		snprintf(to, size,
			 "This is mostly warm-up: record %s to judge the work that repeats.",
			 a->steady.known ? "later steps" : "a later part of the run");
	else if (!first && is_healthy(a))
		snprintf(to, size, "Nothing worth changing above %g %% of the %s of %s.",
			 100 * a->settings.medium, a->steady.known ? "step" : "recording",
			 time_text(step, a->step_ns));
	if (!first)
		return;
	*subject = first->subject;
	if (!first->has_saving) {
		snprintf(to, size, "%.*s (%s).", (int)MIN(first->what.len, 600), first->what.ptr,
			 first->rule->name);
		*to = (char)toupper((unsigned char)*to);
		return;
	}
	if (first->by_mean)
		snprintf(to, size, "%.*s; without that the mean step takes up to %s less (%s).",
			 (int)MIN(first->what.len, 600), first->what.ptr,
			 time_text(shortest, first->high_ns), first->rule->name);
	else
		without_first(a, first, to, size);
	*to = (char)toupper((unsigned char)*to);
}
