/* view_work_test.c: which ops count, what is left out, and what is divided by. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/trace_model.h"
#include "support/view_text.h"

static const char columns[] = "name,time_ns,percent,accelerator_ns,cpu_ns,runs,ops,top_op";

static event_id slice_in(struct small_model *s, track_id track, const char *name, int64_t step,
			 int64_t begin, int64_t end)
{
	event_id id = trace_slice(s, track, name, PHASE_HOST, begin, end);

	if (step >= 0)
		s->m->event.step[id.v] = builder_step(&s->b, step);
	return id;
}

static void flag(struct small_model *s, event_id event, uint32_t flags)
{
	s->m->op.flags[s->m->event.op[event.v].v] |= flags;
}

static void rows(void **state)
{
	struct view_options options;
	struct small_model s;
	struct table *r;
	source_id source;
	track_id host, stream;

	(void)state;
	small_open(&s);
	source = trace_source(&s, "a.json", -1);
	host = trace_track(&s, source, "main", TRACK_HOST, NULL);
	stream = trace_track(&s, source, "stream 7", TRACK_STREAM, "/device:GPU:0");
	slice_in(&s, host, "load", -1, 0, 1000); /* outside of steps */
	slice_in(&s, stream, "gemm", 1, 2010, 2016);
	slice_in(&s, stream, "gemm", 2, 3010, 3012);
	flag(&s, slice_in(&s, host, "step", 1, 2000, 2100), OP_WRAPS);
	slice_in(&s, host, "mm", 1, 2010, 2020);
	flag(&s, slice_in(&s, host, "synchronize", 1, 2020, 2090), OP_WAITS);
	slice_in(&s, host, "rare", 2, 3000, 3002); /* in one of two steps only */
	small_freeze(&s);
	view_text_expect_columns(&s, &view_work, NULL, columns,
				 "mm|5000000|50|0|5000000|0.5|1|\n"
				 "gemm|4000000|40|4000000|0|1|1|\n"
				 "rare|1000000|10|0|1000000|0.5|1|\n");
	view_options_init(&options);
	options.step = 2;
	view_text_expect_columns(&s, &view_work, &options, "name,time_ns",
				 "gemm|2000000\nrare|2000000\n");
	options.step = -1;
	options.limit = 1;
	view_text_expect_columns(&s, &view_work, &options, "name", "mm\n");
	options.limit = 0;
	options.time_from_ns = (int64_t)2005 * MS; /* of the first event, at 0 */
	options.time_to_ns = (int64_t)2012 * MS;
	view_text_expect_columns(&s, &view_work, &options, "name,time_ns",
				 "gemm|2000000\nmm|2000000\n");
	options.step = 7;
	r = table_new(&s.mem, "work", &s.err);
	assert_int_equal(view_work.run(s.m, &options, r, &s.err), OW_E_NOT_FOUND);
	table_free(r);
	view_text_fail_each(&s, &view_work);
	small_close(&s);
}

static void only_ranges(void **state)
{
	struct small_model s;
	track_id host;

	(void)state;
	small_open(&s);
	host = trace_track(&s, trace_source(&s, "a.json", -1), "main", TRACK_HOST, NULL);
	flag(&s, slice_in(&s, host, "forward", -1, 0, 3), OP_WRAPS);
	flag(&s, slice_in(&s, host, "backward", -1, 3, 4), OP_WRAPS);
	small_freeze(&s);
	view_text_expect_columns(&s, &view_work, NULL, "name,percent", "forward|75\nbackward|25\n");
	small_close(&s);
}

static void of_a_graph(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	small_run(&s, small_op(&s, "a/x", "MatMul", GPU0), 1, 0, 10, 20);
	small_run(&s, small_op(&s, "a/y", "MatMul", GPU0), 1, 0, 2, 0);
	small_freeze(&s);
	view_text_expect_columns(&s, &view_work, NULL, columns,
				 "MatMul|32000|100|20000|12000|2|2|a/x\n");
	small_close(&s);
	small_open(&s);
	small_op(&s, "a", "MatMul", NULL);
	small_freeze(&s);
	view_text_expect_columns(&s, &view_work, NULL, columns, "");
	small_close(&s);
}

/* A copy that waits in one step and not in others, of steps that come in any order in the file. */
static void waits_in_steps(void **state)
{
	static const int order[] = { 3, 1, 2 };
	struct small_model s;
	track_id host;

	(void)state;
	small_open(&s);
	host = trace_track(&s, trace_source(&s, "a.json", -1), "main", TRACK_HOST, NULL);
	for (int i = 0; i < 3; i++) {
		int64_t at = order[i] * 100;
		event_id copy = slice_in(&s, host, "memcpy", order[i], at, at + 60);

		s.m->event.phase[copy.v] = PHASE_SYNCHRONISATION;
		slice_in(&s, host, "memcpy", order[i], at + 60, at + 63);
		slice_in(&s, host, "mm", order[i], at + 63, at + 73);
	}
	small_freeze(&s);
	view_text_expect_columns(&s, &view_work, NULL, "name,time_ns",
				 "mm|10000000\nmemcpy|3000000\n");
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),
		cmocka_unit_test(only_ranges),
		cmocka_unit_test(of_a_graph),
		cmocka_unit_test(waits_in_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
