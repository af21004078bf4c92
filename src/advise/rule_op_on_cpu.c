/*
 * rule_op_on_cpu.c: operators that compute on the host although the job has a device. The cost is their own time in pieces in which nothing is
 * launched; the floor is none of it, because the device would do it beside its other work.
 */
#include "advise/advice.h"

#define LONG_NS 1000000 /* shorter pieces are what an operator needs to launch a kernel */

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = STR(
			"put the tensors and this operator on the device, or do it in the input "
			"pipeline"),
		.falsified_by =
			STR("move the operator to the device: if the step takes as long, it was "
			    "hidden"),
		.most = CONFIDENCE_MEDIUM,
		.class = CLASS_COUNT
	};
	const struct graph *g = &a->s.g;
	struct cost cost = { .effect = EFFECT_TIME };
	char time[TIME_TEXT];

	(void)err;
	if (!advice_replays(a) || !g->has_device)
		return advice_not_checked(a, "no job with device work that can be replayed");
	for (uint32_t i = 0; i < g->node_count; i++)
		if (node_is_operator(g, i) && g->weight_ns[i] >= LONG_NS &&
		    !(g->flags[i] & NODE_IN_INPUT))
			OW_TRY(cost_add(a, &cost, i));
	report.where = cost_where(a, &cost);
	report.what = advice_text(a,
				  "operators compute on the host for %s per step while the device "
				  "waits",
				  time_text(time, cost_per_step(a, &cost, NULL)));
	return advice_report(a, &cost, &report);
}

const struct rule rule_op_on_cpu = {
	.name = "op_on_cpu",
	.summary = "operators that compute on the host although there is a device",
	.doc = "op_on_cpu",
	.advise = advise,
};
