/*
 * view_work.c: the view `work`: what the time of a step is spent on: kernels, operators and calls, by type. Unlike the op view it leaves out
 * events that only wrap others (step markers, ranges, sessions) or wait for others (also the runs of a copy that wait until the device
 * gets to it), and everything outside of steps. It divides by the number of all steps, and of ranks, so the rows of one step of one rank add
 * up. The overview begins with it.
 *
 * Time that did not come from typical steps is set apart: a step in which an op takes more than OUTLIER times its median, an op that
 * ran in one or two of many steps, one-off initialisation. Rows are ordered by what is left, so one-off events lead no list; where all
 * of it together is a small part of the time, by all time, which the overview shows then.
 */
#include "analyze/views/work.h"

#include "model/metrics.h"

enum {
	COLUMN_NAME,
	COLUMN_TIME,
	COLUMN_PERCENT,
	COLUMN_ACCELERATOR,
	COLUMN_CPU,
	COLUMN_RUNS,
	COLUMN_OPS,
	COLUMN_TOP,
	COLUMN_MEDIAN,
	COLUMN_OUTLIERS
};

#define OUTLIER 5   /* a step is an outlier for an op if it takes this many times the median */
#define FEW_STEPS 3 /* with fewer steps, nothing is known about typical steps */
/* an op that ran in at most this many of FEW_STEPS times as many steps is one-off */
#define ONE_OFF 2
#define MEDIAN_ROWS 200 /* number of rows for which the median is computed */

/* All ops of one type. */
struct kind {
	str_id type;
	int64_t accelerator_ns, cpu_ns, runs, ops, outlier_ns, median_ns;
	uint32_t top_op; /* costliest op of the type, without outliers */
	int64_t top_ns, top_outlier_ns;
};

struct work {
	struct model *m;
	int32_t rank;	 /* rank to show, -1 = all */
	bool full_names; /* group kernels by their whole names */
	struct metric_plan plan;
	uint32_t step; /* row of the step to show, 0 = all steps */
	bool in_steps; /* some work ran in a step, so work outside of steps is left out */
	bool all;      /* only work that wraps or waits exists, so it counts */
	uint32_t steps;
	int64_t rare_ns;    /* time of outliers and one-off runs of all types */
	uint32_t parts;	    /* number of steps of ranks to divide by */
	struct kind *kinds; /* types by string */
	int64_t *once_ns;   /* for each op: time of one-off initialisation; NULL = none */
	/* for each row of op_step: time of runs that wait although other runs of the op do not;
	 * NULL = none */
	int64_t *wait_ns;
	int64_t *values; /* scratch memory for the steps of an op */
};

static int64_t time_of(const struct kind *k)
{
	return sum_add(k->accelerator_ns, k->cpu_ns);
}

static int64_t typical_of(const struct kind *k)
{
	return sum_add(time_of(k), -k->outlier_ns);
}

static bool counts(const struct work *w, uint32_t row)
{
	uint32_t step = w->m->op_step.step[row].v;

	return w->step ? step == w->step : step || !w->in_steps;
}

/* Counts the ranks of each step, because times are those of one rank, not their sum. */
static void count_ranks(struct work *w, uint8_t *seen)
{
	const struct model *m = w->m;

	for (uint32_t i = 1; i < m->window.count; i++) {
		uint32_t step = m->window.step[i].v, source = m->window.source[i].v;

		if (!seen[step] || (w->rank >= 0 && m->source.rank[source] != w->rank))
			continue;
		w->parts += seen[step] == 2;
		seen[step] = 2;
	}
}

/* Finds the number of steps to divide by. */
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
	w->parts = w->steps;
	count_ranks(w, seen);
	return true;
}

static uint32_t type_of(const struct work *w, uint32_t op)
{
	const struct model *m = w->m;

	return w->full_names && m->op.flags[op] & OP_SHORT_TYPE ? m->op.name[op].v
								: m->op.type[op].v;
}

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int64_t work_outliers(int64_t *values, uint32_t ran, uint32_t steps)
{
	int64_t median, sum = 0;

	if (steps < FEW_STEPS || !ran)
		return 0;
	if (ran <= ONE_OFF && ran * FEW_STEPS <= steps) {
		for (uint32_t i = 0; i < ran; i++)
			sum = sum_add(sum, values[i]);
		return sum;
	}
	if (ran < FEW_STEPS)
		return 0;
	qsort(values, ran, sizeof(*values), by_value);
	median = values[(ran - 1) / 2];
	for (uint32_t i = ran; i-- && values[i] / OUTLIER > median;)
		sum = sum_add(sum, wrap_sub(values[i], median));
	return sum;
}

/* Returns the host time of an op in a step, without waits. */
static int64_t host_time(const struct work *w, uint32_t row)
{
	int64_t all = w->plan.cpu_ns[row], waits = w->wait_ns && !w->all ? w->wait_ns[row] : 0;

	all = MAX(all, 0); /* a damaged record can end before its start */
	return all - MIN(all, waits);
}

static int64_t accelerator_time(const struct work *w, uint32_t row)
{
	return MAX(w->plan.accelerator_ns[row], 0);
}

static void add_op(struct work *w, uint32_t op)
{
	const struct model *m = w->m;
	uint32_t first = m->op.step_first[op], end = first + m->op.step_count[op];
	struct kind *k = &w->kinds[type_of(w, op)], before = *k;
	int64_t own, apart;
	uint32_t ran = 0;

	if (!w->all && m->op.flags[op] & (OP_WRAPS | OP_WAITS))
		return;
	for (uint32_t i = first; i < end; i++) {
		if (!counts(w, i))
			continue;
		k->accelerator_ns = sum_add(k->accelerator_ns, accelerator_time(w, i));
		k->cpu_ns = sum_add(k->cpu_ns, host_time(w, i));
		k->runs = sum_add(k->runs, w->plan.run_count[i]);
		w->values[ran++] = sum_add(accelerator_time(w, i), host_time(w, i));
	}
	if (k->runs == before.runs)
		return;
	own = time_of(k) - time_of(&before);
	apart = MAX(w->step ? 0 : work_outliers(w->values, ran, w->steps),
		    w->once_ns ? MIN(w->once_ns[op], own) : 0);
	k->outlier_ns = sum_add(k->outlier_ns, apart);
	k->ops++;
	if (!k->top_op || own - apart > k->top_ns - k->top_outlier_ns ||
	    (own - apart == k->top_ns - k->top_outlier_ns &&
	     str_cmp(model_str(m, m->op.name[op]), model_str(m, m->op.name[k->top_op])) < 0)) {
		k->top_op = op;
		k->top_ns = own;
		k->top_outlier_ns = apart;
	}
}

static int64_t add_all(struct work *w)
{
	int64_t sum = 0;

	for (uint32_t op = 1; op < w->m->op.count; op++)
		add_op(w, op);
	for (uint32_t i = 0; i < w->m->strings.count; i++)
		sum = sum_add(sum, MAX(time_of(&w->kinds[i]), 0));
	return sum;
}

/* Orders rows by time with outliers, for use if outliers are a small part of all time. */
static int by_whole_time(const void *a, const void *b, void *arg)
{
	const struct kind *x = a, *y = b;
	const struct model *m = arg;

	if (time_of(x) != time_of(y))
		return time_of(x) > time_of(y) ? -1 : 1;
	if (x->runs != y->runs)
		return x->runs > y->runs ? -1 : 1;
	return str_cmp(model_str(m, x->type), model_str(m, y->type));
}

static int by_time(const void *a, const void *b, void *arg)
{
	const struct kind *x = a, *y = b;

	if (typical_of(x) != typical_of(y))
		return typical_of(x) > typical_of(y) ? -1 : 1;
	return by_whole_time(a, b, arg);
}

static void add_columns(struct table *out)
{
	table_add_column(out, "name", "operation", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "time_ns", "time", TYPE_INT, UNIT_NS);
	table_add_column(out, "percent", "share", TYPE_REAL, UNIT_PERCENT);
	table_add_column(out, "accelerator_ns", "accelerator", TYPE_INT, UNIT_NS);
	table_add_column(out, "cpu_ns", "cpu", TYPE_INT, UNIT_NS);
	table_add_column(out, "runs", "runs", TYPE_REAL, UNIT_NONE);
	table_add_column(out, "ops", "ops", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "top_op", "above all", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "median_ns", "median", TYPE_INT, UNIT_NS);
	table_add_column(out, "outlier_ns", "outliers", TYPE_INT, UNIT_NS);
}

static void add_row(const struct work *w, struct table *out, const struct kind *k, int64_t sum)
{
	const struct model *m = w->m;
	uint32_t row = table_add_row(out, 0);
	struct str top = model_str(m, m->op.name[k->top_op]);

	table_set_model_text(out, row, COLUMN_NAME, model_str(m, k->type));
	table_set_int(out, row, COLUMN_TIME, time_of(k) / w->parts);
	table_set_real(out, row, COLUMN_PERCENT,
		       sum > 0 ? 100.0 * (double)time_of(k) / (double)sum : 0);
	table_set_int(out, row, COLUMN_ACCELERATOR, k->accelerator_ns / w->parts);
	table_set_int(out, row, COLUMN_CPU, k->cpu_ns / w->parts);
	table_set_real(out, row, COLUMN_RUNS, (double)k->runs / w->parts);
	table_set_int(out, row, COLUMN_OPS, k->ops);
	if (!str_eq(top, model_str(m, k->type)))
		table_set_model_text(out, row, COLUMN_TOP, top);
	if (k->median_ns != TIME_UNKNOWN)
		table_set_int(out, row, COLUMN_MEDIAN, k->median_ns);
	table_set_int(out, row, COLUMN_OUTLIERS, k->outlier_ns / w->parts);
}

/* Mean duration and number of the runs of an op in a step. */
struct run_time {
	uint32_t kind;
	int64_t ns, runs;
};

static int by_kind_and_time(const void *a, const void *b)
{
	const struct run_time *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

/* Returns the median duration of runs; `times` are those of one type. */
static int64_t median_run(const struct run_time *times, size_t count, int64_t runs)
{
	int64_t seen = 0;

	for (size_t i = 0; i < count; i++) {
		seen = sum_add(seen, times[i].runs);
		if (seen >= runs - seen)
			return times[i].ns;
	}
	return TIME_UNKNOWN;
}

/* Computes medians of the first rows. The runs of an op in a step count as equally long. */
static bool find_medians(struct work *w, uint32_t used, struct arena *scratch)
{
	const struct op_step_table *t = &w->m->op_step;
	uint32_t *place = ARENA_ARRAY(scratch, uint32_t, w->m->strings.count);
	struct run_time *times = ARENA_ARRAY(scratch, struct run_time, t->count);
	size_t count = 0;

	if (!place || !times)
		return false;
	for (uint32_t i = 0; i < used; i++)
		w->kinds[i].median_ns = TIME_UNKNOWN;
	for (uint32_t i = 0; i < used && i < MEDIAN_ROWS; i++)
		place[w->kinds[i].type.v] = i + 1;
	for (uint32_t i = 1; i < t->count; i++) {
		uint32_t at = place[type_of(w, t->op[i].v)];

		if (at && counts(w, i) && w->plan.run_count[i] > 0 &&
		    (w->all || !(w->m->op.flags[t->op[i].v] & (OP_WRAPS | OP_WAITS))))
			times[count++] = (struct run_time){
				at - 1,
				sum_add(accelerator_time(w, i), host_time(w, i)) /
					w->plan.run_count[i],
				w->plan.run_count[i],
			};
	}
	qsort(times, count, sizeof(*times), by_kind_and_time);
	for (size_t first = 0, end; first < count; first = end) {
		struct kind *k = &w->kinds[times[first].kind];

		for (end = first + 1; end < count && times[end].kind == times[first].kind;)
			end++;
		k->median_ns = median_run(times + first, end - first, k->runs);
	}
	return true;
}

static bool find_once(struct work *w, const struct event_filter *filter, struct arena *scratch)
{
	const struct event_table *e = &w->m->event;

	if (!e->phase || !memchr(e->phase, PHASE_INITIALISATION, e->count))
		return true;
	w->once_ns = ARENA_ARRAY(scratch, int64_t, w->m->op.count);
	for (uint32_t i = 1; w->once_ns && i < e->count; i++) {
		int64_t begin = e->ts_ns[i], end = event_end(w->m, i);

		if (e->phase[i] == PHASE_INITIALISATION && event_is_slice(w->m, i) &&
		    (w->step ? e->step[i].v == w->step : e->step[i].v || !w->in_steps) &&
		    filter_track(filter, w->m, e->track[i]) && filter_clip(filter, &begin, &end))
			w->once_ns[e->op[i].v] =
				sum_add(w->once_ns[e->op[i].v], MAX(wrap_sub(end, begin), 0));
	}
	return w->once_ns != NULL;
}

/* Finds copies that wait until the device executes them: their phase is a wait, although their op is not. */
static bool find_waits(struct work *w, const struct event_filter *filter, struct arena *scratch)
{
	const struct event_table *e = &w->m->event;

	if (!e->phase || !memchr(e->phase, PHASE_SYNCHRONISATION, e->count))
		return true;
	w->wait_ns = ARENA_ARRAY(scratch, int64_t, w->m->op_step.count);
	for (uint32_t i = 1; w->wait_ns && i < e->count; i++) {
		int64_t begin = e->ts_ns[i], end = event_end(w->m, i);
		uint32_t op = e->op[i].v, row;

		if (e->phase[i] != PHASE_SYNCHRONISATION || w->m->op.flags[op] & OP_WAITS ||
		    !event_is_slice(w->m, i) || !filter_track(filter, w->m, e->track[i]) ||
		    !filter_clip(filter, &begin, &end))
			continue;
		row = op_step_find(w->m, op, e->step[i].v);
		w->wait_ns[row] = sum_add(w->wait_ns[row], MAX(wrap_sub(end, begin), 0));
	}
	return w->wait_ns != NULL;
}

/* Fills w->kinds, ordered by cost. */
static ow_status find_kinds(struct work *w, int64_t step, const struct event_filter *filter,
			    const struct event_sums *sums, struct arena *scratch, uint32_t *used,
			    int64_t *sum, struct ow_error *err)
{
	metric_plan_init(&w->plan, w->m, step, METRIC_BIT(METRIC_MICROS));
	metric_plan_filter(&w->plan, sums);
	w->kinds = ARENA_ARRAY(scratch, struct kind, w->m->strings.count);
	w->values = ARENA_ARRAY(scratch, int64_t, (size_t)w->m->step.count + 1);
	if (!w->kinds || !w->values || !find_steps(w, scratch) || !find_once(w, filter, scratch) ||
	    !find_waits(w, filter, scratch))
		return error_no_memory(err);
	*sum = add_all(w);
	if (!*sum) { /* the recording has only ranges of the program */
		memset(w->kinds, 0, w->m->strings.count * sizeof(*w->kinds));
		w->all = true;
		*sum = add_all(w);
	}
	*used = 0;
	for (uint32_t i = 0; i < w->m->strings.count; i++) {
		struct kind kind = w->kinds[i];

		kind.type.v = i;
		w->rare_ns = sum_add(w->rare_ns, kind.outlier_ns);
		if (kind.ops)
			w->kinds[(*used)++] = kind;
	}
	qsort_r(w->kinds, *used, sizeof(*w->kinds),
		(double)w->rare_ns >= WORK_OUTLIERS_APART * (double)*sum ? by_time : by_whole_time,
		w->m);
	return OW_OK;
}

static ow_status collect_work(struct work *w, const struct view_options *options,
			      struct arena *scratch, struct table *out, struct ow_error *err)
{
	const struct event_sums *sums;
	struct event_filter filter;
	uint32_t used;
	int64_t sum;

	OW_TRY(view_filter(w->m, options, &filter, err));
	OW_TRY(view_sums(w->m, options, scratch, &sums, err));
	OW_TRY(find_kinds(w, options->step, &filter, sums, scratch, &used, &sum, err));
	if (!find_medians(w, used, scratch))
		return error_no_memory(err);
	for (uint32_t i = 0; i < used && (!options->limit || i < options->limit); i++)
		add_row(w, out, &w->kinds[i], sum);
	return OW_OK;
}

ow_status work_top_find(struct model *m, const struct event_filter *filter, struct arena *scratch,
			struct work_top *out, struct ow_error *err)
{
	struct work w = { .m = m, .rank = filter->rank, .step = filter->step };
	bool part = filter->rank >= 0 || filter->run || filter_has_time(filter);
	struct event_sums sums;
	uint32_t used;
	int64_t sum;

	*out = (struct work_top){ 0 };
	if (part)
		OW_TRY(event_sums_make(m, filter, scratch, &sums, err));
	OW_TRY(find_kinds(&w, filter->step ? m->step.number[filter->step] : -1, filter,
			  part ? &sums : NULL, scratch, &used, &sum, err));
	out->apart = w.rare_ns < sum && (double)w.rare_ns >= WORK_OUTLIERS_APART * (double)sum;
	if (used && sum > 0) {
		const struct kind *k = &w.kinds[0];

		out->type = k->type.v;
		out->op = k->top_op;
		out->type_ns = out->apart ? typical_of(k) : time_of(k);
		out->op_ns = k->top_ns - (out->apart ? k->top_outlier_ns : 0);
		out->all_ns = out->apart ? sum - w.rare_ns : sum;
		for (uint32_t i = 1; i < used; i++) {
			int64_t time_ns =
				out->apart ? typical_of(&w.kinds[i]) : time_of(&w.kinds[i]);

			if (time_ns != out->type_ns)
				break;
			out->equal++;
			out->other = w.kinds[1].type.v;
		}
	}
	return OW_OK;
}

static ow_status run_work_view(struct model *m, const struct view_options *options,
			       struct table *out, struct ow_error *err)
{
	struct work w = { .m = m, .rank = options->rank, .full_names = options->full_names };
	struct arena scratch;
	ow_status status;

	if (options->step >= 0)
		w.step = model_find_step(m, options->step).v;
	if (options->step >= 0 && !w.step)
		return error_set(err, OW_E_NOT_FOUND, "this profile has no step %" PRId64,
				 options->step);
	add_columns(out);
	arena_init(&scratch, m->mem);
	status = collect_work(&w, options, &scratch, out, err);
	arena_release(&scratch);
	return status;
}

const struct view view_work = {
	.name = "work",
	.summary = "kernels, operators and calls of a step, by type",
	.uses = VIEW_USES_PART | VIEW_USES_FULL_NAMES,
	.run = run_work_view,
};
