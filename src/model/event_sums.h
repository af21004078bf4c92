/*
 * event_sums.h: op_step once more, but of a part of the events: of a span of time, or of a rank. Columns
 * are parallel to the rows of op_step; an op that did not run in that part has zeros. metric_plan_filter
 * makes every metric use them.
 */
#ifndef MODEL_EVENT_SUMS_H
#define MODEL_EVENT_SUMS_H

#include "model/event_filter.h"

struct event_sums {
	int64_t *run_count, *accelerator_ns, *cpu_ns;
};

enum event_sum { SUM_NONE, SUM_CPU, SUM_ACCELERATOR };

/* What an event of an op counts for, and how much, of the part that lies in the filter's span. After
 * model_require_nesting. */
enum event_sum event_amount(const struct model *m, const struct event_filter *filter,
			    uint32_t event, int64_t *ns);

/* Events that lie partly in the span count for that part. OW_E_UNSUPPORTED when op_step does not come
 * from events. */
ow_status event_sums_make(struct model *m, const struct event_filter *filter, struct arena *arena,
			  struct event_sums *out, struct error *err);

#endif
