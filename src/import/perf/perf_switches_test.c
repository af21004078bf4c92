/*
 * perf_switches_test.c: threads that leave their processors and come back, in any order in the file; counts of threads that end; and
 * samples that tell what each of a group of events counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/perf_writer.h"
#include "support/stack_model.h"

#define OUT (1 << 13)
#define PREEMPTED (1 << 14)

static void put_events(struct perf_recording *r)
{
	perf_put_two_events(r);
	perf_begin(r, PERF_COMM, 0);
	perf_put(r, 7, 4);
	perf_put(r, 8, 4);
	perf_put_text(r, "worker");
	perf_put_id(r, 1);
	perf_end(r);
}

static void put_switch(struct perf_recording *r, uint64_t time, uint16_t misc, bool wide)
{
	perf_begin(r, wide ? PERF_SWITCH_CPU_WIDE : PERF_SWITCH, misc);
	if (wide)
		perf_put(r, 0, 8); /* who comes or went */
	perf_put_id(r, time);
	perf_end(r);
}

static void off_cpu(void **state)
{
	struct perf_recording r;
	struct small_model s;

	(void)state;
	for (int swap = 0; swap < 2; swap++) {
		perf_put_pipe(&r, swap);
		put_events(&r);
		put_switch(&r, 20, 0, false); /* left before the recording began */
		put_switch(&r, 80, 0, false); /* another processor's, so it is first in the file */
		put_switch(&r, 50, OUT, false);
		put_switch(&r, 90, OUT | PREEMPTED, true);
		put_switch(&r, 95, 0, true);
		put_switch(&r, 99, OUT, false); /* never came back */
		stack_open(&s, "perf_data", r.bytes, r.len);
		stack_expect(&s, "worker|7|8|50|off-cpu 30|[waiting]\n"
				 "worker|7|8|90|off-cpu 5|[preempted]\n");
		assert_int_equal(s.m->metric.is_default[1], 1); /* there is nothing else */
		assert_string_equal(model_str(s.m, s.m->metric.unit[1]).ptr, "ns");
		small_close(&s);
		stack_survives("perf_data", r.bytes, r.len);
	}
}

static void counts(void **state)
{
	struct perf_recording r;
	struct small_model s;

	(void)state;
	perf_put_pipe(&r, false);
	r.read_format = PERF_READ_ID | 1;
	put_events(&r);
	perf_begin(&r, PERF_READ, 0);
	perf_put(&r, 7, 4);
	perf_put(&r, 8, 4);
	perf_put(&r, 1234, 8);
	perf_put(&r, 9999, 8); /* time enabled */
	perf_put(&r, 101, 8);
	perf_put_id(&r, 60);
	perf_end(&r);
	stack_open(&s, "perf_data", r.bytes, r.len);
	assert_int_equal(s.m->counter.count, 2);
	assert_string_equal(model_str(s.m, s.m->counter.name[1]).ptr, "task-clock");
	assert_string_equal(model_str(s.m, s.m->track.name[s.m->counter.track[1].v]).ptr, "worker");
	assert_int_equal(s.m->counter.ts_ns[1], 60);
	assert_true(s.m->counter.value[1] == 1234);
	small_close(&s);
	stack_survives("perf_data", r.bytes, r.len);
}

/* Of the leader, with what both have counted so far. */
static void put_group_sample(struct perf_recording *r, uint64_t time, uint64_t first,
			     uint64_t second)
{
	perf_begin(r, PERF_SAMPLE, 2);
	perf_put(r, 0x1010, 8);
	perf_put(r, 7, 4);
	perf_put(r, 8, 4);
	perf_put(r, time, 8);
	perf_put(r, 100, 8);
	perf_put(r, 3, 8); /* processor */
	perf_put(r, 1, 8); /* period */
	perf_put(r, 2, 8);
	perf_put(r, first, 8);
	perf_put(r, 100, 8);
	perf_put(r, second, 8);
	perf_put(r, 101, 8);
	perf_put(r, 1, 8);
	perf_put(r, 0x1010, 8);
	perf_end(r);
}

static void group(void **state)
{
	struct perf_recording r;
	struct small_model s;

	(void)state;
	perf_put_pipe(&r, false);
	r.sample_type = PERF_TEST_SAMPLE | 1 << SAMPLE_READ;
	r.read_format = PERF_READ_ID | PERF_READ_GROUP;
	put_events(&r);
	put_group_sample(&r, 50, 10, 5);
	put_group_sample(&r, 70, 30, 5);
	stack_open(&s, "perf_data", r.bytes, r.len);
	stack_expect(&s, "worker|7|8|50|cycles 10|0\n"
			 "worker|7|8|50|task-clock 5|0\n"
			 "worker|7|8|70|cycles 20|0\n");
	small_close(&s);
	stack_survives("perf_data", r.bytes, r.len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(off_cpu),
		cmocka_unit_test(counts),
		cmocka_unit_test(group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
