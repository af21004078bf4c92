/*
 * ahead.c: recordings without launches whose host runs ahead of its device. Markers of steps then show how fast the host makes work, not
 * how long a step takes, and nothing says which work is of which step. The device has its own timeline: all of its work
 * over all of the steps. Called by advice.c before any rule runs; findings then refer to the mean step.
 */
#include "advise/advice.h"

/* the host runs ahead if a device works this many times as long per step as the median step
 * takes */
#define AHEAD_PART 1.5

/* The begin or end of a piece of device work. */
struct boundary {
	int64_t t;
	uint8_t class;
	int8_t change;
};

static int by_time(const void *a, const void *b)
{
	const struct boundary *x = a, *y = b;

	return (x->t > y->t) - (x->t < y->t);
}

/* Order in which concurrent classes of work hide each other: compute comes first, copies last. */
static const enum phase_class hiding[] = { CLASS_COMPUTE, CLASS_COMMUNICATION, CLASS_HOST_TO_DEVICE,
					   CLASS_DEVICE_TO_HOST };

static uint8_t place_of_kind(uint8_t kind)
{
	switch (kind) {
	case NODE_COMMUNICATION:
		return 1;
	case NODE_TO_DEVICE:
		return 2;
	case NODE_TO_HOST:
		return 3;
	default:
		return 0;
	}
}

static bool is_of_source(const struct graph *g, uint32_t l, source_id source)
{
	return g->lanes[l].device && g->lanes[l].source.v == source.v;
}

/* Adds up the time in which each class is the visible work of the device. Returns the end of its work;
 * INT64_MIN if it has none. */
static ow_status sweep(struct advice *a, source_id source, int64_t *sums, int64_t *end_ns)
{
	const struct graph *g = &a->s.g;
	int64_t running[ARRAY_COUNT(hiding)] = { 0 };
	struct boundary *list;
	size_t room = 0, count = 0;

	for (uint32_t l = 0; l < g->lane_count; l++)
		room += is_of_source(g, l, source) ? 2 * (size_t)g->lanes[l].count : 0;
	list = ARENA_ARRAY(&a->scratch, struct boundary, room + 1);
	if (!list)
		return error_no_memory(a->err);
	for (uint32_t l = 0; l < g->lane_count; l++)
		for (uint32_t i = 0; is_of_source(g, l, source) && i < g->lanes[l].count; i++) {
			uint32_t node = g->lanes[l].first + i;
			uint8_t class = place_of_kind(g->kind[node]);

			list[count++] = (struct boundary){ g->start_ns[node], class, 1 };
			list[count++] = (struct boundary){ node_end(g, node), class, -1 };
		}
	qsort(list, count, sizeof(*list), by_time);
	for (size_t i = 0; i + 1 < count; i++) {
		size_t k = 0;

		running[list[i].class] += list[i].change;
		while (k < ARRAY_COUNT(hiding) && !running[k])
			k++;
		if (k < ARRAY_COUNT(hiding))
			sums[k] = span_add(sums[k], span_length(list[i].t, list[i + 1].t));
	}
	*end_ns = count ? list[count - 1].t : INT64_MIN;
	return OW_OK;
}

/* Returns how long the busiest device works per step; unknown if the work has launches. */
static int64_t busiest(const struct advice *a)
{
	const struct graph *g = &a->s.g;
	int64_t most = 0;

	if (g->launched || !advice_has_nodes(a))
		return 0;
	for (uint32_t l = 0; l < g->lane_count; l++) {
		uint32_t steps = 0;
		int64_t busy = 0;

		for (uint32_t i = 0; g->lanes[l].device && i < g->lanes[l].count; i++)
			busy = span_add(busy, g->weight_ns[g->lanes[l].first + i]);
		for (uint32_t i = 0; busy && i < g->step_count; i++)
			steps += g->steps[i].source.v == g->lanes[l].source.v;
		most = MAX(most, busy / MAX(steps, 1u));
	}
	return most;
}

ow_status ahead_measure(struct advice *a)
{
	const struct graph *g = &a->s.g;
	int64_t sums[ARRAY_COUNT(hiding)] = { 0 }, span = 0;
	uint32_t steps = 0;

	a->device_ns = busiest(a);
	if ((double)a->device_ns <= (double)a->step_ns * AHEAD_PART)
		return OW_OK;
	for (uint32_t s = 0; s < g->m->source.count; s++) {
		int64_t from = INT64_MAX, to = INT64_MIN, end;
		uint32_t count = 0;

		for (uint32_t i = 0; i < g->step_count; i++)
			if (g->steps[i].used && g->steps[i].source.v == s)
				from = MIN(from, g->steps[i].begin_ns);
		/* The work of the last step counts, although the step itself may not be used. */
		for (uint32_t i = 0; i < g->step_count; i++)
			if (g->steps[i].source.v == s && g->steps[i].begin_ns >= from) {
				to = MAX(to, g->steps[i].marker_end_ns);
				count++;
			}
		if (!count)
			continue;
		OW_TRY(sweep(a, (source_id){ s }, sums, &end));
		span = span_add(span, span_length(from, MAX(to, end)));
		steps += count;
	}
	if (!steps)
		return OW_OK;
	/* The device hides everything that the host does in this time. */
	memset(a->share_ns, 0, sizeof(a->share_ns));
	memset(a->mean_ns, 0, sizeof(a->mean_ns));
	for (size_t i = 0; i < ARRAY_COUNT(hiding); i++)
		a->share_ns[hiding[i]] = a->mean_ns[hiding[i]] = sums[i] / steps;
	a->ahead_ns = span / steps;
	a->ahead_steps = steps;
	return OW_OK;
}

int64_t cost_ahead_per_step(const struct advice *a, const struct cost *cost)
{
	const struct graph *g = &a->s.g;
	int64_t sum = 0;

	for (size_t i = 0; i < cost->count; i++)
		if (g->flags[cost->nodes[i]] & NODE_DEVICE)
			sum = span_add(sum, g->weight_ns[cost->nodes[i]]);
	return a->ahead_steps ? sum / a->ahead_steps : 0;
}
