/*
 * metrics.h: the numbers of one op at one step, or averaged over its steps, as tfprof defines them.
 * A plan says which of them somebody needs, so that views over half a million ops read only the
 * columns that matter. Used by the views, by tree.c and by sinks through tree_op_metrics.
 */
#ifndef MODEL_METRICS_H
#define MODEL_METRICS_H

#include "model/event_sums.h"
#include "model/tree.h"

#define METRIC_BIT(metric) (1u << (metric))
#define METRIC_ALL (METRIC_BIT(METRIC_WEIGHT) - 1) /* of ops */

struct metric_plan {
	const struct model *m;
	uint32_t mask; /* METRIC_BIT of each wanted metric */
	bool average;  /* over the op's own steps */
	uint32_t step; /* row of the step when not */
	bool times, memory;
	int64_t unit_ns; /* averages of times are cut to it */
	bool in_micros;	 /* times are given in microseconds; see metric_need_micros */
	bool filtered;	 /* rows of op_step without runs do not count */
	const int64_t *run_count, *accelerator_ns, *cpu_ns; /* per row of op_step */
};

/* A step that does not exist gives an op without records in it. */
void metric_plan_init(struct metric_plan *plan, const struct model *m, int64_t step, uint32_t mask);

/* Only what the sums say ran; NULL = all. The sums must outlive the plan. */
void metric_plan_filter(struct metric_plan *plan, const struct event_sums *sums);

/* Sets the wanted values of out and leaves the others alone. */
void metric_eval(const struct metric_plan *plan, op_id op, int64_t out[METRIC_COUNT]);

/* Parameters held by a shape: 0 without one, and 0 with *incomplete set when a dimension is unknown. */
int64_t metric_params(const struct model *m, shape_id shape, bool *incomplete);

/* Dimensions as tfprof shows them: none for an unknown rank, one for a scalar. */
const int64_t *metric_dims(const struct model *m, shape_id shape, uint32_t *count);

/* The metrics of which some sum over ops can be below zero, by a negative value or by overflow: a
 * METRIC_BIT of each. Reads whole columns, so keep the answer. A bit too many is possible, one too few
 * is not. */
uint32_t metric_negatives(const struct model *m);

/* Whether sums and averages of times may be beyond nanoseconds, though not beyond the whole microseconds of
 * the source: those of times below zero are, as averages are divided without a sign. */
bool metric_need_micros(const struct model *m, uint32_t negatives);

#endif
