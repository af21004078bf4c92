/*
 * rule_imbalance.c: ranks or devices with unequal work: the busiest one against the mean. It reads the phases of the steps. Where ranks wait for each
 * other in collectives, the floor is all devices as busy as their mean, by replay; without that the saving is unknown. What the others wait for one slow
 * rank is the rule collective_wait.
 */
#include "advise/advice.h"

#define LEAST_RATIO 1.10

/* Selects the compute of each device, with the factor that reduces it to the mean of all
 * devices. */
static ow_status select_work(struct advice *a, const int64_t *busy, double mean, struct cost *cost)
{
	const struct graph *g = &a->s.g;
	const struct phases *p = &g->phases;

	cost->factors = ARENA_ARRAY(&a->scratch, double, (size_t)g->node_count + 1);
	if (!cost->factors)
		return error_no_memory(a->err);
	for (uint32_t l = 0; l < g->lane_count; l++) {
		const struct lane *lane = &g->lanes[l];
		uint32_t k = 0;

		while (k < p->lane_count &&
		       (p->lanes[k].source.v != lane->source.v ||
			p->lanes[k].device.v != a->m->track.device[lane->track.v].v))
			k++;
		if (!lane->device || k == p->lane_count || busy[k] <= 0)
			continue;
		for (uint32_t i = lane->first; i < lane->first + lane->count; i++)
			if (g->kind[i] == NODE_KERNEL && !(g->flags[i] & NODE_JOINS)) {
				cost->factors[cost->count] = mean / (double)busy[k];
				OW_TRY(cost_add(a, cost, i));
			}
	}
	return OW_OK;
}

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = STR("distribute the work evenly: the same number of samples, tokens or "
			      "layers for each"),
		.falsified_by = STR("swap the work of two of them: if the same one is still "
				    "slower, the machine is the cause, not the amount of work"),
		.most = CONFIDENCE_MEDIUM,
		.class = CLASS_COUNT
	};
	const struct phases *p = &a->s.g.phases;
	struct cost cost = { .effect = EFFECT_SCALE };
	int64_t *busy = ARENA_ARRAY(&a->scratch, int64_t, (size_t)p->lane_count + 1), sum = 0;
	uint32_t most = 0, lanes = 0;
	struct str device;
	int32_t rank;
	double ratio;

	if (!busy)
		return error_no_memory(err);
	for (uint32_t i = 0; i < p->row_count; i++)
		if (p->lanes[p->rows[i].lane].has_device &&
		    p->windows[p->rows[i].window].use == STEP_STEADY)
			busy[p->rows[i].lane] = span_add(busy[p->rows[i].lane],
							 p->rows[i].sums.share[CLASS_COMPUTE]);
	for (uint32_t i = 0; i < p->lane_count; i++)
		if (busy[i] > 0) {
			sum = span_add(sum, busy[i]);
			most = busy[i] > busy[most] ? i : most;
			lanes++;
		}
	if (lanes < 2)
		return advice_not_checked(a, "needs several devices or ranks with compute");
	ratio = (double)busy[most] * lanes / (double)sum;
	if (ratio < LEAST_RATIO)
		return OW_OK;
	rank = a->m->source.rank[p->lanes[most].source.v];
	device = model_str(a->m, a->m->device.name[p->lanes[most].device.v]);
	report.where = rank >= 0 ? advice_text(a, "rank %d, %.*s", rank, STR_ARG(device)) : device;
	report.what = advice_text(a, "one of %u devices computes %.2f times as long as the mean",
				  lanes, ratio);
	/* the time that the other devices wait for the busiest one */
	if (!advice_replays(a) && a->s.g.joined_count) {
		int64_t more = (int64_t)((double)busy[most] - (double)sum / lanes);

		report.class = CLASS_COMMUNICATION;
		return advice_report_part(a, &cost,
					  MIN(more / MAX(a->steady.used_count / lanes, 1u),
					      a->share_ns[CLASS_COMMUNICATION]),
					  &report);
	}
	if (!a->s.g.joined_count)
		return advice_remark(a, SEVERITY_LOW, -1, -1, false, &report, (struct str){ 0 });
	OW_TRY(select_work(a, busy, (double)sum / lanes, &cost));
	return advice_report(a, &cost, &report);
}

const struct rule rule_imbalance = {
	.name = "imbalance",
	.summary = "ranks or devices with unequal work",
	.doc = "imbalance",
	.advise = advise,
};
