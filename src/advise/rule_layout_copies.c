/*
 * rule_layout_copies.c: kernels that only change how tensors lie in memory: transposes between NCHW and NHWC, copies on the device. The
 * floor is none of them and of their launches.
 */
#include "advise/advice.h"

static const char *const words[] = { "nchwToNhwc",  "nhwcToNchw",	   "batched_transpose",
				     "Transpose",   "transpose_readWrite", "direct_copy_kernel",
				     "Memcpy DtoD", "CopyDeviceToDevice",  NULL };

static const char *const plain_copies[] = { "Memcpy DtoD", "CopyDeviceToDevice", NULL };

/* Returns whether most of the time is spent in copies that keep the layout. */
static bool is_mostly_plain(struct advice *a, const struct cost *cost)
{
	const struct graph *g = &a->s.g;
	int64_t all = 0, plain = 0;

	for (size_t i = 0; i < cost->count; i++) {
		int64_t weight = g->weight_ns[cost->nodes[i]];

		all = span_add(all, weight);
		if (op_has_word(a, node_op(g, cost->nodes[i]), plain_copies))
			plain = span_add(plain, weight);
	}
	return plain > all / 2;
}

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
			STR("set the layout: if the layout kernels remain, an operator needs them"),
		.most = CONFIDENCE_MEDIUM,
		.class = CLASS_COMPUTE
	};
	const struct graph *g = &a->s.g;
	struct cost cost = { .effect = EFFECT_FUSE };
	char time[TIME_TEXT];
	double count;
	bool plain, one;

	(void)err;
	if (!advice_has_nodes(a) || !g->has_device)
		return advice_not_checked(a, "needs kernels in steps, and host threads");
	for (uint32_t i = 0; i < g->node_count; i++)
		if (g->kind[i] == NODE_KERNEL && op_has_word(a, node_op(g, i), words))
			OW_TRY(cost_add(a, &cost, i));
	cost_per_step(a, &cost, &count);
	report.where = cost_where(a, &cost);
	plain = is_mostly_plain(a, &cost);
	one = count > 0.5 && count < 1.5;
	report.what =
		advice_text(a, "%.0f %s per step only %s%s tensors: %s", count,
			    plain ? (one ? "copy on the device" : "copies on the device")
				  : (one ? "kernel" : "kernels"),
			    plain ? "move" : "change",
			    plain ? (one ? "s" : "") : (one ? "s the layout of" : " the layout of"),
			    time_text(time, cost_per_step(a, &cost, NULL)));
	if (plain && a->framework == FRAMEWORK_TORCH) {
		report.advice = STR("let operators write where the values are needed (out=, views, "
				    "gradient_as_bucket_view) instead of clone(), contiguous(), "
				    "cat() and copy_()");
		report.falsified_by = STR("leave one of the copies out: if the step is not "
					  "shorter, other work hid their cost");
	}
	return advice_report(a, &cost, &report);
}

const struct rule rule_layout_copies = {
	.name = "layout_copies",
	.summary = "kernels that only change the layout of tensors",
	.doc = "layout_copies",
	.advise = advise,
};
