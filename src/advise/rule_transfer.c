/*
 * rule_transfer.c: time that copies between host and device add to a step. The lower bound is a step without these copies. Copies that
 * run at the same time as compute would save nothing and are not reported.
 */
#include "advise/advice.h"

static bool is_copy(const struct graph *g, uint32_t node)
{
	return g->kind[node] == NODE_TO_DEVICE || g->kind[node] == NODE_TO_HOST;
}

/* Chooses the advice: on a TPU, host memory holds data that does not fit on the device; elsewhere copies
 * bring batches and fetch results. */
static struct str what_to_try(const struct advice *a)
{
	switch (a->framework) {
	case FRAMEWORK_TENSORFLOW:
		return STR("prefetch batches to the device (tf.data's prefetch_to_device or "
			   "prefetch(AUTOTUNE)), copy less (smaller types, decode on the device), "
			   "fetch results every 100 steps");
	case FRAMEWORK_JAX:
		return STR("keep data on the device: larger memory budget instead of offloading, "
			   "donated buffers, prefetch of what lies in host memory");
	default:
		return STR("prefetch the next batch to the device on a stream of its own, copy "
			   "less (smaller types, decode on the device), keep results there");
	}
}

/* Without a replay, the copies in each direction are a separate part of the step. */
static ow_status report_direction(struct advice *a, enum phase_class class, struct report *report)
{
	bool out = class == CLASS_DEVICE_TO_HOST;

	report->class = class;
	report->where = out ? STR("copies to the host") : STR("copies to the device");
	report->what = advice_text(a, "%.*s are copies from %s without concurrent compute",
				   STR_ARG(advice_share(a, class)),
				   out ? "the device to host memory" : "host memory to the device");
	return advice_report_share(a, class, report);
}

static ow_status advise(struct advice *a, struct ow_error *err)
{
	enum phase_class most =
		a->share_ns[CLASS_DEVICE_TO_HOST] > a->share_ns[CLASS_HOST_TO_DEVICE]
			? CLASS_DEVICE_TO_HOST
			: CLASS_HOST_TO_DEVICE;
	struct report report = { .advice = what_to_try(a),
				 .falsified_by =
					 STR("leave the copied data on the device: if the step is "
					     "not shorter, other work hid the copies"),
				 .most = CONFIDENCE_HIGH,
				 .class = most };
	const struct graph *g = &a->s.g;
	struct cost cost = { .effect = EFFECT_TIME };
	char time[TIME_TEXT];
	double count;

	(void)err;
	if (!a->has_steps)
		return advice_not_checked(a, "no steps with timed work");
	if (!advice_replays(a)) {
		OW_TRY(report_direction(a, CLASS_HOST_TO_DEVICE, &report));
		return report_direction(a, CLASS_DEVICE_TO_HOST, &report);
	}
	for (uint32_t i = 0; i < g->node_count; i++)
		if (is_copy(g, i))
			OW_TRY(cost_add(a, &cost, i));
	cost_per_step(a, &cost, &count);
	report.where = cost_where(a, &cost);
	report.what =
		advice_text(a, "copies between host and device take %s per step (%.0f of them)",
			    time_text(time, cost_per_step(a, &cost, NULL)), count);
	return advice_report(a, &cost, &report);
}

const struct rule rule_transfer = {
	.name = "transfer",
	.summary = "copies between host and device that nothing hides",
	.doc = "transfer",
	.advise = advise,
};
