/*
 * rule_host_code.c: host code in a step that delays it: long pieces in which nothing is launched, such as Python code between
 * operators, or a long preparation of a kernel. The floor is none of it. Operators that compute on the host beside a device are the rule
 * op_on_cpu.
 */
#include "advise/advice.h"

/* a host operator that only launches a kernel takes no longer than this */
#define OPERATOR_NS 1000000
/* if there is a device, shorter pieces of host code are part of launching */
#define LONG_NS 100000
/* largest part of a step without records for which the rule is checked */
#define UNKNOWN_MOST 0.5
#define ALL_OF_IT 0.9

static bool is_host_code(const struct advice *a, const struct lane *lane, uint32_t i)
{
	const struct graph *g = &a->s.g;

	if (g->flags[i] & NODE_IN_INPUT)
		return false;
	/* the rule op_on_cpu reports operators that compute on the host */
	if (node_is_operator(g, i))
		return g->weight_ns[i] >= OPERATOR_NS && operator_launches(a, i);
	if (g->kind[i] != NODE_HOST && (g->kind[i] != NODE_GAP || !lane->main))
		return false; /* during a gap of this thread, other threads wait */
	if (!lane->main && g->event[i] && g->m->op.flags[g->m->event.op[g->event[i]].v] & OP_WAITS)
		return false; /* threads in poll, sleep or a condition variable wait as well */
	return !g->has_device || g->weight_ns[i] >= LONG_NS || gap_is_long(g, lane, i, LONG_NS);
}

/* Returns whether operators on the host fill most of a step, so that unrecorded code ran between
 * them. */
static bool is_of_operators(const struct advice *a)
{
	return a->steady.known && a->share_ns[CLASS_COMPUTE] > a->step_ns / 2;
}

/* The number of replayed steady steps of an input: a thread runs in the steps of its own rank only. */
static uint32_t steps_of(const struct graph *g, source_id source)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < g->step_count; i++)
		count += g->steps[i].used && g->steps[i].steady && g->steps[i].source.v == source.v;
	return count;
}

/* In the only recorded step an operator that allocates and takes long has made the allocator's pool grow: later steps find memory there. */
static bool is_first_allocation(const struct advice *a, const struct cost *cost)
{
	const struct graph *g = &a->s.g;
	int64_t all = 0, longest = 0;
	uint32_t node = 0;

	for (size_t i = 0; a->steps == 1 && i < cost->count; i++) {
		int64_t weight = g->weight_ns[cost->nodes[i]];

		all = span_add(all, weight);
		if (weight > longest) {
			longest = weight;
			node = cost->nodes[i];
		}
	}
	return longest > all / 2 &&
	       only_allocates(model_str(a->m, a->m->op.name[node_op(g, node).v]));
}

/* Advice on code whose lines are known, and on other code. */
static struct str advice_on(const struct advice *a, bool has_line)
{
	if (a->framework == FRAMEWORK_UNKNOWN)
		return has_line ? STR("move this code into another thread, or onto the device")
				: STR("move this code into another thread, or onto the device; "
				      "sampled stacks show its lines");
	return has_line ? STR("move this code out of the step, into another thread, or into the "
			      "framework")
			: STR("move this code out of the step, into another thread, or into the "
			      "framework; record with Python stacks to see its lines");
}

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = advice_on(a, false),
		.falsified_by = STR("leave the code out for one run: if the step is not shorter, "
				    "other work hid its cost"),
		.most = CONFIDENCE_HIGH,
		.class = CLASS_HOST
	};
	const struct graph *g = &a->s.g;
	const char *around = g->has_device		      ? "while the device waits"
			     : a->share_ns[CLASS_COMPUTE] > 0 ? "around the operators"
							      : "";
	struct cost cost = { .effect = EFFECT_TIME };
	char time[TIME_TEXT];
	struct str line;
	int64_t most = 0;

	(void)err;
	if (!a->has_steps)
		return advice_not_checked(a, "no steps with timed work");
	if ((double)a->share_ns[CLASS_IDLE] > UNKNOWN_MOST * (double)a->step_ns)
		return advice_not_checked(
			a, "nothing was recorded in %.0f %% of the time: record with Python stacks",
			100.0 * (double)a->share_ns[CLASS_IDLE] / (double)a->step_ns);
	if (!advice_replays(a) || !g->has_device) {
		if ((double)a->share_ns[CLASS_HOST] > ALL_OF_IT * (double)a->step_ns)
			return OW_OK; /* the host code is the job itself */
		report.where = STR("host code");
		if (advice_has_nodes(a) && (g->has_device || is_of_operators(a))) {
			/* between the recorded events of a step, unrecorded code runs */
			most = span_add(a->share_ns[CLASS_HOST], a->share_ns[CLASS_IDLE]);
			report.what =
				advice_text(a, "%s of a step are host code, recorded or not, %s",
					    time_text(time, most), around);
			return advice_report_part(a, &cost, most, &report);
		}
		report.what = advice_text(a, "%s of a step are host code%s%s",
					  time_text(time, a->share_ns[CLASS_HOST]),
					  *around ? " " : "", around);
		return advice_report_share(a, CLASS_HOST, &report);
	}
	for (uint32_t l = 0; l < g->lane_count; l++) {
		int64_t sum = 0; /* sum of this thread alone: threads run concurrently */

		for (uint32_t i = g->lanes[l].first; i < g->lanes[l].first + g->lanes[l].count; i++)
			if (is_host_code(a, &g->lanes[l], i)) {
				OW_TRY(cost_add(a, &cost, i));
				if (node_is_steady(a, i))
					sum = span_add(sum, g->weight_ns[i]);
			}
		most = MAX(most, sum / MAX(steps_of(g, g->lanes[l].source), 1u));
	}
	report.where = cost_where_line(a, &cost, &line);
	report.maybe_once = is_first_allocation(a, &cost);
	report.advice = advice_on(a, line.len > 0);
	report.what =
		advice_text(a,
			    "a thread runs host code for %s per step and launches no work "
			    "in that time%s%.*s",
			    time_text(time, most), line.len ? ", above all " : "", STR_ARG(line));
	return advice_report(a, &cost, &report);
}

const struct rule rule_host_code = {
	.name = "host_code",
	.summary = "host code that delays the step",
	.doc = "host_code",
	.advise = advise,
};
