/* view_roofline_test.c: rates, what bounds them, and where peaks come from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analyze/views/peaks.h"
#include "support/trace_model.h"
#include "support/view_text.h"

static void make(struct small_model *s)
{
	source_id source;
	track_id stream;
	event_id e;

	small_open(s);
	source = trace_source(s, "a.pb", -1);
	stream = trace_track(s, source, "Stream #1", TRACK_STREAM, "/device:GPU:0");
	for (int i = 0; i < 2; i++) {
		e = trace_slice(s, stream, "gemm", PHASE_COMPUTE, i * 20, i * 20 + 10);
		s->m->op.float_ops[s->m->event.op[e.v].v] = 1000000000;
		BUILDER_SET(&s->b, op, accessed, s->m->event.op[e.v], 1000000);
	}
	e = trace_slice(s, stream, "copy", PHASE_COMPUTE, 50, 55);
	BUILDER_SET(&s->b, op, accessed, s->m->event.op[e.v], 5000000);
	trace_slice(s, stream, "unknown", PHASE_COMPUTE, 60, 61);
	small_freeze(s);
}

/* Which ends with the text and does not go on, or has the text and goes on to the other. */
static void expect_footer(struct small_model *s, const struct view_options *options,
			  const char *text, const char *end)
{
	struct table *r = table_new(&s->mem, "roofline", &s->err);
	const char *found;

	assert_non_null(r);
	assert_int_equal(view_roofline.run(s->m, options, r, &s->err), OW_OK);
	found = strstr(r->footer, text);
	assert_non_null(found);
	assert_string_equal(found + strlen(found) - strlen(end ? end : text), end ? end : text);
	table_free(r);
}

static void rates(void **state)
{
	struct view_options options;
	struct small_model s;

	(void)state;
	make(&s);
	view_options_init(&options);
	options.peak = "200G:2G";
	view_text_expect_columns(
		&s, &view_roofline, &options,
		"name,runs,time_ns,flops,bytes,gflops_per_second,gbytes_per_second,intensity,"
		"attainable_gflops_per_second,efficiency_percent,bound_by",
		"all "
		"operations|4|26000000|2e+09|7e+06|76.9231|0.269231|285.714|200|38.4615|compute\n"
		"gemm|2|20000000|1e+09|1e+06|100|0.1|1000|200|50|compute\n"
		"copy|1|5000000|-|5e+06|-|1|-|-|50|memory\n");
	expect_footer(&s, &options, "in balance at 100 FLOP/byte", NULL);
	options.peak = "200G:0.5G";
	/* copy moves 1 GB/s: that peak is not one */
	expect_footer(&s, &options, "not 0.5 GB/s, which operations exceed", "--peak gives it");
	view_text_expect_columns(&s, &view_roofline, &options, "name,efficiency_percent,bound_by",
				 "all operations|38.4615|compute\ngemm|50|compute\n"
				 "copy|-|unknown\n");
	options.peak = NULL;
	options.limit = 1;
	view_text_expect_columns(&s, &view_roofline, &options, "name,efficiency_percent,bound_by",
				 "all operations|-|unknown\ngemm|-|unknown\n");
	small_close(&s);
}

static void peaks_are_parsed(void **state)
{
	struct ow_error err = { 0 };
	struct peaks p;

	(void)state;
	assert_int_equal(peaks_parse("312T:2.04T", &p, &err), OW_OK);
	assert_true(p.flops > 311.9e12 && p.flops < 312.1e12 && p.bytes > 2.03e12 &&
		    p.bytes < 2.05e12);
	assert_int_equal(peaks_parse(":900G", &p, &err), OW_OK);
	assert_true(p.flops <= 0 && p.bytes > 899e9);
	assert_int_equal(peaks_parse("5e12", &p, &err), OW_OK);
	assert_true(p.flops > 4.9e12 && p.bytes <= 0);
	assert_int_equal(peaks_parse("NVIDIA A100-SXM4-80GB", &p, &err), OW_OK);
	assert_true(p.bytes > 2.0e12);
	assert_int_equal(peaks_parse("x", &p, &err), OW_E_USAGE);
	assert_int_equal(peaks_parse("3T:", &p, &err), OW_E_USAGE);
	assert_int_equal(peaks_parse("3T:4Gx", &p, &err), OW_E_USAGE);
	assert_int_equal(peaks_parse("-1", &p, &err), OW_E_USAGE);
	assert_int_equal(peaks_parse("nan", &p, &err), OW_E_USAGE);
}

static void peaks_come_from_facts(void **state)
{
	struct small_model s;
	struct peaks p;
	fact_id plane, values;

	(void)state;
	small_open(&s);
	plane = fact_object(&s.b, (fact_id){ 0 }, "plane");
	values = fact_object(&s.b, plane, "capabilities");
	fact_int(&s.b, values, "core_count", 108);
	fact_int(&s.b, values, "clock_rate", 1410000);
	fact_int(&s.b, values, "memory_bandwidth", 1555000000000);
	fact_int(&s.b, values, "compute_cap_major", 8);
	fact_int(&s.b, values, "compute_cap_minor", 0);
	small_freeze(&s);
	peaks_find(s.m, &p);
	assert_true(p.flops > 311e12 && p.flops < 313e12); /* what its data sheet says */
	assert_true(p.bytes > 1554e9 && p.bytes < 1556e9);
	small_close(&s);
}

/* HBM3 moves four times per clock of the memory, the writer computes with two. */
static void amd_bandwidth(void **state)
{
	struct small_model s;
	struct peaks p;
	fact_id values;

	(void)state;
	small_open(&s);
	values = fact_object(&s.b, fact_object(&s.b, (fact_id){ 0 }, "plane"), "capabilities");
	fact_text(&s.b, values, "device_vendor", STR("AMD"));
	fact_int(&s.b, values, "core_count", 304);
	fact_int(&s.b, values, "clock_rate", 2100000);
	fact_int(&s.b, values, "memory_bandwidth", 2662400000000);
	fact_int(&s.b, values, "compute_cap_major", 9);
	fact_int(&s.b, values, "compute_cap_minor", 4);
	small_freeze(&s);
	peaks_find(s.m, &p);
	assert_true(p.bytes > 5300e9 && p.bytes < 5330e9); /* the data sheet: 5.3 TB/s */
	small_close(&s);
}

/* What starts a transfer moves nothing itself. */
static void transfers_have_no_rate(void **state)
{
	struct view_options options;
	struct small_model s;
	track_id stream;
	event_id e;

	(void)state;
	small_open(&s);
	stream = trace_track(&s, trace_source(&s, "a.pb", -1), "XLA Ops", TRACK_STREAM,
			     "/device:TPU:0");
	e = trace_slice(&s, stream, "copy-start", PHASE_HOST_TO_DEVICE, 0, 1);
	BUILDER_SET(&s.b, op, accessed, s.m->event.op[e.v], (int64_t)1 << 40);
	e = trace_slice(&s, stream, "fusion", PHASE_COMPUTE, 10, 20);
	BUILDER_SET(&s.b, op, accessed, s.m->event.op[e.v], 1000000);
	small_freeze(&s);
	view_options_init(&options);
	options.peak = ":1G";
	view_text_expect_columns(&s, &view_roofline, &options, "name,efficiency_percent",
				 "all operations|9.09091\nfusion|10\n");
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates),
		cmocka_unit_test(peaks_are_parsed),
		cmocka_unit_test(peaks_come_from_facts),
		cmocka_unit_test(amd_bandwidth),
		cmocka_unit_test(transfers_have_no_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
