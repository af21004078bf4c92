/*
 * rule_fusible.c: runs of elementwise kernels on a stream that one kernel could do. The floor: each run takes as long as its longest
 * kernel, because the others read and write the same data; their launches are gone.
 */
#include "advise/advice.h"

#define SHORTEST_RUN 3
#define ALIKE 3	       /* kernels of a run may differ in length by this factor at most */
#define SHORT_NS 50000 /* kernels longer than this must be of similar length to be fused */
/* upper limit for kernels that read many tensors: longer kernels are limited by memory, and a
 * saved launch does not matter */
#define MANY_NS 10000
/* upper limit for kernels on one tensor, each of which reads and writes the whole tensor */
#define ELEMENTWISE_NS 2000000

static const char *const words[] = { "elementwise",	    "Elementwise",
				     "pointwise",	    "vectorized_",
				     "reduce_kernel",	    "-multi_tensor",
				     "-direct_copy_kernel", NULL };
static const char *const many[] = { "foreach", "multi_tensor", NULL };

static bool is_fusible(struct advice *a, const uint8_t *lists, uint32_t node)
{
	const struct graph *g = &a->s.g;

	if (g->kind[node] != NODE_KERNEL)
		return false;
	return g->weight_ns[node] <= (lists[node_op(g, node).v] == 2   ? MANY_NS
				      : lists[node_op(g, node).v] == 1 ? ELEMENTWISE_NS
								       : -1);
}

/* Classifies each op: 1 = kernel on one tensor, 2 = kernel on many tensors. */
static uint8_t *classify(struct advice *a)
{
	uint8_t *lists = ARENA_ARRAY(&a->scratch, uint8_t, a->m->op.count + 1);

	for (uint32_t i = 1; lists && i < a->m->op.count; i++)
		lists[i] = op_has_word(a, (op_id){ i }, words);
	for (uint32_t i = 1; lists && i < a->m->op.count; i++)
		if (op_has_word(a, (op_id){ i }, many))
			lists[i] = 2;
	return lists;
}

/* All of a run but its longest kernel. Of long kernels those of about the same length count: they work on the same tensor. Of those that
 * take little more than their launch all do. */
static ow_status add_run(struct advice *a, struct cost *cost, uint32_t first, uint32_t end)
{
	const struct graph *g = &a->s.g;
	uint32_t longest = first, alike = 0;
	int64_t least;

	if (end - first < SHORTEST_RUN)
		return OW_OK;
	for (uint32_t i = first; i < end; i++)
		if (g->weight_ns[i] > g->weight_ns[longest])
			longest = i;
	least = g->weight_ns[longest] > SHORT_NS ? g->weight_ns[longest] / ALIKE : 0;
	for (uint32_t i = first; i < end; i++)
		alike += g->weight_ns[i] >= least || g->weight_ns[i] <= MANY_NS;
	for (uint32_t i = first; alike >= SHORTEST_RUN && i < end; i++)
		if (i != longest && (g->weight_ns[i] >= least || g->weight_ns[i] <= MANY_NS))
			OW_TRY(cost_add(a, cost, i));
	return OW_OK;
}

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = a->framework == FRAMEWORK_TORCH
				  ? STR("torch.compile fuses them; for the optimizer fused=True or "
					"foreach=True")
				  : STR("compile it (XLA), or use operators that are fused "
					"already"),
		.falsified_by = STR("compile this part: if the step is not shorter, other work hid "
				    "the cost of the kernels"),
		.most = CONFIDENCE_MEDIUM,
		.class = CLASS_COMPUTE
	};
	const struct graph *g = &a->s.g;
	struct cost cost = { .effect = EFFECT_FUSE };
	uint8_t *lists = classify(a);
	double count;

	if (!lists)
		return error_no_memory(err);
	if (!advice_has_nodes(a) || !g->has_device)
		return advice_not_checked(a, "needs kernels in steps, and host threads");
	for (uint32_t l = 0; l < g->lane_count; l++) {
		uint32_t first = g->lanes[l].first, end = first + g->lanes[l].count;

		for (uint32_t i = first; g->lanes[l].device && i <= end; i++)
			if (i == end || !is_fusible(a, lists, i)) {
				OW_TRY(add_run(a, &cost, first, i));
				first = i + 1;
			}
	}
	cost_per_step(a, &cost, &count);
	report.where = cost_where(a, &cost);
	report.what = advice_text(a,
				  "%.0f elementwise kernels per step follow each other and could "
				  "be fused",
				  count);
	return advice_report(a, &cost, &report);
}

const struct rule rule_fusible = {
	.name = "fusible",
	.summary = "runs of short kernels that one kernel could do",
	.doc = "fusible",
	.advise = advise,
};
