/*
 * mean_consumed.c: steps of work that one host thread hands to another, in an XSpace: its profilers say who produces and who consumes
 * (links of the kind flow). What consumes belongs to the step of what it consumes, with all that it calls, however late it
 * runs; by time alone it would belong to the next step, or to none. Called by mean_steps.c once all events have the step
 * of their time. What a device does follows the launches, not this.
 */
#include "import/mean_int.h"

#define EFFORT                                                                                     \
	64 /* times that an event may be looked at on average: nobody calls consumers inside of consumers so deep */

struct handed {
	int64_t at, from; /* when the consumer and the producer begin */
	uint32_t src, dst;
};

/* In order of time, because a producer may itself be inside of what somebody consumes. */
static int by_time(const void *a, const void *b)
{
	const struct handed *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->dst != y->dst)
		return x->dst < y->dst ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->src > y->src) - (x->src < y->src);
}

/* What marks a step is of that step, whoever started it. */
static bool is_marker(const struct meaning *x, uint32_t event)
{
	const struct mean_markers *m = &x->markers;
	int64_t start = x->m->event.ts_ns[event];
	size_t low = 0, high = m->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->list[middle].start < start)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < m->count && m->list[low].start == start; low++)
		if (m->list[low].end == mean_end(x, event))
			return true;
	return false;
}

static bool is_handed(const struct meaning *x, uint32_t link)
{
	const struct model *m = x->m;
	uint32_t src = m->link.src[link].v, dst = m->link.dst[link].v;

	if (m->link.kind[link] != LINK_FLOW || src < x->first_event || dst < x->first_event)
		return false;
	return m->event.track[src].v != m->event.track[dst].v &&
	       mean_on_host(x, m->event.track[src].v) && mean_on_host(x, m->event.track[dst].v);
}

static size_t collect(const struct meaning *x, struct handed *list)
{
	const struct model *m = x->m;
	size_t count = 0;

	for (uint32_t i = x->first_link; i < m->link.count; i++) {
		uint32_t src = m->link.src[i].v, dst = m->link.dst[i].v;

		if (!is_handed(x, i))
			continue;
		if (list)
			list[count] = (struct handed){ m->event.ts_ns[dst], m->event.ts_ns[src],
						       src, dst };
		count++;
	}
	return count;
}

/* The consumer and what is inside of it; what it hands on itself comes later in the list. */
static void take_over(struct meaning *x, uint32_t dst, step_id step, uint64_t *effort)
{
	const struct mean_track *track = mean_track(x, x->m->event.track[dst].v);
	int64_t end = mean_end(x, dst);

	for (uint32_t e = dst; e < track->last && *effort; e++, --*effort) {
		if (e != dst && x->m->event.ts_ns[e] >= end)
			break;
		if (!is_marker(x, e))
			x->m->event.step[e] = step;
	}
}

ow_status mean_assign_consumed(struct meaning *x)
{
	uint64_t effort = (uint64_t)EFFORT * (x->last_event - x->first_event);
	size_t count = x->in->xspace ? collect(x, NULL) : 0;
	struct handed *list;
	uint32_t done = 0;

	if (!count)
		return OW_OK;
	list = mem_alloc(x->mem, count * sizeof(*list));
	if (!list)
		return mean_no_memory(x);
	(void)collect(x, list);
	qsort(list, count, sizeof(*list), by_time);
	for (size_t i = 0; i < count && effort; i++) {
		step_id step = x->m->event.step[list[i].src];

		/* of several producers the first in a step counts */
		if (!step.v || list[i].dst == done)
			continue;
		done = list[i].dst;
		if (step.v != x->m->event.step[done].v)
			take_over(x, done, step, &effort);
	}
	mem_free(x->mem, list, count * sizeof(*list));
	return OW_OK;
}
