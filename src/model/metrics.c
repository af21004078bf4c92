/*
 * metrics.c: the numbers of one op as tfprof defines them, from the columns that a plan selects. The tfprof views,
 * tree.c, the verdict and the pprof sink call it once per op. Sums wrap like the original's 64-bit counters instead
 * of being undefined, and averages divide unsigned, as tfprof does. Totals over a tree are not made here.
 */
#include "model/metrics.h"

#include <math.h>

#define TIME_BITS                                                                                  \
	(METRIC_BIT(METRIC_MICROS) | METRIC_BIT(METRIC_ACCELERATOR_MICROS) |                       \
	 METRIC_BIT(METRIC_CPU_MICROS))
#define MEMORY_BITS                                                                                \
	(METRIC_BIT(METRIC_BYTES) | METRIC_BIT(METRIC_PEAK_BYTES) |                                \
	 METRIC_BIT(METRIC_RESIDUAL_BYTES) | METRIC_BIT(METRIC_OUTPUT_BYTES))

void metric_plan_init(struct metric_plan *plan, const struct model *m, int64_t step, uint32_t mask)
{
	*plan = (struct metric_plan){
		.m = m,
		.mask = mask,
		.average = step < 0,
		.step = step < 0 ? 0 : model_find_step(m, step).v,
		.times = mask & TIME_BITS,
		.memory = mask & MEMORY_BITS,
		.unit_ns = MAX(m->time_unit_ns, 1),
		.run_count = m->op_step.run_count,
		.accelerator_ns = m->op_step.accelerator_ns,
		.cpu_ns = m->op_step.cpu_ns,
	};
}

void metric_plan_filter(struct metric_plan *plan, const struct event_sums *sums)
{
	if (!sums)
		return;
	plan->filtered = true;
	plan->run_count = sums->run_count;
	plan->accelerator_ns = sums->accelerator_ns;
	plan->cpu_ns = sums->cpu_ns;
}

static bool is_one_job(const struct model *m)
{
	for (uint32_t i = 2; i < m->source.count; i++)
		if (m->source.run[i] != m->source.run[1])
			return false;
	return true;
}

uint32_t metric_all_steps(const struct metric_plan *plan, int32_t rank)
{
	const struct model *m = plan->m;
	uint32_t steps = 0;
	uint8_t *ran;

	if (!plan->average || m->window.count <= 1 || !is_one_job(m))
		return 0;
	ran = mem_zalloc(m->mem, m->step.count);
	if (!ran)
		return 0;
	for (uint32_t i = 1; i < m->op_step.count; i++)
		if (plan->run_count[i])
			ran[m->op_step.step[i].v] = 1;
	for (uint32_t i = 1; i < m->window.count; i++)
		steps += ran[m->window.step[i].v] &&
			 (rank < 0 || m->source.rank[m->window.source[i].v] == rank);
	mem_free(m->mem, ran, m->step.count);
	return steps;
}

const int64_t *metric_dims(const struct model *m, shape_id shape, uint32_t *count)
{
	static const int64_t scalar[] = { 1 };
	int32_t rank;
	const int64_t *dims = model_dims(m, shape, &rank);

	if (shape.v && rank == 0) {
		*count = 1;
		return scalar;
	}
	*count = shape.v && rank > 0 ? (uint32_t)rank : 0;
	return dims;
}

int64_t metric_params(const struct model *m, shape_id shape, bool *incomplete)
{
	uint32_t count;
	const int64_t *dims = metric_dims(m, shape, &count);
	uint64_t params = 1;

	for (uint32_t i = 0; i < count; i++) {
		if (dims[i] < 0) {
			*incomplete = true;
			return 0;
		}
		params *= (uint64_t)dims[i];
	}
	return count ? (int64_t)params : 0;
}

static int64_t divide(int64_t sum, uint32_t count)
{
	return count == 1 ? sum : (int64_t)((uint64_t)sum / count);
}

/* Divides a time in the source's unit: 10us and 13us average to 11us. */
static int64_t divide_time(int64_t sum_ns, uint32_t count, int64_t unit)
{
	uint64_t mean;

	if (count == 1)
		return sum_ns;
	mean = (uint64_t)(sum_ns / unit) / count;
	return mean > (uint64_t)(INT64_MAX / unit) ? INT64_MAX : (int64_t)mean * unit;
}

static int64_t mean_time(const struct metric_plan *plan, int64_t sum, uint32_t count)
{
	if (!count)
		return 0;
	return plan->in_micros ? divide(sum, count) : divide_time(sum, count, plan->unit_ns);
}

/* Finds the op's rows of op_step that count: [*first, *first + result). */
static uint32_t rows_of(const struct metric_plan *plan, uint32_t op, uint32_t *first)
{
	const struct model *m = plan->m;
	uint32_t begin = m->op.step_first[op], end = begin + m->op.step_count[op];

	/* Runs outside of steps count only for ops that never ran in one. */
	if (plan->average && end - begin > 1 && !m->op_step.step[begin].v)
		begin++;
	*first = begin;
	if (plan->average)
		return end - begin;
	for (uint32_t i = begin; i < end; i++) {
		if (m->op_step.step[i].v == plan->step) {
			*first = i;
			return 1;
		}
	}
	return 0;
}

/* The number by which the sums over those rows are divided. */
static uint32_t steps_among(const struct metric_plan *plan, uint32_t first, uint32_t count)
{
	const struct model *m = plan->m;
	uint32_t steps = 0;

	/* each step has a different marking op, so nothing is divided */
	if (plan->average && count && m->op.flags[m->op_step.op[first].v] & OP_STEP_MARK)
		return MAX(m->step.count, 2) - 1;
	if (!plan->filtered)
		return count;
	for (uint32_t i = first; i < first + count; i++)
		steps += plan->run_count[i] != 0;
	return steps;
}

/* Sums a column of times in the plan's unit: each value is divided before adding, because the sum may not fit in
 * nanoseconds. */
static int64_t sum_times(const struct metric_plan *plan, const int64_t *column, uint32_t first,
			 uint32_t count)
{
	int64_t sum = 0;

	if (OW_UNLIKELY(plan->in_micros)) {
		for (uint32_t i = first; i < first + count; i++)
			sum = wrap_add(sum, column[i] / 1000);
		return sum;
	}
	for (uint32_t i = first; i < first + count; i++)
		sum = wrap_add(sum, column[i]);
	return sum;
}

static void eval_times(const struct metric_plan *plan, uint32_t first, uint32_t count, int64_t *out)
{
	int64_t accelerator = sum_times(plan, plan->accelerator_ns, first, count);
	int64_t cpu = sum_times(plan, plan->cpu_ns, first, count);

	/* an op that never ran in a step is not divided by the number of steps */
	count = plan->all_steps && count && plan->m->op_step.step[first].v
			? plan->all_steps
			: steps_among(plan, first, count);
	if (plan->mask & METRIC_BIT(METRIC_MICROS))
		out[METRIC_MICROS] = mean_time(plan, wrap_add(accelerator, cpu), count);
	if (plan->mask & METRIC_BIT(METRIC_ACCELERATOR_MICROS))
		out[METRIC_ACCELERATOR_MICROS] = mean_time(plan, accelerator, count);
	if (plan->mask & METRIC_BIT(METRIC_CPU_MICROS))
		out[METRIC_CPU_MICROS] = mean_time(plan, cpu, count);
}

static int64_t sum_memory(const struct metric_plan *plan, const int64_t *column, uint32_t first,
			  uint32_t count)
{
	int64_t sum = 0;

	for (uint32_t i = first; i < first + count; i++) {
		uint32_t row, rows = model_memory_of(plan->m, i, &row);

		if (plan->filtered && !plan->run_count[i])
			continue;
		for (uint32_t k = 0; k < rows; k++)
			sum = wrap_add(sum, column[row + k]);
	}
	count = steps_among(plan, first, count);
	return count ? divide(sum, count) : 0;
}

static void eval_memory(const struct metric_plan *plan, uint32_t first, uint32_t count,
			int64_t *out)
{
	const struct memory_table *t = &plan->m->memory;

	if (plan->mask & METRIC_BIT(METRIC_BYTES))
		out[METRIC_BYTES] = sum_memory(plan, t->requested, first, count);
	if (plan->mask & METRIC_BIT(METRIC_PEAK_BYTES))
		out[METRIC_PEAK_BYTES] = sum_memory(plan, t->peak, first, count);
	if (plan->mask & METRIC_BIT(METRIC_RESIDUAL_BYTES))
		out[METRIC_RESIDUAL_BYTES] = sum_memory(plan, t->residual, first, count);
	if (plan->mask & METRIC_BIT(METRIC_OUTPUT_BYTES))
		out[METRIC_OUTPUT_BYTES] = sum_memory(plan, t->output, first, count);
}

static int64_t run_count(const struct metric_plan *plan, uint32_t first, uint32_t count)
{
	int64_t sum = 0;

	for (uint32_t i = first; i < first + count; i++)
		sum = wrap_add(sum, plan->run_count[i]);
	count = steps_among(plan, first, count);
	return count ? divide(sum, count) : 0;
}

void metric_eval(const struct metric_plan *plan, op_id op, int64_t out[METRIC_COUNT])
{
	const struct model *m = plan->m;
	uint32_t first, count = rows_of(plan, op.v, &first);
	int64_t flops, runs;
	bool incomplete;

	if (plan->times)
		eval_times(plan, first, count, out);
	if (plan->memory)
		eval_memory(plan, first, count, out);
	if (plan->mask & METRIC_BIT(METRIC_PARAMS))
		out[METRIC_PARAMS] = metric_params(m, m->op.shape[op.v], &incomplete);
	if (plan->mask & METRIC_BIT(METRIC_DEFINITION_COUNT))
		out[METRIC_DEFINITION_COUNT] = 1;
	if (!(plan->mask & (METRIC_BIT(METRIC_RUN_COUNT) | METRIC_BIT(METRIC_FLOAT_OPS))))
		return;
	runs = run_count(plan, first, count);
	flops = m->op.float_ops[op.v];
	if (plan->mask & METRIC_BIT(METRIC_RUN_COUNT))
		out[METRIC_RUN_COUNT] = runs;
	/* the op never ran: use the float operations that the graph gives */
	if (plan->mask & METRIC_BIT(METRIC_FLOAT_OPS))
		out[METRIC_FLOAT_OPS] = m->op.step_count[op.v]
						? (int64_t)((uint64_t)flops * (uint64_t)runs)
						: flops;
}

/* The largest value of a column as a real number; infinity when a value is negative. */
static double largest(const int64_t *column, uint32_t count)
{
	int64_t top = 0, signs = 0;

	for (uint32_t i = 0; i < count; i++) {
		signs |= column[i];
		top = MAX(top, column[i]);
	}
	return signs < 0 ? (double)INFINITY : (double)top;
}

static double largest_params(const struct model *m)
{
	double top = 0;
	bool incomplete;

	for (uint32_t i = 0; i < m->shape.count; i++) {
		uint32_t count;
		const int64_t *dims = metric_dims(m, (shape_id){ i }, &count);
		double params = 1;

		if (metric_params(m, (shape_id){ i }, &incomplete) < 0)
			return (double)INFINITY;
		for (uint32_t k = 0; k < count; k++)
			params *= (double)MAX(dims[k], 0);
		top = MAX(top, count ? params : 0);
	}
	return top * m->op.count;
}

/* Returns the metric's bit unless the sum is safe: half of the range is left for rounding; infinity and NaN do not
 * fit. */
static uint32_t unless_safe(enum metric metric, double sum)
{
	return sum < 4.6e18 ? 0 : METRIC_BIT(metric);
}

uint32_t metric_negatives(const struct model *m)
{
	const struct op_step_table *s = &m->op_step;
	const struct memory_table *t = &m->memory;
	double accelerator = largest(s->accelerator_ns, s->count) * s->count;
	double cpu = largest(s->cpu_ns, s->count) * s->count;
	double runs = largest(s->run_count, s->count);
	double flops = largest(m->op.float_ops, m->op.count);

	return unless_safe(METRIC_BYTES, largest(t->requested, t->count) * t->count) |
	       unless_safe(METRIC_PEAK_BYTES, largest(t->peak, t->count) * t->count) |
	       unless_safe(METRIC_RESIDUAL_BYTES, largest(t->residual, t->count) * t->count) |
	       unless_safe(METRIC_OUTPUT_BYTES, largest(t->output, t->count) * t->count) |
	       unless_safe(METRIC_MICROS, accelerator + cpu) |
	       unless_safe(METRIC_ACCELERATOR_MICROS, accelerator) |
	       unless_safe(METRIC_CPU_MICROS, cpu) | unless_safe(METRIC_PARAMS, largest_params(m)) |
	       unless_safe(METRIC_FLOAT_OPS, flops * (runs + 1) * m->op.count) |
	       unless_safe(METRIC_RUN_COUNT, runs * s->count);
}

bool metric_need_micros(const struct model *m, uint32_t negatives)
{
	return negatives & TIME_BITS && m->time_unit_ns && m->time_unit_ns % 1000 == 0;
}
