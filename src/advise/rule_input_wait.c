/*
 * rule_input_wait.c: steps that wait for the next batch. The cost is all time in which a thread gets input; the floor is none. Input
 * that is loaded while the device works costs nothing and is not reported.
 */
#include "advise/advice.h"

static struct str what_to_try(struct advice *a, struct str name)
{
	switch (a->framework) {
	case FRAMEWORK_TORCH:
		if (str_has(name, STR("SingleProcess")))
			return STR("the loader runs in the training process: give DataLoader "
				   "num_workers=4 or "
				   "more, pin_memory=True and persistent_workers=True");
		return STR("more DataLoader workers (num_workers), a larger prefetch_factor, "
			   "persistent_workers=True, pin_memory=True; or cheaper decoding");
	case FRAMEWORK_TENSORFLOW:
		if (input_stage_advice(name).len)
			return advice_text(
				a, "%s; then end the pipeline with prefetch(tf.data.AUTOTUNE)",
				input_stage_advice(name).ptr);
		return STR("end the tf.data pipeline with prefetch(tf.data.AUTOTUNE), and use "
			   "num_parallel_calls=tf.data.AUTOTUNE in map and interleave");
	case FRAMEWORK_JAX:
		return STR(
			"load the next batch in another thread and put it on the device ahead of "
			"its step (prefetch two batches)");
	default:
		return STR("read the next input while the current one is computed: other threads "
			   "or processes, and a queue of prepared input");
	}
}

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = { .falsified_by = STR("repeat one batch from memory: if the step is "
						     "not shorter, it does not wait for input"),
				 .most = CONFIDENCE_HIGH,
				 .class = CLASS_INPUT,
				 .whole_events = true };
	const struct graph *g = &a->s.g;
	struct cost cost = { .effect = EFFECT_WAIT };
	char time[TIME_TEXT];

	(void)err;
	if (!a->has_steps)
		return advice_not_checked(a, "no steps with timed work");
	for (uint32_t i = 0; advice_replays(a) && i < g->node_count; i++)
		if (g->kind[i] == NODE_INPUT || g->flags[i] & NODE_IN_INPUT)
			OW_TRY(cost_add(a, &cost, i));
	report.where = advice_replays(a) ? cost_where(a, &cost) : share_where(a, CLASS_INPUT);
	report.advice = what_to_try(a, report.where);
	/* loader workers run ahead of the steps */
	cost.in_pairs = str_has(report.where, STR("MultiProcess"));
	if (!advice_replays(a)) {
		report.what = advice_text(a, "%.*s wait for input",
					  STR_ARG(advice_share(a, CLASS_INPUT)));
		return advice_report_share(a, CLASS_INPUT, &report);
	}
	report.what = advice_text(a, "the step waits for input: %s per step are spent %s",
				  time_text(time, cost_per_step(a, &cost, NULL)),
				  a->framework == FRAMEWORK_UNKNOWN ? "reading it"
								    : "getting the next batch");
	return advice_report(a, &cost, &report);
}

const struct rule rule_input_wait = {
	.name = "input_wait",
	.summary = "steps that wait for the next batch",
	.doc = "input_wait",
	.advise = advise,
};
