/*
 * diff.c: compares two groups of runs and makes a table (diff.h): rows that sum to the difference, whether the runs can
 * be compared, the conclusion, and limits that a test run may set. Called by the library.
 */
#include "diff/diff_int.h"

#include "base/human.h"

#include <math.h>
#include <stdlib.h>

/* with one recording on each side, a difference below this share of a step is not reported */
#define VISIBLE 0.01
/* if the interval of the difference is within this share of a step, the sides count as equal */
#define SAME 0.02
#define ROWS_TESTED 200u

static const char *const change_words[] = {
	[CHANGE_NONE] = NULL,	  [CHANGE_NEW] = "new",		  [CHANGE_GONE] = "gone",
	[CHANGE_COUNT] = "count", [CHANGE_DURATION] = "duration", [CHANGE_RENAMED] = "renamed",
	[CHANGE_SPLIT] = "split", [CHANGE_FUSED] = "fused",
};

static ow_status measure_steps(struct comparison *c)
{
	size_t runs = c->base + c->other;

	c->steps = ARENA_ARRAY(&c->scratch, double, runs);
	if (!c->steps)
		return error_no_memory(c->err);
	for (size_t r = 0; r < runs; r++)
		c->steps[r] = c->runs[r].steps
				      ? (double)c->runs[r].total_ns / (double)c->runs[r].steps
				      : 0;
	c->step_ns[0] = llround(stat_mean(c->steps, c->base));
	c->step_ns[1] = llround(stat_mean(c->steps + c->base, c->other));
	c->delta_ns = c->step_ns[1] - c->step_ns[0];
	c->means = stat_means(c->steps, c->base, c->steps + c->base, c->other);
	if (!stat_hodges_lehmann(c->mem, c->steps, c->base, c->steps + c->base, c->other,
				 &c->robust))
		return error_no_memory(c->err);
	c->p = stat_permutation(c->steps, c->base, c->steps + c->base, c->other);
	c->detectable = stat_detectable(c->steps, c->base, c->steps + c->base, c->other);
	return OW_OK;
}

static void conclude(struct comparison *c)
{
	double step = (double)c->step_ns[0];
	bool single = c->base < RUNS_LEAST || c->other < RUNS_LEAST;

	if (!c->comparable)
		c->conclusion = "not_comparable";
	else if (single)
		c->conclusion =
			fabs((double)c->delta_ns) > VISIBLE * step ? "differs" : "inconclusive";
	else if (c->p <= 0.05)
		c->conclusion = c->robust.estimate > 0 ? "slower" : "faster";
	else if (c->robust.low > -SAME * step && c->robust.high < SAME * step)
		c->conclusion = "same";
	else
		c->conclusion = "inconclusive";
}

enum column_unit diff_unit(const struct comparison *c)
{
	struct str unit = c->runs[0].unit;

	if (c->mixed)
		return UNIT_COUNT;
	if (!unit.len || str_eq(unit, STR("ns")))
		return UNIT_NS;
	return str_eq(unit, STR("bytes")) ? UNIT_BYTES : UNIT_COUNT;
}

enum human_unit diff_human_unit(const struct comparison *c)
{
	enum column_unit unit = diff_unit(c);

	return unit == UNIT_NS	    ? HUMAN_UNIT_NS
	       : unit == UNIT_BYTES ? HUMAN_UNIT_BYTES
				    : HUMAN_UNIT_COUNT;
}

enum diff_change diff_change_of(const struct diff_row *row)
{
	double times, longer;

	if (!row->on[0] || !row->on[1])
		return row->on[0] ? CHANGE_GONE : CHANGE_NEW;
	if (row->change != CHANGE_NONE)
		return row->change;
	if (row->mean[0] == row->mean[1] && (row->counts_unknown || row->count[0] == row->count[1]))
		return CHANGE_NONE;
	if (row->counts_unknown)
		return CHANGE_DURATION;
	times = row->count[0] > 0 ? (row->count[1] - row->count[0]) * row->mean[0] / row->count[0]
				  : 0;
	longer = row->mean[1] - row->mean[0] - times;
	return fabs(row->count[1] - row->count[0]) > 0.005 * row->count[0] &&
			       fabs(times) >= fabs(longer)
		       ? CHANGE_COUNT
		       : CHANGE_DURATION;
}

static int by_delta(const void *a, const void *b)
{
	const struct diff_row *x = *(const struct diff_row *const *)a,
			      *y = *(const struct diff_row *const *)b;
	double dx = fabs(x->mean[1] - x->mean[0]), dy = fabs(y->mean[1] - y->mean[0]);

	if (dx != dy)
		return dx < dy ? 1 : -1;
	return str_cmp(x->op, y->op);
}

static ow_status order_rows(struct comparison *c, struct diff_row ***order, size_t *count)
{
	struct diff_rows *d = &c->rows;

	*order = ARENA_ARRAY(&c->scratch, struct diff_row *, d->count + 1);
	if (!*order)
		return error_no_memory(c->err);
	*count = 0;
	for (size_t i = 0; i < d->count; i++)
		if (!d->items[i].merged)
			(*order)[(*count)++] = &d->items[i];
	qsort(*order, *count, sizeof(**order), by_delta);
	return OW_OK;
}

/* Tests the largest differences, corrected for testing many of them. */
static ow_status test_rows(struct comparison *c, struct diff_row **order, size_t count)
{
	double p[ROWS_TESTED];

	if (c->base < RUNS_LEAST || c->other < RUNS_LEAST)
		return OW_OK;
	count = MIN(count, ROWS_TESTED);
	for (size_t i = 0; i < count; i++)
		p[i] = stat_permutation(order[i]->ns, c->base, order[i]->ns + c->base, c->other);
	if (!stat_adjust(c->mem, p, count))
		return error_no_memory(c->err);
	for (size_t i = 0; i < count; i++)
		order[i]->q = p[i];
	return OW_OK;
}

enum {
	COLUMN_PHASE,
	COLUMN_OP,
	COLUMN_LINE,
	COLUMN_RANK,
	COLUMN_BASE,
	COLUMN_NEW,
	COLUMN_DELTA,
	COLUMN_BASE_COUNT,
	COLUMN_NEW_COUNT,
	COLUMN_CHANGE,
	COLUMN_MATCHED,
	COLUMN_NEW_OP,
	COLUMN_BASE_PART,
	COLUMN_NEW_PART,
	COLUMN_Q,
	COLUMN_FILE,
	COLUMN_LINE_NUMBER,
	COLUMN_BASE_SHAPES,
	COLUMN_NEW_SHAPES,
	COLUMN_BASE_TYPES,
	COLUMN_NEW_TYPES
};

void diff_columns(struct table *t, enum column_unit unit)
{
	static const char *const sentences[] = {
		"phase of the step that the time belongs to",
		"operator or kernel",
		"line of code, when known",
		"rank, when known",
		"time of the row in a step of the base runs",
		"time of the row in a step of the new runs",
		"new minus base; the rows and unexplained_ns add up to the difference of the steps",
		"how often the op runs in a step of the base runs",
		"how often the op runs in a step of the new runs",
		"kind of the change: new, gone, count, duration, renamed, split or fused",
		"how the rows of base and new were matched",
		"name in the new runs, when it differs",
		"kernel or call inside the op that changed most, in the base runs",
		"kernel or call inside the op that changed most, in the new runs",
		"false discovery rate of the change; known with four or more runs a side",
		"file that contains the line",
		"number of the line",
		"shapes of the inputs in the base runs",
		"shapes of the inputs in the new runs",
		"types of the inputs in the base runs",
		"types of the inputs in the new runs",
	};

	table_add_column(t, "phase", "phase", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "op", "op", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "line", "line", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "rank", "rank", TYPE_INT, UNIT_NONE);
	table_add_column(t, "base_ns", "base", TYPE_INT, unit);
	table_add_column(t, "new_ns", "new", TYPE_INT, unit);
	table_add_column(t, "delta_ns", "delta", TYPE_INT, unit);
	table_add_column(t, "base_count", "base count", TYPE_REAL, UNIT_NONE);
	table_add_column(t, "new_count", "new count", TYPE_REAL, UNIT_NONE);
	table_add_column(t, "change", "change", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "matched_by", "matched by", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "new_op", "called now", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "base_part", "kernel or call", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "new_part", "kernel or call now", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "q", "false discovery rate", TYPE_REAL, UNIT_NONE);
	table_add_column(t, "file", "file", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "line_number", "line number", TYPE_INT, UNIT_NONE);
	table_add_column(t, "base_shapes", "shapes", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "new_shapes", "shapes now", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "base_types", "types", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "new_types", "types now", TYPE_TEXT, UNIT_NONE);
	table_document(t, sentences, ARRAY_COUNT(sentences));
	for (unsigned i = COLUMN_MATCHED; i <= COLUMN_NEW_TYPES; i++)
		t->columns[i].for_programs = true;
}

static void set_word(struct table *t, uint32_t row, uint32_t column, const char *word)
{
	table_set_known_text(t, row, column, word ? str_from(word) : (struct str){ 0 });
}

static void fill_row(struct table *t, const struct diff_row *row, int64_t base_ns, int64_t new_ns)
{
	uint32_t at = table_add_row(t, 0);

	set_word(t, at, COLUMN_PHASE, phase_class_names[row->class]);
	table_set_known_text(t, at, COLUMN_OP, row->op);
	table_set_known_text(t, at, COLUMN_LINE, row->line);
	if (row->rank >= 0)
		table_set_int(t, at, COLUMN_RANK, row->rank);
	else
		table_set_unknown(t, at, COLUMN_RANK);
	table_set_int(t, at, COLUMN_BASE, base_ns);
	table_set_int(t, at, COLUMN_NEW, new_ns);
	table_set_int(t, at, COLUMN_DELTA, new_ns - base_ns);
	for (unsigned side = 0; side < 2; side++)
		if (row->counts_unknown)
			table_set_unknown(t, at, side ? COLUMN_NEW_COUNT : COLUMN_BASE_COUNT);
		else
			table_set_real(t, at, side ? COLUMN_NEW_COUNT : COLUMN_BASE_COUNT,
				       row->count[side]);
	set_word(t, at, COLUMN_CHANGE, change_words[diff_change_of(row)]);
	set_word(t, at, COLUMN_MATCHED, row->matched_by);
	table_set_known_text(t, at, COLUMN_NEW_OP, row->new_op);
	table_set_known_text(t, at, COLUMN_BASE_PART, row->part[0]);
	table_set_known_text(t, at, COLUMN_NEW_PART, row->part[1]);
	if (isnan(row->q))
		table_set_unknown(t, at, COLUMN_Q);
	else
		table_set_real(t, at, COLUMN_Q, row->q);
	table_set_known_text(t, at, COLUMN_FILE, row->file);
	table_set_known_text(t, at, COLUMN_BASE_SHAPES, row->shapes[0]);
	table_set_known_text(t, at, COLUMN_NEW_SHAPES, row->shapes[1]);
	table_set_known_text(t, at, COLUMN_BASE_TYPES, row->types[0]);
	table_set_known_text(t, at, COLUMN_NEW_TYPES, row->types[1]);
	if (row->line_number > 0)
		table_set_int(t, at, COLUMN_LINE_NUMBER, row->line_number);
	else
		table_set_unknown(t, at, COLUMN_LINE_NUMBER);
}

/* Adds the rows. Running sums are rounded, so that the rows of a side sum to its step in whole nanoseconds. */
static ow_status fill_rows(struct comparison *c, bool cells)
{
	struct diff_row **order;
	size_t count;
	double sum[2] = { 0, 0 };
	int64_t before[2] = { 0, 0 };

	OW_TRY(order_rows(c, &order, &count));
	OW_TRY(test_rows(c, order, count));
	for (size_t i = 0; i < count; i++) {
		int64_t ns[2];

		for (unsigned side = 0; side < 2; side++) {
			sum[side] += order[i]->mean[side];
			ns[side] = llround(sum[side]) - before[side];
			before[side] = llround(sum[side]);
		}
		if (cells)
			fill_row(c->out, order[i], ns[0], ns[1]);
	}
	c->unexplained_ns = c->delta_ns - (before[1] - before[0]);
	return OW_OK;
}

static void add_real(struct table *t, const char *name, double ns)
{
	if (isnan(ns))
		table_add_extra(t, name, "null");
	else
		table_add_extra(t, name, "%lld", llround(ns));
}

static void add_count(struct table *t, const char *name, size_t count)
{
	if (count)
		table_add_extra(t, name, "%zu", count);
	else
		table_add_extra(t, name, "null");
}

double diff_launches(const struct comparison *c, const struct diff_run *run)
{
	if (!run->launches_known)
		return (double)NAN;
	for (size_t r = 0; r < c->base + c->other && !run->launches; r++)
		if (c->runs[r].launches)
			return (double)NAN;
	return (double)run->launches / (double)run->steps;
}

static double float_ops_of(const struct comparison *c, const struct diff_run *run)
{
	(void)c;
	return run->steps && run->float_ops > 0 ? run->float_ops / (double)run->steps : (double)NAN;
}

static double peak_of(const struct comparison *c, const struct diff_run *run)
{
	(void)c;
	return run->peak_memory >= 0 ? (double)run->peak_memory : (double)NAN;
}

static double all_steps_of(const struct comparison *c, const struct diff_run *run)
{
	(void)c;
	return run->all_steps ? (double)run->all_steps_ns / (double)run->all_steps : (double)NAN;
}

/* Adds the means of the runs of each side; null when some run does not have the value. */
static void add_means(struct comparison *c)
{
	static const struct {
		const char *names[2];
		double (*of)(const struct comparison *c, const struct diff_run *run);
	} values[] = { { { "base_all_steps_ns", "new_all_steps_ns" }, all_steps_of },
		       { { "base_launches", "new_launches" }, diff_launches },
		       { { "base_float_ops", "new_float_ops" }, float_ops_of },
		       { { "base_peak_memory_bytes", "new_peak_memory_bytes" }, peak_of } };

	for (size_t v = 0; v < ARRAY_COUNT(values); v++)
		for (unsigned side = 0; side < 2; side++) {
			size_t first = side ? c->base : 0, count = side ? c->other : c->base;
			double sum = 0;

			for (size_t r = first; r < first + count; r++)
				sum += values[v].of(c, &c->runs[r]);
			add_real(c->out, values[v].names[side], sum / (double)count);
		}
}

static void add_ratio(struct table *t, const char *name, double base, double other)
{
	if (base > 0 && isfinite(other))
		table_add_extra(t, name, "%.6g", other / base);
	else
		table_add_extra(t, name, "null");
}

static double mean_all_steps(const struct comparison *c, unsigned side)
{
	size_t first = side ? c->base : 0, count = side ? c->other : c->base;
	double sum = 0;

	for (size_t r = first; r < first + count; r++)
		sum += all_steps_of(c, &c->runs[r]);
	return sum / (double)count;
}

/* Adds ratios new / base: for steady steps, which everything else is about, and for all steps. */
static void add_ratios(struct comparison *c)
{
	add_ratio(c->out, "step_ratio", c->mixed ? 0 : (double)c->step_ns[0],
		  (double)c->step_ns[1]);
	add_ratio(c->out, "all_steps_ratio", c->mixed ? 0 : mean_all_steps(c, 0),
		  mean_all_steps(c, 1));
}

static void add_values(struct comparison *c)
{
	struct table *t = c->out;
	bool runs = c->base > 1 || c->other > 1;
	char sentence[512];

	table_add_extra(t, "schema_version", "1");
	table_add_extra(t, "comparable", c->comparable ? "true" : "false");
	table_add_extra_text(t, "comparable_why", c->comparable ? NULL : c->why);
	table_add_extra_text(t, "unit", runs ? "runs" : "recordings");
	table_add_extra(t, "runs_base", "%zu", c->base);
	table_add_extra(t, "runs_new", "%zu", c->other);
	table_add_extra(t, "base_step_ns", "%lld", (long long)c->step_ns[0]);
	table_add_extra(t, "new_step_ns", "%lld", (long long)c->step_ns[1]);
	table_add_extra(t, "delta_ns", "%lld", (long long)c->delta_ns);
	add_real(t, "delta_low_ns", c->means.low);
	add_real(t, "delta_high_ns", c->means.high);
	add_real(t, "shift_ns", c->robust.estimate);
	add_real(t, "shift_low_ns", c->robust.low);
	add_real(t, "shift_high_ns", c->robust.high);
	add_real(t, "detectable_ns", c->detectable);
	add_count(t, "runs_needed_for_3_percent",
		  stat_runs_needed(c->steps, c->base, c->steps + c->base, c->other,
				   0.03 * (double)c->step_ns[0]));
	if (runs)
		table_add_extra(t, "p", "%.6g", c->p);
	else
		table_add_extra(t, "p", "null");
	table_add_extra_text(t, "conclusion", c->conclusion);
	table_add_extra(t, "unexplained_ns", "%lld", (long long)c->unexplained_ns);
	add_means(c);
	add_ratios(c);
	table_add_extra_text(t, "compared_without",
			     c->rows.without_lines && c->rows.by_kernel ? "lines and operators"
			     : c->rows.without_lines			? "lines"
			     : c->rows.by_kernel			? "operators"
									: NULL);
	table_add_extra(t, "steps_known", c->runs[0].known ? "true" : "false");
	table_add_extra_text(t, "metric",
			     c->runs[0].metric.len ? arena_cstr(&c->scratch, c->runs[0].metric)
						   : NULL);
	table_add_extra_text(t, "metric_unit",
			     c->mixed		   ? "mixed"
			     : c->runs[0].unit.len ? arena_cstr(&c->scratch, c->runs[0].unit)
						   : NULL);
	diff_write_sentence(c, sentence, sizeof(sentence));
	table_add_extra_text(t, "sentence", sentence);
}

static ow_status compare(struct comparison *c, const struct diff_options *options,
			 enum diff_gate *gate)
{
	OW_TRY(measure_steps(c));
	OW_TRY(diff_rows_make(&c->rows, c->mem, c->runs, c->base, c->other, c->err));
	OW_TRY(diff_rows_match(&c->rows, c->err));
	OW_TRY(diff_compare_setup(c));
	conclude(c);
	if (options->frames)
		OW_TRY(diff_fill_frames(c, options->frames_least));
	else
		diff_columns(c->out, diff_unit(c));
	OW_TRY(fill_rows(c, !options->frames));
	add_values(c);
	return diff_check_limits(c, options, gate);
}

ow_status diff_table(const struct diff_run *runs, size_t base, size_t other,
		     const struct diff_options *options, struct table *out, enum diff_gate *gate,
		     struct ow_error *err)
{
	struct comparison c = {
		.mem = out->mem, .err = err, .out = out, .runs = runs, .base = base, .other = other
	};
	ow_status status;

	arena_init(&c.scratch, out->mem);
	arena_init(&c.rows.arena, out->mem);
	status = compare(&c, options, gate);
	diff_rows_release(&c.rows);
	arena_release(&c.scratch);
	if (status == OW_OK && out->status != OW_OK)
		status = error_no_memory(err);
	return status;
}
