/*
 * rule_allocation.c: calls in a steady step that take memory from the device or give it back. They wait for the device, so that the cost is
 * the wait and the call; the floor is none of it, as with an allocator that keeps its memory.
 */
#include "advise/advice.h"

static bool is_in_every_step(struct advice *a, const struct cost *cost)
{
	const struct graph *g = &a->s.g;
	uint8_t *has = ARENA_ARRAY(&a->scratch, uint8_t, (size_t)g->step_count + 1);
	uint32_t count = 0;

	for (size_t i = 0; has && i < cost->count; i++)
		if (node_is_steady(a, cost->nodes[i])) {
			uint8_t *seen = &has[g->step[cost->nodes[i]] - 1];

			count += !*seen;
			*seen = 1;
		}
	return a->steady.known && a->steps > 1 && count == a->steps;
}

static struct str what_to_try(const struct advice *a, bool again)
{
	if (a->framework != FRAMEWORK_TORCH)
		return again ? STR("allocate once and reuse: a memory pool, or buffers that "
				   "outlive the step")
			     : STR("allocate once, ahead of the work, and reuse: a memory pool, or "
				   "buffers that are kept");
	return again ? STR("the caching allocator returns memory in every step: leave more memory "
			   "free (smaller batch), drop torch.cuda.empty_cache(), set "
			   "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and check "
			   "PYTORCH_NO_CUDA_MEMORY_CACHING")
		     : STR("the caching allocator asks for memory when its pool grows: if that "
			   "happens again and again, drop torch.cuda.empty_cache(), set "
			   "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and check "
			   "PYTORCH_NO_CUDA_MEMORY_CACHING");
}

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.falsified_by = STR("count the calls after the change: if they are gone and the "
				    "step is not shorter, other work hid their cost"),
		.most = CONFIDENCE_HIGH,
		/* frameworks allocate memory once and keep it */
		.maybe_once = a->steady.used_count < 2 && a->framework != FRAMEWORK_UNKNOWN,
		.class = CLASS_ALLOCATION
	};
	const struct graph *g = &a->s.g;
	struct cost cost = { .effect = EFFECT_WAIT };
	char time[TIME_TEXT];
	double count;

	(void)err;
	if (report.maybe_once)
		report.advice = STR("record several steps after the warm-up: if the calls are "
				    "still there, keep memory instead of freeing it (no "
				    "empty_cache(), a memory pool)");
	if (!a->has_steps)
		return advice_not_checked(a, "no steps with timed work");
	if (!advice_replays(a)) {
		report.where = STR("allocation");
		report.advice = what_to_try(a, a->steady.used_count > 1 &&
						       a->least_ns[CLASS_ALLOCATION] > 0);
		report.what = advice_text(a, "%.*s allocate and free device memory",
					  STR_ARG(advice_share(a, CLASS_ALLOCATION)));
		return advice_report_share(a, CLASS_ALLOCATION, &report);
	}
	for (uint32_t i = 0; i < g->node_count; i++)
		if (g->kind[i] == NODE_ALLOC)
			OW_TRY(cost_add(a, &cost, i));
	cost_per_step(a, &cost, &count);
	report.advice = what_to_try(a, is_in_every_step(a, &cost));
	report.where = cost_where(a, &cost);
	report.what =
		advice_text(a, "%.0f calls per step allocate or free device memory and take %s",
			    count, time_text(time, cost_per_step(a, &cost, NULL)));
	return advice_report(a, &cost, &report);
}

const struct rule rule_allocation = {
	.name = "allocation",
	.summary = "device memory that is allocated and freed in every step",
	.doc = "allocation",
	.advise = advise,
};
