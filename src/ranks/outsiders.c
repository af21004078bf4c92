/*
 * outsiders.c: finds workers that do not belong to the job although their ranks and times fit
 * (ranks.h): they come from another run at the same time, or have the rank of another worker.
 * Collectives of one job end together on the device, so that the time from one to the next is the
 * same on all ranks; between different runs it differs by chance, many times as much. Called
 * between clock.c and waits.c; outsiders are set aside, and the rest is paired again.
 */
#include "ranks/ranks.h"

#include <math.h>
#include <stdlib.h>

/* a worker is an outsider if its spread is this many times the median of all workers */
#define LEAST_RATIO 8
#define LEAST_NS 10000.0
#define LEAST_MEETINGS 6
/* a group needs three members: of two that differ, either may be the outsider */
#define LEAST_MEMBERS 3

/* The time between two collectives on one worker, less the median of that time over all members. */
struct residual {
	uint32_t worker;
	double ns;
};

/* One collective of a group, with the start on its first member, for sorting. */
struct entry {
	uint64_t group;
	int64_t at_ns;
	uint32_t meeting;
};

static int by_worker(const void *a, const void *b)
{
	const struct residual *x = a, *y = b;

	if (x->worker != y->worker)
		return x->worker < y->worker ? -1 : 1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

static int by_group(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

static const struct collective *member_end(const struct ranks_job *job, const struct meeting *m,
					   uint32_t i)
{
	const struct member *member = &job->members[m->first + i];

	return &job->workers[member->worker].collectives[member->collective];
}

static bool same_members(const struct ranks_job *job, const struct meeting *a,
			 const struct meeting *b)
{
	for (uint32_t i = 0; i < a->count && a->count == b->count; i++)
		if (job->members[a->first + i].worker != job->members[b->first + i].worker)
			return false;
	return a->count == b->count;
}

static size_t list_entries(const struct ranks_job *job, struct entry *out)
{
	size_t count = 0;

	for (uint32_t i = 0; i < job->meeting_count; i++) {
		const struct meeting *m = &job->meetings[i];
		const struct worker *w = &job->workers[job->members[m->first].worker];

		if (collective_is_mutual(m->kind) && m->count >= LEAST_MEMBERS && w->has_device &&
		    !w->many)
			out[count++] = (struct entry){ m->group ^ job->members[m->first].worker,
						       member_end(job, m, 0)->end_ns, i };
	}
	if (count)
		qsort(out, count, sizeof(*out), by_group);
	return count;
}

/* Adds the residuals of all members for two collectives of a group. Each worker's clock cancels
 * out, because only differences of its own times are used. */
static size_t add_residuals(const struct ranks_job *job, const struct meeting *from,
			    const struct meeting *to, struct residual *out, double *scratch)
{
	double middle;

	if (!same_members(job, from, to))
		return 0;
	for (uint32_t i = 0; i < to->count; i++) {
		out[i] = (struct residual){ job->members[to->first + i].worker,
					    (double)(member_end(job, to, i)->end_ns -
						     member_end(job, from, i)->end_ns) };
		scratch[i] = out[i].ns;
	}
	middle = ranks_median_real(scratch, to->count);
	for (uint32_t i = 0; i < to->count; i++)
		out[i].ns -= middle;
	return to->count;
}

/* Compares collectives that are about a step apart, so that random differences add up. */
static size_t all_residuals(const struct ranks_job *job, const struct entry *entries, size_t count,
			    struct residual *out, double *scratch)
{
	size_t found = 0;

	for (size_t first = 0, end; first < count; first = end) {
		size_t apart;

		for (end = first; end < count && entries[end].group == entries[first].group;)
			end++;
		apart = MAX((end - first) / MAX(job->step_count, 1), 1);
		for (size_t i = first; i + apart < end; i++)
			found += add_residuals(job, &job->meetings[entries[i].meeting],
					       &job->meetings[entries[i + apart].meeting],
					       out + found, scratch);
	}
	return found;
}

/* The median distance of sorted residuals from their median. */
static double spread_of(const struct residual *r, size_t count, double *scratch)
{
	double middle = (r[(count - 1) / 2].ns + r[count / 2].ns) / 2;

	for (size_t i = 0; i < count; i++)
		scratch[i] = fabs(r[i].ns - middle);
	return ranks_median_real(scratch, count);
}

/* Fills `spread` with the spread of each worker, NaN if unknown; returns the median of the known
 * ones. */
static double find_spreads(const struct ranks_job *job, struct residual *all, size_t count,
			   double *spread, double *scratch, size_t *known)
{
	*known = 0;
	for (size_t i = 0; i < job->worker_count; i++)
		spread[i] = NAN;
	if (count)
		qsort(all, count, sizeof(*all), by_worker);
	for (size_t first = 0, end; first < count; first = end) {
		for (end = first; end < count && all[end].worker == all[first].worker;)
			end++;
		if (end - first >= LEAST_MEETINGS)
			spread[all[first].worker] = spread_of(all + first, end - first, scratch);
	}
	for (size_t i = 0; i < job->worker_count; i++)
		if (!isnan(spread[i]))
			scratch[(*known)++] = spread[i];
	return ranks_median_real(scratch, *known);
}

static ow_status drop_drifting(struct ranks_job *job, bool *found, struct ow_error *err)
{
	struct residual *all = ARENA_ARRAY(&job->arena, struct residual, job->member_count + 1);
	struct entry *entries = ARENA_ARRAY(&job->arena, struct entry, job->meeting_count + 1);
	double *scratch =
		ARENA_ARRAY(&job->arena, double, job->member_count + job->worker_count + 1);
	double *spread = ARENA_ARRAY(&job->arena, double, job->worker_count + 1), usual;
	size_t count, known, apart = 0;

	if (!all || !scratch || !spread || !entries)
		return error_no_memory(err);
	count = all_residuals(job, entries, list_entries(job, entries), all, scratch);
	usual = find_spreads(job, all, count, spread, scratch, &known);
	for (size_t i = 0; i < job->worker_count; i++)
		apart += spread[i] > LEAST_RATIO * usual && spread[i] > LEAST_NS;
	for (uint32_t i = 0; i < job->worker_count && known >= 3 && 2 * apart < known; i++)
		if (spread[i] > LEAST_RATIO * usual && spread[i] > LEAST_NS) {
			*found = true;
			OW_TRY(ranks_set_aside(job, i, err,
					       "its collectives do not end when those of the other "
					       "ranks do: another run at the same time"));
		}
	return OW_OK;
}

ow_status ranks_outsiders(struct ranks_job *job, bool *found, struct ow_error *err)
{
	size_t kept = 0, apart = 0;

	*found = false;
	for (size_t i = 0; i < job->worker_count; i++) {
		struct worker *w = &job->workers[i];

		if (!w->outsider && w->strange > w->collective_count / 2)
			w->outsider = "its collectives are not those of its rank: wrong rank or "
				      "another job";
	}
	for (size_t i = 0; i < job->worker_count; i++) {
		kept += !job->workers[i].left_out;
		apart += !job->workers[i].left_out && job->workers[i].outsider;
	}
	for (uint32_t i = 0; i < job->worker_count && 2 * apart < kept; i++)
		if (!job->workers[i].left_out && job->workers[i].outsider) {
			*found = true;
			OW_TRY(ranks_set_aside(job, i, err, job->workers[i].outsider));
		}
	return *found ? OW_OK : drop_drifting(job, found, err);
}
