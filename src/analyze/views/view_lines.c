/*
 * view_lines.c: the view `lines`: lines of the user's own code, with the cost of the ops that they create. The code view shows whole call trees,
 * which end in frames of libraries. Here an op counts for the innermost frame outside of libraries, because that line can be found and
 * changed. sample_lines.c does the same for sampled stacks. Ops that only wrap others or wait for them, and runs of a copy that wait, are
 * left out, as in the view `work`.
 */
#include "analyze/view.h"
#include "analyze/samples/samples.h"
#include "analyze/samples/stack_runs.h"
#include "base/vec.h"
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
	uint32_t top_type; /* type of op that takes the most time on the line */
	int64_t top_ns;
};

/* Time of the ops of one type on a line. */
struct line_type {
	uint32_t frame, type;
	int64_t ns;
};

struct lines {
	const struct model *m;
	const uint32_t *own; /* own frame of each stack */
	struct line *list;   /* lines by frame */
	struct line_type *types;
	size_t type_count, type_cap;
};

/* Returns the stack that created an op; a gradient counts for the line of its forward op. */
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

static bool add_op(struct lines *l, uint32_t stack, op_id op, const int64_t *value)
{
	uint32_t frame = l->own[stack];
	struct line *line = &l->list[frame];

	line->ops++;
	for (int k = 0; k < METRIC_COUNT; k++)
		line->total[k] = sum_add(line->total[k], value[k]);
	return vec_push(l->m->mem, l->types, l->type_count, l->type_cap,
			(struct line_type){ frame, l->m->op.type[op.v].v, value[METRIC_MICROS] });
}

static int by_line_and_type(const void *a, const void *b)
{
	const struct line_type *x = a, *y = b;

	if (x->frame != y->frame)
		return x->frame < y->frame ? -1 : 1;
	return (x->type > y->type) - (x->type < y->type);
}

/* Finds the type with the largest sum on each line. */
static void find_types(struct lines *l)
{
	if (l->type_count)
		qsort(l->types, l->type_count, sizeof(*l->types), by_line_and_type);
	for (size_t i = 0; i < l->type_count;) {
		const struct line_type *first = &l->types[i];
		struct line *line = &l->list[first->frame];
		int64_t sum = 0;

		for (; i < l->type_count && l->types[i].frame == first->frame &&
		       l->types[i].type == first->type;
		     i++)
			sum = sum_add(sum, l->types[i].ns);
		if (!line->top_type || sum > line->top_ns ||
		    (sum == line->top_ns &&
		     str_cmp(model_str(l->m, (str_id){ first->type }),
			     model_str(l->m, (str_id){ line->top_type })) < 0)) {
			line->top_type = first->type;
			line->top_ns = sum;
		}
	}
}

/* Leaves out host time in which a call waits for the device, as the view `work` does. */
static void leave_out_waits(const struct stack_run *run, int64_t value[METRIC_COUNT])
{
	int64_t waits;

	if (run->wait_ns <= 0 || run->cpu_ns <= 0)
		return;
	waits = (int64_t)((__int128)value[METRIC_CPU_MICROS] * MIN(run->wait_ns, run->cpu_ns) /
			  run->cpu_ns);
	value[METRIC_CPU_MICROS] -= waits;
	value[METRIC_MICROS] -= waits;
}

/* Adds the runs of an op that was called from several places. */
static bool add_runs(struct lines *l, const struct stack_runs *runs, uint32_t op,
		     const int64_t *whole)
{
	bool ok = true;

	for (uint32_t i = runs->first[op]; i < runs->first[op + 1]; i++) {
		int64_t value[METRIC_COUNT];

		memcpy(value, whole, sizeof(value));
		stack_run_share(runs, &runs->list[i], value);
		leave_out_waits(&runs->list[i], value);
		ok = ok && add_op(l, runs->list[i].stack.v, (op_id){ op }, value);
	}
	return ok;
}

static int by_time(const void *a, const void *b, void *arg)
{
	const struct line *x = a, *y = b;
	int64_t tx = x->total[METRIC_MICROS], ty = y->total[METRIC_MICROS];

	if (tx != ty)
		return tx > ty ? -1 : 1;
	if (x->ops != y->ops)
		return x->ops > y->ops ? -1 : 1;
	return frame_cmp(arg, x->frame, y->frame);
}

static void add_columns(struct table *out)
{
	table_add_column(out, "name", "line", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "time_ns", "time", TYPE_INT, UNIT_NS);
	table_add_column(out, "percent", "share", TYPE_REAL, UNIT_PERCENT);
	table_add_column(out, "top_type", "mostly", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "accelerator_ns", "accelerator", TYPE_INT, UNIT_NS);
	table_add_column(out, "cpu_ns", "cpu", TYPE_INT, UNIT_NS);
	table_add_column(out, "bytes", "memory", TYPE_INT, UNIT_BYTES);
	table_add_column(out, "float_ops", "float ops", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "ops", "ops", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "text", "source", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "file", "file", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "line", "number", TYPE_INT, UNIT_NONE);
	table_add_column(out, "function", "function", TYPE_TEXT, UNIT_NONE);
	/* the name already contains file and line */
	out->columns[COLUMN_LINE].for_programs = out->columns[COLUMN_FUNCTION].for_programs = true;
}

static void add_row(struct table *out, const struct model *m, const struct line *line, int64_t sum)
{
	struct str file = model_str(m, m->frame.file[line->frame]);
	struct str function = model_str(m, m->frame.function[line->frame]);
	uint32_t row = table_add_row(out, 0);
	char name[512];

	own_line_name(m, line->frame, name, sizeof(name));
	table_set_text(out, row, COLUMN_NAME, str_from(name));
	table_set_int(out, row, COLUMN_MICROS, line->total[METRIC_MICROS]);
	table_set_real(out, row, COLUMN_PERCENT,
		       sum > 0 ? 100.0 * (double)line->total[METRIC_MICROS] / (double)sum : 0);
	table_set_int(out, row, COLUMN_ACCELERATOR, line->total[METRIC_ACCELERATOR_MICROS]);
	table_set_int(out, row, COLUMN_CPU, line->total[METRIC_CPU_MICROS]);
	table_set_int(out, row, COLUMN_BYTES, line->total[METRIC_BYTES]);
	table_set_int(out, row, COLUMN_FLOAT_OPS, line->total[METRIC_FLOAT_OPS]);
	table_set_int(out, row, COLUMN_OPS, line->ops);
	table_set_model_text(out, row, COLUMN_TYPE, model_str(m, (str_id){ line->top_type }));
	table_set_model_text(out, row, COLUMN_TEXT, model_str(m, m->frame.text[line->frame]));
	table_set_model_text(out, row, COLUMN_FILE, file);
	table_set_int(out, row, COLUMN_LINE, m->frame.line[line->frame]);
	table_set_model_text(out, row, COLUMN_FUNCTION, function);
}

static ow_status add_ops(struct lines *l, struct model *m, const struct view_options *options,
			 struct arena *scratch, struct ow_error *err)
{
	const struct event_sums *sums;
	struct stack_runs runs;
	struct metric_plan plan;
	bool ok = true;

	OW_TRY(view_sums(m, options, scratch, &sums, err));
	OW_TRY(stack_runs_make(m, options, scratch, &runs, err));
	metric_plan_init(&plan, m, options->step, METRIC_ALL);
	metric_plan_filter(&plan, sums);
	plan.all_steps = metric_all_steps(&plan, options->rank);
	for (uint32_t i = 1; ok && i < m->op.count; i++) {
		uint32_t stack = stack_of(m, i);
		int64_t value[METRIC_COUNT] = { 0 };

		if (!stack || m->op.flags[i] & (OP_WRAPS | OP_WAITS))
			continue;
		metric_eval(&plan, (op_id){ i }, value);
		if (stack_runs_has(&runs, i))
			ok = add_runs(l, &runs, i, value);
		else
			ok = add_op(l, stack, (op_id){ i }, value);
	}
	return ok ? OW_OK : error_no_memory(err);
}

/* Returns the frame that counts for each stack: built-in functions have no file, so the line
 * that calls them counts. Outer stacks come first. */
static uint32_t *own_frames(const struct model *m, struct arena *scratch)
{
	uint32_t *own = line_own_frames(m, scratch);

	for (uint32_t i = 1; own && i < m->stack.count; i++) {
		uint32_t parent = m->stack.parent[i].v, outer = parent < i ? own[parent] : 0;

		if (!m->frame.file[own[i]].v && m->frame.file[outer].v)
			own[i] = outer;
	}
	return own;
}

static ow_status collect_lines(struct model *m, const struct view_options *options,
			       struct arena *scratch, struct table *out, struct ow_error *err)
{
	struct line *lines = ARENA_ARRAY(scratch, struct line, m->frame.count);
	struct lines l = { .m = m, .own = own_frames(m, scratch), .list = lines };
	uint32_t used = 0;
	int64_t sum = 0;
	ow_status status;

	if (!l.own || !lines)
		return error_no_memory(err);
	status = add_ops(&l, m, options, scratch, err);
	if (status == OW_OK)
		find_types(&l);
	mem_free(m->mem, l.types, l.type_cap * sizeof(*l.types));
	OW_TRY(status);
	for (uint32_t i = 1; i < m->frame.count; i++) {
		struct line line = lines[i];

		line.frame = i;
		if (line.ops) {
			sum = sum_add(sum, line.total[METRIC_MICROS]);
			lines[used++] = line;
		}
	}
	qsort_r(lines, used, sizeof(*lines), by_time, m);
	for (uint32_t i = 0; i < used && (!options->limit || i < options->limit); i++)
		add_row(out, m, &lines[i], sum);
	return OW_OK;
}

static ow_status run_lines_view(struct model *m, const struct view_options *options,
				struct table *out, struct ow_error *err)
{
	struct arena scratch;
	ow_status status;

	OW_TRY(model_require_stacks(m, err));
	if (samples_show_code(m, options))
		return sample_lines_run(m, options, out, err);
	if (options->step >= 0 && !model_find_step(m, options->step).v)
		return error_set(err, OW_E_NOT_FOUND, "this profile has no step %" PRId64,
				 options->step);
	add_columns(out);
	arena_init(&scratch, m->mem);
	status = collect_lines(m, options, &scratch, out, err);
	arena_release(&scratch);
	return status;
}

const struct view view_lines = {
	.name = "lines",
	.summary = "the lines of your code, by the cost of the ops they create",
	.uses = VIEW_USES_PART | VIEW_USES_METRIC,
	.run = run_lines_view,
};
