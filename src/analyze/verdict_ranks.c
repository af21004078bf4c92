/*
 * verdict_ranks.c: which rank the others wait for. Ranks that work together end their steps together: the slow one
 * does more between the exchanges, and the others spend that time in communication. So ranks are compared by what a
 * step of theirs has beside communication. Called by verdict.c; says nothing where there is nothing to be said.
 */
#include "analyze/verdict.h"

#include "analyze/phases.h"

#define NOTICED 0.10 /* of a step: what the others wait for the slow one */

/* Of one rank, over its devices. */
struct rank_sums {
	int32_t rank;
	double step_ns, own_ns; /* of a step, and of it what is no communication */
	const struct phase_group *group;
};

/* Groups [first, end) are of one job, and come by rank. */
static uint32_t add_up(const struct phase_groups *groups, uint32_t first, uint32_t end,
		       struct rank_sums *ranks)
{
	uint32_t count = 0;

	for (uint32_t i = first; i < end; i++) {
		const struct phase_group *g = &groups->items[i];
		double step, own;

		if (g->rank < 0 || !g->steps || g->time_ns <= 0)
			continue;
		step = (double)g->time_ns / g->steps;
		own = step - (double)g->sums.share[CLASS_COMMUNICATION] / g->steps;
		if (!count || ranks[count - 1].rank != g->rank)
			ranks[count++] = (struct rank_sums){ .rank = g->rank };
		if (own >= ranks[count - 1].own_ns) { /* the slowest device counts */
			ranks[count - 1].own_ns = own;
			ranks[count - 1].step_ns = step;
			ranks[count - 1].group = g;
		}
	}
	return count;
}

static int by_own(const void *a, const void *b)
{
	const struct rank_sums *x = a, *y = b;

	return (x->own_ns > y->own_ns) - (x->own_ns < y->own_ns);
}

/* What the slow rank has more of than the middle one. */
static enum phase_class what_is_more(const struct rank_sums *slow, const struct rank_sums *middle)
{
	enum phase_class most = CLASS_COUNT;
	double most_ns = 0;

	for (unsigned c = 0; c < CLASS_COUNT; c++) {
		double more = (double)slow->group->sums.share[c] / slow->group->steps -
			      (double)middle->group->sums.share[c] / middle->group->steps;

		if (c != CLASS_COMMUNICATION && more > most_ns) {
			most_ns = more;
			most = (enum phase_class)c;
		}
	}
	return most;
}

/* Of one job. */
static void compare(const struct model *m, const struct phase_groups *groups,
		    struct rank_sums *ranks, uint32_t count, struct buf *text)
{
	static const char *const words[CLASS_COUNT] = {
		[CLASS_COMPUTE] = "computes",
		[CLASS_DEVICE_TO_HOST] = "copies to the host",
		[CLASS_HOST_TO_DEVICE] = "copies to the device",
		[CLASS_INPUT] = "waits for input",
		[CLASS_SYNCHRONISATION] = "synchronises",
		[CLASS_LAUNCH] = "launches work",
		[CLASS_HOST] = "runs host code",
		[CLASS_IDLE] = "does nothing that was recorded",
	};
	const struct rank_sums *slow, *middle;
	enum phase_class more;

	if (count < 2)
		return;
	qsort(ranks, count, sizeof(*ranks), by_own);
	slow = &ranks[count - 1];
	middle = &ranks[(count - 1) / 2];
	more = what_is_more(slow, middle);
	/* Without communication they do not wait for each other. */
	if (slow->own_ns - middle->own_ns < NOTICED * slow->step_ns || more == CLASS_COUNT ||
	    middle->step_ns - middle->own_ns < (slow->own_ns - middle->own_ns) / 2)
		return;
	buf_printf(text, " Rank %d ", slow->rank);
	if (groups->runs > 1)
		buf_printf(text, "of %.*s ", STR_ARG(phase_group_job(m, slow->group)));
	buf_printf(text,
		   "is the slow one: it %s for %.1f ms of a step, rank %d for %.1f ms, "
		   "and communication makes the others wait for it.",
		   words[more], (double)slow->group->sums.share[more] / slow->group->steps / 1e6,
		   middle->rank,
		   (double)middle->group->sums.share[more] / middle->group->steps / 1e6);
}

ow_status verdict_ranks(const struct model *m, const struct phase_groups *groups,
			struct arena *scratch, struct buf *text, struct error *err)
{
	struct rank_sums *ranks = ARENA_ARRAY(scratch, struct rank_sums, groups->count);

	if (!ranks)
		return groups->count ? error_no_memory(err) : OW_OK;
	for (uint32_t first = 0, end; first < groups->count; first = end) {
		end = first + 1;
		while (end < groups->count && groups->items[end].run == groups->items[first].run)
			end++;
		compare(m, groups, ranks, add_up(groups, first, end, ranks), text);
	}
	return OW_OK;
}
