/*
 * view_metrics.c: what the samples of a profile measure: one row per metric of an input. They are never
 * added up with each other; --metric NAME chooses the one that other views show.
 */
#include "analyze/samples.h"

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
	int64_t samples, total, threads, stacks;
	int64_t first, last;
	uint32_t last_track;
};

static void add_columns(struct result *out)
{
	result_column(out, "name", "metric", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "unit", "unit", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "samples", "samples", RESULT_INT, RESULT_COUNT);
	result_column(out, "total", "total", RESULT_INT, RESULT_COUNT);
	result_column(out, "threads", "threads", RESULT_INT, RESULT_COUNT);
	result_column(out, "stacks", "stacks", RESULT_INT, RESULT_COUNT);
	result_column(out, "start_ns", "start", RESULT_INT, RESULT_NS);
	result_column(out, "span_ns", "span", RESULT_INT, RESULT_NS);
	result_column(out, "is_default", "default", RESULT_BOOL, RESULT_PLAIN);
	result_column(out, "source", "source", RESULT_TEXT, RESULT_PLAIN);
	out->columns[COLUMN_START].for_programs = true;
}

static void add_row(struct result *out, const struct model *m, uint32_t metric,
		    const struct sampled *s)
{
	const struct metric_table *t = &m->metric;
	uint32_t row = result_row(out, 0);

	result_set_model_text(out, row, COLUMN_NAME, model_str(m, t->name[metric]));
	result_set_model_text(out, row, COLUMN_UNIT, model_str(m, t->unit[metric]));
	result_set_int(out, row, COLUMN_SAMPLES, s->samples);
	result_set_int(out, row, COLUMN_TOTAL, s->total);
	result_set_int(out, row, COLUMN_THREADS, s->threads);
	result_set_int(out, row, COLUMN_STACKS, s->stacks);
	result_set_int(out, row, COLUMN_DEFAULT, t->is_default[metric]);
	result_set_model_text(out, row, COLUMN_SOURCE,
			      model_str(m, m->source.path[t->source[metric].v]));
	if (s->first == TIME_UNKNOWN) {
		result_set_unknown(out, row, COLUMN_START);
		result_set_unknown(out, row, COLUMN_SPAN);
		return;
	}
	result_set_int(out, row, COLUMN_START, s->first);
	result_set_int(out, row, COLUMN_SPAN, wrap_add(s->last, -s->first));
}

static void add_sample(const struct model *m, struct sampled *s, uint32_t i)
{
	int64_t ts = m->sample.ts_ns[i];

	s->samples++;
	s->total = wrap_add(s->total, m->sample.weight[i]);
	if (s->last_track != m->sample.track[i].v + 1)
		s->threads++;
	s->last_track = m->sample.track[i].v + 1;
	if (ts == TIME_UNKNOWN)
		return;
	s->first = s->first == TIME_UNKNOWN ? ts : MIN(s->first, ts);
	s->last = MAX(s->last, ts);
}

/* Distinct stacks of each metric; seen has, per stack, the metric that was counted last. */
static void count_stacks(const struct model *m, const struct event_filter *filter,
			 struct sampled *all, uint32_t *seen)
{
	for (uint32_t metric = 1; metric < m->metric.count; metric++)
		for (uint32_t i = 1; all[metric].samples && i < m->sample.count; i++) {
			uint32_t stack = m->sample.stack[i].v;

			if (m->sample.metric[i].v != metric || seen[stack] == metric ||
			    !sample_inside(filter, m, i))
				continue;
			seen[stack] = metric;
			all[metric].stacks++;
		}
}

static ow_status collect(struct model *m, const struct view_options *options, struct arena *scratch,
			 struct result *out, struct error *err)
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
		if (!options->limit || out->row_count < options->limit)
			add_row(out, m, i, &all[i]);
	return OW_OK;
}

static ow_status run(struct model *m, const struct view_options *options, struct result *out,
		     struct error *err)
{
	struct arena scratch;
	ow_status status;

	OW_TRY(model_require_stacks(m, err));
	add_columns(out);
	arena_init(&scratch, m->mem);
	status = collect(m, options, &scratch, out, err);
	arena_release(&scratch);
	return status;
}

const struct view view_metrics = {
	.name = "metrics",
	.summary = "what samples measure, and how many there are",
	.run = run,
};
