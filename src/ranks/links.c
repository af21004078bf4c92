/*
 * links.c: finds groups of ranks that move data more slowly than groups like them (ranks.h). Groups
 * are alike when they have equally many members at equal distances on equally many hosts; the same
 * collective of the same size should take equally long in all of them. A slow rank does not make
 * its group slow: only the time after the last member has arrived counts. Called after waits.c;
 * straggler.c replays the job with slow groups as fast as the others.
 */
#include "ranks/ranks.h"

#include "base/vec.h"

#include <math.h>
#include <stdlib.h>

#define LEAST_COUNT 3 /* collectives that a group needs to be compared */
/* a group is slow from this ratio on, when it is compared with two groups or more */
#define LEAST_RATIO 1.25
/* a group is slow from this ratio on, when it is compared with one group */
#define LEAST_OF_TWO 1.5
#define PERSISTENT_PART 0.7

/* One collective of a group: how long its transfer took. */
struct use {
	/* alike: hash that all groups of the same layout share; link: hash of the group itself */
	uint64_t alike, link;
	uint32_t meeting;
	double ns;
};

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdu;

	return h ^ h >> 33;
}

static const struct worker *member_worker(const struct ranks_job *job, const struct meeting *m,
					  uint32_t i)
{
	return &job->workers[job->members[m->first + i].worker];
}

static const struct collective *member_collective(const struct ranks_job *job,
						  const struct meeting *m, uint32_t i)
{
	const struct member *member = &job->members[m->first + i];

	return &job->workers[member->worker].collectives[member->collective];
}

/* Hash of a group's layout: the distances between its members, which are sorted by rank, and the
 * places at which another host begins. */
static uint64_t layout_of(const struct ranks_job *job, const struct meeting *m)
{
	uint64_t key = mix(m->count, 5);

	for (uint32_t i = 1; i < m->count; i++) {
		const struct worker *before = member_worker(job, m, i - 1),
				    *w = member_worker(job, m, i);

		key = mix(key, (uint64_t)(w->rank - before->rank));
		key = mix(key, !str_eq(w->host, before->host));
	}
	return key;
}

static bool is_usable(const struct ranks_job *job, const struct meeting *m)
{
	if (m->rejected || !m->complete || m->last_ns == TIME_UNKNOWN || m->step == NO_STEP ||
	    m->count < 2 || !(collective_is_mutual(m->kind) || collective_is_direct(m->kind)))
		return false;
	for (uint32_t i = 0; i < m->count; i++) {
		const struct worker *w = member_worker(job, m, i);

		if (w->rank < 0 || w->many || w->task.len)
			return false;
	}
	return true;
}

/* The member with the shortest collective came last: it did not wait, so its time is the time of
 * the transfer. */
static struct use use_of(const struct ranks_job *job, uint32_t number)
{
	const struct meeting *m = &job->meetings[number];
	struct use u = { .link = 1, .meeting = number, .ns = HUGE_VAL };

	for (uint32_t i = 0; i < m->count; i++) {
		const struct collective *c = member_collective(job, m, i);

		u.link = mix(u.link, (uint64_t)member_worker(job, m, i)->rank);
		u.ns = fmin(u.ns, (double)(c->end_ns - c->start_ns));
	}
	u.alike =
		mix(mix(layout_of(job, m), m->kind), (uint64_t)member_collective(job, m, 0)->bytes);
	/* a point-to-point link may be slow in one direction only */
	if (collective_is_direct(m->kind)) {
		uint64_t up = member_collective(job, m, 0)->kind == COLLECTIVE_SEND;

		u.link = mix(u.link, up);
		u.alike = mix(u.alike, up);
	}
	return u;
}

static int by_link(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	if (x->alike != y->alike)
		return x->alike < y->alike ? -1 : 1;
	if (x->link != y->link)
		return x->link < y->link ? -1 : 1;
	return (x->meeting > y->meeting) - (x->meeting < y->meeting);
}

/* The range of one group's collectives within the list of all groups of the same layout. */
struct span_of_link {
	size_t first, end;
	double median_ns;
};

static double median_of(const struct use *uses, size_t first, size_t end, double *scratch)
{
	for (size_t i = first; i < end; i++)
		scratch[i - first] = uses[i].ns;
	return ranks_median_real(scratch, end - first);
}

/* The ratio to the median of the other groups from which a group counts as slow. */
static double limit_of(const struct span_of_link *links, size_t count, size_t one, double *scratch,
		       double *others)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (i != one)
			scratch[n++] = links[i].median_ns;
	*others = ranks_median_real(scratch, n);
	if (n < 2)
		return LEAST_OF_TWO;
	for (size_t i = 0; i < n; i++)
		scratch[i] = fabs(scratch[i] - *others);
	return fmax(LEAST_RATIO, 1 + 5 * 1.4826 * ranks_median_real(scratch, n) / *others);
}

static ow_status add_slow(struct ranks_job *job, const struct use *uses,
			  const struct span_of_link *link, double others, size_t alike,
			  struct ow_error *err)
{
	const struct meeting *m = &job->meetings[uses[link->first].meeting];
	struct slow_link slow = { .meeting = uses[link->first].meeting,
				  .kind = m->kind,
				  .bytes = member_collective(job, m, 0)->bytes,
				  .alike = alike - 1,
				  .median_ns = link->median_ns,
				  .others_ns = others };

	for (size_t i = link->first; i < link->end; i++)
		job->meetings[uses[i].meeting].link_scale = (float)(others / link->median_ns);
	return vec_push(job->mem, job->slow_links, job->slow_link_count, job->slow_link_cap, slow)
		       ? OW_OK
		       : error_no_memory(err);
}

/* Compares groups [0, count), which have the same layout. If the slow ones are not fewer than
 * the others, none counts as slow: then there are two kinds of groups. */
static ow_status compare_links(struct ranks_job *job, const struct use *uses,
			       const struct span_of_link *links, size_t count, double *scratch,
			       struct ow_error *err)
{
	size_t slow = 0;

	for (unsigned pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < count; i++) {
			double others, limit = limit_of(links, count, i, scratch, &others);
			size_t above = 0, all = links[i].end - links[i].first;

			if (!(others > 0) || !(links[i].median_ns > limit * others))
				continue;
			for (size_t k = links[i].first; k < links[i].end; k++)
				above += uses[k].ns > limit * others;
			if (all < LEAST_COUNT || (double)above < PERSISTENT_PART * (double)all)
				continue;
			if (!pass)
				slow++;
			else if (2 * slow <= count)
				OW_TRY(add_slow(job, uses, &links[i], others, count, err));
		}
	return OW_OK;
}

static ow_status compare_all(struct ranks_job *job, const struct use *uses, size_t count,
			     struct ow_error *err)
{
	struct span_of_link *links = ARENA_ARRAY(&job->arena, struct span_of_link, count + 1);
	double *scratch = ARENA_ARRAY(&job->arena, double, count + 1);

	if (!links || !scratch)
		return error_no_memory(err);
	for (size_t first = 0, end; first < count; first = end) {
		size_t n = 0;

		for (end = first; end < count && uses[end].alike == uses[first].alike; end++) {
			if (end == first || uses[end].link != uses[end - 1].link)
				links[n++].first = end;
			links[n - 1].end = end + 1;
		}
		for (size_t i = 0; i < n && n > 1; i++)
			links[i].median_ns = median_of(uses, links[i].first, links[i].end, scratch);
		if (n > 1)
			OW_TRY(compare_links(job, uses, links, n, scratch, err));
	}
	return OW_OK;
}

ow_status ranks_links(struct ranks_job *job, struct ow_error *err)
{
	struct use *uses = ARENA_ARRAY(&job->arena, struct use, job->meeting_count + 1);
	size_t count = 0;

	if (!uses)
		return error_no_memory(err);
	for (size_t i = 0; i < job->meeting_count; i++)
		if (is_usable(job, &job->meetings[i]))
			uses[count++] = use_of(job, (uint32_t)i);
	if (count)
		qsort(uses, count, sizeof(*uses), by_link);
	return compare_all(job, uses, count, err);
}
