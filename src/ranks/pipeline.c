/*
 * pipeline.c: finds the pipeline stage of ranks that do not record it, and how much of a step the
 * stages are idle, compared with the unavoidable share of a schedule of p stages and m
 * micro-batches, (p - 1) / (m + p - 1) (ranks.h). Micro-batches are counted by the events of a
 * worker in files that hold a whole job, else by the messages between two stages. Called after
 * straggler.c, which measures own work.
 */
#include "ranks/ranks.h"

#include <stdlib.h>

#define STAGES_MOST 4096

/* The rank from which a worker receives before it sends, in most steps; -1 = it sends first, -2
 * = it neither sends nor receives. */
static int32_t first_source(const struct worker *w)
{
	int64_t step = NO_STEP;
	size_t steps = 0, receives = 0;
	int32_t from = -1;

	for (size_t i = 0; i < w->collective_count; i++) {
		const struct collective *c = &w->collectives[i];

		if (!collective_is_direct(c->kind) || c->step == step || c->peer < 0)
			continue;
		step = c->step;
		steps++;
		if (c->kind == COLLECTIVE_RECV) {
			receives++;
			from = c->peer;
		}
	}
	if (!steps)
		return -2;
	return 2 * receives > steps ? from : -1;
}

/* Finds a worker by its rank; workers are sorted by rank. */
static struct worker *worker_of_rank(const struct ranks_job *job, int32_t rank)
{
	size_t low = 0, high = job->worker_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (job->workers[middle].rank >= 0 && job->workers[middle].rank < rank)
			low = middle + 1;
		else
			high = middle;
	}
	while (low < job->worker_count && job->workers[low].rank == rank &&
	       job->workers[low].left_out)
		low++;
	return low < job->worker_count && job->workers[low].rank == rank ? &job->workers[low]
									 : NULL;
}

/* How many ranks a micro-batch passes before it reaches this worker; -1 when unknown, for
 * example in a ring. */
static int32_t depth_of(const struct ranks_job *job, const struct worker *w)
{
	int32_t depth = 0, from = first_source(w);

	while (from >= 0 && depth < STAGES_MOST) {
		w = worker_of_rank(job, from);
		from = w ? first_source(w) : -2;
		depth++;
	}
	return from == -1 ? depth : -1;
}

void ranks_find_stages(struct ranks_job *job)
{
	int32_t *depth = ARENA_ARRAY(&job->arena, int32_t, job->worker_count + 1), most = 0;

	for (size_t i = 0; depth && i < job->worker_count; i++) {
		const struct worker *w = &job->workers[i];

		if (w->left_out)
			continue;
		if (w->many || w->rank < 0 || w->stage >= 0)
			return;
		depth[i] = depth_of(job, w);
		if (depth[i] < 0)
			return;
		most = MAX(most, depth[i]);
	}
	for (size_t i = 0; depth && most > 0 && i < job->worker_count; i++)
		if (!job->workers[i].left_out)
			job->workers[i].stage = depth[i];
}

static int32_t stage_of(const struct ranks_job *job, int32_t rank)
{
	const struct worker *w = rank >= 0 ? worker_of_rank(job, rank) : NULL;

	return w ? w->stage : -1;
}

/* The number of messages in a step that a worker receives from the stage before it; for the
 * first stage, that it sends to the second. */
static int64_t messages(const struct ranks_job *job, const struct worker *w, int64_t number)
{
	int64_t count = 0;

	for (size_t i = 0; i < w->collective_count; i++) {
		const struct collective *c = &w->collectives[i];

		if (c->step == number && collective_is_direct(c->kind))
			count += w->stage > 0 ? c->kind == COLLECTIVE_RECV &&
							stage_of(job, c->peer) == w->stage - 1
					      : c->kind == COLLECTIVE_SEND &&
							stage_of(job, c->peer) == 1;
	}
	return count;
}

static int by_name(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The count of a worker's most frequent operation in a step, which runs once per micro-batch. */
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

/* The median count of micro-batches over the workers in one step; 0 when some worker has no
 * stage. */
static int64_t micro_batches(struct ranks_job *job, int64_t number, uint64_t *names,
			     int64_t *counts)
{
	size_t count = 0;

	for (size_t i = 0; i < job->worker_count; i++) {
		const struct worker *w = &job->workers[i];
		const struct worker_step *step = worker_step_of(w, number);

		if (w->left_out || !step)
			continue;
		if (w->stage < 0)
			return 0;
		counts[count++] = w->many ? repeats(w, step, names) : messages(job, w, number);
	}
	return count ? ranks_median(counts, count) : 0;
}

/* The share of the workers' time in a step that is not own work. */
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
