/*
 * view_steps.c: the view `steps`: one row per step, and per rank if there are several, in order of their numbers: start, duration, the share of
 * each phase (phases.h), and whether it is an outlier. Steps of sources that are not classified have no phases: these columns are unknown,
 * not zero. A step is an outlier if it takes more than 1.5 times the median, or is more than three standard deviations above the mean;
 * with less than three steps there are no outliers. Steps of different jobs are not compared.
 *
 * The first half divides a step as XProf does: of everything that goes on in a moment, the category with the highest priority gets it, on
 * whatever thread or stream. The step of a device lasts from its first to its last work on the device that takes longest, unless its
 * marker on the host contains that: then, and without a device, it is the marker. Times are picoseconds since the start of the marker.
 */
#include "base/vec.h"

#include "analyze/steps/phases.h"
#include "analyze/steps/spans.h"
#include "analyze/view.h"
#include "analyze/views/op_stats.h"
#include "base/arena.h"
#include "model/model.h"

#include <math.h>

/* Parts of a step as XProf defines them, by priority. */
enum xprof_part {
	XPROF_COMPUTE_16, /* compute on the device with 16-bit floats, recognised by its name */
	XPROF_COMPUTE,
	XPROF_OUTPUT, /* copies from device to host */
	XPROF_DEVICE_TO_DEVICE,
	XPROF_WAIT_INPUT,
	XPROF_COLLECTIVES,
	XPROF_PREPARE, /* the host launches work */
	XPROF_HOST_TO_DEVICE,
	XPROF_HOST_COMPUTE,
	XPROF_UNKNOWN,
	XPROF_PARTS
};

struct xprof_step {
	bool known; /* the step has device work, or host work if there is no device */
	int64_t time_ps;
	int64_t part_ps[XPROF_PARTS]; /* time of each part; the parts sum to the step */
};

/* The begin or end of a piece of work in a step. */
struct mark {
	int64_t at;
	uint8_t part;
	bool end;
};

struct step_divider {
	const struct model *m;
	struct arena *arena;
	struct xprof_step *out;
	bool *is_xprof, *devices; /* by source: XProf wrote it; it has work of a device */
	bool has_device;	  /* the source of the window has device work */
	uint8_t *part_of
		[2]; /* for each string: part of a host event with that name, + 1; with a device: [1] */
	uint32_t *first, *events; /* events by step: those of step s begin at events[first[s]] */
	struct mark *marks;
	size_t count, cap;
	int64_t base; /* time in nanoseconds from which marks are counted */
};

static bool starts(struct str s, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (str_starts(s, str_from(list[i])))
			return true;
	return false;
}

/* Returns the part of a host event by its name; XPROF_UNKNOWN if it has no category. */
static enum xprof_part part_of_name(const struct step_divider *k, struct str name)
{
	static const char *const wrappers[] = { "EagerExecute", "EagerLocalExecute",
						"EagerKernelExecute", "FunctionRun" };

	if (str_starts(name, STR("IteratorGetNext")))
		return XPROF_WAIT_INPUT;
	if (str_starts(name, STR("InfeedEnqueue")) || str_starts(name, STR("MemcpyHToD")))
		return XPROF_HOST_TO_DEVICE;
	if (k->has_device && str_starts(name, STR("ExecutorState::Process")))
		return XPROF_PREPARE;
	return starts(name, wrappers, ARRAY_COUNT(wrappers)) ? XPROF_UNKNOWN : XPROF_HOST_COMPUTE;
}

static str_id name_of(const struct model *m, uint32_t event)
{
	str_id own = COLUMN_GET(m->event.name, event);

	return own.v ? own : m->op.name[m->event.op[event].v];
}

static enum xprof_part host_part(const struct step_divider *k, uint32_t event)
{
	uint8_t *part = &k->part_of[k->has_device][name_of(k->m, event).v];

	if (!*part)
		*part = (uint8_t)(part_of_name(k, model_str(k->m, name_of(k->m, event))) + 1);
	if (*part == XPROF_HOST_COMPUTE + 1 && k->has_device &&
	    COLUMN_GET(k->m->event.correlation, event))
		return XPROF_PREPARE;
	return (enum xprof_part)(*part - 1);
}

static enum xprof_part device_part(const struct model *m, uint32_t event)
{
	struct str name = model_str(m, name_of(m, event));

	switch ((enum event_phase)COLUMN_GET(m->event.phase, event)) {
	case PHASE_DEVICE_TO_HOST:
		return XPROF_OUTPUT;
	case PHASE_HOST_TO_DEVICE:
		return XPROF_HOST_TO_DEVICE;
	case PHASE_COMMUNICATION:
		return str_starts(name, STR("Memcpy")) ? XPROF_DEVICE_TO_DEVICE : XPROF_COLLECTIVES;
	case PHASE_COMPUTE:
		return str_has(name, STR("half")) || str_has(name, STR("fp16")) ? XPROF_COMPUTE_16
										: XPROF_COMPUTE;
	default:
		return XPROF_UNKNOWN;
	}
}

static bool index_events(struct step_divider *k)
{
	const struct model *m = k->m;
	uint32_t sum = 0;

	k->first = ARENA_ARRAY(k->arena, uint32_t, (size_t)m->step.count + 2);
	k->events = ARENA_ARRAY(k->arena, uint32_t, m->event.count);
	if (!k->first || !k->events)
		return false;
	for (uint32_t e = 1; e < m->event.count; e++)
		k->first[m->event.step[e].v + 1]++;
	for (uint32_t s = 0; s <= m->step.count; s++) {
		sum += k->first[s];
		k->first[s] = sum;
	}
	for (uint32_t e = 1; e < m->event.count; e++)
		k->events[k->first[m->event.step[e].v]++] = e;
	for (uint32_t s = m->step.count; s > 0; s--)
		k->first[s] = k->first[s - 1];
	k->first[0] = 0;
	return true;
}

static int64_t begin_of(const struct step_divider *k, uint32_t event)
{
	int64_t ns = k->m->event.ts_ns[event], after = span_length(k->base, ns);

	return ps_of(after ? after : -span_length(ns, k->base),
		     COLUMN_GET(k->m->event.ts_rest, event));
}

static bool add_mark(struct step_divider *k, int64_t begin, int64_t end, enum xprof_part part)
{
	if (!vec_reserve(k->m->mem, k->marks, k->cap, k->count + 2))
		return false;
	k->marks[k->count++] = (struct mark){ begin, (uint8_t)part, false };
	k->marks[k->count++] = (struct mark){ end, (uint8_t)part, true };
	return true;
}

struct span_ps {
	int64_t begin, end;
};

/* Makes marks of all counted events, and finds the marker and the span of the device that takes longest. */
static bool collect_step(struct step_divider *k, uint32_t window, struct span_ps *marker,
			 struct span_ps *device, bool *host)
{
	const struct model *m = k->m;
	uint32_t step = m->window.step[window].v;
	struct span_ps *spans = ARENA_ARRAY(k->arena, struct span_ps, m->device.count + 1);

	if (!spans)
		return false;
	k->count = 0;
	for (uint32_t i = k->first[step]; i < k->first[step + 1]; i++) {
		uint32_t e = k->events[i];
		track_id track = m->event.track[e];
		enum track_work work = track_work(m, track);
		struct span_ps *span = &spans[m->track.device[track.v].v];
		int64_t begin = begin_of(k, e), end = span_add(begin, event_dur_ps(m, e));
		enum xprof_part part;

		if (work == WORK_NONE || !event_is_slice(m, e) ||
		    m->track.source[track.v].v != m->window.source[window].v)
			continue;
		if (work == WORK_HOST && m->event.ts_ns[e] == m->window.start_ns[window] &&
		    event_end(m, e) == m->window.end_ns[window] && end > marker->end) {
			*marker = (struct span_ps){ begin, end };
			continue;
		}
		part = work == WORK_DEVICE ? device_part(m, e) : host_part(k, e);
		if (part == XPROF_UNKNOWN)
			continue;
		if (work == WORK_DEVICE) {
			span->begin = span->end > span->begin ? MIN(span->begin, begin) : begin;
			span->end = MAX(span->end, end);
		}
		*host |= work == WORK_HOST;
		if (!add_mark(k, begin, end, part))
			return false;
	}
	for (uint32_t d = 0; d < m->device.count; d++)
		if (span_length(spans[d].begin, spans[d].end) >
		    span_length(device->begin, device->end))
			*device = spans[d];
	return true;
}

static int by_time(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

static enum xprof_part highest(const int64_t active[XPROF_PARTS])
{
	for (unsigned p = 0; p < XPROF_UNKNOWN; p++)
		if (active[p] > 0)
			return (enum xprof_part)p;
	return XPROF_UNKNOWN;
}

static void add_part(struct xprof_step *out, enum xprof_part part, int64_t begin, int64_t end)
{
	out->part_ps[part] = span_add(out->part_ps[part], span_length(begin, end));
}

static void sum_up(struct step_divider *k, struct span_ps step, struct xprof_step *out)
{
	int64_t active[XPROF_PARTS] = { 0 }, at = step.begin;

	if (k->count)
		qsort(k->marks, k->count, sizeof(*k->marks), by_time);
	for (size_t i = 0; i < k->count; i++) {
		int64_t to = MIN(MAX(k->marks[i].at, step.begin), step.end);

		add_part(out, highest(active), at, to);
		at = to;
		active[k->marks[i].part] += k->marks[i].end ? -1 : 1;
	}
	add_part(out, XPROF_UNKNOWN, at, step.end);
	out->time_ps = span_length(step.begin, step.end);
	out->known = true;
}

static bool add_window(struct step_divider *k, uint32_t window)
{
	struct span_ps marker = { 0 }, device = { 0 }, step;
	bool host = false;

	if (!k->is_xprof[k->m->window.source[window].v])
		return true;
	k->has_device = k->devices[k->m->window.source[window].v];
	k->base = k->m->window.start_ns[window];
	if (!collect_step(k, window, &marker, &device, &host))
		return false;
	if (k->has_device ? device.end <= device.begin : !host || marker.end <= marker.begin)
		return true;
	step = device;
	if (!k->has_device || (marker.begin <= device.begin && marker.end >= device.end))
		step = marker;
	sum_up(k, step, &k->out[window]);
	return true;
}

/* Finds the sources that XProf wrote, and those with work of a device; false if memory runs out. */
static bool find_sources(struct step_divider *k)
{
	const struct model *m = k->m;

	k->is_xprof = ARENA_ARRAY(k->arena, bool, m->source.count);
	k->devices = ARENA_ARRAY(k->arena, bool, m->source.count);
	if (!k->is_xprof || !k->devices)
		return false;
	for (uint32_t t = 1; t < m->track.count; t++)
		if (track_work(m, (track_id){ t }) == WORK_DEVICE)
			k->devices[m->track.source[t].v] = true;
	for (uint32_t e = 1; e < m->event.count; e++)
		if (m->op.flags[m->event.op[e].v] & OP_FRAMEWORK)
			k->is_xprof[m->track.source[m->event.track[e].v].v] = true;
	return true;
}

static bool has_xprof(const struct model *m)
{
	for (uint32_t i = 1; i < m->op.count; i++)
		if (m->op.flags[i] & OP_FRAMEWORK)
			return m->window.count > 1;
	return false;
}

/* Makes one item per row of the table `window`. *out is NULL if the model is not from XProf. */
static ow_status xprof_steps_make(const struct model *m, struct arena *arena,
				  struct xprof_step **out, struct ow_error *err)
{
	struct step_divider k = { .m = m, .arena = arena };
	bool ok;

	*out = NULL;
	if (!has_xprof(m))
		return OW_OK;
	k.out = ARENA_ARRAY(arena, struct xprof_step, m->window.count);
	for (unsigned i = 0; i < ARRAY_COUNT(k.part_of); i++)
		k.part_of[i] = ARENA_ARRAY(arena, uint8_t, m->strings.count);
	ok = k.out && k.part_of[0] && k.part_of[1] && find_sources(&k) && index_events(&k);
	for (uint32_t w = 1; ok && w < m->window.count; w++)
		ok = add_window(&k, w);
	mem_free(m->mem, k.marks, k.cap * sizeof(*k.marks));
	*out = k.out;
	return ok ? OW_OK : error_no_memory(err);
}

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
	COLUMN_PHASES, /* first of the class columns, in phase_class_order */
	COLUMN_BETWEEN = COLUMN_PHASES + CLASS_COUNT,
	COLUMN_BUSY,
	COLUMN_EXPOSED,
	COLUMN_DATA_WAIT,
	COLUMN_LAUNCH_GAP,
	COLUMN_DEPENDENCY_GAP,
	COLUMN_QUEUE_DELAY,
	COLUMN_SLICES,
	COLUMN_IN_MEANS,
	COLUMN_LEFT_OUT,
	COLUMN_NAME,
	COLUMN_SOURCE,
	COLUMN_XPROF,	    /* XProf's duration of the step */
	COLUMN_XPROF_PARTS, /* one column for each part of XProf's duration */
	COLUMN_COUNT = COLUMN_XPROF_PARTS + XPROF_PARTS
};

/* Sums of a step other than its phases. */
struct step_sums {
	int64_t ops;
	int64_t cpu_ns, accelerator_ns;
	int64_t peak; /* peak memory of an accelerator; 0 = unknown */
	uint32_t rows;
};

struct step_row {
	uint32_t step, source;
	int64_t number;
	int64_t start, duration; /* start and duration of the step; TIME_UNKNOWN without events */
	int64_t events;
	const struct phase_window *window; /* NULL if no event is classified */
};

struct steps {
	struct model *m;
	struct event_filter filter;
	struct arena scratch;
	struct phases phases;
	struct step_sums *sums;	  /* sums of each row of the table step */
	struct step_times *times; /* times of each row of the table step */
	struct xprof_step *xprof; /* parts of each row of the table window, or NULL */
	struct step_row *rows;
	uint32_t row_count;
	int64_t origin;
	double *limits; /* for each job: duration above which a step is an outlier */
	struct ow_error *err;
};

static const struct {
	const char *name, *title;
	char letter;
} phase_columns[CLASS_COUNT] = {
	[CLASS_INPUT] = { "input_ns", "input", 'I' },
	[CLASS_HOST] = { "host_ns", "host", 'H' },
	[CLASS_INITIALISATION] = { "initialisation_ns", "initialisation", 'B' },
	[CLASS_ALLOCATION] = { "allocation_ns", "allocation", 'A' },
	[CLASS_LAUNCH] = { "launch_ns", "launch", 'L' },
	[CLASS_HOST_TO_DEVICE] = { "host_to_device_ns", "to device", 'U' },
	[CLASS_COMPUTE] = { "compute_ns", "compute", 'C' },
	[CLASS_COMMUNICATION] = { "communication_ns", "communication", 'N' },
	[CLASS_DEVICE_TO_HOST] = { "device_to_host_ns", "to host", 'D' },
	[CLASS_SYNCHRONISATION] = { "synchronisation_ns", "synchronisation", 'S' },
	[CLASS_RUN_QUEUE] = { "run_queue_ns", "run queue", 'Q' },
	[CLASS_IDLE] = { "idle_ns", "idle", '.' },
};

/* Names in the order of enum xprof_part; the duration of the step comes first. */
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

static void add_columns(struct table *out)
{
	table_add_column(out, "step", "step", TYPE_INT, UNIT_NONE);
	table_add_column(out, "rank", "rank", TYPE_INT, UNIT_NONE);
	table_add_column(out, "duration_ns", "duration", TYPE_INT, UNIT_NS);
	table_add_column(out, "phases", "phases", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "outlier", "outlier", TYPE_BOOL, UNIT_NONE);
	table_add_column(out, "start_ns", "start", TYPE_INT, UNIT_NS);
	table_add_column(out, "cpu_ns", "cpu time", TYPE_INT, UNIT_NS);
	table_add_column(out, "accelerator_ns", "accelerator time", TYPE_INT, UNIT_NS);
	table_add_column(out, "events", "events", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "ops", "ops", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "peak_bytes", "peak memory", TYPE_INT, UNIT_BYTES);
	for (unsigned i = 0; i < CLASS_COUNT; i++)
		table_add_column(out, phase_columns[phase_class_order[i]].name,
				 phase_columns[phase_class_order[i]].title, TYPE_INT, UNIT_NS);
	table_add_column(out, "between_ns", "between steps", TYPE_INT, UNIT_NS);
	table_add_column(out, "device_busy_ns", "device busy", TYPE_INT, UNIT_NS);
	table_add_column(out, "exposed_communication_ns", "exposed communication", TYPE_INT,
			 UNIT_NS);
	table_add_column(out, "data_wait_ns", "data wait", TYPE_INT, UNIT_NS);
	table_add_column(out, "launch_gap_ns", "launch gaps", TYPE_INT, UNIT_NS);
	table_add_column(out, "dependency_gap_ns", "dependency gaps", TYPE_INT, UNIT_NS);
	table_add_column(out, "queue_delay_ns", "queue delay", TYPE_INT, UNIT_NS);
	table_add_column(out, "device_slices", "device slices", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "in_means", "in means", TYPE_BOOL, UNIT_NONE);
	table_add_column(out, "left_out", "left out", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "name", "name", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "source", "source", TYPE_TEXT, UNIT_NONE);
	out->columns[COLUMN_BAR].fixed = true;
	for (uint32_t c = COLUMN_XPROF; c < COLUMN_COUNT; c++) {
		table_add_column(out, xprof_columns[c - COLUMN_XPROF], "", TYPE_INT, UNIT_NONE);
		out->columns[c].for_programs = true;
	}
}

static void add_up(struct steps *s)
{
	const struct model *m = s->m;

	for (uint32_t i = 1; i < m->op_step.count; i++) {
		struct step_sums *sums = &s->sums[m->op_step.step[i].v];

		sums->ops++;
		sums->cpu_ns = sum_add(sums->cpu_ns, m->op_step.cpu_ns[i]);
		sums->accelerator_ns = sum_add(sums->accelerator_ns, m->op_step.accelerator_ns[i]);
	}
	for (uint32_t i = 1; m->memory.in_use && i < m->memory.count; i++) {
		struct step_sums *sums = &s->sums[m->op_step.step[m->memory.op_step[i]].v];

		sums->peak = MAX(sums->peak, m->memory.in_use[i]);
	}
}

/* Adds a row for a step without phases; its span is that of its events. */
static void add_plain_row(struct steps *s, uint32_t step)
{
	const struct model *m = s->m;
	int64_t start = s->times[step].start_ns, end = s->times[step].end_ns;
	bool known = start != TIME_UNKNOWN && end != TIME_UNKNOWN;

	if (!s->times[step].known || !filter_step(&s->filter, (step_id){ step }))
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

/* Adds rows for the marked steps of sources without phases, whose numbers other sources may have as well. */
static bool add_marked_rows(struct steps *s)
{
	const struct model *m = s->m;
	bool *has_phases = ARENA_ARRAY(&s->scratch, bool, m->source.count);

	if (!has_phases)
		return false;
	for (uint32_t i = 0; i < s->phases.window_count; i++)
		has_phases[s->phases.windows[i].source.v] = true;
	for (uint32_t w = 1; w < m->window.count; w++) {
		uint32_t step = m->window.step[w].v, source = m->window.source[w].v;
		int64_t start = m->window.start_ns[w], end = m->window.end_ns[w];

		if (has_phases[source] || !filter_step(&s->filter, m->window.step[w]) ||
		    !filter_source(&s->filter, m, m->window.source[w]) ||
		    !filter_clip(&s->filter, &start, &end))
			continue;
		s->sums[step].rows++;
		s->rows[s->row_count++] = (struct step_row){ .step = step,
							     .source = source,
							     .number = m->step.number[step],
							     .start = start,
							     .duration = span_length(start, end) };
	}
	return true;
}

static bool make_rows(struct steps *s)
{
	const struct model *m = s->m;

	for (uint32_t i = 0; i < s->phases.window_count; i++) {
		const struct phase_window *w = &s->phases.windows[i];

		if (!w->known)
			continue;
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
	if (!add_marked_rows(s))
		return false;
	for (uint32_t i = 1; i < m->step.count; i++)
		if (!s->sums[i].rows)
			add_plain_row(s, i);
	return true;
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

/* Returns 1 + the first row of that step and source; 0 = none. */
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

/* The number of a row's job; 0 for steps without a source. */
static uint32_t job_of(const struct steps *s, const struct step_row *row)
{
	return row->source ? s->m->source.run[row->source] : 0;
}

struct step_length {
	uint32_t job;
	int64_t ns;
};

static int by_job_and_length(const void *a, const void *b)
{
	const struct step_length *x = a, *y = b;

	if (x->job != y->job)
		return x->job < y->job ? -1 : 1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

/* Returns the duration above which a step is an outlier among `count` steps in ascending order; INFINITY if these are too few. */
static double limit_of(const struct step_length *steps, uint32_t count)
{
	uint32_t low = count ? (count - 1) / 2 : 0, high = count / 2;
	double sum = 0, squares = 0, mean, sigma, median;

	if (count < OUTLIER_MIN_STEPS)
		return (double)INFINITY;
	for (uint32_t i = 0; i < count; i++)
		sum += (double)steps[i].ns;
	mean = sum / count;
	for (uint32_t i = 0; i < count; i++)
		squares += ((double)steps[i].ns - mean) * ((double)steps[i].ns - mean);
	sigma = sqrt(squares / count);
	median = ((double)steps[low].ns + (double)steps[high].ns) / 2;
	return MIN(OUTLIER_MEDIANS * median, mean + OUTLIER_SIGMAS * sigma);
}

/* Steps of different jobs are not compared. */
static ow_status find_limits(struct steps *s)
{
	struct step_length *steps = ARENA_ARRAY(&s->scratch, struct step_length, s->row_count);
	uint32_t known = 0, jobs = 0;

	for (uint32_t i = 1; i < s->m->source.count; i++)
		jobs = MAX(jobs, s->m->source.run[i]);
	s->limits = ARENA_ARRAY(&s->scratch, double, (size_t)jobs + 1);
	if (!steps || !s->limits)
		return error_no_memory(s->err);
	for (uint32_t i = 0; i < s->row_count; i++)
		if (s->rows[i].duration != TIME_UNKNOWN)
			steps[known++] =
				(struct step_length){ job_of(s, &s->rows[i]), s->rows[i].duration };
	if (known)
		qsort(steps, known, sizeof(*steps), by_job_and_length);
	for (uint32_t first = 0, end; first < known; first = end) {
		for (end = first + 1; end < known && steps[end].job == steps[first].job; end++)
			;
		s->limits[steps[first].job] = limit_of(steps + first, end - first);
	}
	return OW_OK;
}

/* Draws the bar: one letter per fortieth of the step, in the order of phases within a step. */
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

static void set_time(struct table *out, uint32_t row, uint32_t column, int64_t ns)
{
	if (ns == TIME_UNKNOWN)
		table_set_unknown(out, row, column);
	else
		table_set_int(out, row, column, ns);
}

static void set_phases(const struct steps *s, struct table *out, uint32_t row,
		       const struct phase_window *w)
{
	bool has_device = s->phases.lanes[s->phases.rows[w->row_first].lane].has_device;
	struct phase_row mean;
	char bar[BAR_WIDTH];

	phases_mean(s->phases.rows + w->row_first, w->row_count, &mean);
	draw_bar(&mean.sums, bar);
	table_set_text(out, row, COLUMN_BAR, str_make(bar, BAR_WIDTH));
	for (unsigned i = 0; i < CLASS_COUNT; i++)
		table_set_int(out, row, COLUMN_PHASES + i, mean.sums.share[phase_class_order[i]]);
	set_time(out, row, COLUMN_BETWEEN, w->between_ns);
	set_time(out, row, COLUMN_BUSY, has_device ? mean.sums.device_busy : TIME_UNKNOWN);
	table_set_int(out, row, COLUMN_EXPOSED,
		      mean.sums.total[CLASS_COMMUNICATION] -
			      mean.sums.overlapped[CLASS_COMMUNICATION]);
	table_set_int(out, row, COLUMN_DATA_WAIT, mean.sums.total[CLASS_INPUT]);
	set_time(out, row, COLUMN_LAUNCH_GAP, mean.queued ? mean.launch_gap_ns : TIME_UNKNOWN);
	set_time(out, row, COLUMN_DEPENDENCY_GAP,
		 mean.queued ? mean.dependency_gap_ns : TIME_UNKNOWN);
	set_time(out, row, COLUMN_QUEUE_DELAY,
		 mean.queued ? mean.queue_delay_ns / (int64_t)mean.queued : TIME_UNKNOWN);
	table_set_int(out, row, COLUMN_SLICES, (int64_t)w->device_slices);
	table_set_int(out, row, COLUMN_IN_MEANS, w->use == STEP_STEADY);
	table_set_text(out, row, COLUMN_LEFT_OUT, str_from(step_use_words[w->use]));
}

/* Sets the sums of ops, which cover all sources and all times. */
static void set_sums(const struct steps *s, struct table *out, uint32_t row,
		     const struct step_row *step)
{
	const struct step_sums *sums = &s->sums[step->step];

	if (!step->step || sums->rows > 1 || filter_has_time(&s->filter)) {
		table_set_unknown(out, row, COLUMN_CPU);
		table_set_unknown(out, row, COLUMN_ACCELERATOR);
		table_set_unknown(out, row, COLUMN_OPS);
		table_set_unknown(out, row, COLUMN_PEAK);
		return;
	}
	table_set_int(out, row, COLUMN_CPU, sums->cpu_ns);
	table_set_int(out, row, COLUMN_ACCELERATOR, sums->accelerator_ns);
	table_set_int(out, row, COLUMN_OPS, sums->ops);
	set_time(out, row, COLUMN_PEAK, sums->peak > 0 ? sums->peak : TIME_UNKNOWN);
}

static void set_xprof(const struct steps *s, struct table *out, uint32_t row,
		      const struct step_row *step)
{
	const struct model *m = s->m;
	const struct xprof_step *x = NULL;

	for (uint32_t w = 1; s->xprof && !filter_has_time(&s->filter) && w < m->window.count; w++)
		if (m->window.step[w].v == step->step && m->window.source[w].v == step->source)
			x = &s->xprof[w];
	if (!x || !x->known) {
		for (uint32_t c = COLUMN_XPROF; c < COLUMN_COUNT; c++)
			table_set_unknown(out, row, c);
		return;
	}
	table_set_int(out, row, COLUMN_XPROF, x->time_ps);
	for (unsigned p = 0; p < XPROF_PARTS; p++)
		table_set_int(out, row, COLUMN_XPROF_PARTS + p, x->part_ps[p]);
}

static void add_row(const struct steps *s, struct table *out, const struct step_row *step)
{
	const struct model *m = s->m;
	uint32_t row = table_add_row(out, 0);

	if (step->step)
		table_set_int(out, row, COLUMN_STEP, step->number);
	else
		table_set_unknown(out, row, COLUMN_STEP);
	if (step->source && m->source.rank[step->source] >= 0)
		table_set_int(out, row, COLUMN_RANK, m->source.rank[step->source]);
	else
		table_set_unknown(out, row, COLUMN_RANK);
	set_time(out, row, COLUMN_DURATION, step->duration);
	set_time(out, row, COLUMN_START,
		 step->duration == TIME_UNKNOWN ? TIME_UNKNOWN
						: span_length(s->origin, step->start));
	table_set_int(out, row, COLUMN_OUTLIER,
		      step->duration != TIME_UNKNOWN &&
			      (double)step->duration > s->limits[job_of(s, step)]);
	table_set_int(out, row, COLUMN_EVENTS, step->events);
	set_sums(s, out, row, step);
	set_xprof(s, out, row, step);
	table_set_model_text(out, row, COLUMN_NAME, model_str(m, m->step.name[step->step]));
	if (step->source)
		table_set_model_text(out, row, COLUMN_SOURCE,
				     model_str(m, m->source.path[step->source]));
	else
		table_set_unknown(out, row, COLUMN_SOURCE);
	if (step->window) {
		set_phases(s, out, row, step->window);
		return;
	}
	table_set_unknown(out, row, COLUMN_BAR);
	for (uint32_t c = COLUMN_PHASES; c <= COLUMN_LEFT_OUT; c++)
		table_set_unknown(out, row, c);
}

static ow_status add_legend(const struct steps *s, struct table *out)
{
	if (!s->row_count && s->m->step.count > 1) {
		out->footer = arena_printf(
			&out->arena,
			"no steps are known: nothing in the input says where a step begins; "
			"--step-marker REGEX names the slices that do");
		return out->footer ? OW_OK : error_no_memory(s->err);
	}
	if (!s->phases.window_count)
		return OW_OK;
	out->footer = arena_printf(&out->arena,
				   "phases, %.3g %% of a step each: I input, H host, B "
				   "initialisation, A allocation,\n"
				   "  L launch, U to device, C compute, N communication, D to "
				   "host, S synchronisation, %s. idle",
				   100.0 / BAR_WIDTH, s->phases.processors ? "Q run queue, " : "");
	return out->footer ? OW_OK : error_no_memory(s->err);
}

static ow_status list_steps(struct steps *s, struct table *out)
{
	struct model *m = s->m;

	OW_TRY(phases_analyse(m, &s->filter, &s->phases, s->err));
	s->sums = ARENA_ARRAY(&s->scratch, struct step_sums, m->step.count ? m->step.count : 1);
	s->rows = ARENA_ARRAY(&s->scratch, struct step_row,
			      (size_t)m->step.count + s->phases.window_count + m->window.count);
	if (!s->sums || !s->rows)
		return error_no_memory(s->err);
	s->origin = model_trace_start(m);
	OW_TRY(steady_times(m, &s->phases, &s->scratch, &s->times, s->err));
	add_up(s);
	if (!make_rows(s))
		return error_no_memory(s->err);
	qsort_r(s->rows, s->row_count, sizeof(*s->rows), by_number_and_rank, s);
	OW_TRY(count_events(s));
	OW_TRY(find_limits(s));
	OW_TRY(xprof_steps_make(m, &s->scratch, &s->xprof, s->err));
	for (uint32_t i = 0; i < s->row_count; i++)
		if (s->rows[i].window || s->rows[i].events || s->filter.rank < 0)
			add_row(s, out, &s->rows[i]);
	return add_legend(s, out);
}

static ow_status run_steps_view(struct model *m, const struct view_options *options,
				struct table *out, struct ow_error *err)
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
		table_limit(out, options->limit);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_steps = {
	.name = "steps",
	.summary = "one row per step: duration, share of each phase, outliers",
	.uses = VIEW_USES_PART,
	.run = run_steps_view,
};
