/*
 * event_sums_test.c: sums of a part of the events: all of them equal op_step, parts of the time add up
 * to the whole, slices that are cut count for their own part, ranks are told apart.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/metrics.h"
#include "support/trace_model.h"

static struct event_filter between(int64_t from, int64_t to)
{
	struct event_filter filter = EVENT_FILTER_ALL;

	filter.from_ns = from * MS;
	filter.to_ns = to * MS;
	return filter;
}

static void make(struct small_model *s, struct arena *arena, const struct event_filter *filter,
		 struct event_sums *sums)
{
	assert_int_equal(event_sums_make(s->m, filter, arena, sums, &s->err), OW_OK);
}

static uint32_t row_of(const struct small_model *s, const char *op)
{
	return s->m->op.step_first[model_find_op(s->m, str_from(op)).v];
}

static void cut_slices(void **state)
{
	struct event_filter filter;
	struct event_sums sums;
	struct small_model s;
	struct arena arena;
	source_id source;
	track_id host, stream;

	(void)state;
	small_open(&s);
	source = trace_source(&s, "a.json", 0);
	host = trace_track(&s, source, "main", TRACK_HOST, NULL);
	stream = trace_track(&s, source, "stream", TRACK_STREAM, "/device:GPU:0");
	trace_slice(&s, host, "outer", PHASE_HOST, 0, 100);
	trace_slice(&s, host, "child", PHASE_HOST, 10, 30);
	trace_slice(&s, host, "grandchild", PHASE_HOST, 15, 20);
	trace_slice(&s, host, "child", PHASE_HOST, 50, 60);
	trace_slice(&s, stream, "kernel", PHASE_COMPUTE, 20, 40);
	small_freeze(&s);
	arena_init(&arena, &s.mem);

	filter = EVENT_FILTER_ALL;
	make(&s, &arena, &filter, &sums);
	for (uint32_t i = 1; i < s.m->op_step.count; i++) {
		assert_int_equal(sums.run_count[i], s.m->op_step.run_count[i]);
		assert_int_equal(sums.cpu_ns[i], s.m->op_step.cpu_ns[i]);
		assert_int_equal(sums.accelerator_ns[i], s.m->op_step.accelerator_ns[i]);
	}

	filter = between(18, 55);
	make(&s, &arena, &filter, &sums);
	assert_int_equal(sums.cpu_ns[row_of(&s, "outer")], 20 * MS);	 /* 30…50 */
	assert_int_equal(sums.cpu_ns[row_of(&s, "child")], 15 * MS);	 /* 20…30, 50…55 */
	assert_int_equal(sums.cpu_ns[row_of(&s, "grandchild")], 2 * MS); /* 18…20 */
	assert_int_equal(sums.run_count[row_of(&s, "child")], 2);
	assert_int_equal(sums.accelerator_ns[row_of(&s, "kernel")], 20 * MS);

	filter = between(30, 50);
	make(&s, &arena, &filter, &sums);
	assert_int_equal(sums.cpu_ns[row_of(&s, "outer")], 20 * MS);
	assert_int_equal(sums.run_count[row_of(&s, "child")], 0);
	assert_int_equal(sums.accelerator_ns[row_of(&s, "kernel")], 10 * MS);

	filter = EVENT_FILTER_ALL;
	filter.rank = 1;
	make(&s, &arena, &filter, &sums);
	assert_int_equal(sums.run_count[row_of(&s, "outer")], 0);
	arena_release(&arena);
	small_close(&s);
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* Nested slices of random lengths below [begin, end). */
static void add_nested(struct small_model *s, track_id track, uint32_t *seed, int64_t begin,
		       int64_t end, int depth)
{
	static const char *const names[] = { "a", "b", "c", "d" };

	for (int64_t at = begin; at < end && depth < 5;) {
		int64_t len = 1 + next_random(seed) % 40, stop = MIN(at + len, end);

		trace_slice(s, track, names[next_random(seed) % 4], PHASE_HOST, at, stop);
		add_nested(s, track, seed, at, stop, depth + 1);
		at = stop + next_random(seed) % 5;
	}
}

/* Sums of neighbouring parts add up to those of the whole, wherever it is cut. */
static void parts_add_up(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 60; seed++) {
		uint32_t random = seed;
		struct event_sums parts[2];
		struct event_filter filter;
		struct small_model s;
		struct arena arena;
		source_id source;
		int64_t cut;

		small_open(&s);
		source = trace_source(&s, "a.json", -1);
		for (int i = 0; i < 2; i++)
			add_nested(&s, trace_track(&s, source, i ? "t1" : "t0", TRACK_HOST, NULL),
				   &random, 0, 150, 0);
		small_freeze(&s);
		arena_init(&arena, &s.mem);
		cut = next_random(&random) % 150;
		filter = between(0, cut);
		make(&s, &arena, &filter, &parts[0]);
		filter = between(cut, 150);
		make(&s, &arena, &filter, &parts[1]);
		for (uint32_t i = 1; i < s.m->op_step.count; i++)
			assert_int_equal(parts[0].cpu_ns[i] + parts[1].cpu_ns[i],
					 s.m->op_step.cpu_ns[i]);
		arena_release(&arena);
		small_close(&s);
	}
}

/* Averages are over the steps in which an op ran, of those that are left. */
static void metrics(void **state)
{
	struct event_filter filter = between(0, 2);
	int64_t values[METRIC_COUNT];
	struct metric_plan plan;
	struct event_sums sums;
	struct small_model s;
	struct arena arena;
	op_id op;

	(void)state;
	small_open(&s);
	op = small_op(&s, "a", "MatMul", GPU0);
	small_run(&s, op, 0, 0, 100, 300); /* us */
	small_run(&s, op, 1, 1000, 200, 500);
	small_run(&s, op, 2, 5000, 900, 9000); /* outside */
	small_freeze(&s);
	arena_init(&arena, &s.mem);
	make(&s, &arena, &filter, &sums);
	metric_plan_init(&plan, s.m, -1, METRIC_ALL);
	metric_plan_filter(&plan, &sums);
	metric_eval(&plan, op, values);
	assert_int_equal(values[METRIC_MICROS], 550000);
	assert_int_equal(values[METRIC_ACCELERATOR_MICROS], 400000);
	assert_int_equal(values[METRIC_CPU_MICROS], 150000);
	metric_plan_init(&plan, s.m, 2, METRIC_ALL);
	metric_plan_filter(&plan, &sums);
	metric_eval(&plan, op, values);
	assert_int_equal(values[METRIC_MICROS], 0);
	assert_int_equal(values[METRIC_RUN_COUNT], 0);
	arena_release(&arena);
	small_close(&s);
}

static void unsupported(void **state)
{
	struct event_filter filter = between(0, 1);
	struct event_sums sums;
	struct small_model s;
	struct arena arena;

	(void)state;
	small_open(&s);
	builder_add_op_step(&s.b, &(struct op_step_row){ .op = small_op(&s, "a", "MatMul", GPU0),
							 .step = builder_step(&s.b, 1),
							 .run_count = 1 });
	small_freeze(&s);
	arena_init(&arena, &s.mem);
	assert_int_equal(event_sums_make(s.m, &filter, &arena, &sums, &s.err), OW_E_UNSUPPORTED);
	arena_release(&arena);
	small_close(&s);
}

/* What TensorFlow sums up itself keeps its times beside a trace, whose events nest. */
static void beside_a_trace(void **state)
{
	struct event_filter filter = between(0, 1000);
	struct event_sums sums;
	struct small_model s;
	struct arena arena;
	track_id host;

	(void)state;
	small_open(&s);
	small_source(&s, "run_meta", "runmeta");
	small_run(&s, small_op(&s, "fc/MatMul", "MatMul", CPU0), 1, 10, 70, 0);
	host = trace_track(&s, trace_source(&s, "a.json", -1), "main", TRACK_HOST, NULL);
	trace_slice(&s, host, "outer", PHASE_HOST, 0, 100);
	trace_slice(&s, host, "inner", PHASE_HOST, 10, 30);
	small_freeze(&s);
	arena_init(&arena, &s.mem);
	make(&s, &arena, &filter, &sums);
	assert_int_equal(sums.cpu_ns[row_of(&s, "fc/MatMul")], 70 * 1000);
	assert_int_equal(sums.cpu_ns[row_of(&s, "outer")], 80 * MS);
	arena_release(&arena);
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(cut_slices),
					    cmocka_unit_test(parts_add_up),
					    cmocka_unit_test(metrics),
					    cmocka_unit_test(unsupported),
					    cmocka_unit_test(beside_a_trace) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
