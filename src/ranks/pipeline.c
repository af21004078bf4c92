/*
 * pipeline.c: how much of a step the stages of a pipeline are idle, against what a schedule of p stages and m micro-batches cannot avoid, (p - 1) / (m + p - 1)
 * (ranks.h). For files that hold a whole job with its stages, where each micro-batch is an event. Called after straggler.c, which measures own work.
 */
#include "ranks/ranks.h"

#include <stdlib.h>

static int by_name(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* How often a worker does in a step what it does most often: once per micro-batch. */
static int64_t repeats(const struct worker *w, const struct worker_step *step, uint64_t *names)
{
	int64_t most = 0, run = 0;
	size_t count = 0;

	for (size_t i = 0; i < w->timed_count; i++)
		if (w->timed[i].end_ns > step->start_ns && w->timed[i].end_ns <= step->end_ns)
			names[count++] = w->timed[i].name;
	if (count)
		qsort(names, count, sizeof(*names), by_name);
	for (size_t i = 0; i < count; i++) {
		run = i && names[i] == names[i - 1] ? run + 1 : 1;
		most = MAX(most, run);
	}
	return most;
}

/* The median of the workers in one step, all of which have a stage; 0 when some have none. */
static int64_t micro_batches(struct ranks_job *job, int64_t number, uint64_t *names,
			     int64_t *counts)
{
	size_t count = 0;

	for (size_t i = 0; i < job->worker_count; i++) {
		const struct worker *w = &job->workers[i];
		const struct worker_step *step = worker_step_of(w, number);

		if (w->left_out || !step)
			continue;
		if (!w->many || w->stage < 0)
			return 0;
		counts[count++] = repeats(w, step, names);
	}
	return count ? ranks_median(counts, count) : 0;
}

/* The part of the workers' time in a step that is not own work. */
static double stand_still(const struct ranks_job *job, int64_t number)
{
	double own = 0, all = 0;

	for (size_t i = 0; i < job->worker_count; i++) {
		const struct worker_step *step = worker_step_of(&job->workers[i], number);

		if (job->workers[i].left_out || !step)
			continue;
		own += (double)step->own_ns;
		all += (double)span_length(step->start_ns, step->end_ns);
	}
	return all > 0 ? 1 - own / all : __builtin_nan("");
}

ow_status ranks_pipeline(struct ranks_job *job, struct ow_error *err)
{
	size_t most = 0, measured = 0;
	uint64_t *names;
	int64_t *counts;
	double *idle;

	for (size_t i = 0; i < job->worker_count; i++) {
		most = MAX(most, job->workers[i].timed_count);
		job->stages = MAX(job->stages, job->workers[i].stage + 1);
	}
	names = ARENA_ARRAY(&job->arena, uint64_t, most + 1);
	counts = ARENA_ARRAY(&job->arena, int64_t, job->worker_count + 1);
	idle = ARENA_ARRAY(&job->arena, double, job->step_count + 1);
	if (!names || !counts || !idle)
		return error_no_memory(err);
	if (job->stages < 2 || !job->step_count)
		return OW_OK;
	job->micro_batches =
		micro_batches(job, job->step_numbers[job->step_count / 2], names, counts);
	if (job->micro_batches < 2)
		return OW_OK;
	for (size_t s = 0; s < job->step_count; s++)
		idle[measured++] = stand_still(job, job->step_numbers[s]);
	job->bubble = ranks_median_real(idle, measured);
	job->bubble_ideal = (job->stages - 1) / (double)(job->micro_batches + job->stages - 1);
	return OW_OK;
}
