/*
 * worker_lines.c: time for each line of the program's own code and each worker (ranks.h): time that the host spent in
 * the line, and time of the device work that the line launched, both in steady steps. read.c calls it for recordings
 * with call stacks; blame.c finds the line in which a straggler spends more time than its peers. Time of calls that
 * wait, and of collectives, is left out: a rank that waits longer is not the slow one.
 */
#include "ranks/read.h"

#include "analyze/samples/samples.h"
#include "base/vec.h"

#define LINES_MOST 2048

struct line_reader {
	const struct line_reading *in;
	struct model *m;
	struct ow_error *err;
	const uint32_t *own; /* for each stack: its innermost frame in the program's own code */
	bool *steady;	     /* one entry for each step: whether it is steady */
	/* the worker's call frames are recorded as slices: the self time of a slice is the time of its line */
	bool frames;
	uint32_t *row_of; /* for each frame: 1 + index in the lines of the current worker */
	size_t worker;
};

static uint32_t stack_of(const struct model *m, uint32_t event)
{
	uint32_t stack = event ? COLUMN_GET(m->event.stack, event).v : 0;

	return stack ? stack : event ? COLUMN_GET(m->op.stack, m->event.op[event].v).v : 0;
}

/* Adds time to the line of a stack, unless all frames of the stack are in libraries. */
static ow_status add_time(struct line_reader *r, uint32_t stack, int64_t ns, bool device)
{
	struct worker *w = &r->in->job->workers[r->worker];
	uint32_t frame = r->own[stack];
	struct worker_line *line;
	char name[160];

	if (!stack || ns <= 0 || line_is_library(model_str(r->m, r->m->frame.file[frame])))
		return OW_OK;
	if (!r->row_of[frame]) {
		struct worker_line fresh = { 0 };

		if (w->line_count >= LINES_MOST)
			return OW_OK;
		own_line_name(r->m, frame, name, sizeof(name));
		fresh.text = arena_str(&r->in->job->arena, str_from(name));
		fresh.name = str_hash(str_from(name));
		if (!fresh.text.ptr ||
		    !vec_push(r->in->job->mem, w->lines, w->line_count, w->line_cap, fresh))
			return error_no_memory(r->err);
		r->row_of[frame] = (uint32_t)w->line_count;
	}
	line = &w->lines[r->row_of[frame] - 1];
	if (device)
		line->device_ns = span_add(line->device_ns, ns);
	else
		line->host_ns = span_add(line->host_ns, ns);
	return OW_OK;
}

/* Whether a slice is a call frame of the program, on a separate track beside the track of the thread's operators. */
static bool is_frame(const struct model *m, uint32_t event)
{
	return track_work(m, m->event.track[event]) == WORK_NONE &&
	       COLUMN_GET(m->event.stack, event).v && event_is_slice(m, event);
}

static ow_status add_event(struct line_reader *r, uint32_t event)
{
	const struct model *m = r->m;
	bool device = track_work(m, m->event.track[event]) == WORK_DEVICE;
	enum phase_class class = phase_class_of(m, event, true);
	uint32_t stack = stack_of(m, event);

	if (!event_is_slice(m, event) || !r->steady[m->event.step[event].v] ||
	    class == CLASS_COMMUNICATION || class == CLASS_SYNCHRONISATION ||
	    m->op.flags[m->event.op[event].v] & (OP_WAITS | OP_STEP_MARK))
		return OW_OK;
	if (!device && r->frames != is_frame(m, event))
		return OW_OK;
	if (!device)
		return add_time(r, stack, m->event.self_ns ? m->event.self_ns[event] : 0, false);
	if (!stack && r->in->launch)
		stack = stack_of(m, r->in->launch[event]);
	return add_time(r, stack, m->event.dur_ns[event], true);
}

/* Adds the samples of one worker, if the default metric of the samples is time. */
static ow_status add_samples(struct line_reader *r)
{
	const struct model *m = r->m;

	for (uint32_t i = 1; i < m->sample.count; i++) {
		uint32_t metric = m->sample.metric[i].v;

		if (r->in->worker_of[m->sample.track[i].v] != r->worker + 1 ||
		    !r->steady[COLUMN_GET(m->sample.step, i).v] || !m->metric.is_default[metric] ||
		    !str_eq(model_str(m, m->metric.unit[metric]), STR("ns")))
			continue;
		OW_TRY(add_time(r, m->sample.stack[i].v, m->sample.weight[i], false));
	}
	return OW_OK;
}

static void find_steady(struct line_reader *r)
{
	const struct phases *p = r->in->phases;

	for (uint32_t i = 0; i < p->window_count; i++)
		if (p->windows[i].use == STEP_STEADY)
			r->steady[p->windows[i].step.v] = true;
}

static ow_status read_worker(struct line_reader *r)
{
	const struct model *m = r->m;

	memset(r->row_of, 0, m->frame.count * sizeof(*r->row_of));
	r->frames = false;
	for (uint32_t i = 1; i < m->event.count && !r->frames; i++)
		r->frames =
			r->in->worker_of[m->event.track[i].v] == r->worker + 1 && is_frame(m, i);
	for (uint32_t i = 1; i < m->event.count; i++)
		if (r->in->worker_of[m->event.track[i].v] == r->worker + 1)
			OW_TRY(add_event(r, i));
	return add_samples(r);
}

ow_status worker_lines_read(const struct line_reading *in, struct ow_error *err)
{
	struct line_reader r = { .in = in, .m = in->m, .err = err };
	const struct model *m = in->m;

	if (m->stack.count <= 1 && m->frame.count <= 1)
		return OW_OK;
	OW_TRY(model_require_stacks(in->m, err));
	OW_TRY(model_require_nesting(in->m, err));
	r.own = line_own_frames(m, in->scratch);
	r.steady = ARENA_ARRAY(in->scratch, bool, m->step.count + 1);
	r.row_of = ARENA_ARRAY(in->scratch, uint32_t, m->frame.count + 1);
	if (!r.own || !r.steady || !r.row_of)
		return error_no_memory(err);
	find_steady(&r);
	for (r.worker = in->first; r.worker < in->job->worker_count; r.worker++)
		OW_TRY(read_worker(&r));
	return OW_OK;
}
