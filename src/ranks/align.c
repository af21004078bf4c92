/*
 * align.c: the times of a frozen model on the clock of its lowest rank (ranks.h), for `--align clocks`. Every time of a file is moved by the fit of its rank,
 * begins and ends alike, so that nesting stays; the order of events of a track stays, because a moved time never passes a later one. What spans several
 * files (steps, first starts of operations) is found again. A file of several TensorFlow tasks is moved task by task. Files whose clock is not known keep their times, and a note says so.
 */
#include "ranks/read.h"

#include "model/builder.h"
#include "model/event_sums.h"
#include "model/heap_order.h"

struct aligning {
	struct builder *b;
	struct model *m;
	/* one entry per source file: its worker if that worker's clock is fitted, else NULL */
	const struct worker **clock;
	/* one entry per track, as `clock`; the tracks of a TensorFlow file may belong to tasks on different hosts */
	const struct worker **track_clock;
};

/* Converts a time of a worker to the reference clock. If the worker's clock was set back, a time
 * before that moment is cut to the moment at which the new clock begins. */
static int64_t move(const struct worker *w, int64_t ns)
{
	int64_t moved;
	size_t i = 1;

	if (!w || ns == TIME_UNKNOWN)
		return ns;
	moved = worker_time(w, ns);
	while (i < w->piece_count && w->pieces[i].from_ns <= ns)
		i++;
	return i < w->piece_count ? MIN(moved, worker_time(w, w->pieces[i].from_ns)) : moved;
}

static const struct worker *clock_of_track(const struct aligning *a, track_id track)
{
	return a->track_clock[track.v];
}

static void move_events(const struct aligning *a)
{
	struct model *m = a->m;

	for (uint32_t i = 1; i < m->event.count; i++) {
		const struct worker *w = clock_of_track(a, m->event.track[i]);
		int64_t dur = m->event.dur_ns[i], end;

		if (!w)
			continue;
		end = dur == TIME_UNKNOWN ? dur : move(w, span_add(m->event.ts_ns[i], dur));
		m->event.ts_ns[i] = move(w, m->event.ts_ns[i]);
		if (dur != TIME_UNKNOWN)
			m->event.dur_ns[i] = span_length(m->event.ts_ns[i], end);
	}
}

static void move_others(const struct aligning *a)
{
	struct model *m = a->m;

	for (uint32_t i = 1; i < m->flow.count; i++)
		m->flow.ts_ns[i] = move(clock_of_track(a, m->flow.track[i]), m->flow.ts_ns[i]);
	for (uint32_t i = 1; i < m->counter.count; i++)
		m->counter.ts_ns[i] =
			move(clock_of_track(a, m->counter.track[i]), m->counter.ts_ns[i]);
	for (uint32_t i = 1; i < m->sample.count; i++)
		m->sample.ts_ns[i] =
			move(clock_of_track(a, m->sample.track[i]), m->sample.ts_ns[i]);
	for (uint32_t i = 1; i < m->heap.count; i++)
		m->heap.ts_ns[i] = move(a->clock[m->heap.source[i].v], m->heap.ts_ns[i]);
	for (uint32_t i = 1; i < m->window.count; i++) {
		const struct worker *w = a->clock[m->window.source[i].v];

		m->window.start_ns[i] = move(w, m->window.start_ns[i]);
		m->window.end_ns[i] = move(w, m->window.end_ns[i]);
	}
}

/* Sets the times of steps to those of their markers, or else of their events. */
static ow_status span_steps(const struct aligning *a, struct ow_error *err)
{
	struct model *m = a->m;
	size_t size = m->step.count * sizeof(bool);
	bool *marked = mem_zalloc(m->mem, size);

	if (!marked)
		return error_no_memory(err);
	for (uint32_t i = 1; i < m->window.count; i++)
		marked[m->window.step[i].v] = true;
	for (uint32_t i = 1; i < m->step.count; i++)
		m->step.start_ns[i] = m->step.end_ns[i] = TIME_UNKNOWN;
	for (uint32_t i = 1; i < m->window.count; i++)
		builder_widen_step(a->b, m->window.step[i], m->window.start_ns[i],
				   m->window.end_ns[i]);
	for (uint32_t i = 1; i < m->event.count; i++)
		if (!marked[m->event.step[i].v])
			builder_widen_step(a->b, m->event.step[i], m->event.ts_ns[i],
					   event_end(m, i));
	mem_free(m->mem, marked, size);
	return OW_OK;
}

static void span_op_steps(const struct aligning *a)
{
	struct op_step_table *t = &a->m->op_step;
	const struct event_table *e = &a->m->event;

	for (uint32_t i = 1; i < t->count; i++)
		t->first_start_ns[i] = t->latest_end_ns[i] = 0;
	for (uint32_t i = 1; i < e->count; i++) {
		uint32_t row = op_step_find(a->m, e->op[i].v, e->step[i].v);

		if (!row)
			continue;
		if (!t->first_start_ns[row] || e->ts_ns[i] < t->first_start_ns[row])
			t->first_start_ns[row] = e->ts_ns[i];
		t->latest_end_ns[row] = MAX(t->latest_end_ns[row], event_end(a->m, i));
	}
}

static ow_status move_all(const struct aligning *a, struct ow_error *err)
{
	struct model *m = a->m;

	move_events(a);
	move_others(a);
	OW_TRY(span_steps(a, err));
	if (m->event.count > 1)
		span_op_steps(a);
	if (m->deferred.part[DEFERRED_nesting].made)
		deferred_forget(m, DEFERRED_nesting);
	return order_heap(a->b);
}

static void find_track_clocks(const struct aligning *a, const struct ranks_job *job)
{
	for (uint32_t t = 1; t < a->m->track.count; t++) {
		struct str task = task_of_track(a->m, t);

		a->track_clock[t] = a->clock[a->m->track.source[t].v];
		for (size_t i = 0; i < job->worker_count && task.len; i++) {
			const struct worker *w = &job->workers[i];

			if (str_eq(w->task, task) && !w->left_out)
				a->track_clock[t] = w->has_clock && w->piece_count ? w : NULL;
		}
	}
}

/* Finds the fitted clock of each source file; false if no file has one, so that no time has to
 * be moved. */
static bool find_clocks(const struct aligning *a, const struct ranks_job *job)
{
	bool any = false;

	for (size_t i = 0; i < job->worker_count; i++) {
		const struct worker *w = &job->workers[i];

		if (w->has_clock && w->piece_count) {
			if (!w->task.len)
				a->clock[w->source] = w;
			any = true;
		} else if (!w->has_clock && !w->left_out && job->clock == CLOCK_FITTED) {
			builder_note(a->b, NOTE_INFO, OW_NO_OFFSET,
				     "%.*s keeps its times: its clock is not known",
				     STR_ARG(w->path));
		}
	}
	find_track_clocks(a, job);
	return any;
}

static ow_status align(struct aligning *a, struct ranks_job *job, struct ow_error *err)
{
	a->clock = mem_zalloc(a->m->mem, a->m->source.count * sizeof(*a->clock));
	a->track_clock = mem_zalloc(a->m->mem, a->m->track.count * sizeof(*a->track_clock));
	if (!a->clock || !a->track_clock)
		return error_no_memory(err);
	OW_TRY(ranks_add(job, a->m, STR(""), err));
	if (!job->worker_count)
		return OW_OK;
	OW_TRY(ranks_finish(job, err));
	if (job->clock == CLOCK_IMPOSSIBLE)
		builder_note(a->b, NOTE_INFO, OW_NO_OFFSET,
			     "times are as recorded, because the clocks cannot be compared: %s",
			     job->clock_why);
	return find_clocks(a, job) ? move_all(a, err) : OW_OK;
}

ow_status ranks_align(struct builder *b, struct ow_error *err)
{
	struct aligning a = { .b = b, .m = b->m };
	struct ranks_job job;
	ow_status status;

	ranks_init(&job, b->m->mem);
	status = align(&a, &job, err);
	mem_free(b->m->mem, a.clock, a.clock ? b->m->source.count * sizeof(*a.clock) : 0);
	mem_free(b->m->mem, a.track_clock,
		 a.track_clock ? b->m->track.count * sizeof(*a.track_clock) : 0);
	ranks_release(&job);
	return status;
}
