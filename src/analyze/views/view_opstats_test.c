/* view_opstats_test.c: self time among ops only, kernels of an op, idle time; and XProf's parts of a step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/trace_model.h"
#include "support/view_text.h"

static event_id op_slice(struct small_model *s, track_id track, const char *name, uint32_t flags,
			 int64_t begin, int64_t end)
{
	event_id id = trace_slice(s, track, name, PHASE_COMPUTE, begin, end);

	s->m->op.flags[s->m->event.op[id.v].v] |= flags;
	return id;
}

static void annotations_are_transparent(void **state)
{
	struct small_model s;
	source_id source;
	track_id host;

	(void)state;
	small_open(&s);
	source = trace_source(&s, "a.pb", -1);
	host = trace_track(&s, source, "main", TRACK_HOST, NULL);
	op_slice(&s, host, "outer", OP_FRAMEWORK, 0, 100);
	op_slice(&s, host, "annotation", 0, 10, 60);
	op_slice(&s, host, "inner", OP_FRAMEWORK, 20, 50);
	op_slice(&s, host, "innermost", OP_FRAMEWORK, 30, 40);
	op_slice(&s, host, "inner", OP_FRAMEWORK, 100, 110); /* begins where another ends */
	op_slice(&s, host, "late", OP_FRAMEWORK, 150, 200);
	small_freeze(&s);
	view_text_expect_columns(&s, &view_opstats, NULL, "where,name,runs,total_ns,self_ns",
				 "host|outer|1|100000000|70000000\n"
				 "host|late|1|50000000|50000000\n"
				 "host|IDLE|0|40000000|40000000\n"
				 "host|inner|2|40000000|30000000\n"
				 "host|innermost|1|10000000|10000000\n");
	small_close(&s);
}

static void kernels_say_how_often_an_op_ran(void **state)
{
	struct small_model s;
	source_id source;
	track_id stream;
	event_id e;

	(void)state;
	small_open(&s);
	source = trace_source(&s, "a.pb", -1);
	stream = trace_track(&s, source, "Stream #1", TRACK_STREAM, "/device:GPU:0");
	for (int i = 0; i < 5; i++) {
		e = op_slice(&s, stream, "matmul", OP_FRAMEWORK, i * 10, i * 10 + 4);
		BUILDER_SET(&s.b, event, name, e, builder_cstr(&s.b, i < 3 ? "gemm" : "split"));
	}
	op_slice(&s, stream, "fusion", OP_FRAMEWORK | OP_INSTRUCTION, 60, 70);
	small_freeze(&s);
	view_text_expect_columns(&s, &view_opstats, NULL, "where,name,runs,self_ns,busy_percent",
				 "device|IDLE|0|40000000|-\n"
				 "device|matmul|3|20000000|66.6667\n"
				 "device|fusion|1|10000000|33.3333\n");
	small_close(&s);
}

static void without_known_ops_all_count(void **state)
{
	struct small_model s;
	source_id source;
	track_id host;

	(void)state;
	small_open(&s);
	source = trace_source(&s, "a.json", -1);
	host = trace_track(&s, source, "main", TRACK_HOST, NULL);
	op_slice(&s, host, "step", OP_WRAPS, 0, 100);
	op_slice(&s, host, "aten::mm", 0, 10, 20);
	small_freeze(&s);
	view_text_expect_columns(&s, &view_opstats, NULL, "name,self_ns",
				 "aten::mm|10000000\nIDLE|0\n");
	small_close(&s);
}

static void a_step_goes_to_the_highest_priority(void **state)
{
	struct small_model s;
	source_id source;
	track_id host, stream;
	event_id e[5];

	(void)state;
	small_open(&s);
	source = trace_source(&s, "a.pb", -1);
	host = trace_track(&s, source, "main", TRACK_HOST, NULL);
	stream = trace_track(&s, source, "Stream #1", TRACK_STREAM, "/device:GPU:0");
	trace_step(&s, source, 1, 0, 100);
	e[0] = op_slice(&s, host, "train", 0, 0, 100);
	e[1] = trace_slice(&s, host, "IteratorGetNext", PHASE_INPUT, 0, 30);
	e[2] = op_slice(&s, host, "MatMul", OP_FRAMEWORK, 20, 50);
	e[3] = trace_slice(&s, stream, "gemm_half", PHASE_COMPUTE, 25, 60);
	e[4] = trace_slice(&s, stream, "MemcpyD2H", PHASE_DEVICE_TO_HOST, 55, 70);
	for (int i = 0; i < 5; i++)
		s.m->event.step[e[i].v] = builder_step(&s.b, 1);
	small_freeze(&s);
	view_text_expect_columns(
		&s, &view_steps, NULL,
		"xprof_step_ps,xprof_device_compute_16_ps,xprof_device_to_host_ps,"
		"xprof_host_wait_input_ps,xprof_host_compute_ps,xprof_unknown_ps",
		"100000000000|35000000000|10000000000|25000000000|0|30000000000\n");
	small_close(&s);
}

/* Nobody measured them, but a damaged file has them: sums stay at the end of the range. */
static void times_that_cannot_be(void **state)
{
	struct small_model s;
	source_id source;
	track_id tracks[2];

	(void)state;
	small_open(&s);
	source = trace_source(&s, "a.pb", -1);
	tracks[0] = trace_track(&s, source, "main", TRACK_HOST, NULL);
	tracks[1] = trace_track(&s, source, "Stream #1", TRACK_STREAM, "/device:GPU:0");
	trace_step(&s, source, 1, 0, 1);
	for (int i = 0; i < 8; i++) {
		event_id e = op_slice(&s, tracks[i % 2], "wild", OP_FRAMEWORK, i, i + 1);

		s.m->event.step[e.v] = builder_step(&s.b, 1);
		s.m->event.ts_ns[e.v] = i < 4 ? -INT64_MAX + i : INT64_MAX - 9 + i;
		s.m->event.dur_ns[e.v] = i < 6 ? INT64_MAX : 9;
	}
	s.m->window.start_ns[1] = INT64_MIN / 2;
	s.m->window.end_ns[1] = INT64_MAX;
	small_freeze(&s);
	view_text_expect_columns(&s, &view_opstats, NULL, "where,name,runs",
				 "device|wild|4\ndevice|IDLE|0\nhost|wild|4\nhost|IDLE|0\n");
	view_text_expect_columns(&s, &view_steps, NULL, "step", "1\n");
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(annotations_are_transparent),
		cmocka_unit_test(kernels_say_how_often_an_op_ran),
		cmocka_unit_test(without_known_ops_all_count),
		cmocka_unit_test(a_step_goes_to_the_highest_priority),
		cmocka_unit_test(times_that_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
