/*
 * rule_op_on_cpu.c: operators that compute on the host although the job has a device. The cost is their own time, if they launch
 * nothing; the floor is none of it, because the device would do it beside its other work.
 */
#include "advise/advice.h"

#define LONG_NS 100000 /* shorter pieces of host operators are bookkeeping */

/* Names of operators that wait for other ranks. */
static const char *const communication[] = { "record_param_comms",
					     "c10d::", "nccl:", "gloo:", NULL };

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = STR(
			"put the tensors and this operator on the device, or do it in the input "
			"pipeline"),
		.falsified_by = STR("move the operator to the device: if the step is not shorter, "
				    "other work hid its cost"),
		.most = CONFIDENCE_MEDIUM,
		.class = CLASS_COUNT
	};
	const struct graph *g = &a->s.g;
	struct cost cost = { .effect = EFFECT_TIME };
	char time[TIME_TEXT];

	(void)err;
	if (!advice_has_nodes(a) || !g->has_device)
		return advice_not_checked(a, "needs operators of host threads beside device work");
	for (uint32_t i = 0; i < g->node_count; i++)
		if (g->weight_ns[i] >= LONG_NS && node_is_operator(g, i) &&
		    !(g->flags[i] & NODE_IN_INPUT) && !operator_launches(a, i) &&
		    !op_has_word(a, node_op(g, i), communication))
			OW_TRY(cost_add(a, &cost, i));
	report.where = cost_where(a, &cost);
	report.what = advice_text(a,
				  "operators compute on the host for %s per step while the device "
				  "waits",
				  time_text(time, cost_per_step(a, &cost, NULL)));
	if (advice_replays(a))
		return advice_report(a, &cost, &report);
	report.class = CLASS_HOST; /* the operators are part of the share of host code */
	return advice_report_part(a, &cost, cost_idle_per_step(a, &cost), &report);
}

const struct rule rule_op_on_cpu = {
	.name = "op_on_cpu",
	.summary = "operators that compute on the host although there is a device",
	.doc = "op_on_cpu",
	.advise = advise,
};
