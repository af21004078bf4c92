/*
 * rule_blocking_copy.c: copies that their calling thread waits for. The floor: the thread goes on at once, and the copy still takes its time on
 * the device. What the copy itself costs is the rule transfer.
 */
#include "advise/advice.h"

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = a->framework == FRAMEWORK_TORCH
				  ? STR("copy from pinned memory without blocking: "
					"DataLoader(pin_memory=True) "
					"and tensor.to(device, non_blocking=True); read results "
					"later")
				  : STR("copy from page-locked memory, asynchronously, and read "
					"results "
					"later"),
		.falsified_by = STR("pin the memory and pass non_blocking=True: if the thread "
				    "still waits, it does not wait for the copy"),
		.most = CONFIDENCE_HIGH,
		.class = CLASS_COUNT
	};
	const struct graph *g = &a->s.g;
	struct cost cost = { .effect = EFFECT_UNBLOCK };
	double count;

	(void)err;
	if (!advice_replays(a))
		return advice_not_checked(a, "needs a replay to see what waits for the copies: %s",
					  *g->refused ? g->refused : "no steps");
	for (uint32_t i = 0; i < g->node_count; i++)
		if (g->flags[i] & NODE_BLOCKS)
			OW_TRY(cost_add(a, &cost, i));
	cost_per_step(a, &cost, &count);
	report.where = cost_where(a, &cost);
	report.what =
		advice_text(a, "%.0f copies per step block the thread that starts them", count);
	return advice_report(a, &cost, &report);
}

const struct rule rule_blocking_copy = {
	.name = "blocking_copy",
	.summary = "copies that block the thread that starts them",
	.doc = "blocking_copy",
	.advise = advise,
};
