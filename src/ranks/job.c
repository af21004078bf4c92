/*
 * job.c: struct ranks_job (ranks.h) while files are read and afterwards: set-up, release, the order
 * of the analysis, and functions that several parts of the analysis share: medians, times on the
 * reference clock, steps by number.
 */
#include "ranks/read.h"

#include "base/vec.h"

#include <math.h>
#include <stdlib.h>

const char *const collective_names[COLLECTIVE_KINDS] = {
	[COLLECTIVE_NONE] = "",
	[COLLECTIVE_ALL_REDUCE] = "all-reduce",
	[COLLECTIVE_ALL_GATHER] = "all-gather",
	[COLLECTIVE_REDUCE_SCATTER] = "reduce-scatter",
	[COLLECTIVE_ALL_TO_ALL] = "all-to-all",
	[COLLECTIVE_BARRIER] = "barrier",
	[COLLECTIVE_BROADCAST] = "broadcast",
	[COLLECTIVE_REDUCE] = "reduce",
	[COLLECTIVE_GATHER] = "gather",
	[COLLECTIVE_SCATTER] = "scatter",
	[COLLECTIVE_SEND] = "send",
	[COLLECTIVE_RECV] = "receive",
	[COLLECTIVE_SEND_RECV] = "send and receive",
	[COLLECTIVE_OTHER] = "other",
};
const char *const straggler_names[] = { "none", "persistent", "transient", "periodic" };
const char *const cause_names[] = { NULL,	 "input",	    "host",	     "compute",
				    "more_work", "clock_frequency", "communication", "unknown" };
const char *const clock_names[] = { "shared", "fitted", "impossible" };
const char *const blame_names[] = { "none", "rank", "stage", "expert", "host", "link" };

void ranks_init(struct ranks_job *job, struct mem *mem)
{
	*job = (struct ranks_job){ .mem = mem,
				   .world = -1,
				   .step_ns = TIME_UNKNOWN,
				   .slowdown = NAN,
				   .slowdown_together = NAN,
				   .replay_error = NAN,
				   .alpha_ns = NAN,
				   .beta_ns_per_byte = NAN,
				   .bubble = NAN,
				   .bubble_ideal = NAN };
	arena_init(&job->arena, mem);
}

void ranks_worker_release(struct worker *w, struct mem *mem)
{
	vec_free(mem, w->collectives, w->collective_cap);
	vec_free(mem, w->pauses, w->pause_cap);
	vec_free(mem, w->steps, w->step_cap);
	vec_free(mem, w->ops, w->op_cap);
	vec_free(mem, w->lines, w->line_cap);
	vec_free(mem, w->timed, w->timed_cap);
	vec_free(mem, w->pieces, w->piece_cap);
}

void ranks_release(struct ranks_job *job)
{
	for (size_t i = 0; i < job->worker_count; i++)
		ranks_worker_release(&job->workers[i], job->mem);
	vec_free(job->mem, job->workers, job->worker_cap);
	vec_free(job->mem, job->groups, job->group_cap);
	vec_free(job->mem, job->meetings, job->meeting_cap);
	vec_free(job->mem, job->members, job->member_cap);
	vec_free(job->mem, job->copies, job->copy_cap);
	vec_free(job->mem, job->others, job->other_cap);
	vec_free(job->mem, job->step_numbers, job->step_cap);
	vec_free(job->mem, job->blamed, job->blamed_cap);
	vec_free(job->mem, job->speeds, job->speed_cap);
	vec_free(job->mem, job->slow_links, job->slow_link_cap);
	arena_release(&job->arena);
}

static bool copy_text(struct ranks_job *job, struct str *text)
{
	*text = arena_str(&job->arena, *text);
	return text->ptr != NULL;
}

static bool copy_texts(struct ranks_job *job, struct worker *w)
{
	bool good =
		copy_text(job, &w->path) && copy_text(job, &w->host) && copy_text(job, &w->task);

	for (size_t i = 0; i < w->op_count && good; i++)
		good = copy_text(job, &w->ops[i].text);
	for (size_t i = 0; i < w->line_count && good; i++)
		good = copy_text(job, &w->lines[i].text);
	return good;
}

static bool copy_group(struct ranks_job *job, struct group_name group)
{
	for (size_t i = job->group_count; i-- > 0;)
		if (job->groups[i].hash == group.hash)
			return true;
	return job->group_count >= RANKS_GROUPS_MOST ||
	       (copy_text(job, &group.name) &&
		vec_push(job->mem, job->groups, job->group_count, job->group_cap, group));
}

ow_status ranks_join(struct ranks_job *job, struct ranks_job *part, struct ow_error *err)
{
	size_t kept = 0;
	bool good = true;

	for (size_t i = 0; i < part->group_count && good; i++)
		good = copy_group(job, part->groups[i]);
	for (; kept < part->worker_count && good; kept += good) {
		struct worker w = part->workers[kept];

		w.file += job->file_count;
		good = copy_texts(job, &w) &&
		       vec_push(job->mem, job->workers, job->worker_count, job->worker_cap, w);
	}
	/* Only the remaining workers stay in the part, so that ranks_release does not release
	 * those that moved to the job. */
	memmove(part->workers, part->workers + kept,
		(part->worker_count - kept) * sizeof(*part->workers));
	part->worker_count -= kept;
	job->file_count += part->file_count;
	return good ? OW_OK : error_no_memory(err);
}

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int by_real(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int64_t ranks_median(int64_t *values, size_t count)
{
	if (!count)
		return TIME_UNKNOWN;
	qsort(values, count, sizeof(*values), by_value);
	if (count % 2)
		return values[count / 2];
	return values[count / 2 - 1] + span_length(values[count / 2 - 1], values[count / 2]) / 2;
}

double ranks_median_real(double *values, size_t count)
{
	if (!count)
		return NAN;
	qsort(values, count, sizeof(*values), by_real);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

int64_t worker_time(const struct worker *w, int64_t ns)
{
	const struct clock_piece *piece = w->pieces;

	if (!w->piece_count)
		return ns;
	for (size_t i = 1; i < w->piece_count && w->pieces[i].from_ns <= ns; i++)
		piece = &w->pieces[i];
	return span_add(ns, llround(piece->offset_ns +
				    piece->drift * ((double)ns - (double)piece->origin_ns)));
}

struct worker_step *worker_step_of(const struct worker *w, int64_t number)
{
	/* step numbers come from files: any difference must be defined, so it is unsigned */
	size_t place =
		w->step_count ? (size_t)((uint64_t)number - (uint64_t)w->steps[0].number) : 0;

	/* Step numbers mostly count up by one, so this index is usually right. */
	if (place < w->step_count && w->steps[place].number == number)
		return &w->steps[place];
	for (size_t i = 0; i < w->step_count; i++)
		if (w->steps[i].number == number)
			return &w->steps[i];
	return NULL;
}

bool ranks_means(const struct ranks_job *job, const struct worker *w, struct rank_means *out)
{
	int64_t *times = mem_alloc(job->mem, (job->step_count + 1) * sizeof(*times));

	*out = (struct rank_means){ 0 };
	if (!times)
		return false;
	for (size_t s = 0; s < job->step_count; s++) {
		const struct worker_step *step = worker_step_of(w, job->step_numbers[s]);

		if (!step)
			continue;
		times[out->count++] = span_length(step->start_ns, step->end_ns);
		out->own_ns = span_add(out->own_ns, step->own_ns);
		out->wait_ns = span_add(out->wait_ns, step->wait_ns);
		out->transfer_ns = span_add(out->transfer_ns, step->transfer_ns);
	}
	if (out->count) {
		out->step_ns = ranks_median(times, out->count);
		out->own_ns /= (int64_t)out->count;
		out->wait_ns /= (int64_t)out->count;
		out->transfer_ns /= (int64_t)out->count;
	}
	mem_free(job->mem, times, (job->step_count + 1) * sizeof(*times));
	if (w->has_totals && out->count) {
		out->step_ns = w->totals.step_ns;
		out->wait_ns = w->totals.wait_ns;
		out->transfer_ns = w->totals.transfer_ns;
	}
	return out->count > 0;
}

/* Lists the numbers of the steps that are steady on every worker that has steps. */
static ow_status find_steps(struct ranks_job *job, struct ow_error *err)
{
	const struct worker *first = NULL;

	for (size_t i = 0; i < job->worker_count && !first; i++)
		if (!job->workers[i].left_out && job->workers[i].step_count)
			first = &job->workers[i];
	for (unsigned strict = 1; first && strict < 2 && !job->step_count; strict--) {
		for (size_t s = 0; s < first->step_count; s++) {
			int64_t number = first->steps[s].number;
			bool good = true;

			for (size_t i = 0; i < job->worker_count && good; i++) {
				const struct worker *w = &job->workers[i];
				const struct worker_step *step = worker_step_of(w, number);

				if (w->left_out || !w->step_count)
					continue;
				good = step && (!strict || step->use == STEP_STEADY);
			}
			if (good && !vec_push(job->mem, job->step_numbers, job->step_count,
					      job->step_cap, number))
				return error_no_memory(err);
		}
	}
	return OW_OK;
}

/* Whether a clock was set while the step ran: then the recorded length of the step is wrong. */
static bool is_broken(const struct ranks_job *job, int64_t number)
{
	for (size_t i = 0; i < job->worker_count; i++) {
		const struct worker *w = &job->workers[i];
		const struct worker_step *step =
			w->left_out || w->piece_count < 2 ? NULL : worker_step_of(w, number);

		for (size_t k = 1; step && k < w->piece_count; k++) {
			/* The first pair of collectives on the new clock may come a little after
			 * the clock was set, and a clock that was set back has the times around
			 * that moment twice.
			 */
			int64_t length = step->end_ns - step->start_ns;

			if (w->pieces[k].from_ns > step->start_ns - length &&
			    w->pieces[k].from_ns < step->end_ns + length)
				return true;
		}
	}
	return false;
}

/* Leaves out steps in which a clock was set, as long as other steps remain. */
static void drop_broken_steps(struct ranks_job *job)
{
	size_t kept = 0;

	for (size_t s = 0; s < job->step_count; s++)
		kept += !is_broken(job, job->step_numbers[s]);
	if (!kept || kept == job->step_count)
		return;
	kept = 0;
	for (size_t s = 0; s < job->step_count; s++)
		if (!is_broken(job, job->step_numbers[s]))
			job->step_numbers[kept++] = job->step_numbers[s];
	job->step_count = kept;
}

static void mark_compared(struct ranks_job *job)
{
	for (size_t s = 0; s < job->step_count; s++)
		for (size_t i = 0; i < job->worker_count; i++) {
			struct worker_step *step =
				worker_step_of(&job->workers[i], job->step_numbers[s]);

			if (step)
				step->compared = true;
		}
}

/* A step of the job lasts as long as that of its slowest worker. */
static ow_status measure_steps(struct ranks_job *job, struct ow_error *err)
{
	int64_t *times = ARENA_ARRAY(&job->arena, int64_t, job->step_count + 1);

	if (!times)
		return error_no_memory(err);
	for (size_t s = 0; s < job->step_count; s++)
		for (size_t i = 0; i < job->worker_count; i++) {
			const struct worker_step *step =
				worker_step_of(&job->workers[i], job->step_numbers[s]);

			if (step && !job->workers[i].left_out && !job->workers[i].overlaps)
				times[s] = MAX(times[s], span_length(step->start_ns, step->end_ns));
		}
	job->step_ns = ranks_median(times, job->step_count);
	return OW_OK;
}

/* Discards the results of pairing and clock fitting, before both run again with fewer workers. */
static void forget_pairs(struct ranks_job *job)
{
	job->meeting_count = job->member_count = job->step_count = 0;
	job->unpaired = 0;
	job->clock_why[0] = '\0';
	for (size_t i = 0; i < job->worker_count; i++) {
		struct worker *w = &job->workers[i];

		for (size_t k = 0; k < w->collective_count; k++)
			w->collectives[k].meeting = 0;
		w->has_clock = false;
		w->piece_count = 0;
		w->offset_ns = w->likely_ns = w->proven_ns = 0;
		w->drift_ppm = 0;
		w->pairs_used = w->pairs_rejected = 0;
	}
}

/* Pairs collectives and fits clocks, repeatedly, until only workers of one job are left. */
static ow_status match_workers(struct ranks_job *job, struct ow_error *err)
{
	bool found = true;

	for (unsigned round = 0; found && round < 3; round++) {
		if (round)
			forget_pairs(job);
		OW_TRY(find_steps(job, err));
		OW_TRY(ranks_pair(job, err));
		OW_TRY(ranks_clocks(job, err));
		found = false;
		if (round < 2)
			OW_TRY(ranks_outsiders(job, &found, err));
	}
	return OW_OK;
}

ow_status ranks_finish(struct ranks_job *job, struct ow_error *err)
{
	if (!job->worker_count)
		return error_set(
			err, OW_E_EMPTY,
			"no timed work in %u file%s: ranks needs traces of the ranks of a job",
			job->file_count, job->file_count == 1 ? "" : "s");
	OW_TRY(ranks_join_tasks(job, err));
	OW_TRY(ranks_identify(job, err));
	OW_TRY(match_workers(job, err));
	ranks_find_stages(job);
	OW_TRY(ranks_pair_rest(job, err));
	drop_broken_steps(job);
	mark_compared(job);
	OW_TRY(measure_steps(job, err));
	OW_TRY(ranks_waits(job, err));
	if (job->clock != CLOCK_IMPOSSIBLE)
		OW_TRY(ranks_links(job, err));
	if (job->clock != CLOCK_IMPOSSIBLE)
		OW_TRY(ranks_servers(job, err));
	OW_TRY(ranks_stragglers(job, err));
	return ranks_pipeline(job, err);
}
