/*
 * rule_step_change.c: steps that take longer from some moment on. It compares the medians before and after each step; the saving refers to the mean step:
 * what it gets shorter when all steps take as long as those before. At most 2,000 steps are compared, the last ones.
 */
#include "advise/advice.h"

/* a device has queued work if it works this many times as long per step as the step takes */
#define QUEUED 1.1
#define LEAST_STEPS 6
#define LEAST_SIDE 3
#define LEAST_RATIO 1.15
#define MOST_STEPS 2000u

struct split {
	uint32_t at; /* index of the first slow step */
	double gain; /* how much better two levels fit the durations than one level */
	double before, after;
};

/* Fits two levels by least squares. Running sums make each split O(1). */
static struct split find_split(const int64_t *times, uint32_t count)
{
	struct split best = { 0, 0, 0, 0 };
	double all = 0, left = 0;

	for (uint32_t i = 0; i < count; i++)
		all += (double)times[i];
	for (uint32_t i = 1; i < count; i++) {
		double a, b, gain;

		left += (double)times[i - 1];
		a = left / i;
		b = (all - left) / (count - i);
		gain = (a - b) * (a - b) * i * (count - i);
		if (i >= LEAST_SIDE && count - i >= LEAST_SIDE && gain > best.gain)
			best = (struct split){ i, gain, a, b };
	}
	return best;
}

/* Returns whether all steps after the split are longer than all steps before it, with one
 * exception in ten. */
static bool is_level(const int64_t *times, uint32_t count, const struct split *s)
{
	double middle = (s->before + s->after) / 2;
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < count; i++)
		wrong += (i < s->at) == ((double)times[i] > middle);
	return wrong * 10 <= count;
}

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = STR("compare a step before with one after ('opwatch phases --step "
			      "N'): a warm-up that ended, memory that ran short, a clock that "
			      "went down, another job"),
		.falsified_by =
			STR("record longer: if steps become fast again, the change does not last"),
		.most = CONFIDENCE_MEDIUM,
		.class = CLASS_COUNT
	};
	uint32_t count = a->has_steps && a->steady.known ? a->steady.used_count : 0, first = 0;
	char before[TIME_TEXT], after[TIME_TEXT];
	const struct phase_window *w;
	struct split split;
	int64_t *times;

	if (count < LEAST_STEPS)
		return advice_not_checked(a, "needs at least %d steady steps, and there are %u",
					  LEAST_STEPS, count);
	if (host_runs_ahead(a))
		return advice_not_checked(
			a, "the host runs ahead of the device: record with correlation ids to see "
			   "which work belongs to which step");
	first = count > MOST_STEPS ? count - MOST_STEPS : 0;
	times = ARENA_ARRAY(&a->scratch, int64_t, count);
	if (!times)
		return error_no_memory(err);
	for (uint32_t i = first; i < count; i++) {
		w = &a->s.g.phases.windows[a->steady.used[i]];
		times[i - first] = span_length(w->start_ns, w->end_ns);
	}
	split = find_split(times, count - first);
	if (!split.at || split.after < split.before * LEAST_RATIO ||
	    !is_level(times, count - first, &split))
		return OW_OK;
	/* These steps are shorter than their device work: the host ran ahead until the queue of
	 * launches was full. */
	if (split.before * QUEUED < (double)a->device_ns)
		return OW_OK;
	w = &a->s.g.phases.windows[a->steady.used[first + split.at]];
	report.where = advice_text(a, "step %lld", (long long)a->m->step.number[w->step.v]);
	report.what = advice_text(
		a, "from step %lld on, steps take %s; before, they took %s: %.1f times as long",
		(long long)a->m->step.number[w->step.v], time_text(after, (int64_t)split.after),
		time_text(before, (int64_t)split.before), split.after / split.before);
	return advice_remark(a, SEVERITY_LOW, 0,
			     (int64_t)((split.after - split.before) * (count - first - split.at) /
				       (count - first)),
			     true, &report,
			     advice_text(a, "[{\"ts_ns\": %lld, \"dur_ns\": %lld, \"step\": %lld}]",
					 (long long)w->start_ns,
					 (long long)span_length(w->start_ns, w->end_ns),
					 (long long)a->m->step.number[w->step.v]));
}

const struct rule rule_step_change = {
	.name = "step_change",
	.summary = "steps that take longer from some moment on",
	.doc = "step_change",
	.advise = advise,
};
