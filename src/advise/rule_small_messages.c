/*
 * rule_small_messages.c: collectives that send small messages: their latency counts, not the bandwidth. It needs the bytes of messages. The floor is
 * one message for each run of small ones on a stream; what communication costs in all is the rule exposed_communication.
 */
#include "advise/advice.h"

/* at 10 GB/s, sending this many bytes takes as long as the latency of a collective */
#define SMALL_BYTES 262144
#define LEAST_PART 0.2
#define LEAST_COUNT 10

static bool is_small(const struct model *m, uint32_t event)
{
	int64_t bytes = COLUMN_GET(m->event.bytes, event);

	return bytes > 0 && bytes < SMALL_BYTES;
}

/* Selects all small messages of each run within a step, except the first one. */
static ow_status select_small(struct advice *a, struct cost *cost)
{
	const struct graph *g = &a->s.g;

	for (uint32_t l = 0; l < g->lane_count; l++) {
		uint32_t run = 0; /* event of the first message of the run */

		for (uint32_t i = g->lanes[l].first; i < g->lanes[l].first + g->lanes[l].count;
		     i++) {
			if (g->kind[i] != NODE_COMMUNICATION || !is_small(a->m, g->event[i]) ||
			    (i > g->lanes[l].first && g->step[i] != g->step[i - 1]))
				run = 0;
			if (g->kind[i] != NODE_COMMUNICATION || !is_small(a->m, g->event[i]))
				continue;
			run = run ? run : g->event[i];
			if (run != g->event[i])
				OW_TRY(cost_add(a, cost, i));
		}
	}
	return OW_OK;
}

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = STR("send larger pieces: DDP's bucket_cap_mb, flat parameters, fewer "
			      "groups; reduce several values in one tensor"),
		.falsified_by = STR("double the bucket size: if communication is not faster, "
				    "latency is not the cause"),
		.most = CONFIDENCE_MEDIUM,
		.class = CLASS_COMMUNICATION
	};
	struct cost cost = { .effect = EFFECT_FUSE };
	const struct model *m = a->m;
	uint64_t known = 0, small = 0;

	(void)err;
	for (uint32_t i = 1; i < m->event.count; i++)
		if (COLUMN_GET(m->event.phase, i) == PHASE_COMMUNICATION &&
		    COLUMN_GET(m->event.bytes, i) > 0) {
			known++;
			small += is_small(m, i);
		}
	if (!known)
		return advice_not_checked(a, "no collectives with their sizes: record shapes "
					     "(record_shapes=True)");
	if (small < LEAST_COUNT || (double)small < LEAST_PART * (double)known)
		return OW_OK;
	report.where = STR("communication");
	report.what = advice_text(a, "%llu of %llu messages are smaller than 256 KiB",
				  (unsigned long long)small, (unsigned long long)known);
	if (!advice_has_nodes(a))
		return advice_remark(a, SEVERITY_LOW, -1, -1, false, &report, (struct str){ 0 });
	OW_TRY(select_small(a, &cost));
	return advice_report(a, &cost, &report);
}

const struct rule rule_small_messages = {
	.name = "small_messages",
	.summary = "collectives that send small messages",
	.doc = "small_messages",
	.advise = advise,
};
