/*
 * rule_initialization.c: one-off work, such as creating a context or loading modules, that happens in steady steps. In the first steps it
 * is warm-up: it is then mentioned without a saving, because steady steps do not get shorter.
 */
#include "advise/advice.h"

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = STR("initialise before the loop: create contexts and streams, load "
			      "libraries, run one warm-up step"),
		.falsified_by = STR("record later steps: if the calls are gone, they were warm-up"),
		.most = CONFIDENCE_MEDIUM,
		.class = CLASS_INITIALISATION
	};
	const struct graph *g = &a->s.g;
	struct cost cost = { .effect = EFFECT_TIME };
	char time[TIME_TEXT];

	(void)err;
	if (!a->has_steps)
		return advice_not_checked(a, "no steps with timed work");
	/* A single recorded step may be the first one, so one-off work in it is warm-up. */
	if (a->steady.used_count < 2) {
		if (a->share_ns[CLASS_INITIALISATION] <= a->step_ns / 100)
			return OW_OK;
		report.where = STR("initialisation");
		report.what = advice_text(a,
					  "%s of the only recorded step are initialisation, which "
					  "happens once: record steps after the warm-up",
					  time_text(time, a->share_ns[CLASS_INITIALISATION]));
		return advice_remark(a, SEVERITY_INFO, -1, -1, false, &report, (struct str){ 0 });
	}
	if (!advice_replays(a)) {
		report.where = STR("initialisation");
		report.what = advice_text(a, "%s of a step are initialisation",
					  time_text(time, a->share_ns[CLASS_INITIALISATION]));
		return advice_report_share(a, CLASS_INITIALISATION, &report);
	}
	for (uint32_t i = 0; i < g->node_count; i++)
		if (g->flags[i] & NODE_ONCE)
			OW_TRY(cost_add(a, &cost, i));
	report.where = cost_where(a, &cost);
	report.what = advice_text(a, "steady steps still initialise: %s per step",
				  time_text(time, cost_per_step(a, &cost, NULL)));
	return advice_report(a, &cost, &report);
}

const struct rule rule_initialization = {
	.name = "initialization",
	.summary = "one-off work in steady steps",
	.doc = "initialization",
	.advise = advise,
};
