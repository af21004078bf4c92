/*
 * rule_memory_growth.c: memory that is still in use at the end of a step and grows from step to step: a leak. It reads the heaps of the recording at
 * the ends of steps. Memory that grows in the first steps only is warm-up.
 */
#include "advise/advice.h"

#include "analyze/memory/heaps.h"

#define LEAST_STEPS 4
#define LEAST_PART 0.01 /* smallest growth per step that is reported, as a part of the peak */

struct growth {
	/* memory in use at the end of the first and the last step, and the smallest growth
	 * between two steps */
	int64_t first, last, least;
	uint32_t steps;
};

/* The functions below compute the memory in use at the end of each steady step from the changes
 * of one heap. */
/* Returns the end of each steady step's marker on the host, because the host allocates and frees memory;
 * the device may be behind. */
static int64_t *host_ends(struct advice *a)
{
	const struct graph *g = &a->s.g;
	int64_t *by_window = ARENA_ARRAY(&a->scratch, int64_t, (size_t)g->phases.window_count + 1);
	int64_t *ends = ARENA_ARRAY(&a->scratch, int64_t, (size_t)a->steady.used_count + 1);

	if (!by_window || !ends)
		return NULL;
	for (uint32_t i = 0; i < g->phases.window_count; i++)
		by_window[i] = g->phases.windows[i].end_ns;
	for (uint32_t i = 0; i < g->step_count; i++)
		by_window[g->steps[i].window] = g->steps[i].marker_end_ns;
	for (uint32_t i = 0; i < a->steady.used_count; i++)
		ends[i] = by_window[a->steady.used[i]];
	return ends;
}

static void measure(const struct advice *a, const int64_t *ends, const struct heaps *h,
		    uint32_t number, struct growth *out)
{
	const struct heap *heap = &h->items[number];
	const struct heap_list *l = &h->lists[heap->list];
	struct heap_state state = heap->start;
	uint32_t step = 0;
	int64_t before = 0;

	*out = (struct growth){ .least = INT64_MAX };
	for (uint32_t row = l->first; row < l->count && step < a->steady.used_count; row++) {
		if (l->heap[row] != number)
			continue;
		while (step < a->steady.used_count && l->ts_ns[row] != TIME_UNKNOWN &&
		       l->ts_ns[row] >= ends[step]) {
			if (out->steps)
				out->least = MIN(out->least, state.in_use - before);
			else
				out->first = state.in_use;
			before = out->last = state.in_use;
			out->steps++;
			step++;
		}
		heap_apply(l, row, &state);
	}
}

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = STR("something keeps tensors of old steps: lists of losses with their "
			      "graph (use loss.detach() or .item()), caches, hooks"),
		.falsified_by = STR(
			"record more steps: if the memory stops growing, the growth was warm-up"),
		.most = CONFIDENCE_MEDIUM,
		.class = CLASS_COUNT
	};
	struct view_options options;
	struct heaps h;
	int64_t *ends;
	ow_status status;

	if (a->m->heap.count <= 1)
		return advice_not_checked(a, "no memory events: record with profile_memory=True");
	if (!a->has_steps || !a->steady.known || a->steady.used_count < LEAST_STEPS)
		return advice_not_checked(a, "needs memory events over at least %d steady steps",
					  LEAST_STEPS);
	ends = host_ends(a);
	if (!ends)
		return error_no_memory(err);
	view_options_init(&options);
	status = heaps_find(&h, a->m, &options, err);
	for (uint32_t i = 1; status == OW_OK && i < h.count; i++) {
		struct growth g;

		measure(a, ends, &h, i, &g);
		if (g.steps < LEAST_STEPS || g.least <= 0 ||
		    (double)(g.last - g.first) <
			    LEAST_PART * (double)h.items[i].peak * (g.steps - 1))
			continue;
		report.where = arena_str(a->arena, model_str(a->m, h.items[i].device));
		report.what = advice_text(
			a, "memory in use grows in every step, by %lld bytes in the mean",
			(long long)((g.last - g.first) / (g.steps - 1)));
		status = advice_remark(a, SEVERITY_MEDIUM, -1, -1, false, &report,
				       (struct str){ 0 });
		break;
	}
	heaps_release(&h);
	return status;
}

const struct rule rule_memory_growth = {
	.name = "memory_growth",
	.summary = "memory that grows from step to step",
	.doc = "memory_growth",
	.advise = advise,
};
