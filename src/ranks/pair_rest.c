/*
 * pair_rest.c: pairs the collectives that pair.c left over because their worker has fewer of them
 * in a step than the others: some were lost (ranks.h). Once the clocks are fitted, each leftover
 * joins the meeting of the same kind that ended at the same time, if only one meeting is possible.
 * Called between clock.c and waits.c.
 */
#include "ranks/ranks.h"

#include "base/vec.h"

#include <stdlib.h>

/* the nearest meeting is accepted if the second nearest is at least this many times as far away */
#define CLEAR_PART 4

struct known {
	uint64_t key;
	/* last start and median end of the meeting's members, on the reference clock */
	int64_t start_ns, end_ns;
	uint32_t meeting;
};

struct found {
	uint32_t meeting;
	struct member member;
};

struct rest {
	struct ranks_job *job;
	struct ow_error *err;
	struct known *known;
	size_t known_count;
	struct found *found;
	size_t found_count, found_cap;
};

static int by_key(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static int by_meeting(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->meeting != y->meeting)
		return x->meeting < y->meeting ? -1 : 1;
	return (x->member.worker > y->member.worker) - (x->member.worker < y->member.worker);
}

static ow_status list_meetings(struct rest *r)
{
	struct ranks_job *job = r->job;
	int64_t *ends = ARENA_ARRAY(&job->arena, int64_t, job->member_count + 1);

	r->known = ARENA_ARRAY(&job->arena, struct known, job->meeting_count + 1);
	if (!r->known || !ends)
		return error_no_memory(r->err);
	for (uint32_t i = 0; i < job->meeting_count; i++) {
		const struct meeting *m = &job->meetings[i];
		struct known one = { .meeting = i, .start_ns = INT64_MIN };
		size_t count = 0;

		for (uint32_t k = 0; k < m->count; k++) {
			const struct member *member = &job->members[m->first + k];
			const struct worker *w = &job->workers[member->worker];
			const struct collective *c = &w->collectives[member->collective];

			if (!w->has_clock || w->many)
				break;
			one.key = ranks_pair_key(w, c);
			one.start_ns = MAX(one.start_ns, worker_time(w, c->start_ns));
			ends[count++] = worker_time(w, c->end_ns);
		}
		if (!count || count < m->count)
			continue;
		one.end_ns = ranks_median(ends, count);
		r->known[r->known_count++] = one;
	}
	if (r->known_count)
		qsort(r->known, r->known_count, sizeof(*r->known), by_key);
	return OW_OK;
}

static bool has_worker(const struct ranks_job *job, uint32_t meeting, uint32_t worker)
{
	const struct meeting *m = &job->meetings[meeting];

	for (uint32_t i = 0; i < m->count; i++)
		if (job->members[m->first + i].worker == worker)
			return true;
	return false;
}

/* The meeting with this key whose end is nearest by far, and which this collective can be part
 * of; NULL if there is none. */
static const struct known *nearest(const struct rest *r, uint64_t key, int64_t start_ns,
				   int64_t end_ns)
{
	const struct known *best = NULL;
	int64_t least = INT64_MAX, second = INT64_MAX;
	size_t low = 0, high = r->known_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (r->known[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < r->known_count && r->known[low].key == key; low++) {
		int64_t away = llabs(end_ns - r->known[low].end_ns);

		if (away < least) {
			second = least;
			least = away;
			best = &r->known[low];
		} else {
			second = MIN(second, away);
		}
	}
	if (!best || least > second / CLEAR_PART || end_ns < best->start_ns ||
	    start_ns > best->end_ns)
		return NULL;
	return best;
}

static ow_status place_collectives(struct rest *r, uint32_t number)
{
	struct ranks_job *job = r->job;
	struct worker *w = &job->workers[number];

	for (uint32_t i = 0; i < w->collective_count; i++) {
		struct collective *c = &w->collectives[i];
		const struct known *one;

		if (c->meeting || c->doubtful || collective_is_direct(c->kind))
			continue;
		one = nearest(r, ranks_pair_key(w, c), worker_time(w, c->start_ns),
			      worker_time(w, c->end_ns));
		if (!one || has_worker(job, one->meeting, number))
			continue;
		if (!vec_push(job->mem, r->found, r->found_count, r->found_cap,
			      (struct found){ one->meeting, { number, i } }))
			return error_no_memory(r->err);
	}
	return OW_OK;
}

/* If two collectives of one worker were assigned to the same meeting, neither is used. */
static void drop_doubles(struct rest *r)
{
	size_t kept = 0;

	for (size_t i = 0, end; i < r->found_count; i = end) {
		for (end = i + 1;
		     end < r->found_count && !by_meeting(&r->found[i], &r->found[end]);)
			end++;
		if (end == i + 1)
			r->found[kept++] = r->found[i];
	}
	r->found_count = kept;
}

static int by_rank(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	return (x->worker > y->worker) - (x->worker < y->worker);
}

/* Builds the member lists of all meetings again, including the collectives that were assigned
 * here. */
static ow_status add_members(struct rest *r)
{
	struct ranks_job *job = r->job;
	struct member *all = NULL;
	size_t count = 0, cap = 0, at = 0;

	if (!vec_reserve(job->mem, all, cap, job->member_count + r->found_count))
		return error_no_memory(r->err);
	for (uint32_t i = 0; i < job->meeting_count; i++) {
		struct meeting *m = &job->meetings[i];
		const struct collective *c;
		size_t first = count;

		for (uint32_t k = 0; k < m->count; k++)
			all[count++] = job->members[m->first + k];
		for (; at < r->found_count && r->found[at].meeting == i; at++) {
			const struct member *member = &r->found[at].member;

			job->workers[member->worker].collectives[member->collective].meeting =
				i + 1;
			job->unpaired -= job->unpaired > 0;
			all[count++] = *member;
		}
		if (count - first > m->count)
			qsort(all + first, count - first, sizeof(*all), by_rank);
		m->first = (uint32_t)first;
		m->count = (uint32_t)(count - first);
		c = &job->workers[all[first].worker].collectives[all[first].collective];
		if (!collective_is_direct(m->kind))
			m->complete = c->group_size > 0
					      ? (uint32_t)c->group_size == m->count
					      : job->world < 0 || job->world == (int64_t)m->count;
	}
	vec_free(job->mem, job->members, job->member_cap);
	job->members = all;
	job->member_count = count;
	job->member_cap = cap;
	return OW_OK;
}

ow_status ranks_pair_rest(struct ranks_job *job, struct ow_error *err)
{
	struct rest r = { .job = job, .err = err };
	ow_status status = job->unpaired ? list_meetings(&r) : OW_OK;

	for (uint32_t i = 0; i < job->worker_count && status == OW_OK && r.known_count; i++)
		if (!job->workers[i].left_out && job->workers[i].has_clock && !job->workers[i].many)
			status = place_collectives(&r, i);
	if (status == OW_OK && r.found_count) {
		qsort(r.found, r.found_count, sizeof(*r.found), by_meeting);
		drop_doubles(&r);
		status = add_members(&r);
	}
	vec_free(job->mem, r.found, r.found_cap);
	return status;
}
