/*
 * stack_runs.h: from which call stacks an op was run, and how much time it took there. An op of a graph is created by one line, but an op of
 * a trace runs wherever it is called, and each event has its own stack. The code and lines views divide the cost of an op among these
 * stacks.
 */
#ifndef ANALYZE_STACK_RUNS_H
#define ANALYZE_STACK_RUNS_H

#include "analyze/view.h"

struct stack_run {
	op_id op;
	stack_id stack;
	int64_t cpu_ns, accelerator_ns, count;
	int64_t cpu_before, accelerator_before, count_before; /* sums over the op's earlier runs */
	int64_t wait_ns; /* part of cpu_ns in runs that wait although other runs of the op do not */
};

struct stack_runs {
	struct stack_run *list; /* runs, sorted by op */
	uint32_t count;
	uint32_t *first; /* runs of an op are [first[op], first[op + 1]); NULL without runs */
	struct stack_run *totals; /* totals of each op, including runs without a stack */
};

/* Counts the events that the options select. */
ow_status stack_runs_make(struct model *m, const struct view_options *options, struct arena *arena,
			  struct stack_runs *out, struct ow_error *err);

/* Returns whether the op's runs have stacks. */
static inline bool stack_runs_has(const struct stack_runs *r, uint32_t op)
{
	return r->first && r->first[op] != r->first[op + 1];
}

/* Computes the part of an op's values that belongs to a run. The parts add up; values that are not times
 * go to the first run. */
void stack_run_share(const struct stack_runs *r, const struct stack_run *run,
		     int64_t value[METRIC_COUNT]);

#endif
