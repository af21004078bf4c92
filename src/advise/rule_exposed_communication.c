/*
 * rule_exposed_communication.c: communication that compute does not hide. The floor is none of it: what a step would take if all of
 * it ran beside compute. How much of it is waiting for other ranks is the rule collective_wait.
 */
#include "advise/advice.h"

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice =
			a->framework == FRAMEWORK_TORCH
				? STR("overlap it with the backward pass: DDP's bucket_cap_mb and "
				      "gradient_as_bucket_view, FSDP's prefetching; accumulate "
				      "gradients "
				      "(no_sync), or send 16-bit gradients")
				: STR("overlap communication with compute, send less (16-bit, "
				      "accumulate "
				      "gradients), or larger pieces"),
		.falsified_by = STR("run one rank alone: if it is not faster, other work "
				    "hid the communication"),
		.most = CONFIDENCE_HIGH,
		.class = CLASS_COMMUNICATION
	};
	const struct graph *g = &a->s.g;
	/* The rule collective_wait reports ranks that wait for each other. */
	struct cost cost = { .effect = g->joined_count ? EFFECT_TIME : EFFECT_WAIT };
	/* the rule pipeline_bubble reports waits between stages */
	bool ranks = a->m->source.count > 2;

	(void)err;
	if (!a->has_steps)
		return advice_not_checked(a, "no steps with timed work");
	if (!advice_replays(a)) {
		report.where = STR("communication");
		report.what = advice_text(a, "%.*s are communication without concurrent compute",
					  STR_ARG(advice_share(a, CLASS_COMMUNICATION)));
		return advice_report_share(a, CLASS_COMMUNICATION, &report);
	}
	for (uint32_t i = 0; i < g->node_count; i++)
		if ((g->kind[i] == NODE_COMMUNICATION && !(ranks && node_is_message(g, i))) ||
		    g->kind[i] == NODE_HOST_COMMUNICATION)
			OW_TRY(cost_add(a, &cost, i));
	report.where = cost_where(a, &cost);
	report.what = advice_text(a, "%.*s are communication without concurrent compute",
				  STR_ARG(advice_share(a, CLASS_COMMUNICATION)));
	report.names_share = true;
	return advice_report(a, &cost, &report);
}

const struct rule rule_exposed_communication = {
	.name = "exposed_communication",
	.summary = "communication that compute does not hide",
	.doc = "exposed_communication",
	.advise = advise,
};
