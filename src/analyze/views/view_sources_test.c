/* view_sources_test.c: what is said about one input, about several, and what is left unknown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/view_text.h"

static void one(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	small_source(&s, "profile_7", "tf_profile");
	small_run(&s, small_op(&s, "a", "MatMul", GPU0), 0, 10, 5, 3);
	builder_note(&s.b, NOTE_INFO, 0, "fine");
	small_freeze(&s);
	view_text_expect(&s, &view_sources, NULL,
			 "profile_7|tf_profile||1000|1000||-|1|2|1|1|-|-\n");
	view_text_fail_each(&s, &view_sources);
	small_close(&s);
}

static void add_event(struct small_model *s, source_id source, int64_t step, int64_t tid)
{
	track_id track = builder_track(&s->b, &(struct track_row){ .source = source, .tid = tid });

	builder_add_event(&s->b, &(struct event_row){ .ts_ns = 1,
						      .dur_ns = 1,
						      .track = track,
						      .step = builder_step(&s->b, step) });
}

static void several(void **state)
{
	struct small_model s;
	source_id graph, run, more;
	op_id op;

	(void)state;
	small_open(&s);
	graph = small_source(&s, "graph.pb", "tf_graph");
	op = small_op(&s, "a", "MatMul", "");
	run = small_source(&s, "run_meta_0.gz", "tf_run_metadata");
	s.m->source.container[run.v] = builder_cstr(&s.b, "gzip");
	s.m->source.packed_size[run.v] = 99;
	s.m->source.rank[run.v] = 2;
	add_event(&s, run, 0, 1);
	add_event(&s, run, 0, 2);
	more = small_source(&s, "run_meta_1", "tf_run_metadata");
	add_event(&s, more, 1, 1);
	add_event(&s, more, 0, 1);
	add_event(&s, more, 1, 1);
	BUILDER_SET(&s.b, op, source, op, graph);
	small_freeze(&s);
	view_text_expect(&s, &view_sources, NULL,
			 "graph.pb|tf_graph||1000|1000||-|1|0|0|0|-|-\n"
			 "run_meta_0.gz|tf_run_metadata|gzip|1000|99||2|0|2|1|0|1|-\n"
			 "run_meta_1|tf_run_metadata||1000|1000||-|0|3|2|0|1|-\n");
	view_text_fail_each(&s, &view_sources);
	small_close(&s);
}

static void unknown(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	small_source(&s, "a", "x");
	small_source(&s, "b", "x");
	small_run(&s, small_op(&s, "a", "MatMul", GPU0), 0, 10, 5, 0);
	small_freeze(&s);
	view_text_expect(&s, &view_sources, NULL,
			 "a|x||1000|1000||-|-|-|-|0|-|-\n"
			 "b|x||1000|1000||-|-|-|-|0|-|-\n");
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(one), cmocka_unit_test(several),
					    cmocka_unit_test(unknown) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
