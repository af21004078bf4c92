/*
 * pair.c: finds which collectives of different workers are the same collective (struct meeting): by
 * group and sequence number if both are recorded, else by group, step, operation and size. The k-th
 * is paired with the k-th only among workers that have equally many; the collectives of other
 * workers, which lack some, are paired later by time (pair_rest.c). Sends are paired with the
 * receives of the other side. In a file that holds the whole job without names of groups, the
 * workers that start an operation together are its group. Pairs that contradict the clocks are
 * rejected later (clock.c).
 */
#include "ranks/ranks.h"

#include "base/vec.h"

#include <stdlib.h>

#define TOGETHER_NS 20000
/* starts are together if they differ by at most this share of the duration */
#define TOGETHER_PART 0.005
#define TOGETHER_MOST 0.8 /* a grouping is accepted if this share of its groups start together */

struct item {
	uint64_t key;
	uint32_t worker, collective;
	uint64_t look; /* hash of kind and size: equal on all members */
};

struct pairing {
	struct ranks_job *job;
	struct ow_error *err;
	struct item *items;
	size_t count, cap;
	const struct item **members; /* members of one meeting; has room for all workers */
};

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdu;

	return h ^ h >> 33;
}

static int by_key(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->worker != y->worker)
		return x->worker < y->worker ? -1 : 1;
	return (x->collective > y->collective) - (x->collective < y->collective);
}

/* Whether the recorded size of this kind of collective is the same on all ranks. */
static bool has_one_size(enum collective_kind kind)
{
	return kind == COLLECTIVE_ALL_REDUCE || kind == COLLECTIVE_BROADCAST ||
	       kind == COLLECTIVE_BARRIER || collective_is_direct(kind);
}

uint64_t ranks_pair_look(const struct collective *c)
{
	uint64_t kind = collective_is_direct(c->kind) ? COLLECTIVE_SEND : c->kind;

	return mix(kind, has_one_size(c->kind) ? (uint64_t)c->bytes : 0);
}

uint64_t ranks_pair_key(const struct worker *w, const struct collective *c)
{
	uint64_t key = mix(c->group, 1);

	if (collective_is_direct(c->kind) && w->rank >= 0 && c->peer >= 0) {
		bool sends = c->kind == COLLECTIVE_SEND;

		key = mix(key, mix((uint64_t)(sends ? w->rank : c->peer),
				   (uint64_t)(sends ? c->peer : w->rank)));
	}
	if (c->group && c->seq >= 0)
		return mix(key, mix((uint64_t)c->seq, collective_is_direct(c->kind) ? 3 : 2));
	return mix(mix(key, ranks_pair_look(c)), (uint64_t)c->step);
}

static ow_status add_meeting(struct pairing *p, const struct item *const *members, size_t count)
{
	struct ranks_job *job = p->job;
	struct meeting m = { .first = (uint32_t)job->member_count,
			     .count = (uint32_t)count,
			     .last_ns = TIME_UNKNOWN,
			     .step = NO_STEP };

	for (size_t i = 0; i < count; i++) {
		struct collective *c =
			&job->workers[members[i]->worker].collectives[members[i]->collective];

		if (!i) {
			m.kind = c->kind == COLLECTIVE_RECV ? COLLECTIVE_SEND : c->kind;
			m.group = c->group;
			m.complete = c->group_size > 0
					     ? (size_t)c->group_size == count
					     : job->world < 0 || (size_t)job->world == count;
		}
		if (m.step == NO_STEP)
			m.step = c->step;
		c->meeting = (uint32_t)job->meeting_count + 1;
		if (!vec_push(job->mem, job->members, job->member_count, job->member_cap,
			      (struct member){ members[i]->worker, members[i]->collective }))
			return error_no_memory(p->err);
	}
	if (collective_is_direct(m.kind) && count == 2)
		m.complete = true;
	return vec_push(job->mem, job->meetings, job->meeting_count, job->meeting_cap, m)
		       ? OW_OK
		       : error_no_memory(p->err);
}

/* Counts, for each worker, collectives that differ in kind or size from those of most members of
 * their group. */
static void count_strange(struct pairing *p, const struct item *const *members, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t alike = 0;

		for (size_t k = 0; k < count; k++)
			alike += members[k]->look == members[i]->look;
		if (alike == 1 && count > 2)
			p->job->workers[members[i]->worker].strange++;
	}
}

/* Whether more workers have this key than its group has members: without names, several groups
 * share sequence numbers. */
static bool is_of_several_groups(const struct pairing *p, size_t first, size_t end)
{
	size_t workers = 1;

	for (size_t i = first + 1; i < end; i++)
		workers += p->items[i].worker != p->items[i - 1].worker;
	for (size_t i = first; i < end; i++) {
		const struct item *item = &p->items[i];
		int32_t size =
			p->job->workers[item->worker].collectives[item->collective].group_size;

		if (size > 0 && (size_t)size < workers)
			return true;
	}
	return false;
}

/* The end of the items that belong to the same worker as item `first`. */
static size_t worker_end(const struct pairing *p, size_t first, size_t end)
{
	size_t i = first;

	while (i < end && p->items[i].worker == p->items[first].worker)
		i++;
	return i;
}

/* Moves the items of workers that have fewer than the others to the end, and returns the index of
 * the first of them: these workers lack some collectives, and only times show which (pair_rest.c).
 * If most workers have fewer, the others may have some twice, and nothing is paired.
 */
static size_t keep_most(struct pairing *p, size_t first, size_t end, size_t *each, size_t *workers)
{
	size_t all = 0, kept = first, next;

	*each = *workers = 0;
	for (size_t i = first; i < end; i = next, all++) {
		next = worker_end(p, i, end);
		*each = MAX(*each, next - i);
	}
	for (size_t i = first; i < end; i = next) {
		next = worker_end(p, i, end);
		if (next - i != *each)
			continue;
		memmove(&p->items[kept], &p->items[i], (next - i) * sizeof(*p->items));
		kept += next - i;
		++*workers;
	}
	if (*workers < all && 2 * *workers <= all)
		*workers = 0;
	return kept;
}

/* Pairs items [first, end), which share one key: all workers have equally many, except for a few
 * that lack some. */
static ow_status pair_key(struct pairing *p, size_t first, size_t end)
{
	const struct item **members = p->members;
	size_t each, workers;

	if (worker_end(p, first, end) == end)
		return OW_OK;
	if (is_of_several_groups(p, first, end)) {
		p->job->unpaired += end - first;
		return OW_OK;
	}
	p->job->unpaired += end - first;
	end = keep_most(p, first, end, &each, &workers);
	if (workers < 2)
		return OW_OK;
	p->job->unpaired -= end - first;
	for (size_t k = 0; k < each; k++) {
		bool alike = true;

		for (size_t w = 0; w < workers; w++) {
			members[w] = &p->items[first + w * each + k];
			alike &= members[w]->look == members[0]->look;
		}
		if (alike) {
			OW_TRY(add_meeting(p, members, workers));
		} else {
			count_strange(p, members, workers);
			p->job->unpaired += workers;
		}
	}
	return OW_OK;
}

static ow_status pair_named(struct pairing *p)
{
	struct ranks_job *job = p->job;

	p->count = 0;
	for (uint32_t w = 0; w < job->worker_count; w++) {
		const struct worker *worker = &job->workers[w];

		for (uint32_t i = 0; i < worker->collective_count && !worker->left_out; i++) {
			const struct collective *c = &worker->collectives[i];

			if (worker->stage >= 0 && worker->rank < 0)
				break; /* the worker comes from a file with the whole job */
			if (c->doubtful && (!c->group || c->seq < 0)) {
				job->unpaired++;
				continue;
			}
			if (!vec_push(job->mem, p->items, p->count, p->cap,
				      (struct item){ ranks_pair_key(worker, c), w, i,
						     ranks_pair_look(c) }))
				return error_no_memory(p->err);
		}
	}
	if (p->count)
		qsort(p->items, p->count, sizeof(*p->items), by_key);
	for (size_t first = 0, end; first < p->count; first = end) {
		for (end = first + 1; end < p->count && p->items[end].key == p->items[first].key;
		     end++)
			;
		OW_TRY(pair_key(p, first, end));
	}
	return OW_OK;
}

enum grouping { GROUP_ALL, GROUP_PIPELINE, GROUP_DATA, GROUPINGS };

static const struct collective *collective_of(const struct ranks_job *job, const struct item *i)
{
	return &job->workers[i->worker].collectives[i->collective];
}

static uint64_t group_key(const struct ranks_job *job, const struct item *item,
			  enum grouping grouping)
{
	const struct worker *w = &job->workers[item->worker];
	uint64_t key = mix(item->look, w->file);

	if (grouping == GROUP_PIPELINE)
		return mix(key, (uint64_t)(w->dp + 1) << 20 | (uint64_t)(w->tp + 1));
	return grouping == GROUP_DATA
		       ? mix(key, (uint64_t)(w->stage + 1) << 20 | (uint64_t)(w->tp + 1))
		       : key;
}

/* Whether the collectives in items [first, end) start at nearly the same time. */
static bool is_together(const struct ranks_job *job, const struct item *items, size_t first,
			size_t end)
{
	int64_t low = INT64_MAX, high = INT64_MIN, least = INT64_MAX;

	for (size_t i = first; i < end; i++) {
		const struct collective *c = collective_of(job, &items[i]);

		low = MIN(low, c->start_ns);
		high = MAX(high, c->start_ns);
		least = MIN(least, c->end_ns - c->start_ns);
	}
	return (double)(high - low) <= TOGETHER_NS + TOGETHER_PART * (double)least;
}

/* Sorts items [first, end), which have one name, into the groups of a grouping; returns the
 * share of the groups whose members start together. */
static double try_grouping(struct pairing *p, size_t first, size_t end, enum grouping grouping)
{
	size_t groups = 0, good = 0;

	for (size_t i = first; i < end; i++)
		p->items[i].key = group_key(p->job, &p->items[i], grouping);
	qsort(p->items + first, end - first, sizeof(*p->items), by_key);
	for (size_t a = first, b; a < end; a = b) {
		for (b = a + 1; b < end && p->items[b].key == p->items[a].key; b++)
			;
		if (b - a < 2)
			continue;
		groups++;
		good += is_together(p->job, p->items, a, b);
	}
	return groups ? (double)good / (double)groups : 0;
}

static int by_name(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

static ow_status add_groups(struct pairing *p, size_t first, size_t end)
{
	const struct item **members = p->members;

	for (size_t a = first, b; a < end; a = b) {
		for (b = a;
		     b < end && p->items[b].key == p->items[a].key && b - a < p->job->worker_count;
		     b++)
			members[b - a] = &p->items[b];
		if (b - a >= 2)
			OW_TRY(add_meeting(p, members, b - a));
	}
	return OW_OK;
}

/* Key of a message between stages: the k-th forward send of a step on stage s has the same key
 * as the k-th forward receive on stage s + 1. */
static uint64_t direct_key(const struct worker *w, const struct collective *c, uint32_t ordinal)
{
	int64_t from = w->stage;

	if (c->kind == COLLECTIVE_RECV)
		from += c->forward == 2 ? 1 : -1;
	return mix(mix(mix((uint64_t)c->step, ordinal), mix(c->forward, (uint64_t)(from + 2))),
		   mix((uint64_t)(w->dp + 1) << 20 | (uint64_t)(w->tp + 1), w->file));
}

/* The index of a collective among those with the same name in the same step; collectives are
 * sorted by time. */
static uint32_t ordinal_of(struct worker *w, size_t at)
{
	const struct collective *c = &w->collectives[at];

	for (size_t i = at; i-- > 0 && at - i < 4096;) {
		const struct collective *before = &w->collectives[i];

		if (before->step != c->step)
			break;
		if (before->name == c->name)
			return before->ordinal + 1;
	}
	return 0;
}

static ow_status pair_together(struct pairing *p)
{
	struct ranks_job *job = p->job;

	p->count = 0;
	for (unsigned sends = 2; sends-- > 0;) {
		for (uint32_t n = 0; n < job->worker_count; n++) {
			struct worker *w = &job->workers[n];

			if (w->stage < 0 || w->rank >= 0 || w->left_out)
				continue;
			for (uint32_t i = 0; i < w->collective_count; i++) {
				struct collective *c = &w->collectives[i];
				struct item item = { c->name, n, i, 0 };

				c->ordinal = ordinal_of(w, i);
				item.look = mix(mix(c->name, (uint64_t)c->step), c->ordinal);
				if (collective_is_direct(c->kind) != !!sends ||
				    (sends && !c->forward))
					continue;
				if (sends)
					item.key = direct_key(w, c, c->ordinal);
				if (!vec_push(job->mem, p->items, p->count, p->cap, item))
					return error_no_memory(p->err);
			}
		}
		if (sends) {
			if (p->count)
				qsort(p->items, p->count, sizeof(*p->items), by_key);
			OW_TRY(add_groups(p, 0, p->count));
			p->count = 0;
		}
	}
	if (p->count)
		qsort(p->items, p->count, sizeof(*p->items), by_name);
	for (size_t first = 0, end; first < p->count; first = end) {
		enum grouping grouping;
		uint64_t name = p->items[first].key;

		for (end = first; end < p->count && p->items[end].key == name; end++)
			;
		for (grouping = GROUP_ALL; grouping < GROUPINGS; grouping++)
			if (try_grouping(p, first, end, grouping) >= TOGETHER_MOST)
				break;
		if (grouping < GROUPINGS)
			OW_TRY(add_groups(p, first, end));
	}
	return OW_OK;
}

ow_status ranks_pair(struct ranks_job *job, struct ow_error *err)
{
	size_t room = (job->worker_count + 1) * sizeof(const struct item *);
	struct pairing p = { .job = job, .err = err, .members = mem_alloc(job->mem, room) };
	ow_status status = p.members ? pair_named(&p) : error_no_memory(err);

	if (status == OW_OK)
		status = pair_together(&p);
	vec_free(job->mem, p.items, p.cap);
	mem_free(job->mem, p.members, p.members ? room : 0);
	return status;
}
