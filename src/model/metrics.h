/*
 * metrics.h: the numbers of one op at one step, or averaged over its steps, as tfprof defines them. A plan lists the
 * numbers that a view needs, so views over half a million ops read only the columns that matter. Used by the views, by
 * tree.c and by sinks through tree_op_metrics.
 */
#ifndef MODEL_METRICS_H
#define MODEL_METRICS_H

#include "model/event_sums.h"

/* Times are in nanoseconds (but a tree may hold microseconds: tree.in_micros); tfprof's columns of these names are
 * in microseconds. */
enum metric {
	METRIC_BYTES,
	METRIC_PEAK_BYTES,
	METRIC_RESIDUAL_BYTES,
	METRIC_OUTPUT_BYTES,
	METRIC_MICROS,
	METRIC_ACCELERATOR_MICROS,
	METRIC_CPU_MICROS,
	METRIC_PARAMS,
	METRIC_FLOAT_OPS,
	METRIC_RUN_COUNT,
	METRIC_DEFINITION_COUNT,
	/* weight of samples; the tree has its title and unit, and ops do not have it */
	METRIC_WEIGHT,
	METRIC_COUNT
};

static inline bool metric_is_time(enum metric metric)
{
	return metric >= METRIC_MICROS && metric <= METRIC_CPU_MICROS;
}

#define METRIC_BIT(metric) (1u << (metric))
#define METRIC_ALL (METRIC_BIT(METRIC_WEIGHT) - 1) /* all metrics of ops */

struct metric_plan {
	const struct model *m;
	uint32_t mask; /* METRIC_BIT of each wanted metric */
	bool average;  /* average over the op's own steps */
	/* if not 0: times are divided by this number of steps instead: metric_all_steps */
	uint32_t all_steps;
	uint32_t step; /* row of the step, if not `average` */
	bool times, memory;
	int64_t unit_ns; /* averages of times are truncated to this unit */
	bool in_micros;	 /* times are in microseconds; see metric_need_micros */
	bool filtered;	 /* rows of op_step without runs do not count */
	const int64_t *run_count, *accelerator_ns, *cpu_ns; /* one entry for each row of op_step */
};

/* Prepares a plan. For a step that does not exist, every op has no records. */
void metric_plan_init(struct metric_plan *plan, const struct model *m, int64_t step, uint32_t mask);

/* Restricts the plan to the runs in the sums; NULL = all. The sums must outlive the plan. */
void metric_plan_filter(struct metric_plan *plan, const struct event_sums *sums);

/* The number by which sums of times are divided where a recording of one job marks its steps: the steps of one rank
 * times the number of ranks, because a mean is that of one rank. 0 for profiles of TensorFlow, whose means are over the
 * steps of each op, as in tfprof, and for recordings of several jobs. `rank`: only this one; -1 = all. Only steps in
 * which something ran by the plan count.
 */
uint32_t metric_all_steps(const struct metric_plan *plan, int32_t rank);

/* Sets the wanted values of out; others are unchanged. */
void metric_eval(const struct metric_plan *plan, op_id op, int64_t out[METRIC_COUNT]);

/* The number of parameters of a shape: 0 if there is no shape, and 0 with *incomplete set when a dimension is
 * unknown. */
int64_t metric_params(const struct model *m, shape_id shape, bool *incomplete);

/* The dimensions as tfprof shows them: none for an unknown rank, one for a scalar. */
const int64_t *metric_dims(const struct model *m, shape_id shape, uint32_t *count);

/* A METRIC_BIT for each metric whose sum over some ops can be below zero, by a negative value or by overflow. It
 * reads whole columns, so callers keep the result. It may have a bit too many, never one too few. */
uint32_t metric_negatives(const struct model *m);

/* Whether sums and averages of times may not fit in nanoseconds, although they fit in the whole microseconds of the
 * source. Times below zero do not fit, because averages are divided unsigned. */
bool metric_need_micros(const struct model *m, uint32_t negatives);

#endif
