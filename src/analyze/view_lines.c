/*
 * view_lines.c: the lines of the user's own code, with what the ops they created cost. The code view
 * shows whole call trees and ends in the library's frames, where every op is made; here an op counts
 * for the innermost frame outside of libraries, so that a line can be found and changed.
 */
#include "analyze/gradient.h"
#include "analyze/own_lines.h"
#include "analyze/samples.h"
#include "analyze/stack_runs.h"
#include "analyze/view.h"
#include "model/metrics.h"

enum {
	COLUMN_NAME,
	COLUMN_MICROS,
	COLUMN_PERCENT,
	COLUMN_TYPE,
	COLUMN_ACCELERATOR,
	COLUMN_CPU,
	COLUMN_BYTES,
	COLUMN_FLOAT_OPS,
	COLUMN_OPS,
	COLUMN_TEXT,
	COLUMN_FILE,
	COLUMN_LINE,
	COLUMN_FUNCTION
};

struct line {
	uint32_t frame;
	int64_t ops, total[METRIC_COUNT];
	uint32_t top_op; /* the op that takes the most time */
	int64_t top_ns;
};

/* Where an op was created; a gradient counts for the line of the op that it belongs to. */
static uint32_t stack_of(const struct model *m, uint32_t op)
{
	struct str forward;

	if (gradient_of(model_str(m, m->op.name[op]), &forward)) {
		uint32_t stack = COLUMN_GET(m->op.stack, model_find_op(m, forward).v).v;

		if (stack)
			return stack;
	}
	return COLUMN_GET(m->op.stack, op).v;
}

static void add_op(struct line *line, op_id op, const int64_t *value)
{
	line->ops++;
	for (int k = 0; k < METRIC_COUNT; k++)
		line->total[k] = wrap_add(line->total[k], value[k]);
	if (!line->top_op || value[METRIC_MICROS] > line->top_ns) {
		line->top_op = op.v;
		line->top_ns = value[METRIC_MICROS];
	}
}

/* An op that was called from several places. */
static void add_runs(struct line *lines, const uint32_t *own, const struct stack_runs *runs,
		     uint32_t op, const int64_t *whole)
{
	for (uint32_t i = runs->first[op]; i < runs->first[op + 1]; i++) {
		int64_t value[METRIC_COUNT];

		memcpy(value, whole, sizeof(value));
		stack_run_share(runs, &runs->list[i], value);
		add_op(&lines[own[runs->list[i].stack.v]], (op_id){ op }, value);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	int64_t tx = x->total[METRIC_MICROS], ty = y->total[METRIC_MICROS];

	if (tx != ty)
		return tx > ty ? -1 : 1;
	if (x->ops != y->ops)
		return x->ops > y->ops ? -1 : 1;
	return (x->frame > y->frame) - (x->frame < y->frame);
}

static void add_columns(struct result *out)
{
	result_column(out, "name", "line", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "time_ns", "time", RESULT_INT, RESULT_NS);
	result_column(out, "percent", "share", RESULT_REAL, RESULT_PERCENT);
	result_column(out, "top_type", "mostly", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "accelerator_ns", "accelerator", RESULT_INT, RESULT_NS);
	result_column(out, "cpu_ns", "cpu", RESULT_INT, RESULT_NS);
	result_column(out, "bytes", "memory", RESULT_INT, RESULT_BYTES);
	result_column(out, "float_ops", "float ops", RESULT_INT, RESULT_COUNT);
	result_column(out, "ops", "ops", RESULT_INT, RESULT_COUNT);
	result_column(out, "text", "source", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "file", "file", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "line", "number", RESULT_INT, RESULT_PLAIN);
	result_column(out, "function", "function", RESULT_TEXT, RESULT_PLAIN);
	/* The name has them. */
	out->columns[COLUMN_LINE].for_programs = out->columns[COLUMN_FUNCTION].for_programs = true;
}

static void add_row(struct result *out, const struct model *m, const struct line *line, int64_t sum)
{
	struct str file = model_str(m, m->frame.file[line->frame]);
	struct str function = model_str(m, m->frame.function[line->frame]);
	uint32_t row = result_row(out, 0);
	char name[512];

	own_line_name(m, line->frame, name, sizeof(name));
	result_set_text(out, row, COLUMN_NAME, str_from(name));
	result_set_int(out, row, COLUMN_MICROS, line->total[METRIC_MICROS]);
	result_set_real(out, row, COLUMN_PERCENT,
			sum > 0 ? 100.0 * (double)line->total[METRIC_MICROS] / (double)sum : 0);
	result_set_int(out, row, COLUMN_ACCELERATOR, line->total[METRIC_ACCELERATOR_MICROS]);
	result_set_int(out, row, COLUMN_CPU, line->total[METRIC_CPU_MICROS]);
	result_set_int(out, row, COLUMN_BYTES, line->total[METRIC_BYTES]);
	result_set_int(out, row, COLUMN_FLOAT_OPS, line->total[METRIC_FLOAT_OPS]);
	result_set_int(out, row, COLUMN_OPS, line->ops);
	result_set_model_text(out, row, COLUMN_TYPE, model_str(m, m->op.type[line->top_op]));
	result_set_model_text(out, row, COLUMN_TEXT, model_str(m, m->frame.text[line->frame]));
	result_set_model_text(out, row, COLUMN_FILE, file);
	result_set_int(out, row, COLUMN_LINE, m->frame.line[line->frame]);
	result_set_model_text(out, row, COLUMN_FUNCTION, function);
}

static ow_status collect(struct model *m, const struct view_options *options, struct arena *scratch,
			 struct result *out, struct error *err)
{
	uint32_t *own = line_own_frames(m, scratch), used = 0;
	struct line *lines = ARENA_ARRAY(scratch, struct line, m->frame.count);
	const struct event_sums *sums;
	struct stack_runs runs;
	struct metric_plan plan;
	int64_t sum = 0;

	if (!own || !lines)
		return error_no_memory(err);
	OW_TRY(view_sums(m, options, scratch, &sums, err));
	OW_TRY(stack_runs_make(m, options, scratch, &runs, err));
	metric_plan_init(&plan, m, options->step, METRIC_ALL);
	metric_plan_filter(&plan, sums);
	for (uint32_t i = 1; i < m->op.count; i++) {
		uint32_t stack = stack_of(m, i);
		int64_t value[METRIC_COUNT] = { 0 };

		if (!stack || m->op.flags[i] & OP_WRAPS)
			continue;
		metric_eval(&plan, (op_id){ i }, value);
		if (stack_runs_has(&runs, i))
			add_runs(lines, own, &runs, i, value);
		else
			add_op(&lines[own[stack]], (op_id){ i }, value);
	}
	for (uint32_t i = 1; i < m->frame.count; i++) {
		struct line line = lines[i];

		line.frame = i;
		if (line.ops) {
			sum = wrap_add(sum, line.total[METRIC_MICROS]);
			lines[used++] = line;
		}
	}
	qsort(lines, used, sizeof(*lines), by_time);
	for (uint32_t i = 0; i < used && (!options->limit || i < options->limit); i++)
		add_row(out, m, &lines[i], sum);
	return OW_OK;
}

static ow_status run(struct model *m, const struct view_options *options, struct result *out,
		     struct error *err)
{
	struct arena scratch;
	ow_status status;

	OW_TRY(model_require_stacks(m, err));
	if (samples_tell_code(m, options))
		return sample_lines_run(m, options, out, err);
	if (options->step >= 0 && !model_find_step(m, options->step).v)
		return error_set(err, OW_E_NOT_FOUND, "no step %" PRId64 " in this profile",
				 options->step);
	add_columns(out);
	arena_init(&scratch, m->mem);
	status = collect(m, options, &scratch, out, err);
	arena_release(&scratch);
	return status;
}

const struct view view_lines = {
	.name = "lines",
	.summary = "the lines of your code, by what the ops they created cost",
	.run = run,
};
