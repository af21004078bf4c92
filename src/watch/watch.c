/*
 * watch.c: follows recordings and keeps, for each rank, the last steps, their phases, operations and CPU use. Each new
 * part becomes a model once (window_summary), which is analysed by the same code as every view: live numbers equal
 * those of `opwatch steps` on the same file later. Called by src/api for `opwatch top`, and by anomaly.c.
 */
#include "watch/watch.h"

#include "analyze/views/op_stats.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/vec.h"
#include "import/importer.h"
#include "watch/steps_file.h"

#include <math.h>
#include <unistd.h>

/* limit of records in one analysis, in bytes: 130 000 records */
#define LOOK_BYTES ((uint64_t)8 << 20)
#define LOOK_BYTES_MOST                                                                            \
	((uint64_t)32 << 20) /* the limit for jobs with very many records per step */
#define LOOK_STEPS 4u	     /* an analysis with this many steps is long enough */
/* if steps are found by repetition, at least this many are analysed again */
#define REPEATED_STEPS 32
#define LOOK_NS (400 * 1000000LL) /* least time between two analyses */
#define LOOK_PART 25		  /* analyses take at most one in this many parts of the time */
#define LOOK_GAP_MAX_NS (5 * 1000000000LL)
#define HALF_LIFE_NS 5e9 /* half-life of the sums of operations */
#define LAG_NS (10 * 1000000000LL)

static ow_status make_model(struct window_summary *look, struct input *in, const char *importer,
			    const char *step_marker, struct ow_error *err)
{
	struct import_options options = { .step = INT64_MIN, .step_marker = step_marker };
	struct builder b;

	look->m = model_new(look->mem, err);
	if (!look->m) {
		input_close(in);
		return OW_E_NO_MEMORY;
	}
	builder_init(&b, look->m, err);
	OW_TRY(import_input(&b, in, importer_find(str_from(importer)), &options, NULL, err));
	OW_TRY(import_finish(&b, &options, err));
	return model_freeze(&b);
}

/* Whether the steps are those that the user named when the recording began. */
static bool is_named(const struct model *m, source_id source, struct str name)
{
	for (uint32_t i = 1; name.len && i < m->fact.count; i++)
		if (m->fact.source[i].v == source.v && m->fact.kind[i] == FACT_TEXT &&
		    !m->fact.parent[i].v &&
		    str_eq(model_str(m, m->fact.key[i]), STR("step_marker")))
			return str_eq(model_str(m, m->fact.text[i]), name);
	return false;
}

static enum step_marker marker_of(const struct model *m, const struct phase_window *w,
				  const char *step_marker)
{
	struct str name = model_str(m, m->step.name[w->step.v]);
	bool marked = false;

	for (uint32_t i = 1; i < m->window.count && !marked; i++)
		marked = m->window.source[i].v == w->source.v;
	if (!marked)
		return STEPS_NONE;
	if (step_marker || is_named(m, w->source, name))
		return STEPS_GIVEN;
	if (str_starts(name, STR("enumerate(DataLoader)")))
		return STEPS_LOADER;
	return str_starts(name, STR("Optimizer.step#")) ? STEPS_OPTIMIZER : STEPS_REPEATED;
}

/* The process whose processor time is known, which is the one that makes the steps; otherwise the first process of
 * the source. */
static uint32_t pid_of(const struct model *m, source_id source)
{
	uint32_t first = 0;

	for (uint32_t i = 1; i < m->counter.count; i++) {
		uint32_t track = m->counter.track[i].v;

		if (m->track.source[track].v == source.v &&
		    str_eq(model_str(m, m->counter.name[i]), STR(PROCESSOR_COUNTER)))
			return (uint32_t)m->track.pid[track];
	}
	for (uint32_t i = 1; i < m->track.count && !first; i++)
		if (m->track.source[i].v == source.v && m->track.kind[i] == TRACK_HOST)
			first = (uint32_t)m->track.pid[i];
	return first;
}

static ow_status make_steps(struct window_summary *look, const char *step_marker,
			    struct ow_error *err)
{
	const struct phases *p = &look->phases;
	uint32_t source = UINT32_MAX, pid = 0;
	enum step_marker marker = STEPS_NONE;

	look->steps = ARENA_ARRAY(&look->arena, struct window_step, p->window_count);
	if (!look->steps)
		return error_no_memory(err);
	for (uint32_t i = 0; i < p->window_count; i++) {
		const struct phase_window *w = &p->windows[i];
		struct window_step *step = &look->steps[look->count];
		struct phase_row mean;

		if (!w->row_count || w->end_ns <= w->start_ns)
			continue;
		if (w->source.v != source) {
			marker = marker_of(look->m, w, step_marker);
			pid = pid_of(look->m, w->source);
		}
		phases_mean(p->rows + w->row_first, w->row_count, &mean);
		*step = (struct window_step){ .rank = look->m->source.rank[w->source.v],
					      .pid = pid,
					      .marker = marker,
					      .start_ns = w->start_ns,
					      .end_ns = w->end_ns,
					      .device_busy_ns = mean.sums.device_busy,
					      .has_device = p->lanes[mean.lane].has_device,
					      .first = w->source.v != source };
		memcpy(step->share, mean.sums.share, sizeof(step->share));
		source = w->source.v;
		look->count++;
	}
	return OW_OK;
}

static ow_status make_summary(struct window_summary *look, struct input *in, const char *importer,
			      const char *step_marker, struct ow_error *err)
{
	const struct event_filter all = EVENT_FILTER_ALL;

	OW_TRY(make_model(look, in, importer, step_marker, err));
	OW_TRY(phases_analyse(look->m, &all, &look->phases, err));
	return make_steps(look, step_marker, err);
}

static void begin_summary(struct window_summary *look, struct mem *mem)
{
	*look = (struct window_summary){ .mem = mem };
	arena_init(&look->arena, mem);
	arena_init(&look->phases.arena, mem);
}

ow_status window_summary_make(struct window_summary *look, struct mem *mem, const struct buf *file,
			      const char *step_marker, struct ow_error *err)
{
	struct input in;

	begin_summary(look, mem);
	OW_TRY(input_from_memory(&in, mem, "recording", file->ptr, file->len, err));
	return make_summary(look, &in, "live", step_marker, err);
}

ow_status window_summary_read(struct window_summary *look, struct mem *mem, const char *path,
			      const char *step_marker, struct ow_error *err)
{
	struct input in;

	begin_summary(look, mem);
	OW_TRY(input_open(&in, mem, path, err));
	return make_summary(look, &in, "opw", step_marker, err);
}

void window_summary_release(struct window_summary *look)
{
	phases_release(&look->phases);
	arena_release(&look->arena);
	if (look->m)
		model_free(look->m);
	look->m = NULL;
}

static int by_time(const void *a, const void *b)
{
	const struct window_op *x = a, *y = b;

	if (x->self_ns != y->self_ns)
		return x->self_ns < y->self_ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* Keeps the `cap` longest operations: a new one replaces the shortest. */
static void keep_longest(struct window_op *ops, size_t cap, size_t *count, struct str name,
			 const struct op_stat *stat)
{
	size_t at = *count;

	if (!stat->runs || stat->self_ps < 1000 || !cap)
		return;
	if (at == cap) {
		at = 0;
		for (size_t i = 1; i < cap; i++)
			at = ops[i].self_ns < ops[at].self_ns ? i : at;
		if (ops[at].self_ns >= stat->self_ps / 1000)
			return;
	} else {
		++*count;
	}
	name = str_first(name, WINDOW_NAME_MAX - 1);
	name = str_first(name, utf8_valid_prefix(name));
	memcpy(ops[at].name, name.ptr, name.len);
	ops[at].name[name.len] = '\0';
	ops[at].self_ns = stat->self_ps / 1000;
	ops[at].runs = stat->runs;
}

ow_status window_summary_ops(struct window_summary *look, int64_t from_ns, int64_t to_ns,
			     int32_t rank, struct window_op *ops, size_t cap, size_t *count,
			     struct ow_error *err)
{
	struct event_filter filter = { .from_ns = from_ns, .to_ns = to_ns, .rank = rank };
	const struct model *m = look->m;
	struct op_stats stats;

	*count = 0;
	OW_TRY(op_stats_make(m, &filter, &look->arena, &stats, err));
	for (uint32_t i = 1; i < m->op.count; i++)
		keep_longest(ops, cap, count, model_str(m, m->op.name[i]),
			     stats.devices ? &stats.device[i] : &stats.host[i]);
	if (*count)
		qsort(ops, *count, sizeof(*ops), by_time);
	return OW_OK;
}

void watch_init(struct watch *w, struct mem *mem, int64_t span_ns, const char *step_marker)
{
	*w = (struct watch){ .mem = mem,
			     .span_ns = span_ns > 0 ? span_ns : WATCH_SPAN_NS,
			     .step_marker = step_marker,
			     .gpu = -1 };
	w->has_nvml = nvml_open(&w->nvml, NULL);
	if (gethostname(w->host, sizeof(w->host) - 1) != 0)
		w->host[0] = '\0';
	buf_init(&w->cut, mem);
	arena_init(&w->arena, mem);
}

static void forget_ranks(struct watch *w, struct watch_file *f)
{
	for (size_t i = 0; i < f->rank_count; i++)
		mem_free(w->mem, f->ranks[i], sizeof(*f->ranks[i]));
	f->rank_count = f->op_count = 0;
	f->op_steps = f->op_ns = 0;
	f->optimizer = false;
	f->looked_records = 0;
	f->ops_until_ns = INT64_MIN;
	f->due_ns = 0;
	f->look_bytes = LOOK_BYTES;
}

static void file_free(struct watch *w, struct watch_file *f)
{
	forget_ranks(w, f);
	mem_free(w->mem, f->ranks, f->rank_cap * sizeof(*f->ranks));
	follow_release(&f->follow);
	job_meter_release(&f->meter);
	mem_free(w->mem, f, sizeof(*f));
}

void watch_release(struct watch *w)
{
	for (size_t i = 0; i < w->count; i++)
		file_free(w, w->files[i]);
	mem_free(w->mem, w->files, w->cap * sizeof(*w->files));
	if (w->has_nvml)
		nvml_close(&w->nvml);
	buf_release(&w->cut);
	arena_release(&w->arena);
	w->files = NULL;
	w->count = w->cap = 0;
}

ow_status watch_add(struct watch *w, const char *path, struct ow_error *err)
{
	struct watch_file *f;
	ow_status status;

	if (!vec_reserve(w->mem, w->files, w->cap, w->count + 1))
		return error_no_memory(err);
	f = mem_zalloc(w->mem, sizeof(*f));
	if (!f)
		return error_no_memory(err);
	job_meter_init(&f->meter, w->mem);
	f->cpu = -1;
	f->ops_until_ns = INT64_MIN;
	f->look_bytes = LOOK_BYTES;
	status = steps_file_is(path) ? steps_file_open(w, f, path, err)
				     : follow_open(&f->follow, w->mem, path, WATCH_KEEP_NS, err);
	if (status != OW_OK) {
		mem_free(w->mem, f, sizeof(*f));
		return status;
	}
	w->files[w->count++] = f;
	return OW_OK;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int64_t watch_median(int64_t *values, size_t count)
{
	if (!count)
		return -1;
	qsort(values, count, sizeof(*values), by_value);
	return count % 2 ? values[count / 2]
			 : values[count / 2 - 1] + (values[count / 2] - values[count / 2 - 1]) / 2;
}

int64_t watch_step_median(const struct watch_rank *r, uint64_t from, uint64_t to)
{
	int64_t values[WATCH_STEPS];
	size_t count = 0;

	from = MAX(from, r->count > WATCH_STEPS ? r->count - WATCH_STEPS : 0);
	for (uint64_t i = from; i < MIN(to, r->count); i++)
		values[count++] = watch_step_at(r, i)->end_ns - watch_step_at(r, i)->start_ns;
	return watch_median(values, count);
}

uint32_t watch_recent(const struct watch_rank *r, int64_t after_ns, uint32_t least)
{
	uint32_t kept = (uint32_t)MIN(r->count, (uint64_t)WATCH_STEPS), n = 0;

	while (n < kept && (n < least || watch_step_at(r, r->count - n - 1)->end_ns > after_ns))
		n++;
	return n;
}

static bool is_running(const struct watch_file *f, uint32_t pid)
{
	for (size_t i = 0; i < f->follow.process_count; i++)
		if (f->follow.processes[i].row.pid == pid && !f->follow.processes[i].ended)
			return true;
	return false;
}

/* Removes processes without a rank that have ended, to make room for new ones. */
static void forget_ended(struct watch *w, struct watch_file *f, uint32_t pid)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->rank_count; i++) {
		struct watch_rank *r = f->ranks[i];

		if (r->rank < 0 && r->pid != pid && !is_running(f, r->pid))
			mem_free(w->mem, r, sizeof(*r));
		else
			f->ranks[kept++] = r;
	}
	f->rank_count = kept;
}

static bool is_before(const struct watch_rank *r, int32_t rank, uint32_t pid)
{
	return r->rank < rank || (r->rank == rank && rank < 0 && r->pid < pid);
}

static struct watch_rank *rank_of(struct watch *w, struct watch_file *f, int32_t rank, uint32_t pid)
{
	struct watch_rank *made;
	size_t at;

	for (at = 0; at < f->rank_count; at++)
		if (f->ranks[at]->rank == rank && (rank >= 0 || f->ranks[at]->pid == pid)) {
			f->ranks[at]->pid = pid;
			return f->ranks[at];
		}
	forget_ended(w, f, pid);
	if (!vec_reserve(w->mem, f->ranks, f->rank_cap, f->rank_count + 1))
		return NULL;
	made = mem_zalloc(w->mem, sizeof(*made));
	if (!made)
		return NULL;
	made->rank = rank;
	made->pid = pid;
	made->last_end_ns = TIME_UNKNOWN;
	for (at = 0; at < f->rank_count && is_before(f->ranks[at], rank, pid); at++)
		;
	memmove(f->ranks + at + 1, f->ranks + at, (f->rank_count - at) * sizeof(*f->ranks));
	f->ranks[at] = made;
	f->rank_count++;
	return made;
}

/* Adds a step unless it is already known or may be cut short; true when it is new. */
static bool take_step(struct watch_rank *r, const struct window_step *s, int64_t begin_ns)
{
	struct watch_step step = { .start_ns = s->start_ns,
				   .end_ns = s->end_ns,
				   .device_busy_ns = s->device_busy_ns };

	memcpy(step.share, s->share, sizeof(step.share));
	r->has_device |= s->has_device;
	if (s->marker == STEPS_NONE || s->marker < r->marker) {
		r->all = step;
		return false;
	}
	/* a more certain marker shows that the earlier steps were not steps */
	if (s->marker > r->marker) {
		r->marker = s->marker;
		r->count = 0;
		r->last_end_ns = TIME_UNKNOWN;
	}
	if (s->first && (r->last_end_ns == TIME_UNKNOWN || begin_ns >= r->last_end_ns)) {
		r->all = step; /* kept until there is a complete step */
		return false;
	}
	if (r->last_end_ns != TIME_UNKNOWN && s->start_ns < r->last_end_ns)
		return false;
	r->steps[r->count++ % WATCH_STEPS] = step;
	r->last_end_ns = s->end_ns;
	return true;
}

static void add_op(struct watch_file *f, const struct window_op *op)
{
	struct watch_op *to = NULL;

	for (size_t i = 0; i < f->op_count && !to; i++)
		if (strcmp(f->ops[i].name, op->name) == 0)
			to = &f->ops[i];
	if (!to && f->op_count < WATCH_OPS) {
		to = &f->ops[f->op_count++];
		*to = (struct watch_op){ 0 };
	}
	for (size_t i = 0; i < f->op_count && !to; i++)
		if (f->ops[i].self_ns < (double)op->self_ns)
			to = &f->ops[i];
	if (!to)
		return;
	if (strcmp(to->name, op->name) != 0) {
		*to = (struct watch_op){ 0 };
		memcpy(to->name, op->name, sizeof(to->name));
	}
	to->self_ns += (double)op->self_ns;
	to->runs += (double)op->runs;
}

static ow_status take_ops(struct watch_file *f, struct window_summary *look, int64_t from_ns,
			  int64_t to_ns, double steps, double ns, struct ow_error *err)
{
	struct window_op ops[WATCH_OPS];
	double fade = exp2(-(double)(to_ns - from_ns) / HALF_LIFE_NS);
	size_t count;

	OW_TRY(window_summary_ops(look, from_ns, to_ns, -1, ops, ARRAY_COUNT(ops), &count, err));
	f->op_steps = f->op_steps * fade + steps;
	f->op_ns = f->op_ns * fade + ns;
	for (size_t i = 0; i < f->op_count; i++) {
		f->ops[i].self_ns *= fade;
		f->ops[i].runs *= fade;
	}
	for (size_t i = 0; i < count; i++)
		add_op(f, &ops[i]);
	return OW_OK;
}

/* Sets the name of the job to the command of the first process that has events. */
static void take_name(struct watch_file *f, const struct model *m)
{
	for (uint32_t i = 1; i < m->event.count && !f->name[0]; i++) {
		uint32_t track = m->event.track[i].v;
		struct str name = model_str(m, m->track.process[track]);

		if (m->track.kind[track] == TRACK_HOST)
			snprintf(f->name, sizeof(f->name), "%.*s", STR_ARG(name));
	}
}

static bool has_optimizer(const struct watch_file *f)
{
	for (size_t i = 0; i < f->follow.process_count; i++)
		if (f->follow.processes[i].has_optimizer)
			return true;
	return false;
}

/* Once an optimizer was seen, batches do not count as steps any more: a part of the recording with one optimizer
 * call or none must not change that. */
static void expect_optimizer(struct watch *w, struct watch_file *f)
{
	if (w->step_marker || f->optimizer || !has_optimizer(f))
		return;
	f->optimizer = true;
	for (size_t i = 0; i < f->rank_count; i++)
		if (f->ranks[i]->marker == STEPS_LOADER || f->ranks[i]->marker == STEPS_REPEATED) {
			f->ranks[i]->marker = STEPS_NONE;
			f->ranks[i]->count = 0;
			f->ranks[i]->last_end_ns = TIME_UNKNOWN;
		}
}

/* Where the next analysis begins: with the steps that have not ended, except on ranks without progress. */
static int64_t look_from(const struct watch *w, const struct watch_file *f)
{
	int64_t wall = follow_wall(&f->follow, 0), newest = f->follow.newest_ns;
	int64_t from = INT64_MAX;

	for (size_t i = 0; i < f->rank_count; i++) {
		const struct watch_rank *r = f->ranks[i];
		int64_t patience = LAG_NS, end;

		if (r->last_end_ns == TIME_UNKNOWN)
			continue;
		end = r->last_end_ns - wall;
		/* a loop is recognised only after many repetitions */
		if (r->marker == STEPS_REPEATED)
			end = MIN(end,
				  newest - MAX(w->span_ns, MIN(WATCH_KEEP_NS / REPEATED_STEPS,
							       watch_step_median(r, 0, r->count)) *
								   REPEATED_STEPS));
		patience = MAX(patience,
			       4 * watch_step_median(r, r->count - MIN(r->count, 9), r->count));
		if (newest - end <= patience || f->rank_count == 1)
			from = MIN(from, end);
	}
	if (from != INT64_MAX || newest == INT64_MIN)
		return from;
	return newest - (f->optimizer ? f->follow.keep_ns : w->span_ns);
}

static bool has_steps(const struct watch_file *f)
{
	for (size_t i = 0; i < f->rank_count; i++)
		if (f->ranks[i]->count)
			return true;
	return false;
}

/* The range of time that was analysed and is new. */
static void look_span(const struct window_summary *look, const struct watch_file *f, int64_t *from,
		      int64_t *to)
{
	*from = INT64_MAX;
	*to = INT64_MIN;
	for (uint32_t i = 0; i < look->count; i++) {
		*from = MIN(*from, look->steps[i].start_ns);
		*to = MAX(*to, look->steps[i].end_ns);
	}
	*from = MAX(*from, f->ops_until_ns);
}

ow_status watch_take_summary(struct watch *w, struct watch_file *f, struct window_summary *look,
			     int64_t begin_ns, uint32_t *taken, struct ow_error *err)
{
	int64_t from = INT64_MAX, to = INT64_MIN;
	double ns = 0;

	*taken = 0;
	take_name(f, look->m);
	for (uint32_t i = 0; i < look->count; i++) {
		const struct window_step *s = &look->steps[i];
		struct watch_rank *r = rank_of(w, f, s->rank, s->pid);

		if (!r)
			return error_no_memory(err);
		if ((s->marker == STEPS_LOADER || s->marker == STEPS_REPEATED) && f->optimizer)
			continue;
		if (!take_step(r, s, begin_ns))
			continue;
		++*taken;
		ns += (double)(s->end_ns - s->start_ns);
		from = MIN(from, s->start_ns);
		to = MAX(to, s->end_ns);
	}
	/* earlier operations were counted per second, not per step */
	if (*taken && f->ops_until_ns != INT64_MIN) {
		f->op_count = 0;
		f->op_steps = f->op_ns = 0;
		f->ops_until_ns = INT64_MIN;
	}
	if (*taken)
		return take_ops(f, look, from, to, *taken, ns, err);
	if (has_steps(f) || !look->count)
		return OW_OK;
	look_span(look, f, &from, &to);
	f->ops_until_ns = MAX(f->ops_until_ns, to);
	ns = (double)(to - from);
	return from < to ? take_ops(f, look, from, to, ns / 1e9, ns, err) : OW_OK;
}

/* If a step has more records than one analysis, no complete step would ever be seen: then the limit is raised. True
 * when the analysis is to be repeated at once. */
static bool look_further(struct watch_file *f, const struct follow_range *range, uint32_t taken)
{
	bool expected = f->optimizer, cut_short = range->begin_ns > range->from_ns;

	for (size_t i = 0; i < f->rank_count; i++)
		expected |= f->ranks[i]->marker != STEPS_NONE;
	if (taken > LOOK_STEPS)
		f->look_bytes = MAX(f->look_bytes / 2, LOOK_BYTES);
	if (taken || !expected || !cut_short || f->look_bytes >= LOOK_BYTES_MOST)
		return false;
	f->look_bytes *= 2;
	return true;
}

static ow_status look_once(struct watch *w, struct watch_file *f, bool *further,
			   struct ow_error *err)
{
	struct follow_range range = { .from_ns = look_from(w, f),
				      .to_ns = INT64_MAX,
				      .bytes_max = f->look_bytes,
				      .no_samples = true };
	struct window_summary look;
	uint32_t taken = 0;
	ow_status status;
	int64_t begin;

	*further = false;
	OW_TRY(follow_cut_buf(&f->follow, &range, &w->cut, err));
	if (!range.records)
		return OW_OK;
	begin = range.begin_ns == INT64_MIN ? INT64_MIN : follow_wall(&f->follow, range.begin_ns);
	status = window_summary_make(&look, w->mem, &w->cut, w->step_marker, err);
	if (status == OW_OK)
		status = watch_take_summary(w, f, &look, begin, &taken, err);
	window_summary_release(&look);
	if (status == OW_OK)
		*further = look_further(f, &range, taken);
	return status == OW_E_EMPTY ? OW_OK : status;
}

static ow_status summarise_file(struct watch *w, struct watch_file *f, struct ow_error *err)
{
	bool further = true;

	expect_optimizer(w, f);
	while (further)
		OW_TRY(look_once(w, f, &further, err));
	return OW_OK;
}

static ow_status look_if_due(struct watch *w, struct watch_file *f, bool now, struct ow_error *err)
{
	int64_t begin = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID), cost;
	struct ow_error problem = { 0 };
	ow_status status;

	if (f->restarts != f->follow.restarts) {
		f->restarts = f->follow.restarts;
		forget_ranks(w, f);
	}
	if (!f->follow.caught_up || f->looked_records == f->follow.records ||
	    (!now && begin < f->due_ns))
		return OW_OK;
	status = summarise_file(w, f, &problem);
	cost = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	f->look_gap_ns = f->looked_ns ? begin - f->looked_ns : LOOK_NS;
	f->look_cost_ns = cost;
	f->looked_ns = begin;
	f->looked_records = f->follow.records;
	f->due_ns = begin + MIN(MAX(LOOK_NS, cost * LOOK_PART), LOOK_GAP_MAX_NS);
	snprintf(f->problem, sizeof(f->problem), "%.159s", status == OW_OK ? "" : problem.text);
	if (status == OW_E_NO_MEMORY) {
		if (err)
			*err = problem;
		return status;
	}
	return OW_OK; /* damage is shown with the job */
}

static ow_status meter_processes(struct watch *w, struct watch_file *f, struct ow_error *err)
{
	struct pid_list pids = { .mem = w->mem };
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t before = f->meter.values[JOB_CPU_USER] + f->meter.values[JOB_CPU_SYSTEM];
	bool good = true;

	f->alive = 0;
	for (size_t i = 0; i < f->follow.process_count; i++) {
		const struct follow_process *p = &f->follow.processes[i];
		struct proc_stat stat;

		if (p->ended || follow_has_ended(&f->follow) ||
		    strcmp(f->follow.session.host, w->host) != 0 ||
		    !proc_stat_read((pid_t)p->row.pid, 0, &stat) || stat.state == 'Z')
			continue;
		f->alive++;
		good &= pid_list_add(&pids, (pid_t)p->row.pid);
	}
	good = good && job_meter_read(&f->meter, pids.items, pids.count);
	pid_list_release(&pids);
	if (!good)
		return error_no_memory(err);
	if (f->metered_ns && now - f->metered_ns > 50 * 1000000LL && f->alive) {
		double used = (double)(f->meter.values[JOB_CPU_USER] +
				       f->meter.values[JOB_CPU_SYSTEM] - before);

		f->cpu = used / (double)(now - f->metered_ns);
	}
	if (!f->alive)
		f->cpu = -1;
	f->metered_ns = now;
	return OW_OK;
}

static void meter_devices(struct watch *w)
{
	double sum = 0;
	uint32_t count = 0;

	if (!w->has_nvml)
		return;
	nvml_read(&w->nvml);
	for (uint32_t i = 0; i < w->nvml.count; i++)
		if (w->nvml.devices[i].known[GPU_BUSY]) {
			sum += (double)w->nvml.devices[i].values[GPU_BUSY] / 100;
			count++;
		}
	w->gpu = count ? sum / count : -1;
}

static ow_status turn_files(struct watch *w, bool now, bool *more, struct ow_error *err)
{
	*more = false;
	for (size_t i = 0; i < w->count; i++) {
		struct watch_file *f = w->files[i];

		if (f->own_steps) {
			OW_TRY(steps_file_turn(w, f, now, err));
		} else {
			OW_TRY(follow_turn(&f->follow, err));
			*more |= !f->follow.caught_up;
			OW_TRY(look_if_due(w, f, now, err));
		}
		OW_TRY(meter_processes(w, f, err));
	}
	meter_devices(w);
	return OW_OK;
}

ow_status watch_turn(struct watch *w, bool *more, struct ow_error *err)
{
	bool unused;

	return turn_files(w, false, more ? more : &unused, err);
}

ow_status watch_turn_now(struct watch *w, struct ow_error *err)
{
	bool more = true;

	while (more)
		OW_TRY(turn_files(w, true, &more, err));
	return OW_OK;
}
