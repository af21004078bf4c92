/*
 * view_steps.c: one row per step, and per rank when there are several, in order of their numbers: when,
 * how long, what each moment went to (phases.h), and whether it is an outlier. Steps of sources that
 * are not classified have no phases: those columns are unknown, not zero.
 *
 * A step is an outlier when it takes more than 1.5 times the median, or lies more than three standard
 * deviations above the mean; with less than three steps nothing is said.
 */
#include "analyze/phases.h"
#include "analyze/view.h"
#include "analyze/xprof_steps.h"

#include <math.h>

#define OUTLIER_MEDIANS 1.5
#define OUTLIER_SIGMAS 3.0
#define OUTLIER_MIN_STEPS 3
#define BAR_WIDTH 40

enum {
	COLUMN_STEP,
	COLUMN_RANK,
	COLUMN_DURATION,
	COLUMN_BAR,
	COLUMN_OUTLIER,
	COLUMN_START,
	COLUMN_CPU,
	COLUMN_ACCELERATOR,
	COLUMN_EVENTS,
	COLUMN_OPS,
	COLUMN_PEAK,
	COLUMN_PHASES, /* one per class, in phase_class_order */
	COLUMN_BETWEEN = COLUMN_PHASES + CLASS_COUNT,
	COLUMN_BUSY,
	COLUMN_EXPOSED,
	COLUMN_DATA_WAIT,
	COLUMN_LAUNCH_GAP,
	COLUMN_DEPENDENCY_GAP,
	COLUMN_QUEUE_DELAY,
	COLUMN_SLICES,
	COLUMN_IN_MEANS,
	COLUMN_NAME,
	COLUMN_SOURCE,
	COLUMN_XPROF,	    /* XProf's duration of the step … */
	COLUMN_XPROF_PARTS, /* … and one per part of it */
	COLUMN_COUNT = COLUMN_XPROF_PARTS + XPROF_PARTS
};

/* What a step has apart from its phases. */
struct step_sums {
	int64_t ops;
	int64_t cpu_ns, accelerator_ns;
	int64_t peak; /* 0 = unknown */
	uint32_t rows;
};

struct step_row {
	uint32_t step, source;
	int64_t number;
	int64_t start, duration; /* TIME_UNKNOWN when no event tells */
	int64_t events;
	const struct phase_window *window; /* NULL when nothing is classified */
};

struct steps {
	struct model *m;
	struct event_filter filter;
	struct arena scratch;
	struct phases phases;
	struct step_sums *sums;	  /* per row of the table step */
	struct xprof_step *xprof; /* per row of the table window, or NULL */
	struct step_row *rows;
	uint32_t row_count;
	int64_t origin;
	double limit; /* above which a step is an outlier */
	struct error *err;
};

/* ---- columns ---- */

static const struct {
	const char *name, *title;
	char letter;
} phase_columns[CLASS_COUNT] = {
	[CLASS_INPUT] = { "input_ns", "input", 'I' },
	[CLASS_HOST] = { "host_ns", "host", 'H' },
	[CLASS_LAUNCH] = { "launch_ns", "launch", 'L' },
	[CLASS_HOST_TO_DEVICE] = { "host_to_device_ns", "to device", 'U' },
	[CLASS_COMPUTE] = { "compute_ns", "compute", 'C' },
	[CLASS_COMMUNICATION] = { "communication_ns", "communication", 'N' },
	[CLASS_DEVICE_TO_HOST] = { "device_to_host_ns", "to host", 'D' },
	[CLASS_SYNCHRONISATION] = { "synchronisation_ns", "synchronisation", 'S' },
	[CLASS_IDLE] = { "idle_ns", "idle", '.' },
};

/* In the order of enum xprof_part, behind the time of the step. */
static const char *const xprof_columns[XPROF_PARTS + 1] = {
	"xprof_step_ps",
	"xprof_device_compute_16_ps",
	"xprof_device_compute_32_ps",
	"xprof_device_to_host_ps",
	"xprof_device_to_device_ps",
	"xprof_host_wait_input_ps",
	"xprof_device_collectives_ps",
	"xprof_host_prepare_ps",
	"xprof_host_to_device_ps",
	"xprof_host_compute_ps",
	"xprof_unknown_ps",
};

static void add_columns(struct result *out)
{
	result_column(out, "step", "step", RESULT_INT, RESULT_PLAIN);
	result_column(out, "rank", "rank", RESULT_INT, RESULT_PLAIN);
	result_column(out, "duration_ns", "duration", RESULT_INT, RESULT_NS);
	result_column(out, "phases", "phases", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "outlier", "outlier", RESULT_BOOL, RESULT_PLAIN);
	result_column(out, "start_ns", "start", RESULT_INT, RESULT_NS);
	result_column(out, "cpu_ns", "cpu time", RESULT_INT, RESULT_NS);
	result_column(out, "accelerator_ns", "accelerator time", RESULT_INT, RESULT_NS);
	result_column(out, "events", "events", RESULT_INT, RESULT_COUNT);
	result_column(out, "ops", "ops", RESULT_INT, RESULT_COUNT);
	result_column(out, "peak_bytes", "peak memory", RESULT_INT, RESULT_BYTES);
	for (unsigned i = 0; i < CLASS_COUNT; i++)
		result_column(out, phase_columns[phase_class_order[i]].name,
			      phase_columns[phase_class_order[i]].title, RESULT_INT, RESULT_NS);
	result_column(out, "between_ns", "between steps", RESULT_INT, RESULT_NS);
	result_column(out, "device_busy_ns", "device busy", RESULT_INT, RESULT_NS);
	result_column(out, "exposed_communication_ns", "exposed communication", RESULT_INT,
		      RESULT_NS);
	result_column(out, "data_wait_ns", "data wait", RESULT_INT, RESULT_NS);
	result_column(out, "launch_gap_ns", "launch gaps", RESULT_INT, RESULT_NS);
	result_column(out, "dependency_gap_ns", "dependency gaps", RESULT_INT, RESULT_NS);
	result_column(out, "queue_delay_ns", "queue delay", RESULT_INT, RESULT_NS);
	result_column(out, "device_slices", "device slices", RESULT_INT, RESULT_COUNT);
	result_column(out, "in_means", "in means", RESULT_BOOL, RESULT_PLAIN);
	result_column(out, "name", "name", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "source", "source", RESULT_TEXT, RESULT_PLAIN);
	out->columns[COLUMN_BAR].fixed = true;
	for (uint32_t c = COLUMN_XPROF; c < COLUMN_COUNT; c++) {
		result_column(out, xprof_columns[c - COLUMN_XPROF], "", RESULT_INT, RESULT_PLAIN);
		out->columns[c].for_programs = true;
	}
}

/* ---- rows ---- */

static void add_up(struct steps *s)
{
	const struct model *m = s->m;

	for (uint32_t i = 1; i < m->op_step.count; i++) {
		struct step_sums *sums = &s->sums[m->op_step.step[i].v];

		sums->ops++;
		sums->cpu_ns = wrap_add(sums->cpu_ns, m->op_step.cpu_ns[i]);
		sums->accelerator_ns = wrap_add(sums->accelerator_ns, m->op_step.accelerator_ns[i]);
	}
	for (uint32_t i = 1; m->memory.in_use && i < m->memory.count; i++) {
		struct step_sums *sums = &s->sums[m->op_step.step[m->memory.op_step[i]].v];

		sums->peak = MAX(sums->peak, m->memory.in_use[i]);
	}
}

/* A step without phases; its span is that of its events. */
static void add_plain_row(struct steps *s, uint32_t step)
{
	const struct model *m = s->m;
	int64_t start = m->step.start_ns[step], end = m->step.end_ns[step];
	bool known = start != TIME_UNKNOWN && end != TIME_UNKNOWN;

	if (!filter_step(&s->filter, (step_id){ step }))
		return;
	if (known ? !filter_clip(&s->filter, &start, &end) : filter_has_time(&s->filter))
		return;
	s->rows[s->row_count++] = (struct step_row){
		.step = step,
		.number = m->step.number[step],
		.start = start,
		.duration = known ? span_length(start, end) : TIME_UNKNOWN,
	};
}

static void make_rows(struct steps *s)
{
	const struct model *m = s->m;

	for (uint32_t i = 0; i < s->phases.window_count; i++) {
		const struct phase_window *w = &s->phases.windows[i];

		s->sums[w->step.v].rows++;
		s->rows[s->row_count++] = (struct step_row){
			.step = w->step.v,
			.source = w->source.v,
			.number = w->step.v ? m->step.number[w->step.v] : INT64_MIN,
			.start = w->start_ns,
			.duration = span_length(w->start_ns, w->end_ns),
			.window = w,
		};
	}
	for (uint32_t i = 1; i < m->step.count; i++)
		if (!s->sums[i].rows)
			add_plain_row(s, i);
}

static int by_number_and_rank(const void *a, const void *b, void *arg)
{
	const struct step_row *x = a, *y = b;
	const struct steps *s = arg;
	const int32_t *rank = s->m->source.rank;
	int32_t rank_x = x->source ? rank[x->source] : -1,
		rank_y = y->source ? rank[y->source] : -1;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	if (rank_x != rank_y)
		return rank_x < rank_y ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return (x->start > y->start) - (x->start < y->start);
}

/* ---- events of rows ---- */

/* The first row of that step and source; 0 = none, else its number + 1. */
static uint32_t find_row(const struct steps *s, const struct map *map, uint32_t step,
			 uint32_t source)
{
	for (struct map_iter it = map_find(map, map_hash_u64(step, source)); it.value;
	     it = map_next(map, it))
		if (s->rows[it.value - 1].step == step && s->rows[it.value - 1].source == source)
			return it.value;
	return 0;
}

static bool index_rows(const struct steps *s, struct map *map)
{
	for (uint32_t i = 0; i < s->row_count; i++) {
		const struct step_row *row = &s->rows[i];

		if (find_row(s, map, row->step, row->source))
			continue;
		if (!map_add(map, map_hash_u64(row->step, row->source), i + 1))
			return false;
	}
	return true;
}

static ow_status count_events(struct steps *s)
{
	const struct model *m = s->m;
	uint32_t last_step = 0, last_source = 0, row = 0;
	struct map map;
	bool ok;

	map_init(&map, m->mem);
	ok = index_rows(s, &map);
	for (uint32_t i = 1; ok && i < m->event.count; i++) {
		uint32_t step = m->event.step[i].v;
		uint32_t source = m->track.source[m->event.track[i].v].v;
		int64_t begin = m->event.ts_ns[i], end = event_end(m, i);

		if (!step || !filter_source(&s->filter, m, (source_id){ source }) ||
		    !filter_clip(&s->filter, &begin, &end))
			continue;
		if (step != last_step || source != last_source) {
			row = find_row(s, &map, step, source);
			if (!row)
				row = find_row(s, &map, step, 0);
		}
		last_step = step;
		last_source = source;
		if (row)
			s->rows[row - 1].events++;
	}
	map_release(&map);
	return ok ? OW_OK : error_no_memory(s->err);
}

/* ---- outliers ---- */

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The duration above which a step is an outlier; INFINITY when there are too few. */
static ow_status find_limit(struct steps *s)
{
	double sum = 0, squares = 0, mean, sigma, median;
	int64_t *values = ARENA_ARRAY(&s->scratch, int64_t, s->row_count);
	uint32_t known = 0, below, above;

	s->limit = (double)INFINITY;
	if (!values)
		return error_no_memory(s->err);
	for (uint32_t i = 0; i < s->row_count; i++)
		if (s->rows[i].duration != TIME_UNKNOWN)
			values[known++] = s->rows[i].duration;
	if (known < OUTLIER_MIN_STEPS)
		return OW_OK;
	for (uint32_t i = 0; i < known; i++)
		sum += (double)values[i];
	mean = sum / known;
	for (uint32_t i = 0; i < known; i++)
		squares += ((double)values[i] - mean) * ((double)values[i] - mean);
	sigma = sqrt(squares / known);
	qsort(values, known, sizeof(*values), by_value);
	below = (known - 1) / 2;
	above = known / 2;
	median = (double)values[below] / 2 + (double)values[above] / 2;
	s->limit = MIN(OUTLIER_MEDIANS * median, mean + OUTLIER_SIGMAS * sigma);
	return OW_OK;
}

/* ---- output ---- */

/* One letter per fortieth of the step, in the order in which a step goes. */
static void draw_bar(const struct phase_sums *sums, char bar[BAR_WIDTH])
{
	double sum = 0, total = 0;
	unsigned at = 0;

	for (unsigned c = 0; c < CLASS_COUNT; c++)
		total += (double)sums->share[c];
	for (unsigned i = 0; i < CLASS_COUNT && total > 0; i++) {
		unsigned class = phase_class_order[i];

		sum += (double)sums->share[class];
		while (at < BAR_WIDTH && at + 0.5 < sum / total * BAR_WIDTH)
			bar[at++] = phase_columns[class].letter;
	}
	while (at < BAR_WIDTH)
		bar[at++] = phase_columns[CLASS_IDLE].letter;
}

static void set_time(struct result *out, uint32_t row, uint32_t column, int64_t ns)
{
	if (ns == TIME_UNKNOWN)
		result_set_unknown(out, row, column);
	else
		result_set_int(out, row, column, ns);
}

static void set_phases(const struct steps *s, struct result *out, uint32_t row,
		       const struct phase_window *w)
{
	bool has_device = s->phases.lanes[s->phases.rows[w->row_first].lane].has_device;
	struct phase_row mean;
	char bar[BAR_WIDTH];

	phases_mean(s->phases.rows + w->row_first, w->row_count, &mean);
	draw_bar(&mean.sums, bar);
	result_set_text(out, row, COLUMN_BAR, str_make(bar, BAR_WIDTH));
	for (unsigned i = 0; i < CLASS_COUNT; i++)
		result_set_int(out, row, COLUMN_PHASES + i, mean.sums.share[phase_class_order[i]]);
	set_time(out, row, COLUMN_BETWEEN, w->between_ns);
	set_time(out, row, COLUMN_BUSY, has_device ? mean.sums.device_busy : TIME_UNKNOWN);
	result_set_int(out, row, COLUMN_EXPOSED,
		       mean.sums.total[CLASS_COMMUNICATION] -
			       mean.sums.overlapped[CLASS_COMMUNICATION]);
	result_set_int(out, row, COLUMN_DATA_WAIT, mean.sums.total[CLASS_INPUT]);
	set_time(out, row, COLUMN_LAUNCH_GAP, mean.queued ? mean.launch_gap_ns : TIME_UNKNOWN);
	set_time(out, row, COLUMN_DEPENDENCY_GAP,
		 mean.queued ? mean.dependency_gap_ns : TIME_UNKNOWN);
	set_time(out, row, COLUMN_QUEUE_DELAY,
		 mean.queued ? mean.queue_delay_ns / (int64_t)mean.queued : TIME_UNKNOWN);
	result_set_int(out, row, COLUMN_SLICES, (int64_t)w->device_slices);
	result_set_int(out, row, COLUMN_IN_MEANS, w->use == WINDOW_COUNTS);
}

/* Sums of ops are not told apart by source, nor by time. */
static void set_sums(const struct steps *s, struct result *out, uint32_t row,
		     const struct step_row *step)
{
	const struct step_sums *sums = &s->sums[step->step];

	if (!step->step || sums->rows > 1 || filter_has_time(&s->filter)) {
		result_set_unknown(out, row, COLUMN_CPU);
		result_set_unknown(out, row, COLUMN_ACCELERATOR);
		result_set_unknown(out, row, COLUMN_OPS);
		result_set_unknown(out, row, COLUMN_PEAK);
		return;
	}
	result_set_int(out, row, COLUMN_CPU, sums->cpu_ns);
	result_set_int(out, row, COLUMN_ACCELERATOR, sums->accelerator_ns);
	result_set_int(out, row, COLUMN_OPS, sums->ops);
	set_time(out, row, COLUMN_PEAK, sums->peak > 0 ? sums->peak : TIME_UNKNOWN);
}

static void set_xprof(const struct steps *s, struct result *out, uint32_t row,
		      const struct step_row *step)
{
	const struct model *m = s->m;
	const struct xprof_step *x = NULL;

	for (uint32_t w = 1; s->xprof && !filter_has_time(&s->filter) && w < m->window.count; w++)
		if (m->window.step[w].v == step->step && m->window.source[w].v == step->source)
			x = &s->xprof[w];
	if (!x || !x->known) {
		for (uint32_t c = COLUMN_XPROF; c < COLUMN_COUNT; c++)
			result_set_unknown(out, row, c);
		return;
	}
	result_set_int(out, row, COLUMN_XPROF, x->time_ps);
	for (unsigned p = 0; p < XPROF_PARTS; p++)
		result_set_int(out, row, COLUMN_XPROF_PARTS + p, x->part_ps[p]);
}

static void add_row(const struct steps *s, struct result *out, const struct step_row *step)
{
	const struct model *m = s->m;
	uint32_t row = result_row(out, 0);

	if (step->step)
		result_set_int(out, row, COLUMN_STEP, step->number);
	else
		result_set_unknown(out, row, COLUMN_STEP);
	if (step->source && m->source.rank[step->source] >= 0)
		result_set_int(out, row, COLUMN_RANK, m->source.rank[step->source]);
	else
		result_set_unknown(out, row, COLUMN_RANK);
	set_time(out, row, COLUMN_DURATION, step->duration);
	set_time(out, row, COLUMN_START,
		 step->duration == TIME_UNKNOWN ? TIME_UNKNOWN
						: span_length(s->origin, step->start));
	result_set_int(out, row, COLUMN_OUTLIER,
		       step->duration != TIME_UNKNOWN && (double)step->duration > s->limit);
	result_set_int(out, row, COLUMN_EVENTS, step->events);
	set_sums(s, out, row, step);
	set_xprof(s, out, row, step);
	result_set_model_text(out, row, COLUMN_NAME, model_str(m, m->step.name[step->step]));
	if (step->source)
		result_set_model_text(out, row, COLUMN_SOURCE,
				      model_str(m, m->source.path[step->source]));
	else
		result_set_unknown(out, row, COLUMN_SOURCE);
	if (step->window) {
		set_phases(s, out, row, step->window);
		return;
	}
	result_set_unknown(out, row, COLUMN_BAR);
	for (uint32_t c = COLUMN_PHASES; c <= COLUMN_IN_MEANS; c++)
		result_set_unknown(out, row, c);
}

static ow_status add_legend(const struct steps *s, struct result *out)
{
	if (!s->phases.window_count)
		return OW_OK;
	out->footer = arena_printf(&out->arena,
				   "phases, %.3g %% of a step each: I input, H host, L launch, U "
				   "to device, C compute,\n"
				   "  N communication, D to host, S synchronisation, . idle",
				   100.0 / BAR_WIDTH);
	return out->footer ? OW_OK : error_no_memory(s->err);
}

static ow_status list_steps(struct steps *s, struct result *out)
{
	struct model *m = s->m;

	OW_TRY(phases_analyse(m, &s->filter, &s->phases, s->err));
	s->sums = ARENA_ARRAY(&s->scratch, struct step_sums, m->step.count ? m->step.count : 1);
	s->rows = ARENA_ARRAY(&s->scratch, struct step_row,
			      (size_t)m->step.count + s->phases.window_count);
	if (!s->sums || !s->rows)
		return error_no_memory(s->err);
	s->origin = model_trace_start(m);
	add_up(s);
	make_rows(s);
	qsort_r(s->rows, s->row_count, sizeof(*s->rows), by_number_and_rank, s);
	OW_TRY(count_events(s));
	OW_TRY(find_limit(s));
	OW_TRY(xprof_steps_make(m, &s->scratch, &s->xprof, s->err));
	for (uint32_t i = 0; i < s->row_count; i++)
		if (s->rows[i].window || s->rows[i].events || s->filter.rank < 0)
			add_row(s, out, &s->rows[i]);
	return add_legend(s, out);
}

static ow_status run(struct model *m, const struct view_options *options, struct result *out,
		     struct error *err)
{
	struct steps s = { .m = m, .err = err };
	ow_status status;

	OW_TRY(view_filter(m, options, &s.filter, err));
	add_columns(out);
	arena_init(&s.scratch, m->mem);
	status = list_steps(&s, out);
	phases_release(&s.phases);
	arena_release(&s.scratch);
	OW_TRY(status);
	if (options->limit)
		result_limit(out, options->limit);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_steps = {
	.name = "steps",
	.summary = "one row per step: duration, what each moment went to, outliers",
	.run = run,
};
