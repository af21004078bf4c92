/*
 * verdict.c: see verdict.h. The largest share above its limit is the verdict; without one the device is
 * doing what it should, and its costliest kernel is named. Limits are percent of a step.
 */
#include "analyze/verdict.h"

#include "analyze/gradient.h"
#include "analyze/phases.h"
#include "analyze/samples.h"
#include "model/metrics.h"

#define INPUT_MODERATE 5.0
#define INPUT_HIGH 20.0
#define COPY_MODERATE 5.0 /* output-bound; copies to the device likewise */
#define COPY_HIGH 20.0
#define LAUNCH_MODERATE 3.0
#define LAUNCH_HIGH 15.0
#define COMMUNICATION_MODERATE 3.0
#define COMMUNICATION_HIGH 10.0 /* of communication that nothing hides */
#define OTHER_MODERATE 3.0
#define OTHER_HIGH 15.0
#define COMPUTE_BOUND 50.0
#define ALMOST_ALL 95.0
#define FEW_STEPS 3

#define NAME_COLUMNS 60 /* of a name in the sentence */

static const struct limit {
	double moderate, high;
	const char *what;	/* "82 % of a step …" */
	const char *short_what; /* "…; 8 % …" */
	const char *alone;	/* in place of `what` where no device is in the profile */
} limits[CLASS_COUNT] = {
	[CLASS_INPUT] = { INPUT_MODERATE, INPUT_HIGH, "waits for input", "waits for input", NULL },
	[CLASS_DEVICE_TO_HOST] = { COPY_MODERATE, COPY_HIGH, "copies results to the host",
				   "copies to the host", NULL },
	[CLASS_HOST_TO_DEVICE] = { COPY_MODERATE, COPY_HIGH, "copies data to the device",
				   "copies to the device", NULL },
	[CLASS_LAUNCH] = { LAUNCH_MODERATE, LAUNCH_HIGH, "launches work for a device that waits",
			   "launches", "launches work for a device" },
	[CLASS_COMMUNICATION] = { COMMUNICATION_MODERATE, COMMUNICATION_HIGH,
				  "is communication that no compute hides",
				  "is exposed communication", NULL },
	[CLASS_SYNCHRONISATION] = { OTHER_MODERATE, OTHER_HIGH,
				    "synchronises with a device that does nothing", "synchronises",
				    "waits in synchronisation" },
	[CLASS_HOST] = { OTHER_MODERATE, OTHER_HIGH, "is host code for which the device waits",
			 "is host code", "is host code around the operators" },
	[CLASS_IDLE] = { OTHER_MODERATE, OTHER_HIGH,
			 "has nothing recorded, on the host or on a device", "is idle",
			 "has nothing recorded" },
};

/* ---- what takes the time of a class ---- */

/* The costliest type of op, and its costliest op. */
struct top {
	uint32_t type, op;
	int64_t type_ns, op_ns, all_ns;
};

struct search {
	struct model *m;
	const struct event_filter *filter;
	struct arena *scratch;
	struct error *err;
	const char *metric; /* of samples */
	const struct phases *p;
	int64_t *op_ns; /* per op */
	bool wrappers;	/* ops that only go around others count, too */
};

static ow_status find_top(struct search *s, struct top *top)
{
	const struct model *m = s->m;
	int64_t *type_ns = ARENA_ARRAY(s->scratch, int64_t, m->strings.count);

	*top = (struct top){ 0 };
	if (!type_ns)
		return error_no_memory(s->err);
	for (uint32_t op = 1; op < m->op.count; op++) {
		uint32_t type = m->op.type[op].v;

		type_ns[type] = span_add(type_ns[type], s->op_ns[op]);
		top->all_ns = span_add(top->all_ns, s->op_ns[op]);
		if (type_ns[type] > top->type_ns) {
			top->type_ns = type_ns[type];
			top->type = type;
		}
	}
	for (uint32_t op = 1; op < m->op.count; op++)
		if (m->op.type[op].v == top->type && s->op_ns[op] > top->op_ns) {
			top->op_ns = s->op_ns[op];
			top->op = op;
		}
	return OW_OK;
}

static bool is_stage(const struct model *m, uint32_t op)
{
	return str_starts(model_str(m, m->op.name[op]), STR("Iterator/")) ||
	       str_starts(model_str(m, m->op.type[op]), STR("Iterator::"));
}

/* Own time where events nest. */
static int64_t own_ns(const struct search *s, uint32_t event)
{
	const struct model *m = s->m;
	int64_t begin = m->event.ts_ns[event], end = event_end(m, event), len;

	if (!filter_clip(s->filter, &begin, &end))
		return 0;
	len = span_length(begin, end);
	return m->event.self_ns ? MIN(len, MAX(m->event.self_ns[event], 0)) : len;
}

/* Whether some events belong to steps, so that the others are outside of them. */
static bool has_steps(const struct model *m)
{
	for (uint32_t i = 1; i < m->event.count; i++)
		if (m->event.step[i].v)
			return true;
	return false;
}

/* Times of ops whose events have the phase, on devices or on the host; of stages of an input pipeline
 * when `stages`, whatever their phase. */
static ow_status add_events(struct search *s, enum event_phase phase, enum track_work work,
			    bool stages)
{
	const struct model *m = s->m;
	bool in_steps = has_steps(m);

	OW_TRY(model_require_nesting(s->m, s->err));
	s->op_ns = ARENA_ARRAY(s->scratch, int64_t, m->op.count);
	if (!s->op_ns)
		return error_no_memory(s->err);
	for (uint32_t i = 1; i < m->event.count; i++) {
		uint32_t op = m->event.op[i].v;

		if (!op || (!s->wrappers && m->op.flags[op] & OP_WRAPS) ||
		    (in_steps && !m->event.step[i].v) ||
		    (stages ? !is_stage(m, op) : m->event.phase[i] != phase) ||
		    !event_is_slice(m, i) || track_work(m, m->event.track[i]) != work ||
		    !filter_step(s->filter, m->event.step[i]) ||
		    !filter_track(s->filter, m, m->event.track[i]))
			continue;
		s->op_ns[op] = span_add(s->op_ns[op], own_ns(s, i));
	}
	return OW_OK;
}

/* ---- words ---- */

static void add_name(struct buf *text, struct str name)
{
	struct str shown = utf8_fit(name, NAME_COLUMNS);

	buf_add_str(text, shown);
	if (shown.len < name.len)
		buf_puts(text, "…");
}

/* A gradient is told by the op that it belongs to. */
static void add_op(struct buf *text, struct str name)
{
	struct str forward;

	if (gradient_of(name, &forward)) {
		buf_puts(text, "the gradient of ");
		name = forward;
	}
	add_name(text, name);
}

static double percent(int64_t part, int64_t whole)
{
	return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

/* "82 %"; a share that is there is never told as none. */
static void add_percent(struct buf *text, double share)
{
	if (share > 0 && share < 0.5)
		buf_puts(text, "under 1 %");
	else
		buf_printf(text, "%.0f %%", share);
}

/* "; the costliest kernel is X (37 % of compute)" */
static void add_top(struct search *s, struct buf *text, const struct top *top, const char *what,
		    const char *of)
{
	const struct model *m = s->m;
	struct str type = model_str(m, (str_id){ top->type });
	struct str name = model_str(m, m->op.name[top->op]);

	if (!top->type_ns)
		return;
	buf_printf(text, "; %s ", what);
	add_name(text, type);
	if (of)
		buf_printf(text, " (%.0f %% of %s)", percent(top->type_ns, top->all_ns), of);
	if (!str_eq(type, name) && top->op && !(m->op.flags[top->op] & OP_SHORT_TYPE)) {
		buf_puts(text, top->op_ns == top->type_ns ? ", " : ", above all ");
		add_op(text, name);
	}
}

/* The last part of Iterator::Model::ParallelMap. */
static struct str stage_name(struct str name)
{
	size_t colon = str_rfind_char(name, ':');

	return colon == STR_NONE || colon + 1 == name.len ? name : str_skip(name, colon + 1);
}

static ow_status add_stage(struct search *s, struct buf *text)
{
	struct top top;

	OW_TRY(add_events(s, PHASE_INPUT, WORK_HOST, true));
	OW_TRY(find_top(s, &top));
	if (top.op_ns) {
		buf_puts(text, "; the slowest stage is ");
		add_name(text, stage_name(model_str(s->m, s->m->op.name[top.op])));
		return OW_OK;
	}
	OW_TRY(add_events(s, PHASE_INPUT, WORK_HOST, false));
	OW_TRY(find_top(s, &top));
	add_top(s, text, &top, "the slowest stage is", NULL);
	return OW_OK;
}

/* Where launching itself takes the time its number is what matters; else the call that does. */
static ow_status add_launches(struct search *s, struct buf *text, const struct phase_group *all)
{
	struct top top;

	OW_TRY(add_events(s, PHASE_LAUNCH, WORK_HOST, false));
	OW_TRY(find_top(s, &top));
	if (all->queued && (top.type_ns < top.all_ns - top.type_ns ||
			    str_has(model_str(s->m, (str_id){ top.type }), STR("aunch"))))
		buf_printf(text, "; it starts %.0f kernels and copies",
			   (double)all->queued / MAX(all->steps, 1u));
	else
		add_top(s, text, &top, "the costliest call is", "launching");
	return OW_OK;
}

static ow_status add_detail(struct search *s, struct buf *text, enum phase_class class,
			    const struct phase_group *all)
{
	static const uint8_t phases[CLASS_COUNT] = {
		[CLASS_COMPUTE] = PHASE_COMPUTE,
		[CLASS_COMMUNICATION] = PHASE_COMMUNICATION,
		[CLASS_DEVICE_TO_HOST] = PHASE_DEVICE_TO_HOST,
		[CLASS_HOST_TO_DEVICE] = PHASE_HOST_TO_DEVICE,
		[CLASS_SYNCHRONISATION] = PHASE_SYNCHRONISATION,
		[CLASS_LAUNCH] = PHASE_LAUNCH,
		[CLASS_HOST] = PHASE_HOST,
	};
	bool on_device = class < CLASS_INPUT && all->has_device;
	const char *what = "the costliest call is", *of = NULL;
	struct top top;

	if (class == CLASS_INPUT)
		return add_stage(s, text);
	if (class == CLASS_IDLE)
		return verdict_idle(s->m, s->filter, s->p, s->scratch, text, s->err);
	if (class == CLASS_LAUNCH)
		return add_launches(s, text, all);
	if (class == CLASS_COMPUTE) {
		what = on_device ? "the costliest kernel is" : "the costliest op is";
		of = "compute";
	} else if (class == CLASS_HOST) {
		what = "the costliest operator is";
	}
	OW_TRY(add_events(s, (enum event_phase)phases[class], on_device ? WORK_DEVICE : WORK_HOST,
			  false));
	OW_TRY(find_top(s, &top));
	if (!top.type_ns && class == CLASS_COMMUNICATION) { /* on the host, then */
		OW_TRY(add_events(s, PHASE_COMMUNICATION, WORK_HOST, false));
		OW_TRY(find_top(s, &top));
	}
	if (!top.type_ns && class == CLASS_HOST) { /* nothing but ranges, then */
		s->wrappers = true;
		OW_TRY(add_events(s, PHASE_HOST, WORK_HOST, false));
		OW_TRY(find_top(s, &top));
		s->wrappers = false;
		what = "the costliest range is";
	}
	add_top(s, text, &top, what, of);
	return OW_OK;
}

/* ---- from phases ---- */

/* The largest share above its limit; CLASS_COUNT when there is none. */
static enum phase_class worst(const struct phase_group *g, bool high, enum phase_class but)
{
	enum phase_class found = CLASS_COUNT;

	for (unsigned c = CLASS_COMMUNICATION; c < CLASS_COUNT; c++) {
		double limit = high ? limits[c].high : limits[c].moderate;

		if (c == but || percent(g->sums.share[c], g->time_ns) < limit)
			continue;
		if (found == CLASS_COUNT || g->sums.share[c] > g->sums.share[found])
			found = (enum phase_class)c;
	}
	return found;
}

static double share_of(const struct phase_group *g, enum phase_class class)
{
	return percent(g->sums.share[class], g->time_ns);
}

static ow_status from_phases(struct search *s, const struct phase_group *g, struct buf *text)
{
	enum phase_class problem = worst(g, true, CLASS_COUNT), second;
	double compute = share_of(g, CLASS_COMPUTE);

	bool unseen = !g->has_device && g->sums.total[CLASS_LAUNCH] > 0;
	const char *computes = unseen ? "runs operators on the host" : "computes";

	if (unseen)
		buf_puts(text, "What the device did is not in the file; ");
	if (problem == CLASS_COUNT) {
		second = worst(g, false, CLASS_COUNT);
		buf_puts(text, compute >= COMPUTE_BOUND && !unseen ? "Compute-bound: " : "");
		add_percent(text, compute);
		buf_printf(text, " of a step %s", computes);
		OW_TRY(add_detail(s, text, CLASS_COMPUTE, g));
	} else {
		const struct limit *limit = &limits[problem];

		second = worst(g, true, problem);
		add_percent(text, share_of(g, problem));
		buf_printf(text, " of a step %s",
			   limit->alone && !g->has_device ? limit->alone : limit->what);
		OW_TRY(add_detail(s, text, problem, g));
		if (second == CLASS_COUNT) {
			buf_puts(text, "; ");
			add_percent(text, compute);
			buf_printf(text, " %s", computes);
		}
	}
	if (second != CLASS_COUNT) {
		buf_puts(text, "; ");
		add_percent(text, share_of(g, second));
		buf_printf(text, " %s", limits[second].short_what);
	}
	buf_add_char(text, '.');
	return OW_OK;
}

/* ---- from ops ---- */

static ow_status from_ops(struct search *s, struct buf *text)
{
	struct model *m = s->m;
	int64_t values[METRIC_COUNT];
	struct event_sums sums;
	struct metric_plan plan;
	struct top top;

	s->op_ns = ARENA_ARRAY(s->scratch, int64_t, m->op.count);
	if (!s->op_ns)
		return error_no_memory(s->err);
	metric_plan_init(&plan, m, s->filter->step ? m->step.number[s->filter->step] : -1,
			 METRIC_BIT(METRIC_MICROS));
	if (s->filter->rank >= 0 || filter_has_time(s->filter)) {
		OW_TRY(event_sums_make(m, s->filter, s->scratch, &sums, s->err));
		metric_plan_filter(&plan, &sums);
	}
	for (uint32_t op = 1; op < m->op.count; op++) {
		metric_eval(&plan, (op_id){ op }, values);
		s->op_ns[op] = MAX(values[METRIC_MICROS], 0);
	}
	OW_TRY(find_top(s, &top));
	if (!top.type_ns) {
		buf_puts(text,
			 m->event.count > 1
				 ? "Nothing that ran on a thread or a device was timed: there are "
				   "only points "
				   "in time, counters or asynchronous events."
				 : "Nothing was timed: this describes a program, not a run of it.");
		return OW_OK;
	}
	buf_printf(text, "%.0f %% of op time is ", percent(top.type_ns, top.all_ns));
	add_name(text, model_str(m, (str_id){ top.type }));
	if (m->op.name[top.op].v != top.type) {
		bool only = top.op_ns == top.type_ns;

		buf_puts(text, only ? ", all of it in " : "; the costliest is ");
		add_op(text, model_str(m, m->op.name[top.op]));
		if (!only)
			buf_printf(text, " (%.0f %%)", percent(top.op_ns, top.all_ns));
	}
	buf_add_char(text, '.');
	return OW_OK;
}

/* ---- all of it ---- */

/* Of a program that was recorded while it ran. */
static bool is_live(const struct model *m)
{
	return m->source.count > 1 && str_eq(model_str(m, m->source.format[1]), STR("live"));
}

static bool has_live_steps(const struct model *m, const struct phase_group *g)
{
	return g->steps >= FEW_STEPS && is_live(m);
}

/* Nothing says where steps begin: the time between the first and the last record is none, and no measure of the program. */
static bool is_shapeless(const struct model *m, const struct phase_group *g)
{
	return is_live(m) && m->window.count <= 1 && !g->has_device;
}

/* Names that happen to say something are no reason to judge a program of which nothing else is known. */
static bool says_something(const struct model *m, const struct phase_group *g)
{
	return g->time_ns > 0 &&
	       (g->has_device || share_of(g, CLASS_IDLE) < ALMOST_ALL || has_live_steps(m, g));
}

static ow_status write(struct search *s, struct phases *p, struct buf *text)
{
	struct phase_groups groups;

	OW_TRY(phases_analyse(s->m, s->filter, p, s->err));
	OW_TRY(phases_group(s->m, p, &p->arena, &groups, s->err));
	s->p = p;
	if (is_shapeless(s->m, &groups.all) && s->m->sample.count > 1)
		return verdict_samples(s->m, s->filter, s->metric, text, s->err);
	if (is_shapeless(s->m, &groups.all) || !says_something(s->m, &groups.all))
		return from_ops(s, text);
	OW_TRY(from_phases(s, &groups.all, text));
	return verdict_ranks(s->m, &groups, s->scratch, text, s->err);
}

ow_status verdict_write(struct model *m, const struct event_filter *filter, const char *metric,
			struct buf *text, struct error *err)
{
	struct arena scratch;
	struct search s = {
		.m = m, .filter = filter, .metric = metric, .scratch = &scratch, .err = err
	};
	struct phases p = { 0 };
	ow_status status;

	if (samples_only(m)) {
		OW_TRY(verdict_samples(m, filter, metric, text, err));
		return text->failed ? error_no_memory(err) : OW_OK;
	}
	arena_init(&scratch, m->mem);
	status = write(&s, &p, text);
	phases_release(&p);
	arena_release(&scratch);
	if (status == OW_OK && text->failed)
		status = error_no_memory(err);
	return status;
}
