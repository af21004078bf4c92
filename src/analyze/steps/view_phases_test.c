/* view_phases_test.c: rows per phase, rank and device; sums; what is left out; without memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/trace_model.h"
#include "support/view_text.h"

static const char columns[] = "phase,where,percent,share_ns,total_ns,overlapped_ns,exposed_ns";

static void add_steps(struct small_model *s, int32_t rank, int count)
{
	source_id source = trace_source(s, "a.json", rank);
	track_id host = trace_track(s, source, "main", TRACK_HOST, NULL);
	track_id stream = trace_track(s, source, "stream 7", TRACK_STREAM, "/device:GPU:0");
	track_id second = trace_track(s, source, "stream 20", TRACK_STREAM, "/device:GPU:0");

	for (int i = 0; i < count; i++)
		trace_known_step(s, source, host, stream, second, i, i * 110);
}

static void known_step(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	add_steps(&s, -1, 2);
	small_freeze(&s);
	view_text_expect_columns(&s, &view_phases, NULL, columns,
				 "input|before|12|24000000|24000000|0|24000000\n"
				 "host|before|2|4000000|116000000|112000000|4000000\n"
				 "initialisation|before|0|0|0|0|0\n"
				 "allocation|before|0|0|0|0|0\n"
				 "launch|before|2|4000000|12000000|8000000|4000000\n"
				 "host_to_device|before|6|12000000|12000000|0|12000000\n"
				 "compute|on|50|100000000|100000000|0|100000000\n"
				 "communication|on|8|16000000|50000000|34000000|16000000\n"
				 "device_to_host|after|4|8000000|8000000|0|8000000\n"
				 "synchronisation|after|12|24000000|52000000|28000000|24000000\n"
				 "idle|-|4|8000000|8000000|0|8000000\n"
				 "between|-|-|10000000|10000000|0|10000000\n");
	view_text_expect_columns(&s, &view_phases, NULL, "rank,device,steps,per_step_ns",
				 "-|/device:GPU:0|2|12000000\n-|/device:GPU:0|2|2000000\n"
				 "-|/device:GPU:0|2|0\n-|/device:GPU:0|2|0\n"
				 "-|/device:GPU:0|2|2000000\n-|/device:GPU:0|2|6000000\n"
				 "-|/device:GPU:0|2|50000000\n-|/device:GPU:0|2|8000000\n"
				 "-|/device:GPU:0|2|4000000\n-|/device:GPU:0|2|12000000\n"
				 "-|/device:GPU:0|2|4000000\n-|/device:GPU:0|2|5000000\n");
	view_text_fail_each(&s, &view_phases);
	small_close(&s);
}

static uint32_t run(struct small_model *s, const struct view_options *options, char *footer,
		    size_t size)
{
	struct table *r = table_new(&s->mem, "phases", &s->err);
	uint32_t rows;

	assert_int_equal(view_phases.run(s->m, options, r, &s->err), OW_OK);
	rows = r->row_count;
	snprintf(footer, size, "%s", r->footer ? r->footer : "");
	table_free(r);
	return rows;
}

static void ranks_and_left_out(void **state)
{
	struct view_options options;
	struct small_model s;
	char footer[200];

	(void)state;
	small_open(&s);
	add_steps(&s, 1, 2);
	add_steps(&s, 0, 6);
	small_freeze(&s);
	view_options_init(&options);
	assert_int_equal(run(&s, &options, footer, sizeof(footer)), 36); /* all, rank 0, rank 1 */
	assert_string_equal(footer, "steps left out: 1 warm-up, 1 last");
	options.limit = 1;
	view_text_expect_columns(&s, &view_phases, &options, "rank,device,steps,share_ns",
				 "-|all|4|48000000\n");
	options.rank = 0;
	view_text_expect_columns(&s, &view_phases, &options, "rank,device,steps,share_ns",
				 "0|/device:GPU:0|4|48000000\n");
	options.step = 0; /* left out of means, but asked for */
	view_text_expect_columns(&s, &view_phases, &options, "rank,device,steps,share_ns",
				 "0|/device:GPU:0|1|12000000\n");
	options.limit = 0;
	assert_int_equal(run(&s, &options, footer, sizeof(footer)), 12);
	assert_string_equal(footer, "");
	small_close(&s);
}

/* The same rank of two jobs is two. */
static void jobs_are_told_apart(void **state)
{
	struct view_options options;
	struct small_model s;
	char footer[200];

	(void)state;
	small_open(&s);
	add_steps(&s, 0, 2);
	s.m->source.run[s.b.source.v] = 1;
	add_steps(&s, 0, 3);
	s.m->source.run[s.b.source.v] = 2;
	fact_text(&s.b, (fact_id){ 0 }, "job", STR("second"));
	small_freeze(&s);
	view_options_init(&options);
	assert_int_equal(run(&s, &options, footer, sizeof(footer)), 24); /* of each, no sum */
	options.limit = 13;
	view_text_expect_columns(&s, &view_phases, &options, "phase,job,rank,steps,share_ns",
				 "input|a.json|0|2|24000000\nhost|a.json|0|2|4000000\n"
				 "initialisation|a.json|0|2|0\n"
				 "allocation|a.json|0|2|0\n"
				 "launch|a.json|0|2|4000000\nhost_to_device|a.json|0|2|12000000\n"
				 "compute|a.json|0|2|100000000\ncommunication|a.json|0|2|16000000\n"
				 "device_to_host|a.json|0|2|8000000\n"
				 "synchronisation|a.json|0|2|24000000\nidle|a.json|0|2|8000000\n"
				 "between|a.json|0|2|10000000\ninput|second|0|3|36000000\n");
	small_close(&s);
}

static void without_phases(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	small_run(&s, small_op(&s, "a", "MatMul", GPU0), 1, 0, 10, 20);
	small_freeze(&s);
	view_text_expect(&s, &view_phases, NULL, "");
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(known_step),
					    cmocka_unit_test(ranks_and_left_out),
					    cmocka_unit_test(jobs_are_told_apart),
					    cmocka_unit_test(without_phases) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
