/*
 * peers.c: finds the workers that are compared with each other (judge.h): peers have the same role,
 * that is the same pipeline stage or the same collectives, or are parameter servers, and are not on a host that is slow as a
 * whole. straggler.c measures a worker against the median own work of its peers.
 */
#include "ranks/judge.h"

#include <math.h>
#include <stdlib.h>

#define HOST_PART 0.8 /* a host is slow as a whole if this share of its workers is slow */

/* Hash of the kinds of collectives in a usual step and of the count of each kind: equal for
 * workers with the same role. A recording may lack some collectives in one step. */
static uint64_t signature(const struct judge *j, size_t worker)
{
	const struct worker *w = &j->job->workers[worker];
	uint64_t hash = 1;

	for (unsigned kind = 0; kind < COLLECTIVE_KINDS; kind++) {
		for (size_t s = 0; s < j->job->step_count; s++)
			j->scratch[s] = 0;
		for (size_t i = 0, s = 0; i < w->collective_count; i++) {
			const struct collective *c = &w->collectives[i];

			if (c->kind != kind || c->step == NO_STEP)
				continue;
			while (s < j->job->step_count && j->job->step_numbers[s] < c->step)
				s++;
			while (s > 0 &&
			       (s == j->job->step_count || j->job->step_numbers[s] > c->step))
				s--;
			j->scratch[s] += j->job->step_numbers[s] == c->step;
		}
		hash = hash * 31 + (uint64_t)ranks_median_real(j->scratch, j->job->step_count);
	}
	return hash;
}

void judge_find_roles(struct judge *j)
{
	uint64_t *keys = ARENA_ARRAY(&j->arena, uint64_t, j->job->worker_count + 1);
	uint32_t distinct = 0;
	size_t judged = 0;

	for (size_t i = 0; keys && i < j->job->worker_count; i++) {
		const struct worker *w = &j->job->workers[i];
		uint64_t key;
		uint32_t k = 0;

		if (!is_judged(w))
			continue;
		if (w->task.len)
			key = w->server;
		else
			key = w->stage >= 0 ? (uint64_t)w->stage + 2
					    : signature(j, i) | (uint64_t)1 << 63;
		while (k < distinct && keys[k] != key)
			k++;
		keys[k] = key;
		distinct = MAX(distinct, k + 1);
		j->role[i] = k + 1;
		judged++;
	}
	for (size_t i = 0; i < j->job->worker_count && 2 * (size_t)distinct > judged; i++)
		if (j->job->workers[i].stage < 0 && !j->job->workers[i].task.len)
			j->role[i] = distinct +
				     1; /* too many different roles: all workers get the same one */
	j->role_count = distinct + 1;
}

int peer_compare(const void *a, const void *b)
{
	const struct peer *x = a, *y = b;

	if (x->role != y->role)
		return x->role < y->role ? -1 : 1;
	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return (x->worker > y->worker) - (x->worker < y->worker);
}

/* Lists the own work in a step of all workers that can be peers, sorted by role and value. */
static size_t list_peers(struct judge *j, size_t step)
{
	size_t count = 0;

	for (size_t i = 0; i < j->job->worker_count; i++) {
		const struct worker_step *s = step_at(j, i, step);

		if (s && is_judged(&j->job->workers[i]) && !j->apart[i] &&
		    !j->job->workers[i].overlaps)
			j->peers[count++] =
				(struct peer){ j->role[i], (uint32_t)i, (double)s->own_ns };
	}
	if (count)
		qsort(j->peers, count, sizeof(*j->peers), peer_compare);
	return count;
}

size_t peers_of_role(const struct peer *peers, size_t count, uint32_t role, size_t *end)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (peers[middle].role < role)
			low = middle + 1;
		else
			high = middle;
	}
	for (*end = low; *end < count && peers[*end].role == role;)
		++*end;
	return low;
}

double peers_median(const struct peer *peers, size_t first, size_t end, size_t skip)
{
	bool skips = skip >= first && skip < end;
	size_t count = end - first - skips, low, high;

	if (!count)
		return NAN;
	low = first + (count - 1) / 2;
	high = first + count / 2;
	low += skips && low >= skip;
	high += skips && high >= skip;
	return (peers[low].value + peers[high].value) / 2;
}

static void compare_role(struct judge *j, size_t step, const struct peer *peers, size_t first,
			 size_t end, uint32_t worker)
{
	struct worker_step *own =
		worker_step_of(&j->job->workers[worker], j->job->step_numbers[step]);
	size_t at = first;
	double others;

	while (at < end && peers[at].worker != worker)
		at++;
	others = peers_median(peers, first, end, at);
	if (!own)
		return;
	if (j->job->workers[worker].overlaps)
		others = NAN; /* its own work of one step is not separate from that of the next */
	if (others > 0)
		j->excess[worker * j->job->step_count + step] = (double)own->own_ns / others - 1;
	own->others_ns = others > 0 ? llround(others) : TIME_UNKNOWN;
}

void judge_measure(struct judge *j)
{
	size_t steps = j->job->step_count;

	for (size_t i = 0; i < j->job->worker_count * steps; i++)
		j->excess[i] = NAN;
	for (size_t s = 0; s < steps; s++) {
		size_t count = list_peers(j, s), end;

		for (uint32_t i = 0; i < j->job->worker_count; i++) {
			size_t first = peers_of_role(j->peers, count, j->role[i], &end);

			if (is_judged(&j->job->workers[i]))
				compare_role(j, s, j->peers, first, end, i);
		}
	}
}

static bool number_hosts(struct judge *j)
{
	const struct ranks_job *job = j->job;
	size_t *first = ARENA_ARRAY(&j->arena, size_t, job->worker_count + 1);

	for (size_t i = 0; first && i < job->worker_count; i++) {
		uint32_t k = 0;

		if (!is_judged(&job->workers[i]))
			continue;
		if (!job->workers[i].host.len)
			return false;
		while (k < j->host_count &&
		       !str_eq(job->workers[first[k]].host, job->workers[i].host))
			k++;
		first[k] = i;
		j->host[i] = k;
		j->host_count = MAX(j->host_count, k + 1);
	}
	return first && j->host_count > 1;
}

/* The median own work for each host and role in a step, sorted by role and value; the field
 * `worker` of an entry is the number of the host. */
static size_t host_medians(struct judge *j, size_t step, struct peer *out)
{
	size_t count = list_peers(j, step), hosts = 0;

	for (size_t i = 0; i < count; i++)
		j->peers[i].role = j->peers[i].role * j->host_count + j->host[j->peers[i].worker];
	if (count)
		qsort(j->peers, count, sizeof(*j->peers), peer_compare);
	for (size_t first = 0, end; first < count; first = end) {
		for (end = first; end < count && j->peers[end].role == j->peers[first].role; end++)
			;
		out[hosts++] = (struct peer){ j->peers[first].role / j->host_count,
					      j->peers[first].role % j->host_count,
					      peers_median(j->peers, first, end, SIZE_MAX) };
	}
	if (hosts)
		qsort(out, hosts, sizeof(*out), peer_compare);
	return hosts;
}

/* Counts, for each host in a step, its workers, and its workers with more own work than the
 * median of the other hosts. */
static void compare_hosts(struct judge *j, size_t step, struct peer *medians, uint32_t *all,
			  uint32_t *slow)
{
	size_t count = host_medians(j, step, medians), end;

	for (size_t i = 0; i < j->job->worker_count; i++) {
		const struct worker_step *s = step_at(j, i, step);
		size_t first, at;
		double others;

		if (!s || !is_judged(&j->job->workers[i]))
			continue;
		first = peers_of_role(medians, count, j->role[i], &end);
		for (at = first; at < end && medians[at].worker != j->host[i];)
			at++;
		others = peers_median(medians, first, end, at);
		all[j->host[i]]++;
		slow[j->host[i]] += (double)s->own_ns > (1 + LEAST_EXCESS) * others;
	}
}

/*
 * Finds hosts of which nearly all workers do more own work than those of the other hosts, step
 * after step. Their workers are compared with other hosts only: compared with each other they would
 * look normal.
 */
ow_status judge_find_hosts(struct judge *j)
{
	size_t steps = j->job->step_count, workers = j->job->worker_count, slow_hosts = 0;
	struct peer *medians = ARENA_ARRAY(&j->arena, struct peer, workers + 1);
	uint32_t *counts = ARENA_ARRAY(&j->arena, uint32_t, 4 * (workers + 1));
	uint32_t *all = counts, *slow, *judged, *slow_steps;

	if (!medians || !counts)
		return error_no_memory(j->err);
	slow = counts + workers + 1;
	judged = slow + workers + 1;
	slow_steps = judged + workers + 1;
	if (!number_hosts(j) || steps < STEPS_LEAST)
		return OW_OK;
	for (size_t s = 0; s < steps; s++) {
		memset(counts, 0, 2 * (workers + 1) * sizeof(*counts));
		compare_hosts(j, s, medians, all, slow);
		for (uint32_t h = 0; h < j->host_count; h++) {
			judged[h] += all[h] >= 2;
			slow_steps[h] += all[h] >= 2 && slow[h] >= HOST_PART * all[h];
		}
	}
	for (uint32_t h = 0; h < j->host_count; h++) {
		slow[h] = judged[h] >= STEPS_LEAST && slow_steps[h] >= PERSISTENT_PART * judged[h];
		slow_hosts += slow[h];
	}
	for (size_t i = 0; i < workers && 2 * slow_hosts <= j->host_count; i++)
		j->apart[i] = is_judged(&j->job->workers[i]) && slow[j->host[i]];
	return OW_OK;
}
