/*
 * view_steps.c: one row per step in order of their numbers: when, how long, how much ran on host and
 * accelerator, and whether it is an outlier. Times of ops may add up to more than the duration: they
 * run in parallel.
 *
 * A step is an outlier when it takes more than 1.5 times the median, or lies more than three standard
 * deviations above the mean; with less than three steps nothing is said.
 */
#include "analyze/busy.h"
#include "analyze/view.h"

#include <math.h>

#define OUTLIER_MEDIANS 1.5
#define OUTLIER_SIGMAS 3.0
#define OUTLIER_MIN_STEPS 3

enum {
	COLUMN_STEP,
	COLUMN_NAME,
	COLUMN_START,
	COLUMN_DURATION,
	COLUMN_EVENTS,
	COLUMN_OPS,
	COLUMN_CPU,
	COLUMN_ACCELERATOR,
	COLUMN_PEAK,
	COLUMN_OUTLIER
};

struct step_sums {
	uint32_t step;
	int64_t number;
	int64_t events, ops;
	int64_t cpu_ns, accelerator_ns;
	int64_t peak;	  /* 0 = unknown */
	int64_t duration; /* TIME_UNKNOWN when no event tells */
};

static void add_columns(struct result *out)
{
	result_column(out, "step", "step", RESULT_INT, RESULT_PLAIN);
	result_column(out, "name", "name", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "start_ns", "start", RESULT_INT, RESULT_NS);
	result_column(out, "duration_ns", "duration", RESULT_INT, RESULT_NS);
	result_column(out, "events", "events", RESULT_INT, RESULT_COUNT);
	result_column(out, "ops", "ops", RESULT_INT, RESULT_COUNT);
	result_column(out, "cpu_ns", "cpu time", RESULT_INT, RESULT_NS);
	result_column(out, "accelerator_ns", "accelerator time", RESULT_INT, RESULT_NS);
	result_column(out, "peak_bytes", "peak memory", RESULT_INT, RESULT_BYTES);
	result_column(out, "outlier", "outlier", RESULT_BOOL, RESULT_PLAIN);
}

/* sums[i] is for step row i. */
static void add_up(const struct model *m, struct step_sums *sums)
{
	for (uint32_t i = 1; i < m->event.count; i++)
		sums[m->event.step[i].v].events++;
	for (uint32_t i = 1; i < m->op_step.count; i++) {
		struct step_sums *s = &sums[m->op_step.step[i].v];

		s->ops++;
		s->cpu_ns = wrap_add(s->cpu_ns, m->op_step.cpu_ns[i]);
		s->accelerator_ns = wrap_add(s->accelerator_ns, m->op_step.accelerator_ns[i]);
	}
	for (uint32_t i = 1; m->memory.in_use && i < m->memory.count; i++) {
		struct step_sums *s = &sums[m->op_step.step[m->memory.op_step[i]].v];

		s->peak = MAX(s->peak, m->memory.in_use[i]);
	}
	for (uint32_t i = 1; i < m->step.count; i++) {
		int64_t start = m->step.start_ns[i], end = m->step.end_ns[i];

		sums[i].step = i;
		sums[i].number = m->step.number[i];
		sums[i].duration = start == TIME_UNKNOWN || end == TIME_UNKNOWN
					   ? TIME_UNKNOWN
					   : busy_span(start, end);
	}
}

static int by_number(const void *a, const void *b)
{
	const struct step_sums *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The duration above which a step is an outlier; INFINITY when there are too few. `values` is
 * scratch space for all durations. */
static double outlier_limit(const struct step_sums *sums, uint32_t count, int64_t *values)
{
	double sum = 0, squares = 0, mean, sigma, median;
	int64_t low, high;
	uint32_t known = 0;

	for (uint32_t i = 0; i < count; i++)
		if (sums[i].duration != TIME_UNKNOWN)
			values[known++] = sums[i].duration;
	if (known < OUTLIER_MIN_STEPS)
		return INFINITY;
	for (uint32_t i = 0; i < known; i++)
		sum += (double)values[i];
	mean = sum / known;
	for (uint32_t i = 0; i < known; i++)
		squares += ((double)values[i] - mean) * ((double)values[i] - mean);
	sigma = sqrt(squares / known);
	qsort(values, known, sizeof(*values), by_value);
	low = values[(known - 1) / 2];
	high = values[known / 2];
	median = ((double)low + (double)high) / 2;
	return MIN(OUTLIER_MEDIANS * median, mean + OUTLIER_SIGMAS * sigma);
}

static int64_t first_start(const struct model *m)
{
	int64_t first = TIME_UNKNOWN;

	for (uint32_t i = 1; i < m->step.count; i++) {
		int64_t start = m->step.start_ns[i];

		if (start != TIME_UNKNOWN && (first == TIME_UNKNOWN || start < first))
			first = start;
	}
	return first;
}

static void add_step(struct result *out, const struct model *m, const struct step_sums *s,
		     int64_t origin, double limit)
{
	uint32_t row = result_row(out, 0);

	result_set_int(out, row, COLUMN_STEP, s->number);
	result_set_model_text(out, row, COLUMN_NAME, model_str(m, m->step.name[s->step]));
	if (s->duration == TIME_UNKNOWN) {
		result_set_unknown(out, row, COLUMN_START);
		result_set_unknown(out, row, COLUMN_DURATION);
	} else {
		result_set_int(out, row, COLUMN_START,
			       busy_span(origin, m->step.start_ns[s->step]));
		result_set_int(out, row, COLUMN_DURATION, s->duration);
	}
	result_set_int(out, row, COLUMN_EVENTS, s->events);
	result_set_int(out, row, COLUMN_OPS, s->ops);
	result_set_int(out, row, COLUMN_CPU, s->cpu_ns);
	result_set_int(out, row, COLUMN_ACCELERATOR, s->accelerator_ns);
	if (s->peak > 0)
		result_set_int(out, row, COLUMN_PEAK, s->peak);
	else
		result_set_unknown(out, row, COLUMN_PEAK);
	result_set_int(out, row, COLUMN_OUTLIER,
		       s->duration != TIME_UNKNOWN && (double)s->duration > limit);
}

static ow_status list_steps(struct model *m, int64_t only, struct arena *scratch,
			    struct result *out, struct error *err)
{
	uint32_t count = m->step.count - 1;
	struct step_sums *sums = ARENA_ARRAY(scratch, struct step_sums, (size_t)count + 1);
	int64_t *values = ARENA_ARRAY(scratch, int64_t, (size_t)count + 1);
	int64_t origin = first_start(m);
	double limit;

	if (!sums || !values)
		return error_no_memory(err);
	add_up(m, sums);
	sums++; /* the nil step holds what belongs to none */
	qsort(sums, count, sizeof(*sums), by_number);
	limit = outlier_limit(sums, count, values);
	for (uint32_t i = 0; i < count; i++)
		if (only < 0 || sums[i].number == only)
			add_step(out, m, &sums[i], origin, limit);
	return OW_OK;
}

static ow_status run(struct model *m, const struct view_options *options, struct result *out,
		     struct error *err)
{
	struct arena scratch;
	ow_status status;

	if (options->step >= 0 && !model_find_step(m, options->step).v)
		return error_set(err, OW_E_NOT_FOUND, "there is no step %" PRId64, options->step);
	add_columns(out);
	arena_init(&scratch, m->mem);
	status = list_steps(m, options->step, &scratch, out, err);
	arena_release(&scratch);
	OW_TRY(status);
	if (options->limit)
		result_limit(out, options->limit);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_steps = {
	.name = "steps",
	.summary = "one row per step: duration, work on host and accelerator, outliers",
	.run = run,
};
