/*
 * steady_test.c: windows from markers (overlaps, backlog), and which steps are steady, by their lengths and device slices.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analyze/steps/phases.h"
#include "support/trace_model.h"

/* `want` has a digit of enum step_use per step; all have the same work. */
static void expect_uses(const char *want, const int64_t *lengths)
{
	struct phase_window windows[32] = { 0 }, *list[32] = { NULL };
	uint32_t count = (uint32_t)strlen(want);
	char got[33] = "";
	int64_t at = 0;

	for (uint32_t i = 0; i < count; i++) {
		windows[i] = (struct phase_window){ .start_ns = at,
						    .end_ns = at + lengths[i],
						    .device_slices = 10 };
		at += lengths[i];
		list[i] = &windows[i];
	}
	steady_choose(list, count);
	for (uint32_t i = 0; i < count; i++)
		got[i] = (char)('0' + windows[i].use);
	assert_string_equal(got, want);
}

static void few_steps(void **state)
{
	(void)state;
	expect_uses("0", (const int64_t[]){ 7 });
	expect_uses("00", (const int64_t[]){ 700, 7 });
	expect_uses("000", (const int64_t[]){ 120, 100, 90 });
	expect_uses("100", (const int64_t[]){ 130, 100, 100 });
	expect_uses("10002", (const int64_t[]){ 500, 100, 100, 101, 300 });
	expect_uses("00002", (const int64_t[]){ 100, 100, 100, 101, 30 });
	/* a fast first step is no warm-up */
	expect_uses("00000", (const int64_t[]){ 50, 100, 100, 101, 100 });
}

static void many_steps(void **state)
{
	(void)state;
	expect_uses("100002", (const int64_t[]){ 100, 100, 100, 100, 100, 100 });
	expect_uses("1110000002",
		    (const int64_t[]){ 900, 300, 160, 100, 100, 100, 100, 100, 100, 100 });
	/* slow steps in the middle are outliers, not warm-up */
	expect_uses("1000000002",
		    (const int64_t[]){ 900, 100, 300, 300, 100, 100, 100, 100, 100, 100 });
	/* a job that gets faster half-way did not warm up all that time */
	expect_uses("1110000000002", (const int64_t[]){ 300, 300, 300, 300, 300, 300, 100, 100, 100,
							100, 100, 100, 100 });
}

static void incomplete_steps(void **state)
{
	struct phase_window w[4] = { { .end_ns = 50, .device_slices = 3 },
				     { .end_ns = 100, .device_slices = 10 },
				     { .end_ns = 100, .device_slices = 10 },
				     { .end_ns = 20, .device_slices = 2 } };
	struct phase_window *list[] = { &w[0], &w[1], &w[2], &w[3] };

	(void)state;
	steady_choose(list, 4);
	assert_int_equal((int)w[0].use, STEP_INCOMPLETE);
	assert_int_equal((int)w[1].use, STEP_STEADY);
	assert_int_equal((int)w[2].use, STEP_STEADY);
	assert_int_equal((int)w[3].use, STEP_INCOMPLETE);
}

/* The host runs ahead by two steps; the device still works on one that was launched before the recording. */
static void backlog(void **state)
{
	static const struct phase_marker markers[] = { { 0, 10, 200, { 1 }, true },
						       { 10, 20, 300, { 2 }, true } };
	struct phase_window w[2] = { 0 };

	(void)state;
	steady_windows_make(markers, 2, true, 100, w);
	assert_int_equal(w[0].start_ns, 100);
	assert_int_equal(w[0].end_ns, 200);
	assert_int_equal(w[1].start_ns, 200);
	assert_int_equal(w[1].end_ns, 300);
	steady_windows_make(markers, 2, true, TIME_UNKNOWN, w);
	assert_int_equal(w[0].start_ns, 0);
	steady_windows_make(markers, 2, false, 100, w);
	assert_int_equal(w[0].start_ns, 0);
	assert_int_equal(w[0].end_ns, 10);
}

static void overlapping_markers(void **state)
{
	static const struct phase_marker markers[] = { { 0, 100, TIME_UNKNOWN, { 1 }, true },
						       { 60, 160, TIME_UNKNOWN, { 2 }, true } };
	struct phase_window w[2] = { 0 };

	(void)state;
	steady_windows_make(markers, 2, false, TIME_UNKNOWN, w);
	assert_int_equal(w[0].end_ns, 100);
	assert_int_equal(w[1].start_ns, 100);
	assert_int_equal(w[1].end_ns, 160);
	assert_int_equal(w[1].between_ns, 0);
}

/* 10 ms steps with a slow first one, of a recording of 100 ms. */
static void median_and_coverage(void **state)
{
	static const int begins[] = { 0, 30, 40, 50, 60 }, ends[] = { 30, 40, 50, 60, 70 };
	struct steady_steps steady;
	struct small_model s;
	struct phases p;
	source_id source;
	track_id host;

	(void)state;
	small_open(&s);
	source = trace_source(&s, "a.json", -1);
	host = trace_track(&s, source, "main", TRACK_HOST, NULL);
	for (int i = 0; i < 5; i++) {
		trace_step(&s, source, i, begins[i], ends[i]);
		trace_slice(&s, host, "op", PHASE_COMPUTE, begins[i], ends[i]);
	}
	trace_slice(&s, host, "after", PHASE_COMPUTE, 70, 100);
	small_freeze(&s);
	assert_int_equal(phases_analyse(s.m, &EVENT_FILTER_ALL, &p, &s.err), OW_OK);
	assert_int_equal(steady_find(s.m, &p, 0, (source_id){ 0 }, &p.arena, &steady, &s.err),
			 OW_OK);
	assert_true(steady.known);
	assert_int_equal(steady.used_count, 4);
	assert_int_equal(steady.left_out_count, 1);
	assert_int_equal((int)p.windows[steady.left_out[0]].use, STEP_WARM_UP);
	assert_int_equal(steady.step_ns, 10 * MS);
	assert_int_equal(steady.mean_ns, 10 * MS);
	assert_int_equal(steady.span_ns, 100 * MS);
	assert_int_equal(steady.covered_ns, 70 * MS);
	assert_true(steady.coverage > 0.69 && steady.coverage < 0.71);
	phases_release(&p);
	small_close(&s);
}

/* Steps of 10 ms, of which the host takes so much and the rest computes; the use of the first. */
static enum step_use use_of_first(const int *host_ms, int count)
{
	struct small_model s;
	enum step_use use;
	struct phases p;
	source_id source;
	track_id host;

	small_open(&s);
	source = trace_source(&s, "a.json", -1);
	host = trace_track(&s, source, "main", TRACK_HOST, NULL);
	for (int i = 0; i < count; i++) {
		trace_step(&s, source, i, i * 10, i * 10 + 10);
		trace_slice(&s, host, "run", PHASE_HOST, i * 10, i * 10 + host_ms[i]);
		trace_slice(&s, host, "op", PHASE_COMPUTE, i * 10 + host_ms[i], i * 10 + 10);
	}
	small_freeze(&s);
	assert_int_equal(phases_analyse(s.m, &EVENT_FILTER_ALL, &p, &s.err), OW_OK);
	use = p.windows[0].use;
	for (uint32_t i = 1; i < p.window_count && count <= STEADY_FEW; i++)
		assert_int_equal((int)p.windows[i].use, STEP_STEADY);
	phases_release(&p);
	small_close(&s);
	return use;
}

/* As long as the others, but not of the same things. */
static void cold_first_step(void **state)
{
	(void)state;
	assert_int_equal((int)use_of_first((const int[]){ 6, 1, 1 }, 3), STEP_WARM_UP);
	assert_int_equal((int)use_of_first((const int[]){ 6, 1, 2, 1, 1 }, 5), STEP_WARM_UP);
	assert_int_equal((int)use_of_first((const int[]){ 3, 1, 1 }, 3), STEP_STEADY); /* little */
	assert_int_equal((int)use_of_first((const int[]){ 6, 1, 5, 1 }, 4), STEP_STEADY);
	assert_int_equal((int)use_of_first((const int[]){ 1, 6, 6 }, 3), STEP_STEADY);
	assert_int_equal((int)use_of_first((const int[]){ 9, 1 }, 2), STEP_STEADY); /* which? */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_steps),	       cmocka_unit_test(many_steps),
		cmocka_unit_test(incomplete_steps),    cmocka_unit_test(backlog),
		cmocka_unit_test(overlapping_markers), cmocka_unit_test(median_and_coverage),
		cmocka_unit_test(cold_first_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
