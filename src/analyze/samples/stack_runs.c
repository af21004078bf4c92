/* stack_runs.c: collects the runs of each op by call stack, for the views code and lines (stack_runs.h). */
#include "analyze/samples/stack_runs.h"

#include "base/vec.h"

struct run_collector {
	const struct model *m;
	struct mem *mem;
	struct stack_runs *out;
	struct stack_run *list;
	size_t count, cap;
	struct map map; /* maps (op, stack) to the run + 1 */
};

static struct stack_run *find_run(struct run_collector *c, uint32_t op, uint32_t stack)
{
	uint64_t hash = map_hash_u64(op, stack);

	for (struct map_iter it = map_find(&c->map, hash); it.value; it = map_next(&c->map, it))
		if (c->list[it.value - 1].op.v == op && c->list[it.value - 1].stack.v == stack)
			return &c->list[it.value - 1];
	if (c->count == UINT32_MAX - 1 || !vec_reserve(c->mem, c->list, c->cap, c->count + 1))
		return NULL;
	c->list[c->count] = (struct stack_run){ .op = { op }, .stack = { stack } };
	if (!map_add(&c->map, hash, (uint32_t)c->count + 1))
		return NULL;
	return &c->list[c->count++];
}

static void add_to_run(struct stack_run *run, enum event_sum sum, int64_t ns)
{
	run->count++;
	if (sum == SUM_CPU)
		run->cpu_ns = sum_add(run->cpu_ns, ns);
	else
		run->accelerator_ns = sum_add(run->accelerator_ns, ns);
}

/* Returns whether an event counts. For an average, runs outside of steps do not count if the op
 * also ran in a step. */
static bool event_counts(const struct model *m, const struct event_filter *filter, uint32_t event)
{
	uint32_t step = m->event.step[event].v;

	return filter->step ? filter->step == step
			    : step || m->op.step_count[m->event.op[event].v] < 2;
}

static bool collect_runs(struct run_collector *c, const struct event_filter *filter)
{
	const struct model *m = c->m;

	for (uint32_t i = 1; i < m->event.count; i++) {
		uint32_t op = m->event.op[i].v, stack = m->event.stack[i].v;
		enum event_sum sum;
		struct stack_run *run;
		int64_t ns;

		if (!op || !event_counts(m, filter, i))
			continue;
		sum = event_amount(m, filter, i, &ns);
		if (sum == SUM_NONE)
			continue;
		add_to_run(&c->out->totals[op], sum, ns);
		if (!stack)
			continue;
		run = find_run(c, op, stack);
		if (!run)
			return false;
		add_to_run(run, sum, ns);
		if (sum == SUM_CPU && m->event.phase && m->event.phase[i] == PHASE_SYNCHRONISATION)
			run->wait_ns = sum_add(run->wait_ns, ns);
	}
	return true;
}

/* Sorts runs by op, in the order in which they were found, and computes the sum before each run, so that shares add
 * up exactly. */
static bool sort_runs(struct run_collector *c, struct arena *arena)
{
	struct stack_runs *out = c->out;
	uint32_t ops = c->m->op.count;

	out->first = ARENA_ARRAY(arena, uint32_t, (size_t)ops + 2);
	out->list = ARENA_ARRAY(arena, struct stack_run, c->count);
	if (!out->first || !out->list)
		return false;
	for (size_t i = 0; i < c->count; i++)
		out->first[c->list[i].op.v + 2]++;
	for (uint32_t op = 2; op < ops + 2; op++)
		out->first[op] += out->first[op - 1];
	for (size_t i = 0; i < c->count; i++)
		out->list[out->first[c->list[i].op.v + 1]++] = c->list[i];
	out->count = (uint32_t)c->count;
	for (uint32_t i = 1; i < out->count; i++) {
		const struct stack_run *before = &out->list[i - 1];
		struct stack_run *run = &out->list[i];

		if (before->op.v != run->op.v)
			continue;
		run->cpu_before = sum_add(before->cpu_before, before->cpu_ns);
		run->accelerator_before =
			sum_add(before->accelerator_before, before->accelerator_ns);
		run->count_before = before->count_before + before->count;
	}
	return true;
}

ow_status stack_runs_make(struct model *m, const struct view_options *options, struct arena *arena,
			  struct stack_runs *out, struct ow_error *err)
{
	struct run_collector c = { .m = m, .mem = m->mem, .out = out };
	struct event_filter filter;
	bool ok;

	*out = (struct stack_runs){ 0 };
	if (!m->event.stack)
		return OW_OK;
	OW_TRY(view_filter(m, options, &filter, err));
	OW_TRY(model_require_nesting(m, err));
	out->totals = ARENA_ARRAY(arena, struct stack_run, m->op.count);
	if (!out->totals)
		return error_no_memory(err);
	map_init(&c.map, m->mem);
	ok = collect_runs(&c, &filter) && sort_runs(&c, arena);
	mem_free(m->mem, c.list, c.cap * sizeof(*c.list));
	map_release(&c.map);
	return ok ? OW_OK : error_no_memory(err);
}

/* Returns value × part / all, rounded so that the parts of a whole add up to it. */
static int64_t share(int64_t value, int64_t before, int64_t part, int64_t all)
{
	if (all <= 0)
		return 0;
	return (int64_t)((__int128)value * (before + part) / all) -
	       (int64_t)((__int128)value * before / all);
}

void stack_run_share(const struct stack_runs *r, const struct stack_run *run,
		     int64_t value[METRIC_COUNT])
{
	const struct stack_run *all = &r->totals[run->op.v];
	int64_t cpu = share(value[METRIC_CPU_MICROS], run->cpu_before, run->cpu_ns, all->cpu_ns);
	int64_t accelerator = share(value[METRIC_ACCELERATOR_MICROS], run->accelerator_before,
				    run->accelerator_ns, all->accelerator_ns);
	int64_t count = share(value[METRIC_RUN_COUNT], run->count_before, run->count, all->count);

	if (run->count_before)
		memset(value, 0, METRIC_COUNT * sizeof(*value));
	value[METRIC_CPU_MICROS] = cpu;
	value[METRIC_ACCELERATOR_MICROS] = accelerator;
	value[METRIC_MICROS] = sum_add(cpu, accelerator);
	value[METRIC_RUN_COUNT] = count;
}
