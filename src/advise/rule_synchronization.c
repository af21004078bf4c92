/*
 * rule_synchronization.c: calls that stop the host until the device is done. The cost is the wait, the call, and the operator that only
 * reads a value; the floor is none of it, and the host then runs ahead. A wait at whose end the host has nothing to launch saves nothing and is not reported.
 */
#include "advise/advice.h"

/* Without a replay: computes how long the device is idle after each synchronising call of a step, except
 * the last one, which reads the result. */
static ow_status report_drained(struct advice *a, struct report *report)
{
	const struct graph *g = &a->s.g;
	struct cost cost = { .effect = EFFECT_WAIT };
	int64_t sum = 0;

	for (uint32_t l = 0; l < g->lane_count; l++) {
		uint32_t last = UINT32_MAX;

		for (uint32_t i = g->lanes[l].first;
		     !g->lanes[l].device && i < g->lanes[l].first + g->lanes[l].count; i++) {
			int64_t next;

			if (g->kind[i] != NODE_SYNC || !node_is_steady(a, i))
				continue;
			if (last != UINT32_MAX && g->step[last] == g->step[i]) {
				next = device_next(g, g->lanes[l].source, node_end(g, last));
				next = next == INT64_MAX ? node_end(g, last) : next;
				sum = span_add(sum, next - node_end(g, last));
				OW_TRY(cost_add(a, &cost, last));
			}
			last = i;
		}
	}
	/* Several threads may wait at the same time, so the sum is limited by the idle time of
	 * the device. */
	sum = MIN(sum / a->steps,
		  span_add(span_add(a->share_ns[CLASS_HOST], a->share_ns[CLASS_IDLE]),
			   a->share_ns[CLASS_LAUNCH]));
	/* the host waits in this time, so the time belongs to host code */
	report->class = CLASS_HOST;
	report->where = cost_where(a, &cost);
	report->what = advice_text(a, "after a synchronising call the device has no work left and "
				      "waits for the next launch");
	sum = MIN(span_add(sum, a->share_ns[CLASS_SYNCHRONISATION]), a->step_ns);
	return advice_report_part(a, &cost, sum, report);
}

/* Returns whether a step has several synchronising calls; the last one reads the result. */
static bool has_several(const struct advice *a)
{
	const struct graph *g = &a->s.g;
	uint32_t count = 0;

	for (uint32_t i = 0; i < g->node_count; i++)
		count += g->kind[i] == NODE_SYNC && node_is_steady(a, i);
	return count >= 2 * a->steps;
}

/* Operators that read one value. Without the read, the operator and its copy disappear as well. */
static const char *const reads[] = { "aten::item", "aten::_local_scalar_dense", "aten::is_nonzero",
				     NULL };

static ow_status add_reads(struct advice *a, struct cost *cost)
{
	struct cost inside = { .effect = EFFECT_WAIT };
	const struct graph *g = &a->s.g;

	OW_TRY(cost_add_inside(a, &inside, reads, true));
	for (size_t i = 0; i < inside.count; i++)
		if (g->kind[inside.nodes[i]] != NODE_SYNC &&
		    !(g->flags[inside.nodes[i]] & NODE_IN_INPUT))
			OW_TRY(cost_add(a, cost, inside.nodes[i]));
	return OW_OK;
}

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = a->framework == FRAMEWORK_TORCH
				  ? STR("avoid reading results in every step (.item(), .cpu(), "
					"print(loss), "
					"torch.cuda.synchronize()); collect them on the device and "
					"read them "
					"every 100 steps")
				  : STR("read results less often, and asynchronously; remove "
					"explicit "
					"synchronisation from the step"),
		.falsified_by = STR(
			"remove the call: if the step is not shorter, the host does not limit it"),
		.most = CONFIDENCE_HIGH,
		.class = CLASS_SYNCHRONISATION
	};
	const struct graph *g = &a->s.g;
	struct cost cost = { .effect = EFFECT_WAIT };
	char time[TIME_TEXT];
	double count;

	(void)err;
	if (!a->has_steps)
		return advice_not_checked(a, "no steps with timed work");
	if (!g->has_device && advice_replays(a))
		return advice_not_checked(a, "no device work is in this recording");
	if (!advice_replays(a) && advice_has_nodes(a) && g->has_device && has_several(a))
		return report_drained(a, &report);
	if (!advice_replays(a)) {
		report.where = STR("synchronisation");
		report.what = advice_text(a, "%s of a step are waiting in synchronisation",
					  time_text(time, a->share_ns[CLASS_SYNCHRONISATION]));
		return advice_report_share(a, CLASS_SYNCHRONISATION, &report);
	}
	for (uint32_t i = 0; i < g->node_count; i++)
		if (g->kind[i] == NODE_SYNC && !(g->flags[i] & NODE_IN_INPUT))
			OW_TRY(cost_add(a, &cost, i));
	cost_per_step(a, &cost, &count);
	report.where = cost_where(a, &cost);
	report.what = advice_text(a,
				  "%.0f synchronising calls per step keep the host from launching "
				  "ahead of the device",
				  count);
	OW_TRY(add_reads(a, &cost));
	return advice_report(a, &cost, &report);
}

const struct rule rule_synchronization = {
	.name = "synchronization",
	.summary = "calls that stop the host until the device is done",
	.doc = "synchronization",
	.advise = advise,
};
