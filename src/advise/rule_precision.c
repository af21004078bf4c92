/*
 * rule_precision.c: matrix products and convolutions in 32 bits, by the names of their kernels. How much faster 16 bits are depends on the shapes and
 * on the memory, which a recording does not show. The floor is the ratio of the device's peak rates: a bound, so that this is a remark.
 */
#include "advise/advice.h"
#include "analyze/views/peaks.h"

/* smallest part of the step that these kernels must take on the device of the critical path */
#define LEAST_PART 0.10

static const char *const words[] = { "sgemm",
				     "scudnn",
				     "_engine<float",
				     "alg0_engine<float",
				     "implicit_convolve_sgemm",
				     "SGEMM",
				     "gemmSN",
				     NULL };

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = a->framework == FRAMEWORK_TORCH
				  ? STR("torch.autocast with bfloat16, or "
					"torch.set_float32_matmul_precision('high') for TF32")
				  : STR("mixed precision: bfloat16 or float16 for products and "
					"convolutions"),
		.falsified_by = STR("run a few steps in mixed precision: if they are not shorter, "
				    "these kernels do not limit the step"),
		.most = CONFIDENCE_LOW,
		.class = CLASS_COUNT
	};
	const struct graph *g = &a->s.g;
	struct cost cost = { .effect = EFFECT_SCALE };
	struct peaks peaks;
	char time[TIME_TEXT];
	int64_t sum;

	if (!advice_replays(a) || !g->has_device)
		return advice_not_checked(a, "needs kernels with their names");
	for (uint32_t i = 0; i < g->node_count; i++)
		if (g->kind[i] == NODE_KERNEL && op_has_word(a, node_op(g, i), words))
			OW_TRY(cost_add(a, &cost, i));
	sum = cost_per_step(a, &cost, NULL);
	if ((double)sum < LEAST_PART * (double)a->step_ns)
		return OW_OK;
	report.where = cost_where(a, &cost);
	peaks_find(a->m, &peaks);
	report.what = advice_text(
		a, "products and convolutions in 32 bits take %s per step; %s",
		time_text(time, sum),
		peaks.flops32 > 0
			? "with 16 bits the saving is at most what the device's peak "
			  "rates allow; only a trial shows how much it is"
			: "no bound of the saving is known, because the recording does not "
			  "name a device with known peak rates");
	if (!(peaks.flops32 > 0) || peaks.flops <= peaks.flops32)
		return advice_remark(a, SEVERITY_INFO, -1, -1, false, &report, (struct str){ 0 });
	cost.factors = ARENA_ARRAY(&a->scratch, double, cost.count + 1);
	if (!cost.factors)
		return error_no_memory(err);
	for (size_t i = 0; i < cost.count; i++)
		cost.factors[i] = peaks.flops32 / peaks.flops;
	return advice_report_bound(a, &cost, &report);
}

const struct rule rule_precision = {
	.name = "precision",
	.summary = "matrix products and convolutions in 32 bits",
	.doc = "precision",
	.advise = advise,
};
