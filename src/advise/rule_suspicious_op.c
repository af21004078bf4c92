/*
 * rule_suspicious_op.c: operators that rarely belong into a step: listing files, printing, checks for NaN, anomaly detection. Each is reported if it
 * takes a noticeable part of a step; the saving is a replay without it.
 */
#include "advise/advice.h"

static const char *const words[] = { "MatchingFiles",
				     "PrintV2",
				     "StringFormat",
				     "CheckNumerics",
				     "aten::_assert_async",
				     "aten::isnan",
				     "aten::isinf",
				     "aten::isfinite",
				     "detect_anomaly",
				     "aten::nonzero",
				     "py_call",
				     "PyFunc",
				     "EagerPyFunc",
				     NULL };

/* Returns the last kernel of a source that ended by t; UINT32_MAX if there is none. */
static uint32_t last_kernel(const struct graph *g, source_id source, int64_t t)
{
	uint32_t last = UINT32_MAX;

	for (uint32_t l = 0; l < g->lane_count; l++) {
		uint32_t at;

		if (!g->lanes[l].device || g->lanes[l].source.v != source.v)
			continue;
		at = lane_at(g, &g->lanes[l], t);
		while (at > g->lanes[l].first && g->kind[at - 1] != NODE_KERNEL)
			at--;
		if (at > g->lanes[l].first &&
		    (last == UINT32_MAX || g->start_ns[at - 1] > g->start_ns[last]))
			last = at - 1;
	}
	return last;
}

/* Without launches: an operator that waits for its result has the last kernel before the end of the wait, and the device idles until its next
 * work. */
static ow_status report_waiting(struct advice *a, struct cost *cost, struct report *report)
{
	const struct graph *g = &a->s.g;
	size_t count = cost->count;
	int64_t sum = 0;
	char time[TIME_TEXT];

	for (size_t i = 0; i < count; i++) {
		uint32_t node = cost->nodes[i], kernel;
		source_id source = lane_of_node(g, node)->source;
		int64_t next;

		if (g->kind[node] != NODE_SYNC)
			continue;
		kernel = last_kernel(g, source, node_end(g, node));
		next = device_next(g, source, node_end(g, node));
		if (kernel == UINT32_MAX || next == INT64_MAX)
			continue;
		sum = span_add(sum, next - g->start_ns[kernel]);
		OW_TRY(cost_add(a, cost, kernel));
	}
	sum = MIN(sum / a->steps, a->step_ns);
	report->where = cost_where(a, cost);
	report->what = advice_text(a, "operators that rarely belong into a step take %s",
				   time_text(time, sum));
	return advice_report_part(a, cost, sum, report);
}

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = STR("leave it out of the step, or do it every 100 steps"),
		.falsified_by =
			STR("remove it: if the step is not shorter, other work hid its cost"),
		.most = CONFIDENCE_MEDIUM,
		.class = CLASS_COUNT
	};
	struct cost cost = { .effect = EFFECT_WAIT };
	char time[TIME_TEXT];

	(void)err;
	if (!advice_replays(a) && advice_has_nodes(a) && a->s.g.has_device) {
		OW_TRY(cost_add_inside(a, &cost, words, false));
		return report_waiting(a, &cost, &report);
	}
	if (!advice_replays(a))
		return advice_not_checked(a, "needs a recording that can be replayed");
	OW_TRY(cost_add_inside(a, &cost, words, true));
	report.where = cost_where(a, &cost);
	report.what = advice_text(a, "operators that rarely belong into a step take %s",
				  time_text(time, cost_per_step(a, &cost, NULL)));
	return advice_report(a, &cost, &report);
}

const struct rule rule_suspicious_op = {
	.name = "suspicious_op",
	.summary = "operators that rarely belong into a step",
	.doc = "suspicious_op",
	.advise = advise,
};
