/*
 * stack_runs_test.c: an op of a trace that is called from two lines counts for both, by what each took;
 * the parts add up; steps and stretches of time are respected.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analyze/samples/stack_runs.h"
#include "import/importer.h"
#include "model/metrics.h"

/* Two steps; the op "mm" runs from a.py:1 for 3 and 4 us, from b.py:2 for 3 us, and once without frame. */
static const char trace[] =
	"[{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#1\",\"pid\":1,\"tid\":"
	"1,"
	"\"ts\":0,\"dur\":20},"
	"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#2\",\"pid\":1,\"tid\":1,"
	"\"ts\":20,\"dur\":20},"
	"{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"a.py(1): f\",\"pid\":1,\"tid\":1,"
	"\"ts\":1,\"dur\":9},"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"mm\",\"pid\":1,\"tid\":1,\"ts\":2,\"dur\":3},"
	"{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"b.py(2): g\",\"pid\":1,\"tid\":1,"
	"\"ts\":11,\"dur\":9},"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"mm\",\"pid\":1,\"tid\":1,\"ts\":12,\"dur\":3},"
	"{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"a.py(1): f\",\"pid\":1,\"tid\":1,"
	"\"ts\":21,\"dur\":9},"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"mm\",\"pid\":1,\"tid\":1,\"ts\":22,\"dur\":4},"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"mm\",\"pid\":1,\"tid\":1,\"ts\":32,\"dur\":5}"
	"]";

struct loaded {
	struct mem mem;
	struct ow_error err;
	struct model *m;
	struct arena arena;
};

static void load(struct loaded *l)
{
	struct import_options options = { .step = INT64_MIN };
	struct builder b;
	struct input in;

	memset(l, 0, sizeof(*l));
	mem_init(&l->mem, 0);
	l->m = model_new(&l->mem, &l->err);
	assert_non_null(l->m);
	builder_init(&b, l->m, &l->err);
	assert_int_equal(input_from_memory(&in, &l->mem, "x.json", trace, strlen(trace), &l->err),
			 OW_OK);
	assert_int_equal(
		import_input(&b, &in, importer_find(STR("trace")), &options, NULL, &l->err), OW_OK);
	assert_int_equal(model_freeze(&b), OW_OK);
	arena_init(&l->arena, &l->mem);
}

static void unload(struct loaded *l)
{
	arena_release(&l->arena);
	model_free(l->m);
	assert_int_equal(atomic_load(&l->mem.used), 0);
}

static int32_t line_of(const struct model *m, const struct stack_run *run)
{
	return m->frame.line[m->stack.frame[run->stack.v].v];
}

static void test_runs(void **state)
{
	struct view_options options;
	struct stack_runs runs;
	struct loaded l;
	uint32_t op;

	(void)state;
	load(&l);
	op = model_find_op(l.m, STR("mm")).v;
	view_options_init(&options);
	assert_int_equal(stack_runs_make(l.m, &options, &l.arena, &runs, &l.err), OW_OK);
	assert_true(stack_runs_has(&runs, op));
	assert_int_equal(runs.first[op + 1] - runs.first[op], 2);
	for (uint32_t i = runs.first[op]; i < runs.first[op + 1]; i++) {
		bool a = line_of(l.m, &runs.list[i]) == 1;

		assert_int_equal(runs.list[i].cpu_ns, a ? 7000 : 3000);
		assert_int_equal(runs.list[i].count, a ? 2 : 1);
	}
	assert_int_equal(runs.totals[op].cpu_ns, 15000);

	options.step = 2;
	assert_int_equal(stack_runs_make(l.m, &options, &l.arena, &runs, &l.err), OW_OK);
	assert_int_equal(runs.first[op + 1] - runs.first[op], 1);
	assert_int_equal(runs.list[runs.first[op]].cpu_ns, 4000);

	options.step = -1;
	options.time_from_ns = 13000;
	options.time_to_ns = 24000;
	assert_int_equal(stack_runs_make(l.m, &options, &l.arena, &runs, &l.err), OW_OK);
	assert_int_equal(runs.first[op + 1] - runs.first[op], 2);
	for (uint32_t i = runs.first[op]; i < runs.first[op + 1]; i++)
		assert_int_equal(runs.list[i].cpu_ns, 2000);
	unload(&l);
}

static void test_shares(void **state)
{
	struct stack_run totals[2] = { { .cpu_ns = 0 }, { .cpu_ns = 10, .count = 3 } };
	struct stack_run list[] = {
		{ .op = { 1 }, .cpu_ns = 3, .count = 1 },
		{ .op = { 1 }, .cpu_ns = 3, .count = 1, .cpu_before = 3, .count_before = 1 },
		{ .op = { 1 }, .cpu_ns = 4, .count = 1, .cpu_before = 6, .count_before = 2 },
	};
	struct stack_runs runs = { .list = list, .count = 3, .totals = totals };
	int64_t cpu = 0, count = 0, params = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(list); i++) {
		int64_t value[METRIC_COUNT] = { 0 };

		value[METRIC_CPU_MICROS] = value[METRIC_MICROS] = 101;
		value[METRIC_RUN_COUNT] = 7;
		value[METRIC_PARAMS] = 5;
		stack_run_share(&runs, &list[i], value);
		assert_int_equal(value[METRIC_MICROS], value[METRIC_CPU_MICROS]);
		cpu += value[METRIC_CPU_MICROS];
		count += value[METRIC_RUN_COUNT];
		params += value[METRIC_PARAMS];
	}
	assert_int_equal(cpu, 101);
	assert_int_equal(count, 7);
	assert_int_equal(params, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_shares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
