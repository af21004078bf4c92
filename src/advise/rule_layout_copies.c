/*
 * rule_layout_copies.c: kernels that only change how tensors lie in memory: transposes between NCHW and NHWC, copies on the device. The
 * floor is none of them and of their launches.
 */
#include "advise/advice.h"

static const char *const words[] = { "nchwToNhwc",  "nhwcToNchw",	   "batched_transpose",
				     "Transpose",   "transpose_readWrite", "direct_copy_kernel",
				     "Memcpy DtoD", "CopyDeviceToDevice",  NULL };

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = a->framework == FRAMEWORK_TORCH
				  ? STR("keep one layout: "
					"model.to(memory_format=torch.channels_last) and the "
					"input as well; fewer .contiguous() and permute()")
				  : STR("keep one layout from input to output, so that tensors "
					"need not be "
					"transposed"),
		.falsified_by =
			STR("set the layout: if such kernels remain, an operator needs them"),
		.most = CONFIDENCE_MEDIUM,
		.class = CLASS_COMPUTE
	};
	const struct graph *g = &a->s.g;
	struct cost cost = { .effect = EFFECT_FUSE };
	char time[TIME_TEXT];
	double count;

	(void)err;
	if (!advice_has_nodes(a) || !g->has_device)
		return advice_not_checked(a, "needs kernels in steps, and host threads");
	for (uint32_t i = 0; i < g->node_count; i++)
		if (g->kind[i] == NODE_KERNEL && op_has_word(a, node_op(g, i), words))
			OW_TRY(cost_add(a, &cost, i));
	cost_per_step(a, &cost, &count);
	report.where = cost_where(a, &cost);
	report.what = advice_text(a, "%.0f kernels per step only change the layout of tensors: %s",
				  count, time_text(time, cost_per_step(a, &cost, NULL)));
	return advice_report(a, &cost, &report);
}

const struct rule rule_layout_copies = {
	.name = "layout_copies",
	.summary = "kernels that only change the layout of tensors",
	.doc = "layout_copies",
	.advise = advise,
};
