/*
 * view_metrics.c: the view `metrics`: one row per metric of an input that samples measure. Metrics are never added up; --metric NAME chooses
 * the one that other views show.
 *
 * Rows of a source with times are samples. Without times a row is a stack with all of its samples: their number is the sum of a metric that
 * counts, of this one or of another of the same input, or the sum divided by the period of which all weights are multiples. Else it is not
 * known.
 */
#include "analyze/samples/samples.h"

enum {
	COLUMN_NAME,
	COLUMN_UNIT,
	COLUMN_SAMPLES,
	COLUMN_TOTAL,
	COLUMN_THREADS,
	COLUMN_STACKS,
	COLUMN_START,
	COLUMN_SPAN,
	COLUMN_DEFAULT,
	COLUMN_SOURCE
};

struct sampled {
	int64_t rows, period; /* number of rows, and greatest common divisor of their weights */
	int64_t samples, total, threads, stacks;
	int64_t first, last;
	uint32_t last_track;
	/* total weight of the current thread, and of the thread with the largest total */
	int64_t thread_total, longest;
};

static void add_columns(struct table *out)
{
	table_add_column(out, "name", "metric", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "unit", "unit", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "samples", "samples", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "total", "total", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "threads", "threads", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "stacks", "stacks", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "start_ns", "start", TYPE_INT, UNIT_NS);
	table_add_column(out, "span_ns", "span", TYPE_INT, UNIT_NS);
	table_add_column(out, "is_default", "default", TYPE_BOOL, UNIT_NONE);
	table_add_column(out, "source", "source", TYPE_TEXT, UNIT_NONE);
	out->columns[COLUMN_START].for_programs = true;
}

static void add_row(struct table *out, const struct model *m, uint32_t metric,
		    const struct sampled *s)
{
	const struct metric_table *t = &m->metric;
	uint32_t row = table_add_row(out, 0);

	table_set_model_text(out, row, COLUMN_NAME, model_str(m, t->name[metric]));
	table_set_model_text(out, row, COLUMN_UNIT, model_str(m, t->unit[metric]));
	if (s->samples >= 0)
		table_set_int(out, row, COLUMN_SAMPLES, s->samples);
	else
		table_set_unknown(out, row, COLUMN_SAMPLES);
	table_set_int(out, row, COLUMN_TOTAL, s->total);
	table_set_int(out, row, COLUMN_THREADS, s->threads);
	table_set_int(out, row, COLUMN_STACKS, s->stacks);
	table_set_int(out, row, COLUMN_DEFAULT, t->is_default[metric]);
	table_set_model_text(out, row, COLUMN_SOURCE,
			     model_str(m, m->source.path[t->source[metric].v]));
	if (s->first == TIME_UNKNOWN) {
		table_set_unknown(out, row, COLUMN_START);
		table_set_unknown(out, row, COLUMN_SPAN);
		return;
	}
	table_set_int(out, row, COLUMN_START, s->first);
	/* samples with a duration extend beyond the time of the last sample */
	table_set_int(out, row, COLUMN_SPAN,
		      sample_unit(model_str(m, t->unit[metric])) == UNIT_NS
			      ? MAX(sum_add(s->last, -s->first), s->longest)
			      : sum_add(s->last, -s->first));
}

/* Returns the greatest common divisor of numbers above 0; a may be 0. */
static int64_t divisor(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static void add_sample(const struct model *m, struct sampled *s, uint32_t i)
{
	int64_t ts = m->sample.ts_ns[i];

	s->rows++;
	if (m->sample.weight[i] > 0)
		s->period = divisor(s->period, m->sample.weight[i]);
	s->total = sum_add(s->total, m->sample.weight[i]);
	if (s->last_track != m->sample.track[i].v + 1) {
		s->threads++;
		s->thread_total = 0;
	}
	s->last_track = m->sample.track[i].v + 1;
	s->thread_total = sum_add(s->thread_total, m->sample.weight[i]);
	s->longest = MAX(s->longest, s->thread_total);
	if (ts == TIME_UNKNOWN)
		return;
	s->first = s->first == TIME_UNKNOWN ? ts : MIN(s->first, ts);
	s->last = MAX(s->last, ts);
}

/* Counts the distinct stacks of each metric; `seen` holds, for each stack, the metric that was
 * counted last. */
static void count_stacks(const struct model *m, const struct event_filter *filter,
			 struct sampled *all, uint32_t *seen)
{
	for (uint32_t metric = 1; metric < m->metric.count; metric++)
		for (uint32_t i = 1; all[metric].rows && i < m->sample.count; i++) {
			uint32_t stack = m->sample.stack[i].v;

			if (m->sample.metric[i].v != metric || seen[stack] == metric ||
			    !sample_inside(filter, m, i))
				continue;
			seen[stack] = metric;
			all[metric].stacks++;
		}
}

#define PERIOD 1000 /* a smaller common divisor of weights is accidental */

static bool counts_samples(const struct model *m, uint32_t metric)
{
	return str_eq(model_str(m, m->metric.unit[metric]), STR("count")) &&
	       str_eq(model_str(m, m->metric.name[metric]), STR("samples"));
}

/* Returns how many samples the rows of a metric stand for; -1 if that is unknown. */
static int64_t count_samples(const struct model *m, const struct sampled *all, uint32_t metric)
{
	const struct sampled *s = &all[metric];

	/* without times, one row may stand for several equal samples */
	if (s->first != TIME_UNKNOWN || !s->rows)
		return counts_samples(m, metric) ? MAX(s->total, s->rows) : s->rows;
	if (s->period >= PERIOD)
		return s->total / s->period;
	if (counts_samples(m, metric))
		return s->total;
	for (uint32_t i = 1; i < m->metric.count; i++)
		if (m->metric.source[i].v == m->metric.source[metric].v && counts_samples(m, i))
			return all[i].total;
	return -1;
}

static ow_status collect_metrics(struct model *m, const struct view_options *options,
				 struct arena *scratch, struct table *out, struct ow_error *err)
{
	struct sampled *all = ARENA_ARRAY(scratch, struct sampled, m->metric.count);
	uint32_t *seen = ARENA_ARRAY(scratch, uint32_t, m->stack.count);
	struct event_filter filter;

	if (!all || !seen)
		return error_no_memory(err);
	OW_TRY(view_filter(m, options, &filter, err));
	for (uint32_t i = 0; i < m->metric.count; i++) {
		all[i].first = TIME_UNKNOWN;
		all[i].last = INT64_MIN;
	}
	for (uint32_t i = 1; i < m->sample.count; i++)
		if (sample_inside(&filter, m, i))
			add_sample(m, &all[m->sample.metric[i].v], i);
	count_stacks(m, &filter, all, seen);
	for (uint32_t i = 1; i < m->metric.count; i++)
		all[i].samples = count_samples(m, all, i);
	for (uint32_t i = 1; i < m->metric.count; i++)
		if (!options->limit || out->row_count < options->limit)
			add_row(out, m, i, &all[i]);
	return OW_OK;
}

static ow_status run_metrics_view(struct model *m, const struct view_options *options,
				  struct table *out, struct ow_error *err)
{
	struct arena scratch;
	ow_status status;

	OW_TRY(model_require_stacks(m, err));
	add_columns(out);
	arena_init(&scratch, m->mem);
	status = collect_metrics(m, options, &scratch, out, err);
	arena_release(&scratch);
	return status;
}

const struct view view_metrics = {
	.name = "metrics",
	.summary = "metrics of the samples, with the number of samples",
	.uses = VIEW_USES_PART,
	.run = run_metrics_view,
};
