/* view_tracks_test.c: order, counts, and that overlapping events count once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/view_text.h"

static track_id add_track(struct small_model *s, const char *process, const char *name, int64_t tid)
{
	return builder_track(&s->b, &(struct track_row){ .name = builder_cstr(&s->b, name),
							 .process = builder_cstr(&s->b, process),
							 .pid = 7,
							 .tid = tid,
							 .kind = TRACK_HOST });
}

static void add_event(struct small_model *s, track_id track, int64_t ts, int64_t dur)
{
	builder_add_event(&s->b, &(struct event_row){ .ts_ns = ts, .dur_ns = dur, .track = track });
}

static void rows(void **state)
{
	struct small_model s;
	track_id main_thread, worker;

	(void)state;
	small_open(&s);
	worker = add_track(&s, "trainer", "worker", 12);
	main_thread = add_track(&s, "trainer", "main", 11);
	add_track(&s, "loader", "main", 21);
	add_event(&s, worker, 500, 100); /* out of order, overlapping, touching, apart */
	add_event(&s, worker, 100, 100);
	add_event(&s, worker, 150, 20);
	add_event(&s, worker, 200, 50);
	add_event(&s, main_thread, 0, TIME_UNKNOWN);
	add_event(&s, main_thread, INT64_MIN + 1, INT64_MAX); /* hostile numbers */
	add_event(&s, main_thread, INT64_MAX - 5, INT64_MAX);
	small_freeze(&s);
	view_text_expect(&s, &view_tracks, NULL,
			 "main|loader|host||7|21|0|0|-|-\n"
			 "main|trainer|host||7|11|3|9223372036854775807|-|-\n"
			 "worker|trainer|host||7|12|4|250|-|-\n");
	view_text_fail_each(&s, &view_tracks);
	small_close(&s);
}

static void with_device(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	small_run(&s, small_op(&s, "a", "MatMul", GPU0), 0, 10, 5, 3);
	small_freeze(&s);
	view_text_expect(&s, &view_tracks, NULL,
			 "/device:GPU:0/stream:all||accelerator|/device:GPU:0/"
			 "stream:all|0|0|1|3000|-|-\n" GPU0 "||device|" GPU0 "|0|0|1|5000|-|-\n");
	small_close(&s);

	small_open(&s);
	small_freeze(&s);
	view_text_expect(&s, &view_tracks, NULL, "");
	small_close(&s);
}

static void add_sample(struct small_model *s, track_id track, const char *metric, int64_t ts)
{
	struct builder *b = &s->b;

	builder_add_sample(b, &(struct sample_row){
				      .ts_ns = ts,
				      .weight = 5,
				      .metric = builder_metric(b, str_from(metric), STR("count")),
				      .track = track });
}

/* One sample may be of several metrics; a thread was sampled as often as the default says. */
static void with_samples(void **state)
{
	struct view_options options;
	struct small_model s;
	track_id main_thread, idle;

	(void)state;
	small_open(&s);
	small_source(&s, "perf.data", "perf_data");
	main_thread = add_track(&s, "trainer", "main", 11);
	idle = add_track(&s, "trainer", "zzz", 12);
	add_sample(&s, main_thread, "cycles", 10);
	add_sample(&s, main_thread, "faults", 10);
	add_sample(&s, main_thread, "cycles", 20);
	add_sample(&s, idle, "faults", 30);
	s.m->metric.is_default[1] = 1;
	small_freeze(&s);
	view_text_expect_columns(&s, &view_tracks, NULL, "name,events,busy_ns,samples",
				 "main|-|-|2\nzzz|-|-|0\n");
	view_options_init(&options);
	options.metric = "faults";
	view_text_expect_columns(&s, &view_tracks, &options, "name,samples", "main|1\nzzz|1\n");
	view_options_init(&options);
	options.time_from_ns = 5; /* from the first one */
	view_text_expect_columns(&s, &view_tracks, &options, "name,samples", "main|1\n");
	view_text_fail_each(&s, &view_tracks);
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(rows), cmocka_unit_test(with_device),
					    cmocka_unit_test(with_samples) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
