/*
 * identity.c: decides which of the workers that were read belong to one job (ranks.h). Copies,
 * other runs and other jobs are set aside; the rest is sorted by rank. File names do not decide
 * anything here.
 */
#include "ranks/ranks.h"

#include "base/vec.h"

#include <stdarg.h>
#include <stdlib.h>

/* the year 2001: larger times are wall-clock times */
#define WALL_CLOCK_NS ((int64_t)1000000000 * 1000000000)
/* clocks of one cluster differ by less than this */
#define SKEW_NS ((int64_t)60 * 1000000000)

static bool is_same_place(const struct worker *a, const struct worker *b)
{
	return a->rank == b->rank && a->dp == b->dp && a->stage == b->stage && a->tp == b->tp;
}

static bool is_copy(const struct worker *a, const struct worker *b)
{
	return a->hash == b->hash && a->events == b->events && a->first_ns == b->first_ns &&
	       a->last_ns == b->last_ns && is_same_place(a, b) && a->file != b->file;
}

static bool overlap(const struct worker *a, const struct worker *b)
{
	if (a->first_ns < WALL_CLOCK_NS || b->first_ns < WALL_CLOCK_NS)
		return true;
	return a->first_ns - SKEW_NS < b->last_ns && b->first_ns - SKEW_NS < a->last_ns;
}

static int by_rank(const void *x, const void *y)
{
	const struct worker *a = x, *b = y;
	const int64_t left[] = {
		a->rank < 0, a->rank, a->dp, a->stage, a->tp, a->file, a->first_ns
	};
	const int64_t right[] = {
		b->rank < 0, b->rank, b->dp, b->stage, b->tp, b->file, b->first_ns
	};

	for (size_t i = 0; i < ARRAY_COUNT(left); i++)
		if (left[i] != right[i])
			return left[i] < right[i] ? -1 : 1;
	return 0;
}

static ow_status set_aside(struct ranks_job *job, uint32_t worker, bool copy, struct ow_error *err)
{
	job->workers[worker].left_out = true;
	if (copy ? vec_push(job->mem, job->copies, job->copy_count, job->copy_cap, worker)
		 : vec_push(job->mem, job->others, job->other_count, job->other_cap, worker))
		return OW_OK;
	return error_no_memory(err);
}

/* Sets aside recordings that are copies of another one; copies are neighbours, because they have
 * the same rank. */
static ow_status drop_copies(struct ranks_job *job, struct ow_error *err)
{
	for (size_t i = 0; i < job->worker_count; i++)
		if (job->workers[i].is_double)
			OW_TRY(set_aside(job, (uint32_t)i, true, err));
	for (size_t i = 1; i < job->worker_count; i++)
		for (size_t k = i; k-- > 0 && !job->workers[i].left_out;) {
			if (!is_same_place(&job->workers[k], &job->workers[i]))
				break;
			if (is_copy(&job->workers[k], &job->workers[i]) &&
			    !job->workers[k].left_out) {
				OW_TRY(set_aside(job, (uint32_t)i, true, err));
				break;
			}
		}
	return OW_OK;
}

static void say_mixed(struct ranks_job *job, const char *format, ...) OW_PRINTF(2, 3);
static void say_mixed(struct ranks_job *job, const char *format, ...)
{
	va_list list;

	job->mixed_jobs = true;
	if (*job->mixed_why)
		return;
	va_start(list, format);
	vsnprintf(job->mixed_why, sizeof(job->mixed_why), format, list);
	va_end(list);
}

ow_status ranks_set_aside(struct ranks_job *job, uint32_t worker, struct ow_error *err,
			  const char *why)
{
	const struct worker *w = &job->workers[worker];

	say_mixed(job, "%.*s: %s", (int)MIN(w->path.len, 80u), w->path.ptr, why);
	return set_aside(job, worker, false, err);
}

/* The number of workers that may belong to the same job as this one. */
static size_t company(const struct ranks_job *job, const struct worker *w)
{
	size_t count = 0;

	for (size_t i = 0; i < job->worker_count; i++) {
		const struct worker *other = &job->workers[i];

		count += !other->left_out && other->world == w->world && overlap(w, other);
	}
	return count;
}

/* Keeps the job of the worker that fits together with most others, and sets aside all workers
 * that cannot belong to it. */
static ow_status keep_one_job(struct ranks_job *job, struct ow_error *err)
{
	const struct worker *chosen = NULL;
	size_t most = 0;

	for (size_t i = 0; i < job->worker_count; i++) {
		size_t count = job->workers[i].left_out ? 0 : company(job, &job->workers[i]);

		if (count > most) {
			most = count;
			chosen = &job->workers[i];
		}
	}
	for (size_t i = 0; chosen && i < job->worker_count; i++) {
		struct worker *w = &job->workers[i];

		if (w->left_out || w == chosen)
			continue;
		if (w->world != chosen->world && w->world > 0 && chosen->world > 0) {
			say_mixed(job, "world size %d in %.*s, %d in %.*s", chosen->world,
				  (int)MIN(chosen->path.len, 80u), chosen->path.ptr, w->world,
				  (int)MIN(w->path.len, 80u), w->path.ptr);
			OW_TRY(set_aside(job, (uint32_t)i, false, err));
		} else if (!overlap(w, chosen)) {
			say_mixed(job, "%.*s was recorded at another time than %.*s: another run",
				  (int)MIN(w->path.len, 80u), w->path.ptr,
				  (int)MIN(chosen->path.len, 80u), chosen->path.ptr);
			OW_TRY(set_aside(job, (uint32_t)i, false, err));
		}
	}
	return OW_OK;
}

/* Keeps the longer one of two recordings that have the same rank but are not copies: they come
 * from two jobs, or from two parts of one. */
static ow_status keep_one_of_each(struct ranks_job *job, struct ow_error *err)
{
	size_t last = SIZE_MAX;

	for (size_t i = 0; i < job->worker_count; i++) {
		struct worker *w = &job->workers[i];
		bool known = w->rank >= 0 || w->stage >= 0;

		if (w->left_out || !known)
			continue;
		if (last != SIZE_MAX && is_same_place(&job->workers[last], w)) {
			const struct worker *kept = &job->workers[last];

			say_mixed(job, "%.*s and %.*s are both from rank %d, with different events",
				  (int)MIN(kept->path.len, 80u), kept->path.ptr,
				  (int)MIN(w->path.len, 80u), w->path.ptr, w->rank);
			OW_TRY(set_aside(job, (uint32_t)(w->events > kept->events ? last : i),
					 false, err));
			if (job->workers[i].left_out)
				continue;
		}
		last = i;
	}
	return OW_OK;
}

ow_status ranks_identify(struct ranks_job *job, struct ow_error *err)
{
	qsort(job->workers, job->worker_count, sizeof(*job->workers), by_rank);
	OW_TRY(drop_copies(job, err));
	OW_TRY(keep_one_job(job, err));
	OW_TRY(keep_one_of_each(job, err));
	for (size_t i = 0; i < job->worker_count; i++)
		if (!job->workers[i].left_out)
			job->world = MAX(job->world, job->workers[i].world);
	return OW_OK;
}
