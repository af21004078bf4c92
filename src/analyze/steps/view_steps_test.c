/* view_steps_test.c: sums, order by number and rank, phases, outliers, parts of a profile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/trace_model.h"
#include "support/view_text.h"

static void rows(void **state)
{
	static const char plain[] =
		"step,start_ns,duration_ns,events,ops,cpu_ns,accelerator_ns,peak_bytes,outlier";
	struct view_options options;
	struct small_model s;
	struct table *r;
	op_id a, b;

	(void)state;
	small_open(&s);
	a = small_op(&s, "a", "MatMul", GPU0);
	b = small_op(&s, "b", "Add", CPU0);
	small_run(&s, a, 20, 5000, 10, 20); /* numbers need not come in order */
	small_run(&s, a, 3, 1000, 10, 12);
	small_run(&s, b, 3, 1002, 8, 0);
	builder_step(&s.b, 5); /* nothing measured */
	builder_add_memory(&s.b, &(struct memory_row){ .op_step = 1, .in_use = 4096 });
	small_freeze(&s);
	view_text_expect_columns(&s, &view_steps, NULL, plain,
				 "3|0|12000|3|2|18000|12000|-|0\n"
				 "5|-|-|0|0|0|0|-|0\n"
				 "20|4000000|20000|2|1|10000|20000|4096|0\n");
	view_text_expect_columns(&s, &view_steps, NULL,
				 "rank,phases,idle_ns,device_busy_ns,in_means",
				 "-|-|-|-|-\n-|-|-|-|-\n-|-|-|-|-\n");
	view_options_init(&options);
	options.step = 20;
	view_text_expect_columns(&s, &view_steps, &options, plain,
				 "20|4000000|20000|2|1|10000|20000|4096|0\n");
	options.step = 4;
	r = table_new(&s.mem, "steps", &s.err);
	assert_int_equal(view_steps.run(s.m, &options, r, &s.err), OW_E_NOT_FOUND);
	table_free(r);
	view_text_fail_each(&s, &view_steps);
	small_close(&s);
}

/* Which of the steps of these durations are outliers: "0010". */
static void expect_outliers(const int64_t *durations, uint32_t count, const char *want)
{
	struct view_options options;
	struct small_model s;
	struct table *r;
	op_id op;

	small_open(&s);
	op = small_op(&s, "a", "MatMul", CPU0);
	for (uint32_t i = 0; i < count; i++)
		small_run(&s, op, i, 1000 * (i + 1), durations[i], 0);
	small_freeze(&s);
	view_options_init(&options);
	r = table_new(&s.mem, "steps", &s.err);
	assert_int_equal(view_steps.run(s.m, &options, r, &s.err), OW_OK);
	assert_int_equal(r->row_count, count);
	assert_string_equal(r->columns[4].name, "outlier");
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(r->columns[4].ints[i], want[i] - '0');
	table_free(r);
	small_close(&s);
}

static void outliers(void **state)
{
	(void)state;
	expect_outliers((const int64_t[]){ 10, 100 }, 2, "00");
	expect_outliers((const int64_t[]){ 10, 10, 16 }, 3, "001");
	expect_outliers((const int64_t[]){ 10, 10, 15 }, 3, "000");
	expect_outliers((const int64_t[]){ 400, 10, 10, 10 }, 4, "1000");
	/* within 1.5 medians, but beyond three sigma */
	expect_outliers((const int64_t[]){ 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100,
					   100, 110 },
			13, "0000000000001");
}

static void phases(void **state)
{
	struct view_options options;
	track_id host, stream, second;
	struct small_model s;
	source_id source;

	(void)state;
	small_open(&s);
	for (int32_t rank = 1; rank >= 0; rank--) { /* sorted by rank, not by input */
		source = trace_source(&s, rank ? "b.json" : "a.json", rank);
		host = trace_track(&s, source, "main", TRACK_HOST, NULL);
		stream = trace_track(&s, source, "stream 7", TRACK_STREAM, "/device:GPU:0");
		second = trace_track(&s, source, "stream 20", TRACK_STREAM, "/device:GPU:0");
		trace_known_step(&s, source, host, stream, second, 4, 0);
		if (rank)
			trace_known_step(&s, source, host, stream, second, 5, 103);
	}
	small_freeze(&s);
	view_text_expect_columns(&s, &view_steps, NULL,
				 "step,rank,start_ns,duration_ns,source,in_means",
				 "4|0|0|100000000|a.json|1\n"
				 "4|1|0|100000000|b.json|1\n"
				 "5|1|103000000|100000000|b.json|1\n");
	view_options_init(&options);
	options.rank = 1;
	options.step = 5;
	view_text_expect_columns(&s, &view_steps, &options,
				 "input_ns,host_ns,launch_ns,host_to_device_ns,compute_ns,"
				 "communication_ns,device_to_host_ns,synchronisation_ns,idle_ns,"
				 "between_ns",
				 "12000000|2000000|2000000|6000000|50000000|"
				 "8000000|4000000|12000000|4000000|3000000\n");
	view_text_expect_columns(
		&s, &view_steps, &options,
		"phases,device_busy_ns,exposed_communication_ns,data_wait_ns,"
		"queue_delay_ns,device_slices",
		"IIIIIHUUUCCCCCCCCCCCCCCCCCCCCNNNDDSSSS..|68000000|8000000|12000000|"
		"5333333|5\n");
	options.time_from_ns = 103 * MS;
	options.time_to_ns = 110 * MS;
	view_text_expect_columns(&s, &view_steps, &options, "step,duration_ns,input_ns,ops",
				 "5|7000000|7000000|-\n");
	view_text_fail_each(&s, &view_steps);
	small_close(&s);
}

static void expect_status(struct small_model *s, const struct view_options *options, ow_status want)
{
	struct table *r = table_new(&s->mem, "steps", &s->err);

	assert_int_equal(view_steps.run(s->m, options, r, &s->err), want);
	table_free(r);
}

static void nothing_there(void **state)
{
	struct view_options options;
	struct small_model s;

	(void)state;
	small_open(&s);
	trace_source(&s, "a.json", 2);
	small_run(&s, small_op(&s, "a", "MatMul", CPU0), 1, 5, 10, 0);
	small_freeze(&s);
	view_options_init(&options);
	options.rank = 1;
	expect_status(&s, &options, OW_E_NOT_FOUND);
	assert_string_equal(s.err.text, "there is no rank 1; ranks are 2");
	view_options_init(&options);
	options.time_from_ns = 10;
	options.time_to_ns = 10;
	expect_status(&s, &options, OW_E_USAGE);
	options.time_from_ns = 2000;
	options.time_to_ns = 5000;
	view_text_expect_columns(&s, &view_steps, &options, "step,duration_ns", "1|3000\n");
	options.time_from_ns = INT64_MAX - 1;
	options.time_to_ns = INT64_MAX;
	view_text_expect_columns(&s, &view_steps, &options, "step", "");
	small_close(&s);

	small_open(&s);
	builder_step(&s.b, 1);
	small_freeze(&s);
	expect_status(&s, &options, OW_E_UNSUPPORTED);
	small_close(&s);
}

static void empty(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	small_freeze(&s);
	view_text_expect(&s, &view_steps, NULL, "");
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(rows), cmocka_unit_test(outliers),
					    cmocka_unit_test(phases),
					    cmocka_unit_test(nothing_there),
					    cmocka_unit_test(empty) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
