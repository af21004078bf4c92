/*
 * rule_outlier_steps.c: single steps that take much longer than the median. The saving refers to the mean step: what it gets shorter when these
 * steps take as long as the median. Warm-up and the last step do not count.
 */
#include "advise/advice.h"

#include <math.h>

#define LEAST_STEPS 5
#define ENOUGH_STEPS 8 /* with fewer steps a single slow step means little */
#define SIGMAS 3.0
#define LEAST_PART 1.2 /* a step is slow if it takes at least this many times the median */
#define MOST_PART 3    /* if more than one in this many steps is slow, the steps are not outliers */

static int64_t length(const struct advice *a, uint32_t i)
{
	const struct phase_window *w = &a->s.g.phases.windows[a->steady.used[i]];

	return span_length(w->start_ns, w->end_ns);
}

/* Computes the robust deviation: 1.4826 times the median distance from the median. */
static ow_status deviation(struct advice *a, double *out)
{
	int64_t *far = ARENA_ARRAY(&a->scratch, int64_t, (size_t)a->steady.used_count + 1);

	if (!far)
		return error_no_memory(a->err);
	for (uint32_t i = 0; i < a->steady.used_count; i++)
		far[i] = llabs(length(a, i) - a->step_ns);
	*out = 1.4826 * (double)median_of(far, a->steady.used_count);
	return OW_OK;
}

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = STR("look at these steps in the timeline: garbage collection, "
			      "checkpoints, slow storage, or another job on the machine"),
		.falsified_by = STR("record again: if other steps are slow then, the work of the "
				    "step is not the cause"),
		.most = CONFIDENCE_MEDIUM,
		.class = CLASS_COUNT
	};
	uint32_t count = 0, worst = 0, before = 0;
	bool starting = true;
	double sigma, limit;
	struct buf evidence;
	int64_t over = 0;
	ow_status status;

	if (!a->has_steps || !a->steady.known || a->steady.used_count < LEAST_STEPS)
		return advice_not_checked(a, "needs at least %d steady steps, and there are %u",
					  LEAST_STEPS, a->steady.known ? a->steady.used_count : 0);
	if (host_runs_ahead(a))
		return advice_not_checked(
			a, "the host runs ahead of the device: record with correlation ids to see "
			   "which work belongs to which step");
	OW_TRY(deviation(a, &sigma));
	limit = fmax((double)a->step_ns * LEAST_PART, (double)a->step_ns + SIGMAS * sigma);
	buf_init(&evidence, a->m->mem);
	buf_add_char(&evidence, '[');
	for (uint32_t i = 0; i < a->steady.used_count; i++) {
		const struct phase_window *w = &a->s.g.phases.windows[a->steady.used[i]];

		starting |= !i || w->source.v != before;
		before = w->source.v;
		starting &= (double)length(a, i) > limit;
		if (starting || (double)length(a, i) <= limit)
			continue; /* slow steps at the start are warm-up */
		buf_printf(&evidence, "%s{\"ts_ns\": %lld, \"dur_ns\": %lld, \"step\": %lld}",
			   count ? ", " : "", (long long)w->start_ns, (long long)length(a, i),
			   (long long)a->m->step.number[w->step.v]);
		if (!count || length(a, i) > length(a, worst))
			worst = i;
		over = span_add(over, length(a, i) - a->step_ns);
		count++;
	}
	buf_add_char(&evidence, ']');
	if (count && count * MOST_PART <= a->steady.used_count &&
	    (count > 1 || a->steady.used_count >= ENOUGH_STEPS)) {
		const struct phase_window *w = &a->s.g.phases.windows[a->steady.used[worst]];
		struct str kept = arena_str(a->arena, buf_str(&evidence));
		char longest[TIME_TEXT], median[TIME_TEXT];

		report.in_steps = count;
		report.where = advice_text(a, "step %lld", (long long)a->m->step.number[w->step.v]);
		report.what = advice_text(
			a,
			"%u of %u steps are slow, the worst takes %s where the median "
			"takes %s",
			count, a->steady.used_count, time_text(longest, length(a, worst)),
			time_text(median, a->step_ns));
		status = evidence.failed || !kept.ptr
				 ? error_no_memory(err)
				 : advice_remark(a, SEVERITY_LOW, 0, over / a->steady.used_count,
						 true, &report, kept);
	} else {
		status = OW_OK;
	}
	buf_release(&evidence);
	return status;
}

const struct rule rule_outlier_steps = {
	.name = "outlier_steps",
	.summary = "single steps that take much longer than the median",
	.doc = "outlier_steps",
	.advise = advise,
};
