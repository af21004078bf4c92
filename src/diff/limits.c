/*
 * limits.c: limits that a test run sets on a comparison, such as "step_time > 3%" (diff.h): parses them, compares the
 * runs' values with them, and reports the outcome as a sentence and as values for programs. Called by diff.c.
 */
#include "diff/diff_int.h"

#include "base/human.h"
#include "base/json_escape.h"

#include <math.h>
#include <stdlib.h>

/* Units of amounts, apart from percent and plain numbers; `unit` may be empty. */
static const struct {
	const char *unit;
	double factor;
	enum human_unit of;
} amounts[] = { { "ns", 1, HUMAN_UNIT_NS },	     { "us", 1e3, HUMAN_UNIT_NS },
		{ "ms", 1e6, HUMAN_UNIT_NS },	     { "s", 1e9, HUMAN_UNIT_NS },
		{ "KB", 1e3, HUMAN_UNIT_BYTES },     { "MB", 1e6, HUMAN_UNIT_BYTES },
		{ "GB", 1e9, HUMAN_UNIT_BYTES },     { "KiB", 0x1p10, HUMAN_UNIT_BYTES },
		{ "MiB", 0x1p20, HUMAN_UNIT_BYTES }, { "GiB", 0x1p30, HUMAN_UNIT_BYTES } };

/* Parses "3%", "1.5ms" or "20"; false when the text is not an amount, or does not fit the limited quantity. Values
 * of samples may have any unit. */
static bool parse_amount(struct arena *arena, struct str text, struct diff_limit *limit)
{
	bool memory = strcmp(limit->metric, "peak_memory") == 0,
	     launches = strcmp(limit->metric, "launches") == 0;
	char *copy = arena_cstr(arena, text), *end = copy;
	struct str unit;

	limit->amount = copy ? strtod(copy, &end) : 0;
	if (end == copy || !isfinite(limit->amount))
		return false;
	unit = str_trim(str_from(end));
	limit->relative = str_eq(unit, STR("%"));
	if (limit->relative)
		limit->amount *= 0.01;
	for (size_t i = 0; i < ARRAY_COUNT(amounts); i++)
		if (str_eq(unit, str_from(amounts[i].unit))) {
			limit->amount *= amounts[i].factor;
			return !launches && !(memory && amounts[i].of == HUMAN_UNIT_NS) &&
			       !(strcmp(limit->metric, "step_time") == 0 &&
				 amounts[i].of == HUMAN_UNIT_BYTES);
		}
	return limit->relative || !unit.len;
}

static ow_status check_phase(const struct diff_limit *limit, struct ow_error *err)
{
	for (unsigned i = 0; i < CLASS_COUNT; i++)
		if (str_eq(limit->name, str_from(phase_class_names[i])))
			return OW_OK;
	return error_set(err, OW_E_USAGE,
			 "no phase is called '%.*s'; 'opwatch phases FILE' lists them",
			 (int)MIN(limit->name.len, 80u), limit->name.ptr);
}

ow_status diff_limit_parse(const char *text, struct arena *arena, struct diff_limit *limit,
			   struct ow_error *err)
{
	static const char *const metrics[] = { "step_time", "peak_memory", "launches", "op",
					       "phase" };
	struct str all = str_trim(str_from(text)), name, amount;
	size_t sign = all.len;

	while (sign && all.ptr[sign - 1] != '>')
		sign--;
	name = str_trim(str_first(all, sign ? sign - 1 : 0));
	amount = str_trim(str_skip(all, sign));
	*limit = (struct diff_limit){ .text = text };
	for (size_t i = 0; i < ARRAY_COUNT(metrics) && sign; i++) {
		size_t len = strlen(metrics[i]);
		bool named = i >= 3;

		if (!str_starts(name, str_from(metrics[i])) ||
		    (named ? name.len < len + 2 || name.ptr[len] != ':' : name.len != len))
			continue;
		limit->metric = metrics[i];
		limit->name = named ? arena_str(arena, str_skip(name, len + 1)) : STR("");
	}
	if (limit->metric && amount.len && parse_amount(arena, amount, limit))
		return strcmp(limit->metric, "phase") == 0 ? check_phase(limit, err) : OW_OK;
	return error_set(err, OW_E_USAGE,
			 "'%s' is not a limit; write 'step_time > 3%%', 'peak_memory > 100MB', "
			 "'launches > 5%%', 'op:NAME > 1ms' or 'phase:NAME > 2%%'",
			 text);
}

/* Marks the rows that a limit on an op or a phase covers, each once; false when there is none. An op that was joined
 * with others counts with them. */
static bool choose_rows(const struct comparison *c, const struct diff_limit *limit, bool *chosen)
{
	bool is_op = strcmp(limit->metric, "op") == 0, any = false;

	for (size_t i = 0; i < c->rows.count; i++) {
		const struct diff_row *row = &c->rows.items[i];
		struct str name = is_op ? row->own_op : str_from(phase_class_names[row->class]);

		if (str_eq(name, limit->name)) {
			chosen[row->merged ? row->merged - 1 : i] = true;
			any = true;
		}
	}
	return any;
}

/* Collects the values of each run that a limit covers; false when some run does not have the value. */
static bool limit_values(const struct comparison *c, const struct diff_limit *limit,
			 const bool *chosen, double *values)
{
	size_t runs = c->base + c->other;

	if (!limit->metric)
		return false;
	for (size_t r = 0; r < runs; r++) {
		const struct diff_run *run = &c->runs[r];

		values[r] = 0;
		if (strcmp(limit->metric, "step_time") == 0) {
			values[r] = c->steps[r];
		} else if (strcmp(limit->metric, "peak_memory") == 0) {
			if (run->peak_memory < 0)
				return false;
			values[r] = (double)run->peak_memory;
		} else if (strcmp(limit->metric, "launches") == 0) {
			values[r] = diff_launches(c, run);
			if (isnan(values[r]))
				return false;
		} else {
			for (size_t i = 0; i < c->rows.count; i++)
				if (chosen[i])
					values[r] += c->rows.items[i].ns[r];
		}
	}
	return true;
}

/* The outcome of a limit. */
struct verdict {
	enum diff_gate gate;
	bool known; /* the values below are known */
	double base, now, most;
	struct shift shift;
	const char *why; /* why the outcome is inconclusive */
	/* runs needed on each side to detect a change as large as the limit; 0: unknown */
	size_t needed;
};

static struct verdict check_limit(struct comparison *c, const struct diff_limit *limit)
{
	double *values = ARENA_ARRAY(&c->scratch, double, c->base + c->other);
	bool *chosen = ARENA_ARRAY(&c->scratch, bool, c->rows.count + 1);
	struct verdict v = { .gate = GATE_INCONCLUSIVE };

	if (chosen && limit->name.len && !choose_rows(c, limit, chosen) &&
	    strcmp(limit->metric, "op") == 0) {
		v.why = "no run has an op of that name";
		v.gate = c->comparable ? GATE_INCONCLUSIVE : GATE_NOT_COMPARABLE;
		return v;
	}
	if (!chosen || !values || !limit_values(c, limit, chosen, values)) {
		v.why = "not every run recorded this value";
		v.gate = c->comparable ? GATE_INCONCLUSIVE : GATE_NOT_COMPARABLE;
		return v;
	}
	v.known = true;
	v.base = stat_mean(values, c->base);
	v.now = stat_mean(values + c->base, c->other);
	v.most = limit->relative ? limit->amount * v.base : limit->amount;
	v.shift = stat_means(values, c->base, values + c->base, c->other);
	v.needed = stat_runs_needed(values, c->base, values + c->base, c->other, v.most);
	if (!c->comparable)
		v.gate = GATE_NOT_COMPARABLE;
	else if (c->base < RUNS_LEAST || c->other < RUNS_LEAST)
		v.why = "a side has fewer than 4 runs";
	else if (stat_means_surely(values, c->base, values + c->base, c->other).low > v.most &&
		 stat_permutation(values, c->base, values + c->base, c->other) <= STAT_LEVEL)
		v.gate = GATE_BEYOND;
	else if (v.shift.high <= v.most)
		v.gate = GATE_WITHIN;
	else if (v.shift.low > v.most)
		v.why = "the limit lies below the 95 % interval, but not by enough to be sure";
	else
		v.why = "the interval contains the limit";
	return v;
}

static const char *const gate_words[] = { "none", "within", "beyond", "inconclusive",
					  "not_comparable" };

static enum human_unit unit_of(const struct comparison *c, const struct diff_limit *limit)
{
	if (limit->metric && strcmp(limit->metric, "peak_memory") == 0)
		return HUMAN_UNIT_BYTES;
	if (limit->metric && strcmp(limit->metric, "launches") == 0)
		return HUMAN_UNIT_COUNT;
	return diff_human_unit(c);
}

/* Writes "174ms → 186ms: 12.4ms more (95 %: 11.2ms to 13.6ms), allowed are 5.22ms". */
static void put_message(struct buf *to, const struct comparison *c, const struct diff_limit *limit,
			const struct verdict *v)
{
	enum human_unit unit = unit_of(c, limit);
	char text[6][HUMAN_SIZE];

	if (v->known) {
		human_real(text[0], v->base, unit, false);
		human_real(text[1], v->now, unit, false);
		human_real(text[2], fabs(v->now - v->base), unit, false);
		human_real(text[3], v->most, unit, false);
		buf_printf(to, "%s → %s: %s %s", text[0], text[1], text[2],
			   v->now < v->base ? "less" : "more");
		if (!isnan(v->shift.low)) {
			human_real(text[4], v->shift.low, unit, false);
			human_real(text[5], v->shift.high, unit, false);
			buf_printf(to, " (95 %%: %s to %s)", text[4], text[5]);
		}
		buf_printf(to, ", at most %s more allowed", text[3]);
	}
	if (v->why)
		buf_printf(to, "%s%s", v->known ? "; inconclusive: " : "inconclusive: ", v->why);
	if (v->why && v->needed > MIN(c->base, c->other))
		buf_printf(
			to,
			"; to see a change as large as the limit, about %zu runs a side are needed",
			v->needed);
	if (!v->why && v->gate == GATE_NOT_COMPARABLE)
		buf_printf(to, "%snot comparable: %s", v->known ? "; " : "", c->why);
}

static void put_number(struct buf *to, const char *name, bool known, double value)
{
	if (known && isfinite(value))
		buf_printf(to, ", \"%s\": %.17g", name, value);
	else
		buf_printf(to, ", \"%s\": null", name);
}

static void put_limit(struct buf *to, const struct comparison *c, const struct diff_limit *limit,
		      const struct verdict *v)
{
	static const char *const units[] = {
		[HUMAN_UNIT_NS] = "ns", [HUMAN_UNIT_BYTES] = "bytes", [HUMAN_UNIT_COUNT] = "count"
	};
	struct buf message;

	buf_init(&message, c->mem);
	put_message(&message, c, limit, v);
	buf_puts(to, to->len > 1 ? ", {\"limit\": " : "{\"limit\": ");
	json_quote(to, str_from(limit->text));
	buf_printf(to, ", \"gate\": \"%s\", \"unit\": \"%s\"", gate_words[v->gate],
		   units[unit_of(c, limit)]);
	put_number(to, "base", v->known, v->base);
	put_number(to, "new", v->known, v->now);
	put_number(to, "delta", v->known, v->now - v->base);
	put_number(to, "delta_low", v->known, v->shift.low);
	put_number(to, "delta_high", v->known, v->shift.high);
	put_number(to, "allowed", v->known, v->most);
	put_number(to, "runs_needed", v->needed != 0, (double)v->needed);
	buf_puts(to, ", \"message\": ");
	json_quote(to, buf_str(&message));
	buf_add_char(to, '}');
	to->failed = to->failed || message.failed;
	buf_release(&message);
}

ow_status diff_check_limits(struct comparison *c, const struct diff_options *options,
			    enum diff_gate *gate)
{
	static const uint8_t worse[] = { [GATE_NONE] = 0,
					 [GATE_WITHIN] = 1,
					 [GATE_INCONCLUSIVE] = 2,
					 [GATE_NOT_COMPARABLE] = 3,
					 [GATE_BEYOND] = 4 };
	ow_status status = OW_OK;
	struct buf json;

	*gate = GATE_NONE;
	buf_init(&json, c->mem);
	buf_add_char(&json, '[');
	for (size_t i = 0; status == OW_OK && i < options->limit_count; i++) {
		struct diff_limit limit;
		struct verdict v;

		status = diff_limit_parse(options->limits[i], &c->scratch, &limit, c->err);
		if (status != OW_OK)
			break;
		v = check_limit(c, &limit);
		put_limit(&json, c, &limit, &v);
		if (worse[v.gate] > worse[*gate])
			*gate = v.gate;
	}
	buf_add_char(&json, ']');
	if (status == OW_OK) {
		const char *text = buf_cstr(&json);

		table_add_extra_text(c->out, "gate", *gate == GATE_NONE ? NULL : gate_words[*gate]);
		if (text)
			table_add_extra(c->out, "limits", "%s", text);
		else
			status = error_no_memory(c->err);
	}
	buf_release(&json);
	return status;
}
