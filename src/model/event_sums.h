/*
 * event_sums.h: the sums of op_step for a part of the events: a range of time, or a rank. Columns are parallel to the
 * rows of op_step; an op that did not run in that part has zeros. metric_plan_filter makes every metric use them.
 */
#ifndef MODEL_EVENT_SUMS_H
#define MODEL_EVENT_SUMS_H

#include "model/event_filter.h"

struct event_sums {
	int64_t *run_count, *accelerator_ns, *cpu_ns;
};

/* The row of an op in a step, or 0; step 0: outside of steps. */
uint32_t op_step_find(const struct model *m, uint32_t op, uint32_t step);

enum event_sum { SUM_NONE, SUM_CPU, SUM_ACCELERATOR };

/* The sum that an event of an op adds to, and the amount, for the part inside the filter's range. Called after
 * model_require_nesting. */
enum event_sum event_amount(const struct model *m, const struct event_filter *filter,
			    uint32_t event, int64_t *ns);

/* Makes the sums. Events that lie partly in the range count for that part. OW_E_UNSUPPORTED when op_step does not
 * come from events. */
ow_status event_sums_make(struct model *m, const struct event_filter *filter, struct arena *arena,
			  struct event_sums *out, struct ow_error *err);

#endif
