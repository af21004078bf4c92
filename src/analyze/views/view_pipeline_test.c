/* view_pipeline_test.c: stages of tf.data and of a loader, and which of them is the bottleneck. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/trace_model.h"
#include "support/view_text.h"

static const char columns[] =
	"stage,kind,category,runs,total_ns,self_ns,threads,busy_ns,bottleneck";

static void tf_data(void **state)
{
	struct small_model s;
	source_id source;
	track_id host, loaders[2];

	(void)state;
	small_open(&s);
	source = trace_source(&s, "a.pb", -1);
	host = trace_track(&s, source, "main", TRACK_HOST, NULL);
	loaders[0] = trace_track(&s, source, "tf_data_1", TRACK_LOADER, NULL);
	loaders[1] = trace_track(&s, source, "tf_data_2", TRACK_LOADER, NULL);
	trace_slice(&s, host, "IteratorGetNext", PHASE_INPUT, 0, 100);
	trace_slice(&s, host, "Iterator/Prefetch", PHASE_UNKNOWN, 0, 90);
	for (int i = 0; i < 2; i++) {
		trace_slice(&s, loaders[i], "Iterator/Prefetch/Map", PHASE_UNKNOWN, 0, 60);
		trace_slice(&s, loaders[i], "Iterator/Prefetch/Map/TFRecord", PHASE_UNKNOWN, 10,
			    10 + 10 * (i + 1));
	}
	small_freeze(&s);
	view_text_expect_columns(
		&s, &view_pipeline, NULL, columns,
		"Iterator/Prefetch|iterator|preprocessing|1|90000000|90000000|1|90000000|0\n"
		"Iterator/Prefetch/Map|iterator|preprocessing|2|120000000|90000000|2|45000000|1\n"
		"Iterator/Prefetch/Map/TFRecord|iterator|advanced "
		"read|2|30000000|30000000|2|15000000|0\n"
		"IteratorGetNext|wait|wait|1|100000000|10000000|1|10000000|0\n");
	small_close(&s);
}

static void what_runs_inside_a_loader(void **state)
{
	struct small_model s;
	source_id source;
	track_id host;

	(void)state;
	small_open(&s);
	source = trace_source(&s, "a.json", -1);
	host = trace_track(&s, source, "main", TRACK_HOST, NULL);
	trace_slice(&s, host, "DataLoader.__next__", PHASE_INPUT, 0, 100);
	trace_slice(&s, host, "aten::stack", PHASE_HOST, 10, 80);
	trace_slice(&s, host, "aten::mm", PHASE_HOST, 110, 120);
	small_freeze(&s);
	view_text_expect_columns(
		&s, &view_pipeline, NULL, columns,
		"aten::stack|work|preprocessing|1|70000000|70000000|1|70000000|1\n"
		"DataLoader.__next__|wait|wait|1|100000000|30000000|1|30000000|0\n");
	small_close(&s);
}

static void nothing_is_told(void **state)
{
	struct view_options options;
	struct small_model s;
	struct table *r;

	(void)state;
	small_open(&s);
	small_freeze(&s);
	view_options_init(&options);
	r = table_new(&s.mem, "pipeline", &s.err);
	assert_int_equal(view_pipeline.run(s.m, &options, r, &s.err), OW_OK);
	assert_int_equal(r->row_count, 0);
	assert_non_null(strstr(r->footer, "no input pipeline was recorded"));
	table_free(r);
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tf_data),
		cmocka_unit_test(what_runs_inside_a_loader),
		cmocka_unit_test(nothing_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
