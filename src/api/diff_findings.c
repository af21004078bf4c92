/*
 * diff_findings.c: what became of the advice between two groups of runs: findings of the base that are gone, those that are still there,
 * and new ones. Called by ow_diff; the rules are in src/advise. A finding that a rule of the new runs cannot check is not gone.
 */
#include "api/api_int.h"

#include "advise/advice.h"
#include "base/buf.h"
#include "base/json_escape.h"

/* number of runs of a side whose advice is compared, because rules take about as long as reading
 * a file */
#define RUNS_MOST 4
/* with more events in all compared runs, rules take several times as long as the comparison */
#define EVENTS_MOST 1000000u
#define WHERE_BYTES 200

/* The state of a rule in the runs of one side. */
struct side {
	uint32_t runs, checked, found;
	int64_t saving_ns; /* largest saving over all runs; -1: unknown */
	enum severity severity;
	char where[WHERE_BYTES];
};

static void add_row(const struct advice_row *row, struct side *side, bool *found, bool *checked)
{
	*checked |= row->checked;
	if (!row->checked)
		return;
	*found |= row->severity >= SEVERITY_MEDIUM;
	if (row->severity < side->severity || (side->where[0] && row->high_ns <= side->saving_ns))
		return;
	side->severity = row->severity;
	side->saving_ns = row->has_saving ? row->high_ns : -1;
	snprintf(side->where, sizeof(side->where), "%.*s", STR_ARG(row->where));
}

/* Adds the findings of a run. A rule without a row was checked and found nothing. */
static void add_run(const struct advice *a, struct side *sides)
{
	for (size_t r = 0; r < rule_count; r++) {
		bool found = false, checked = true, first = true;

		for (size_t i = 0; i < a->row_count; i++) {
			if (a->rows[i].rule != rules[r])
				continue;
			if (first)
				checked = false;
			first = false;
			add_row(&a->rows[i], &sides[r], &found, &checked);
		}
		sides[r].runs++;
		sides[r].checked += checked;
		sides[r].found += found;
	}
}

static ow_status read_advice(ow_profile *p, struct side *sides, struct ow_error *err)
{
	struct findings found = { 0 };
	struct reading reading;
	struct arena arena;
	struct advice a;
	ow_status status;

	arena_init(&arena, &p->mem);
	found.arena = &arena;
	status = api_read_begin(p, TABLES_ALL, &reading, err);
	if (status == OW_OK) {
		status = advice_make(p->m, NULL, &arena, &a, &found, err);
		if (status == OW_OK)
			add_run(&a, sides);
		advice_close(&a);
		status = api_read_end(p, &reading, status, err);
	}
	arena_release(&arena);
	return status;
}

static bool is_found(const struct side *side)
{
	return side->found * 2 > side->runs;
}

static const char *state_of(const struct side *base, const struct side *new)
{
	if (is_found(base) && is_found(new))
		return "still_there";
	if (is_found(new))
		return base->checked * 2 >= base->runs ? "new" : "not_checked_before";
	return new->checked * 2 >= new->runs ? "gone" : "not_checked";
}

static void add_side(struct buf *json, const char *name, const struct side *side)
{
	buf_printf(json, ", \"%s_severity\": ", name);
	if (side->where[0])
		json_quote(json, str_from(severity_names[side->severity]));
	else
		buf_puts(json, "null");
	buf_printf(json, ", \"%s_where\": ", name);
	if (side->where[0])
		json_quote(json, str_from(side->where));
	else
		buf_puts(json, "null");
	if (side->where[0] && side->saving_ns >= 0)
		buf_printf(json, ", \"%s_saving_ns\": %lld", name, (long long)side->saving_ns);
	else
		buf_printf(json, ", \"%s_saving_ns\": null", name);
}

static void add_text(struct buf *text, const char *rule, const char *state, const struct side *base,
		     const struct side *new)
{
	static const struct {
		const char *state, *words;
	} sentences[] = { { "gone", "is gone" },
			  { "still_there", "is still there" },
			  { "new", "is new" },
			  { "not_checked", "cannot be checked in the new runs" },
			  { "not_checked_before", "could not be checked in the base" } };
	const struct side *shown = is_found(new) ? new : base;
	char time[TIME_TEXT];

	buf_printf(text, "%s%s", text->len ? ", " : "", rule);
	for (size_t i = 0; i < ARRAY_COUNT(sentences); i++)
		if (strcmp(state, sentences[i].state) == 0)
			buf_printf(text, " %s", sentences[i].words);
	if (shown->saving_ns > 0)
		buf_printf(text, " (%sup to %s per step)", shown == base ? "was " : "",
			   time_text(time, shown->saving_ns));
}

static ow_status add_extras(const struct side *base, const struct side *new, struct mem *mem,
			    struct table *out, struct ow_error *err)
{
	struct buf json, text;
	bool failed;

	buf_init(&json, mem);
	buf_init(&text, mem);
	buf_add_char(&json, '[');
	for (size_t r = 0; r < rule_count; r++) {
		const char *state = state_of(&base[r], &new[r]);

		if (!rules[r]->advise || (!is_found(&base[r]) && !is_found(&new[r])))
			continue;
		buf_printf(&json, "%s{\"rule\": \"%s\", \"state\": \"%s\"",
			   json.len > 1 ? ", " : "", rules[r]->name, state);
		add_side(&json, "base", &base[r]);
		add_side(&json, "new", &new[r]);
		buf_add_char(&json, '}');
		add_text(&text, rules[r]->name, state, &base[r], &new[r]);
	}
	buf_add_char(&json, ']');
	failed = json.failed || text.failed;
	if (!failed) {
		table_add_extra(out, "findings", "%.*s", STR_ARG(buf_str(&json)));
		buf_add_char(&text, '\0');
		failed = text.failed;
	}
	if (!failed)
		table_add_extra_text(out, "findings_text", text.len > 1 ? text.ptr : NULL);
	buf_release(&json);
	buf_release(&text);
	return failed ? error_no_memory(err) : OW_OK;
}

static bool is_asked(size_t run, size_t base)
{
	return run < base ? run < RUNS_MOST : run - base < RUNS_MOST;
}

/* Returns whether the recordings are too large to run rules in a comparison. */
static bool are_large(ow_profile *const *all, size_t base, size_t count)
{
	uint64_t events = 0;

	for (size_t i = 0; i < count; i++)
		events += is_asked(i, base) ? all[i]->m->event.count : 0;
	return events > EVENTS_MOST;
}

ow_status api_diff_findings(ow_profile *const *all, size_t base, size_t count, bool large,
			    struct table *out, struct ow_error *err)
{
	struct mem *mem = &all[0]->mem;
	struct side *sides = mem_zalloc(mem, 2 * rule_count * sizeof(*sides));
	ow_status status = sides ? OW_OK : error_no_memory(err);

	if (status == OW_OK && !large && are_large(all, base, count)) {
		mem_free(mem, sides, 2 * rule_count * sizeof(*sides));
		table_add_extra(out, "findings", "null");
		table_add_extra_text(out, "findings_text", NULL);
		return OW_OK;
	}
	for (size_t i = 0; status == OW_OK && i < count; i++)
		if (is_asked(i, base))
			status = read_advice(all[i], i < base ? sides : sides + rule_count, err);
	if (status == OW_OK)
		status = add_extras(sides, sides + rule_count, mem, out, err);
	mem_free(mem, sides, 2 * rule_count * sizeof(*sides));
	return status;
}
