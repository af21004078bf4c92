/*
 * view_work.c: what the time of a step is spent on: kernels, operators and calls, by type. Unlike the op view
 * it leaves out what only wraps others (step markers, ranges, sessions), what only waits for others, and
 * what ran outside of steps; and it divides by all steps, so that the rows of one step add up. The
 * overview begins with it.
 */
#include "analyze/view.h"
#include "model/metrics.h"

enum {
	COLUMN_NAME,
	COLUMN_TIME,
	COLUMN_PERCENT,
	COLUMN_ACCELERATOR,
	COLUMN_CPU,
	COLUMN_RUNS,
	COLUMN_OPS,
	COLUMN_TOP
};

/* All ops of a type. */
struct kind {
	str_id type;
	int64_t accelerator_ns, cpu_ns, runs, ops;
	uint32_t top_op; /* the costliest */
	int64_t top_ns;
};

struct work {
	struct model *m;
	const struct view_options *options;
	struct metric_plan plan;
	uint32_t step; /* row of the only one, 0 = all */
	bool in_steps; /* something ran in a step: what did not is left out */
	bool all;      /* nothing is left but what wraps or waits */
	uint32_t steps;
	struct kind *kinds; /* by string */
};

static int64_t time_of(const struct kind *k)
{
	return wrap_add(k->accelerator_ns, k->cpu_ns);
}

static bool counts(const struct work *w, uint32_t row)
{
	uint32_t step = w->m->op_step.step[row].v;

	return w->step ? step == w->step : step || !w->in_steps;
}

/* How many steps there are to divide by. */
static bool find_steps(struct work *w, struct arena *scratch)
{
	const struct op_step_table *t = &w->m->op_step;
	uint8_t *seen = ARENA_ARRAY(scratch, uint8_t, w->m->step.count);

	if (!seen)
		return false;
	for (uint32_t i = 1; i < t->count; i++) {
		uint32_t step = t->step[i].v;

		if (!w->plan.run_count[i] || (w->step && step != w->step))
			continue;
		w->in_steps |= step != 0;
		w->steps += step && !seen[step];
		seen[step] = 1;
	}
	w->steps = MAX(w->steps, 1u);
	return true;
}

static void add_op(struct work *w, uint32_t op)
{
	const struct model *m = w->m;
	uint32_t first = m->op.step_first[op], end = first + m->op.step_count[op];
	bool full = w->options->full_names && m->op.flags[op] & OP_SHORT_TYPE;
	struct kind *k = &w->kinds[full ? m->op.name[op].v : m->op.type[op].v], before = *k;
	int64_t own;

	if (!w->all && m->op.flags[op] & (OP_WRAPS | OP_WAITS))
		return;
	for (uint32_t i = first; i < end; i++) {
		if (!counts(w, i))
			continue;
		k->accelerator_ns = wrap_add(k->accelerator_ns, w->plan.accelerator_ns[i]);
		k->cpu_ns = wrap_add(k->cpu_ns, w->plan.cpu_ns[i]);
		k->runs = wrap_add(k->runs, w->plan.run_count[i]);
	}
	if (k->runs == before.runs)
		return;
	own = time_of(k) - time_of(&before);
	k->ops++;
	if (!k->top_op || own > k->top_ns) {
		k->top_op = op;
		k->top_ns = own;
	}
}

static int64_t add_all(struct work *w)
{
	int64_t sum = 0;

	for (uint32_t op = 1; op < w->m->op.count; op++)
		add_op(w, op);
	for (uint32_t i = 0; i < w->m->strings.count; i++)
		sum = wrap_add(sum, MAX(time_of(&w->kinds[i]), 0));
	return sum;
}

static int by_time(const void *a, const void *b)
{
	const struct kind *x = a, *y = b;

	if (time_of(x) != time_of(y))
		return time_of(x) > time_of(y) ? -1 : 1;
	if (x->runs != y->runs)
		return x->runs > y->runs ? -1 : 1;
	return (x->type.v > y->type.v) - (x->type.v < y->type.v);
}

static void add_columns(struct result *out)
{
	result_column(out, "name", "operation", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "time_ns", "time", RESULT_INT, RESULT_NS);
	result_column(out, "percent", "share", RESULT_REAL, RESULT_PERCENT);
	result_column(out, "accelerator_ns", "accelerator", RESULT_INT, RESULT_NS);
	result_column(out, "cpu_ns", "cpu", RESULT_INT, RESULT_NS);
	result_column(out, "runs", "runs", RESULT_REAL, RESULT_PLAIN);
	result_column(out, "ops", "ops", RESULT_INT, RESULT_COUNT);
	result_column(out, "top_op", "above all", RESULT_TEXT, RESULT_PLAIN);
}

static void add_row(const struct work *w, struct result *out, const struct kind *k, int64_t sum)
{
	const struct model *m = w->m;
	uint32_t row = result_row(out, 0);
	struct str top = model_str(m, m->op.name[k->top_op]);

	result_set_model_text(out, row, COLUMN_NAME, model_str(m, k->type));
	result_set_int(out, row, COLUMN_TIME, time_of(k) / w->steps);
	result_set_real(out, row, COLUMN_PERCENT,
			sum > 0 ? 100.0 * (double)time_of(k) / (double)sum : 0);
	result_set_int(out, row, COLUMN_ACCELERATOR, k->accelerator_ns / w->steps);
	result_set_int(out, row, COLUMN_CPU, k->cpu_ns / w->steps);
	result_set_real(out, row, COLUMN_RUNS, (double)k->runs / w->steps);
	result_set_int(out, row, COLUMN_OPS, k->ops);
	if (!str_eq(top, model_str(m, k->type)))
		result_set_model_text(out, row, COLUMN_TOP, top);
}

static ow_status collect(struct work *w, struct arena *scratch, struct result *out,
			 struct error *err)
{
	const struct event_sums *sums;
	uint32_t used = 0;
	int64_t sum;

	OW_TRY(view_sums(w->m, w->options, scratch, &sums, err));
	metric_plan_init(&w->plan, w->m, w->options->step, METRIC_BIT(METRIC_MICROS));
	metric_plan_filter(&w->plan, sums);
	w->kinds = ARENA_ARRAY(scratch, struct kind, w->m->strings.count);
	if (!w->kinds || !find_steps(w, scratch))
		return error_no_memory(err);
	sum = add_all(w);
	if (!sum) { /* somebody's ranges are all there is */
		memset(w->kinds, 0, w->m->strings.count * sizeof(*w->kinds));
		w->all = true;
		sum = add_all(w);
	}
	for (uint32_t i = 0; i < w->m->strings.count; i++) {
		struct kind kind = w->kinds[i];

		kind.type.v = i;
		if (kind.ops)
			w->kinds[used++] = kind;
	}
	qsort(w->kinds, used, sizeof(*w->kinds), by_time);
	for (uint32_t i = 0; i < used && (!w->options->limit || i < w->options->limit); i++)
		add_row(w, out, &w->kinds[i], sum);
	return OW_OK;
}

static ow_status run(struct model *m, const struct view_options *options, struct result *out,
		     struct error *err)
{
	struct work w = { .m = m, .options = options };
	struct arena scratch;
	ow_status status;

	if (options->step >= 0)
		w.step = model_find_step(m, options->step).v;
	if (options->step >= 0 && !w.step)
		return error_set(err, OW_E_NOT_FOUND, "no step %" PRId64 " in this profile",
				 options->step);
	add_columns(out);
	arena_init(&scratch, m->mem);
	status = collect(&w, &scratch, out, err);
	arena_release(&scratch);
	return status;
}

const struct view view_work = {
	.name = "work",
	.summary = "what a step is spent on, without what only wraps or waits",
	.run = run,
};
