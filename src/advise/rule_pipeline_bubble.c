/*
 * rule_pipeline_bubble.c: stages of a pipeline that wait for each other. It needs several ranks that send to and receive from each other; the bubble
 * of a stage is its time in these messages. The floor is none of it: each stage always has a micro-batch to work on. What such messages cost in
 * the recording of a single rank is the rule exposed_communication.
 */
#include "advise/advice.h"

/* Selects the messages between ranks in steady steps as the cost and returns the number of ranks
 * that have them. */
static ow_status select_messages(struct advice *a, struct cost *cost, uint32_t *ranks)
{
	const struct graph *g = &a->s.g;
	uint8_t *sends = ARENA_ARRAY(&a->scratch, uint8_t, MAX(a->m->source.count, 1u));

	if (!sends)
		return error_no_memory(a->err);
	for (uint32_t l = 0; l < g->lane_count; l++)
		for (uint32_t i = g->lanes[l].first; i < g->lanes[l].first + g->lanes[l].count; i++)
			if (g->kind[i] == NODE_COMMUNICATION && node_is_steady(a, i) &&
			    node_is_message(g, i)) {
				sends[g->lanes[l].source.v] = 1;
				OW_TRY(cost_add(a, cost, i));
			}
	*ranks = 0;
	for (uint32_t i = 1; i < a->m->source.count; i++)
		*ranks += sends[i];
	return OW_OK;
}

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice =
			STR("more and smaller micro-batches, an interleaved schedule, or stages of "
			    "equal length"),
		.falsified_by = STR("double the number of micro-batches: if the waits are not "
				    "shorter, the link between the stages is slow"),
		.most = CONFIDENCE_MEDIUM,
		.class = CLASS_COMMUNICATION
	};
	struct cost cost = { .effect = EFFECT_WAIT };
	uint32_t ranks;
	char time[TIME_TEXT];

	(void)err;
	if (!advice_has_nodes(a) || a->m->source.count <= 2)
		return advice_not_checked(a,
					  "needs the recordings of several stages of a pipeline");
	OW_TRY(select_messages(a, &cost, &ranks));
	if (ranks < 2)
		return advice_not_checked(a, "no rank sends to the next stage in this recording");
	report.where = advice_text(a, "send and receive of %u stages", ranks);
	report.what = advice_text(
		a,
		"stages of the pipeline wait for each other: %s per step are spent in send "
		"and receive",
		time_text(time, cost_per_step(a, &cost, NULL)));
	return advice_report(a, &cost, &report);
}

const struct rule rule_pipeline_bubble = {
	.name = "pipeline_bubble",
	.summary = "stages of a pipeline that wait for each other",
	.doc = "pipeline_bubble",
	.advise = advise,
};
