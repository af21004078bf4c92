/*
 * cost.c: what a finding is about, as nodes of the replay: selecting them, what they take, and the step without them. Called by the
 * rules and by advice.c, which ranks what comes out.
 */
#include "advise/advice.h"

#include "base/vec.h"

#include <math.h>

static bool name_has_word(struct str name, const char *const *words)
{
	bool found = false;

	for (; *words; words++) {
		bool excluded = **words == '-';

		if (!str_has(name, str_from(*words + excluded)))
			continue;
		if (excluded)
			return false;
		found = true;
	}
	return found;
}

bool op_has_word(struct advice *a, op_id op, const char *const *words)
{
	enum { NOT_ASKED, NO, YES };
	struct str name = model_str(a->m, a->m->op.name[op.v]);
	uint8_t *known;

	if (a->words != words) {
		a->words = words;
		a->has_word = ARENA_ARRAY(&a->scratch, uint8_t, a->m->op.count);
	}
	if (!a->has_word) /* without memory for the cache the search only takes longer */
		return name_has_word(name, words);
	known = &a->has_word[op.v];
	if (*known == NOT_ASKED)
		*known = name_has_word(name, words) ? YES : NO;
	return *known == YES;
}

bool only_allocates(struct str name)
{
	return str_starts(name, STR("aten::empty")) || str_starts(name, STR("aten::new_empty")) ||
	       str_eq(name, STR("aten::resize_"));
}

bool node_is_operator(const struct graph *g, uint32_t node)
{
	const struct model *m = g->m;
	uint32_t event = g->event[node];
	struct str category;

	if (!event || g->kind[node] != NODE_HOST ||
	    only_allocates(model_str(m, m->op.name[m->event.op[event].v])))
		return false;
	category = model_str(m, COLUMN_GET(m->event.category, event));
	return m->event.phase[event] == PHASE_COMPUTE || str_eq(category, STR("cpu_op")) ||
	       str_eq(category, STR("Operator"));
}

bool operator_launches(const struct advice *a, uint32_t node)
{
	const struct graph *g = &a->s.g;
	const struct lane *lane = lane_of_node(g, node);
	uint32_t event = g->event[node];
	uint32_t first = MIN(lane_at(g, lane, g->m->event.ts_ns[event]), node);
	uint32_t end = MAX(lane_at(g, lane, event_end(g->m, event)), node + 1);

	return a->launch_sum[end] > a->launch_sum[first];
}

bool gap_is_long(const struct graph *g, const struct lane *lane, uint32_t node, int64_t least)
{
	int64_t sum = 0;

	if (g->kind[node] != NODE_GAP)
		return false;
	for (uint32_t i = node; sum < least && i < lane->first + lane->count; i++) {
		if (g->kind[i] != NODE_GAP)
			break;
		sum = span_add(sum, g->weight_ns[i]);
	}
	for (uint32_t i = node; sum < least && i > lane->first; i--) {
		if (g->kind[i - 1] != NODE_GAP)
			break;
		sum = span_add(sum, g->weight_ns[i - 1]);
	}
	return sum >= least;
}

ow_status cost_add(struct advice *a, struct cost *cost, uint32_t node)
{
	uint32_t *nodes =
		arena_grow(&a->scratch, cost->nodes, cost->count, &cost->cap, sizeof(*nodes));

	if (!nodes)
		return error_no_memory(a->err);
	cost->nodes = nodes;
	cost->nodes[cost->count++] = node;
	return OW_OK;
}

bool node_is_steady(const struct advice *a, uint32_t node)
{
	const struct graph *g = &a->s.g;

	return g->step[node] && g->steps[g->step[node] - 1].steady;
}

/* Returns the median over the steady steps; if most steps lack the cost, the mean. */
int64_t cost_per_step(struct advice *a, const struct cost *cost, double *count)
{
	const struct graph *g = &a->s.g;
	int64_t *times = ARENA_ARRAY(&a->scratch, int64_t, (size_t)g->step_count + 1);
	int64_t *counts = ARENA_ARRAY(&a->scratch, int64_t, (size_t)g->step_count + 1);
	int64_t sum = 0, median;
	uint32_t steady = 0;
	uint64_t n = 0;

	if (count)
		*count = 0;
	if (!times || !counts || !a->steps)
		return 0;
	for (size_t i = 0; i < cost->count; i++) {
		uint32_t node = cost->nodes[i];

		if (!node_is_steady(a, node))
			continue;
		times[g->step[node] - 1] = span_add(times[g->step[node] - 1], g->weight_ns[node]);
		counts[g->step[node] - 1]++;
		sum = span_add(sum, g->weight_ns[node]);
		n++;
	}
	for (uint32_t i = 0; i < g->step_count; i++)
		if (g->steps[i].steady) {
			times[steady] = times[i];
			counts[steady++] = counts[i];
		}
	median = median_of(times, steady);
	if (steady != a->steps || median <= 0) { /* not all steady steps were replayed */
		if (count)
			*count = (double)n / a->steps;
		return sum / a->steps;
	}
	if (count)
		*count = (double)median_of(counts, steady);
	return median;
}

/* Per string whether it is the name of a Python function with one of the words; each name is searched once. *out is NULL without functions. */
static ow_status find_functions(struct advice *a, const char *const *words, uint8_t **out)
{
	enum { NOT_ASKED, NO, YES };
	const struct graph *g = &a->s.g;
	const struct model *m = a->m;
	uint8_t *has = ARENA_ARRAY(&a->scratch, uint8_t, (size_t)m->track.count + 1), *names;
	bool any = false;

	*out = NULL;
	if (!has)
		return error_no_memory(a->err);
	for (uint32_t l = 0; l < g->lane_count; l++)
		if (g->lanes[l].functions.v) {
			has[g->lanes[l].functions.v] = 1;
			any = true;
		}
	if (!any)
		return OW_OK;
	names = ARENA_ARRAY(&a->scratch, uint8_t, (size_t)m->strings.count + 1);
	if (!names)
		return error_no_memory(a->err);
	for (uint32_t i = 1; i < m->event.count; i++) {
		str_id name =
			has[m->event.track[i].v] ? COLUMN_GET(m->event.name, i) : (str_id){ 0 };

		if (name.v && names[name.v] == NOT_ASKED)
			names[name.v] = name_has_word(model_str(m, name), words) ? YES : NO;
	}
	for (uint32_t i = 0; i < m->strings.count; i++)
		names[i] = names[i] == YES;
	*out = names;
	return OW_OK;
}

ow_status cost_add_inside(struct advice *a, struct cost *cost, const char *const *words,
			  bool device)
{
	const struct graph *g = &a->s.g;
	uint8_t *ops = ARENA_ARRAY(&a->scratch, uint8_t, (size_t)a->m->op.count + 1), *inside;
	uint8_t *names;

	if (!ops)
		return error_no_memory(a->err);
	for (uint32_t i = 1; i < a->m->op.count; i++)
		ops[i] = op_has_word(a, (op_id){ i }, words);
	OW_TRY(find_functions(a, words, &names));
	OW_TRY(mark_inside(g, ops, names, &a->scratch, &inside, a->err));
	for (uint32_t i = 0; i < g->node_count; i++)
		if (node_is_steady(a, i) &&
		    (inside[i] || (device && g->launch[i] && inside[g->launch[i] - 1])))
			OW_TRY(cost_add(a, cost, i));
	return OW_OK;
}

int64_t device_next(const struct graph *g, source_id source, int64_t t)
{
	int64_t next = INT64_MAX;

	for (uint32_t l = 0; l < g->lane_count; l++) {
		uint32_t at;

		if (!g->lanes[l].device || g->lanes[l].source.v != source.v)
			continue;
		at = lane_at(g, &g->lanes[l], t);
		if (at > g->lanes[l].first && node_end(g, at - 1) > t)
			return t;
		if (at < g->lanes[l].first + g->lanes[l].count)
			next = MIN(next, g->start_ns[at]);
	}
	return next;
}

/* Returns until when the device of the source that works at t is busy; t if no device works
 * then. */
static int64_t device_busy_until(const struct graph *g, source_id source, int64_t t)
{
	int64_t until = t;

	for (uint32_t l = 0; l < g->lane_count; l++) {
		uint32_t at;

		if (!g->lanes[l].device || g->lanes[l].source.v != source.v)
			continue;
		at = lane_at(g, &g->lanes[l], t + 1);
		if (at > g->lanes[l].first)
			until = MAX(until, node_end(g, at - 1));
	}
	return until;
}

/* Returns the time within [from, to) in which no device of the source works. */
static int64_t device_idle(const struct graph *g, source_id source, int64_t from, int64_t to)
{
	int64_t idle = 0;

	while (from < to) {
		int64_t next = MIN(device_next(g, source, from), to);

		idle += next - from;
		from = MAX(device_busy_until(g, source, next), next + 1);
	}
	return idle;
}

int64_t cost_idle_per_step(const struct advice *a, const struct cost *cost)
{
	const struct graph *g = &a->s.g;
	int64_t sum = 0;

	for (size_t i = 0; i < cost->count; i++) {
		uint32_t node = cost->nodes[i];

		if (node_is_steady(a, node))
			sum = span_add(sum, device_idle(g, lane_of_node(g, node)->source,
							g->start_ns[node], node_end(g, node)));
	}
	return a->steps ? sum / a->steps : 0;
}

#define PREPARES_NS 100000 /* host code that is longer than this does not only prepare a launch */

/* Removes the operator that prepares a removed launch. */
static void drop_operator(const struct advice *a, struct scenario *scenario, uint32_t call)
{
	const struct graph *g = &a->s.g;
	uint32_t first = lane_of_node(g, call)->first;

	for (uint32_t i = call; i > first && !a->launches[i - 1]; i--) {
		if (g->kind[i - 1] != NODE_HOST && g->kind[i - 1] != NODE_GAP)
			break;
		if (g->flags[i - 1] & NODE_IN_INPUT || g->weight_ns[i - 1] > PREPARES_NS)
			break;
		scenario->weight_ns[i - 1] = 0;
	}
	if (!(g->flags[call] & NODE_ONCE)) /* the next kernel would initialise the device */
		scenario->weight_ns[call] = 0;
}

#define TINY_NS 5000

/* Returns whether a kernel runs no longer than the device needs to start it and follows another kernel; a
 * compiled step would run both as one. */
static bool is_tiny(const struct graph *g, uint32_t node)
{
	return g->kind[node] == NODE_KERNEL && g->weight_ns[node] <= TINY_NS &&
	       node > lane_of_node(g, node)->first && g->kind[node - 1] == NODE_KERNEL;
}

static void change_node(const struct advice *a, struct scenario *scenario, const struct cost *cost,
			uint32_t node, double factor)
{
	const struct graph *g = &a->s.g;

	switch (cost->effect) {
	case EFFECT_TIME:
		scenario_scale(g, scenario, node, factor);
		break;
	case EFFECT_WAIT:
		if (factor == 0)
			scenario_no_wait(g, scenario, node, 0);
		else
			scenario_scale(g, scenario, node, factor);
		break;
	case EFFECT_UNBLOCK:
		if (factor == 0 && g->launch[node] && g->launch[node] < g->node_count)
			scenario->drop[g->launch[node]] |= DROP_WAITS;
		break;
	case EFFECT_LAUNCH:
		if (g->flags[node] & NODE_DEVICE) {
			if (factor == 0 && is_tiny(g, node))
				scenario_scale(g, scenario, node, 0);
			else if (factor == 0)
				scenario->drop[node] |= DROP_LAGS;
		} else {
			scenario_scale(g, scenario, node, factor);
		}
		break;
	case EFFECT_SCALE: /* apply_cost handles this effect */
		break;
	case EFFECT_FUSE:
		scenario_scale(g, scenario, node, factor);
		if (factor == 0 && g->launch[node])
			drop_operator(a, scenario, g->launch[node] - 1);
		break;
	}
}

void cost_apply(const struct advice *a, struct scenario *scenario, const struct cost *cost,
		double factor)
{
	for (size_t i = 0; i < cost->count; i++)
		if (cost->effect != EFFECT_SCALE)
			change_node(a, scenario, cost, cost->nodes[i], factor);
		else
			scenario_scale(&a->s.g, scenario, cost->nodes[i], cost->factors[i]);
}

/* How far the median of the steady steps may be off, because there are few of them and they differ: 1.25 standard errors, from the median
 * distance to the median, which single outliers do not change. */
static double median_error(const struct replay *r)
{
	const struct graph *g = r->g;
	int64_t *far = r->times;
	uint32_t count = 0;

	for (uint32_t i = 0; i < g->step_count; i++)
		if (g->steps[i].used && g->steps[i].steady)
			far[count++] = llabs(r->step_ns[i] - r->median_ns);
	return count > 1 ? 1.25 * 1.48 * (double)median_of(far, count) / sqrt(count) : 0;
}

static double mean_step(const struct replay *r)
{
	double sum = 0;
	uint32_t count = 0;

	for (uint32_t i = 0; i < r->g->step_count; i++)
		if (r->g->steps[i].used && r->g->steps[i].steady) {
			sum += (double)r->step_ns[i];
			count++;
		}
	return count ? sum / count : 0;
}

/* Counts the steady steps that a change makes shorter by more than 1 %. */
static uint32_t count_shorter(const struct replay *base, const struct replay *r)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < r->g->step_count; i++)
		count += r->g->steps[i].used && r->g->steps[i].steady &&
			 r->step_ns[i] < base->step_ns[i] - base->step_ns[i] / 100;
	return count;
}

#define CERTAIN 2 /* number of standard errors in the interval of a saving */
/* error of a saving, as a part of it: the replay uses typical latencies and gaps of kernels */
#define MODEL_ERROR 0.02
/* largest error of a saving, as a part of it, that the error of the replay may add */
#define ERROR_MOST 0.1

/* Returns the error of a saving, as a part of it, that comes from the replay. */
double replay_margin(const struct advice *a)
{
	return MODEL_ERROR + fmin(fmax(a->s.replay_error, 0), ERROR_MOST);
}

void cost_replay(struct advice *a, const struct cost *cost, double factor, struct saving *out)
{
	struct replay *r = &a->s.trial;
	double off;

	*out = (struct saving){ 0 };
	scenario_reset(&a->s.g, &a->s.changed);
	cost_apply(a, &a->s.changed, cost, factor);
	replay_again(r, &a->s.changed);
	off = hypot(median_error(&a->s.base), median_error(r));
	out->median_ns = MAX(a->s.base.median_ns - r->median_ns, 0);
	out->mean_ns = MAX(llround(mean_step(&a->s.base) - mean_step(r)), 0);
	out->steps = count_shorter(&a->s.base, r);
	out->off_ns = llround(CERTAIN * off + replay_margin(a) * (double)out->median_ns);
	/* the error is at most half of the saving, and at most half of the remaining step */
	out->off_ns = MIN(out->off_ns, MIN(out->median_ns, r->median_ns) / 2);
}

/* Returns the cost in the cheapest steady step (or in the cheapest two in a row) divided by the cost in
 * the middle one; 1 with a single step. */
ow_status cost_best_factor(struct advice *a, const struct cost *cost, double *factor)
{
	const struct graph *g = &a->s.g;
	int64_t *sums = ARENA_ARRAY(&a->scratch, int64_t, (size_t)g->step_count + 1), median;
	int64_t least = INT64_MAX;
	uint32_t count = 0;

	*factor = 1;
	if (!sums)
		return error_no_memory(a->err);
	for (size_t i = 0; i < cost->count; i++)
		if (node_is_steady(a, cost->nodes[i]) &&
		    (cost->effect != EFFECT_LAUNCH || !(g->flags[cost->nodes[i]] & NODE_DEVICE))) {
			uint32_t step = g->step[cost->nodes[i]] - 1;

			sums[step] = span_add(sums[step], g->weight_ns[cost->nodes[i]]);
		}
	for (uint32_t i = 0; i < g->step_count; i++)
		if (g->steps[i].used && g->steps[i].steady)
			sums[count++] = sums[i];
	for (uint32_t i = 0; i < count; i++)
		if (!cost->in_pairs)
			least = MIN(least, sums[i]);
		else if (i)
			least = MIN(least, sums[i - 1] / 2 + sums[i] / 2);
	median = median_of(sums, count);
	if (count > 1 && median > 0)
		*factor = MIN((double)least / (double)median, 1);
	return OW_OK;
}
