/*
 * view_pipeline.c: the view `pipeline`: the input pipeline stage by stage: what feeds the steps, how long each stage works, and which one slows
 * down the rest. Stages of tf.data are known by their paths. For other frameworks, the stages are what runs inside calls that wait for
 * data (PyTorch's DataLoader) and the work of loader threads. Several threads may work on a stage, so its own time is divided by the
 * number of its threads.
 */
#include "analyze/steps/phases.h"

#include "base/vec.h"
#include "analyze/view.h"

enum {
	COLUMN_STAGE,
	COLUMN_KIND,
	COLUMN_CATEGORY,
	COLUMN_RUNS,
	COLUMN_TOTAL,
	COLUMN_SELF,
	COLUMN_PERCENT,
	COLUMN_THREADS,
	COLUMN_BUSY,
	COLUMN_PER_RUN,
	COLUMN_BOTTLENECK,
	COLUMN_SOURCE
};

enum stage_kind { STAGE_NONE, STAGE_WAIT, STAGE_ITERATOR, STAGE_WORK };

static const char *const kind_names[] = { "", "wait", "iterator", "work" };

struct stage {
	int64_t runs, total_ns, self_ns;
	/* number of threads that ran the stage, and the track that was counted last */
	uint32_t threads, last_track;
	uint8_t kind;
	bool iterator; /* the name shows that this is a stage of tf.data */
};

/* An open slice of a track. */
struct open_slice {
	int64_t end;
	bool input; /* this stage, or one that contains it, belongs to the input pipeline */
};

struct pipeline {
	const struct model *m;
	const struct event_filter *filter;
	struct stage *stages; /* stages by op */
	struct open_slice *open;
	size_t count, cap;
};

static void find_iterators(struct pipeline *p)
{
	const struct model *m = p->m;

	for (uint32_t op = 1; op < m->op.count; op++)
		p->stages[op].iterator = str_starts(model_str(m, m->op.name[op]), STR("Iterator/"));
}

/* Returns the own time of an event. Ops of TensorFlow's executor run concurrently on one track and never
 * inside each other, so all of their time is their own. */
static int64_t own_time(const struct model *m, uint32_t event)
{
	if (m->track.kind[m->event.track[event].v] == TRACK_DEVICE)
		return MAX(m->event.dur_ns[event], 0);
	return MAX(COLUMN_GET(m->event.self_ns, event), 0);
}

static void add_stage(struct pipeline *p, uint32_t event, enum stage_kind kind)
{
	const struct model *m = p->m;
	uint32_t track = m->event.track[event].v;
	struct stage *s = &p->stages[m->event.op[event].v];

	s->runs++;
	s->total_ns = span_add(s->total_ns, MAX(m->event.dur_ns[event], 0));
	s->self_ns = span_add(s->self_ns, own_time(m, event));
	if (s->last_track != track)
		s->threads++;
	s->last_track = track;
	if (!s->kind || kind < s->kind)
		s->kind = (uint8_t)kind;
}

static bool push(struct pipeline *p, int64_t end, bool input)
{
	return vec_push(p->m->mem, p->open, p->count, p->cap, (struct open_slice){ end, input });
}

static bool wanted(const struct pipeline *p, uint32_t event)
{
	const struct model *m = p->m;
	int64_t start = m->event.ts_ns[event];

	return m->event.op[event].v && event_is_slice(m, event) &&
	       filter_step(p->filter, m->event.step[event]) && start >= p->filter->from_ns &&
	       start < p->filter->to_ns;
}

/* Returns whether an op takes prepared elements from a queue or an iterator. Other input ops read and
 * decode themselves. */
static bool takes_ready(const struct model *m, uint32_t event)
{
	struct str type = model_str(m, m->op.type[m->event.op[event].v]);

	return str_starts(type, STR("QueueDequeue")) || str_starts(type, STR("IteratorGetNext"));
}

static void read_executor(struct pipeline *p, uint32_t first, uint32_t last)
{
	for (uint32_t e = first; e < last; e++)
		if (wanted(p, e) && COLUMN_GET(p->m->event.phase, e) == PHASE_INPUT)
			add_stage(p, e, takes_ready(p->m, e) ? STAGE_WAIT : STAGE_WORK);
}

static bool read_track(struct pipeline *p, uint32_t first, uint32_t last)
{
	const struct model *m = p->m;
	bool loader = m->track.kind[m->event.track[first].v] == TRACK_LOADER;

	p->count = 0;
	for (uint32_t e = first; e < last; e++) {
		bool inside, wait;

		while (p->count && p->open[p->count - 1].end <= m->event.ts_ns[e])
			p->count--;
		if (!wanted(p, e))
			continue;
		inside = p->count && p->open[p->count - 1].input;
		wait = !loader && !inside && COLUMN_GET(m->event.phase, e) == PHASE_INPUT;
		if (p->stages[m->event.op[e].v].iterator)
			add_stage(p, e, STAGE_ITERATOR);
		else if (wait)
			add_stage(p, e, STAGE_WAIT);
		else if (inside || loader)
			add_stage(p, e, STAGE_WORK);
		if (!push(p, event_end(m, e), inside || wait))
			return false;
	}
	return true;
}

static bool read_tracks(struct pipeline *p)
{
	const struct model *m = p->m;
	const track_id *track = m->event.track;
	uint32_t last;

	for (uint32_t e = 1; e < m->event.count; e = last) {
		for (last = e + 1; last < m->event.count && track[last].v == track[e].v; last++)
			;
		if (track_work(m, track[e]) != WORK_HOST || !filter_track(p->filter, m, track[e]))
			continue;
		if (m->track.kind[track[e].v] == TRACK_DEVICE)
			read_executor(p, e, last);
		else if (!read_track(p, e, last))
			return false;
	}
	return true;
}

/* Returns XProf's category of a tf.data stage. */
static const char *category_of(const struct model *m, uint32_t op, const struct stage *s)
{
	static const char *const readers[] = { "/TFRecord", "/TextLine", "/FixedLengthRecord",
					       "/SSTable",  "/RecordIO", "/ArrayRecord" };
	static const char *const ahead[] = {
		"/MemoryReader", "/MemoryWriter", "/Interleave",
		"/Prefetch",	 "/ParallelMap",  "/ParallelInterleave"
	};
	struct str name = model_str(m, m->op.name[op]);
	bool reads = false;

	if (s->kind == STAGE_WAIT)
		return "wait";
	for (size_t i = 0; i < ARRAY_COUNT(readers); i++)
		reads |= str_ends(name, str_from(readers[i]));
	for (size_t i = 0; reads && i < ARRAY_COUNT(ahead); i++)
		if (str_has(name, str_from(ahead[i])))
			return "advanced read";
	if (str_starts(name, STR("InfeedEnqueue")))
		return "enqueue";
	return reads ? "read" : "preprocessing";
}

static int64_t busy_of(const struct stage *s)
{
	return s->self_ns / MAX(s->threads, 1u);
}

static int by_busy(const void *a, const void *b, void *arg)
{
	const struct stage *stages = arg, *x = &stages[*(const uint32_t *)a],
			   *y = &stages[*(const uint32_t *)b];

	if (busy_of(x) != busy_of(y))
		return busy_of(x) > busy_of(y) ? -1 : 1;
	return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

/* Finds the stage that works longest. Stages of tf.data that only wait for it or buffer its elements do
 * not count. */
static uint32_t find_bottleneck(const struct pipeline *p, const uint32_t *order, uint32_t count)
{
	static const char *const buffers[] = {
		"/Prefetch",	     "/Model", "/Root", "/Options", "/MaxIntraOpParallelism",
		"/PrivateThreadPool"
	};
	const struct model *m = p->m;

	for (uint32_t i = 0; i < count; i++) {
		struct str name = model_str(m, m->op.name[order[i]]);
		bool buffer = !p->stages[order[i]].iterator;

		for (size_t b = 0; b < ARRAY_COUNT(buffers); b++)
			buffer |= str_ends(name, str_from(buffers[b]));
		if (!buffer)
			return order[i];
	}
	return count ? order[0] : 0;
}

/* Returns advice for the bottleneck. */
static const char *advice_for(const struct model *m, uint32_t op, const struct stage *s,
			      double exposed)
{
	struct str name = model_str(m, m->op.name[op]);

	if (exposed < 5)
		return "A faster stage would hardly make the steps shorter.";
	if (s->iterator && s->threads == 1)
		return "Run it in parallel (num_parallel_calls) or ahead (prefetch), or cache what "
		       "it "
		       "makes.";
	if (str_has(name, STR("SingleProcess")))
		return "The training thread makes the batches itself: use workers (num_workers).";
	if (str_has(name, STR("MultiProcessing")))
		return "The workers are too slow: use more workers, or do less work per element.";
	return "More workers, or less work per element, would shorten the steps.";
}

static void add_columns(struct table *out)
{
	table_add_column(out, "stage", "stage", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "kind", "kind", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "category", "category", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "runs", "runs", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "total_ns", "total", TYPE_INT, UNIT_NS);
	table_add_column(out, "self_ns", "self", TYPE_INT, UNIT_NS);
	table_add_column(out, "percent", "share", TYPE_REAL, UNIT_PERCENT);
	table_add_column(out, "threads", "threads", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "busy_ns", "busy per thread", TYPE_INT, UNIT_NS);
	table_add_column(out, "per_run_ns", "per run", TYPE_INT, UNIT_NS);
	table_add_column(out, "bottleneck", "bottleneck", TYPE_BOOL, UNIT_NONE);
	table_add_column(out, "source_line", "code", TYPE_TEXT, UNIT_NONE);
}

static void set_line(const struct model *m, struct table *out, uint32_t row, uint32_t op)
{
	frame_id frame = m->stack.frame[COLUMN_GET(m->op.stack, op).v];
	struct str file = model_str(m, m->frame.file[frame.v]);
	char text[300];

	if (!file.len) {
		table_set_unknown(out, row, COLUMN_SOURCE);
		return;
	}
	snprintf(text, sizeof(text), "%.*s:%d", STR_ARG(str_first(file, 280)),
		 m->frame.line[frame.v]);
	table_set_text(out, row, COLUMN_SOURCE, str_from(text));
}

static void add_row(const struct pipeline *p, struct table *out, uint32_t op, int64_t sum,
		    bool bottleneck)
{
	const struct model *m = p->m;
	const struct stage *s = &p->stages[op];
	uint32_t row = table_add_row(out, 0);

	table_set_model_text(out, row, COLUMN_STAGE, model_str(m, m->op.name[op]));
	table_set_text(out, row, COLUMN_KIND, str_from(kind_names[s->kind]));
	table_set_text(out, row, COLUMN_CATEGORY, str_from(category_of(m, op, s)));
	table_set_int(out, row, COLUMN_RUNS, s->runs);
	table_set_int(out, row, COLUMN_TOTAL, s->total_ns);
	table_set_int(out, row, COLUMN_SELF, s->self_ns);
	table_set_real(out, row, COLUMN_PERCENT,
		       sum > 0 ? 100.0 * (double)s->self_ns / (double)sum : 0);
	table_set_int(out, row, COLUMN_THREADS, s->threads);
	table_set_int(out, row, COLUMN_BUSY, busy_of(s));
	table_set_int(out, row, COLUMN_PER_RUN, s->total_ns / s->runs);
	table_set_int(out, row, COLUMN_BOTTLENECK, bottleneck);
	set_line(m, out, row, op);
}

/* Adds a footer that says how much time the bottleneck costs in a step. */
static ow_status add_footer(const struct pipeline *p, struct table *out, uint32_t bottleneck,
			    struct arena *scratch, struct ow_error *err)
{
	const struct model *m = p->m;
	const struct stage *s = &p->stages[bottleneck];
	struct phase_groups groups = { 0 };
	struct phases phases = { 0 };
	double wait, exposed;
	ow_status status = phases_analyse(m, p->filter, &phases, err);

	if (status == OW_OK)
		status = phases_group(m, &phases, scratch, &groups, err);
	phases_release(&phases);
	OW_TRY(status);
	if (groups.all.time_ns <= 0) {
		out->footer = arena_printf(
			&out->arena, "no steps were found, so the cost of the waits is unknown");
		return out->footer ? OW_OK : error_no_memory(err);
	}
	wait = 100.0 * (double)groups.all.sums.total[CLASS_INPUT] / (double)groups.all.time_ns;
	exposed = 100.0 * (double)groups.all.sums.share[CLASS_INPUT] / (double)groups.all.time_ns;
	out->footer = arena_printf(
		&out->arena,
		"Steps wait for input in %.1f %% of their time, and do nothing else in %.1f %%.\n"
		"The slowest stage is %.*s: it works %.3g ms per thread, on %u thread%s.\n%s",
		wait, exposed, STR_ARG(str_first(model_str(m, m->op.name[bottleneck]), 300)),
		(double)busy_of(s) / 1e6, s->threads, s->threads == 1 ? "" : "s",
		advice_for(m, bottleneck, s, exposed));
	return out->footer ? OW_OK : error_no_memory(err);
}

static ow_status list_stages(struct pipeline *p, const struct view_options *options,
			     struct table *out, struct arena *scratch, struct ow_error *err)
{
	const struct model *m = p->m;
	uint32_t *order = ARENA_ARRAY(scratch, uint32_t, m->op.count), count = 0, bottleneck;
	int64_t sum = 0;

	p->stages = ARENA_ARRAY(scratch, struct stage, m->op.count);
	if (!order || !p->stages)
		return error_no_memory(err);
	find_iterators(p);
	if (!read_tracks(p))
		return error_no_memory(err);
	for (uint32_t op = 1; op < m->op.count; op++) {
		if (!p->stages[op].runs)
			continue;
		order[count++] = op;
		sum = span_add(sum, p->stages[op].self_ns);
	}
	if (!count) {
		out->footer = arena_printf(&out->arena,
					   "no input pipeline was recorded: there are no stages of "
					   "tf.data and no calls that wait for data");
		return out->footer ? OW_OK : error_no_memory(err);
	}
	qsort_r(order, count, sizeof(*order), by_busy, p->stages);
	bottleneck = find_bottleneck(p, order, count);
	for (uint32_t i = 0; i < count && (!options->limit || i < options->limit); i++)
		add_row(p, out, order[i], sum, order[i] == bottleneck);
	return add_footer(p, out, bottleneck, scratch, err);
}

static ow_status run_pipeline_view(struct model *m, const struct view_options *options,
				   struct table *out, struct ow_error *err)
{
	struct pipeline p = { .m = m };
	struct event_filter filter;
	struct arena scratch;
	ow_status status;

	add_columns(out);
	OW_TRY(view_filter(m, options, &filter, err));
	OW_TRY(model_require_stacks(m, err));
	OW_TRY(model_require_nesting(m, err));
	p.filter = &filter;
	arena_init(&scratch, m->mem);
	status = list_stages(&p, options, out, &scratch, err);
	arena_release(&scratch);
	mem_free(m->mem, p.open, p.cap * sizeof(*p.open));
	OW_TRY(status);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_pipeline = {
	.name = "pipeline",
	.summary = "the input pipeline: its stages and its bottleneck",
	.uses = VIEW_USES_PART,
	.run = run_pipeline_view,
};
