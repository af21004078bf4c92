/*
 * nsys_stats_test.c: reports as nsys stats prints them: what is counted, with what it is counted, and how numbers are
 * rounded; of models as traces and exports give them.
 */
#include "analyze/nsys/nsys_stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "support/trace_model.h"

static event_id timed(struct small_model *s, track_id track, const char *name, const char *category,
		      int64_t start, int64_t dur)
{
	event_id e = trace_slice(s, track, name, PHASE_UNKNOWN, 0, 0);

	s->m->event.ts_ns[e.v] = start;
	s->m->event.dur_ns[e.v] = dur;
	BUILDER_SET(&s->b, event, category, e, builder_cstr(&s->b, category));
	return e;
}

static void copied(struct small_model *s, track_id track, const char *name, int64_t start,
		   int64_t dur, int64_t bytes)
{
	event_id e = timed(s, track, name, "gpu_memcpy", start, dur);

	BUILDER_SET(&s->b, event, bytes, e, bytes);
}

/* Two kernels of one name, another one, copies, a memset, calls, ranges, a whole graph. */
static void make_model(struct small_model *s, const char *producer)
{
	source_id source = trace_source(s, "x", -1);
	track_id host = trace_track(s, source, "main", TRACK_HOST, NULL);
	track_id async = trace_track(s, source, "ranges", TRACK_ASYNC, NULL);
	track_id stream = trace_track(s, source, "stream 7", TRACK_STREAM, "GPU 1");
	event_id calls[3], kernels[3];

	s->m->source.producer[source.v] = builder_cstr(&s->b, producer);
	s->m->track.pid[host.v] = 5;
	s->m->track.tid[host.v] = 6;
	calls[0] = timed(s, host, "cudaLaunchKernel", "cuda_runtime", 100, 10);
	calls[1] = timed(s, host, "cudaLaunchKernel", "cuda_runtime", 200, 10);
	calls[2] = timed(s, host, "cuLaunchKernel", "cuda_driver", 300, 25);
	timed(s, host, "step", "nvtx", 90, 210);
	timed(s, host, "step", "nvtx", 310, 40);
	timed(s, host, "MPI_Send", "nvtx,MPI", 350, 7);
	timed(s, host, "read", "osrt", 400, 3);
	timed(s, async, "step", "nvtx", 80, 500);
	kernels[0] = timed(s, stream, "gemm(int)", "kernel", 105, 100);
	kernels[1] = timed(s, stream, "gemm(int)", "kernel", 215, 101);
	kernels[2] = timed(s, stream, "relu", "kernel", 330, 33);
	timed(s, stream, "CUDA graph 1", "kernel,graph", 500, 1000);
	copied(s, stream, "Memcpy HtoD (Pinned -> Device)", 370, 10, 1000);
	copied(s, stream, "Memcpy HtoD (Pageable -> Device)", 390, 30, 2500400);
	copied(s, stream, "Memcpy DtoH (Unified Memory)", 430, 5, 4096);
	timed(s, stream, "Memset (Device)", "gpu_memset", 440, 2);
	for (int i = 0; i < 3; i++)
		trace_launch(s, calls[i], kernels[i]);
	small_freeze(s);
}

static const char *cell(const struct table *r, uint32_t row, const char *column)
{
	for (uint32_t c = 0; c < r->column_count; c++)
		if (strcmp(r->columns[c].name, column) == 0)
			return r->columns[c].known && !r->columns[c].known[row]
				       ? NULL
				       : r->columns[c].texts[row].ptr;
	return "no such column";
}

static struct table *report(struct small_model *s, const char *name)
{
	struct table *r = table_new(&s->mem, name, &s->err);
	struct view_options options;

	view_options_init(&options);
	assert_non_null(nsys_report_find(name));
	assert_int_equal(nsys_report_run(s->m, nsys_report_find(name), &options, r, &s->err),
			 OW_OK);
	return r;
}

static void expect(const struct table *r, uint32_t row, const char *const *cells)
{
	for (uint32_t c = 0; c < r->column_count; c++)
		assert_string_equal(r->columns[c].texts[row].ptr, cells[c]);
}

static void kernels_and_calls(void **state)
{
	static const char *const gemm[] = { "85.9", "201", "2",	  "100.5",    "100.5",
					    "100",  "101", "0.7", "gemm(int)" };
	static const char *const relu[] = { "14.1", "33", "1",	 "33.0", "33.0",
					    "33",   "33", "0.0", "relu" };
	static const char *const driver[] = { "55.6", "25", "1",   "25.0",	    "25.0",
					      "25",   "25", "0.0", "cuLaunchKernel" };
	struct small_model s;
	struct table *r;

	(void)state;
	small_open(&s);
	make_model(&s, "x");
	r = report(&s, "gpukernsum");
	assert_int_equal(r->row_count, 2);
	assert_string_equal(r->columns[2].name, "Instances");
	expect(r, 0, gemm);
	expect(r, 1, relu);
	table_free(r);
	r = report(&s, "cuda_api_sum");
	assert_int_equal(r->row_count, 2);
	expect(r, 0, driver);
	assert_string_equal(cell(r, 1, "Num Calls"), "2");
	table_free(r);
	r = report(&s, "osrt_sum");
	assert_int_equal(r->row_count, 1);
	assert_string_equal(cell(r, 0, "Name"), "read");
	table_free(r);
	small_close(&s);
}

static void memory(void **state)
{
	static const char *const time[] = { "85.1", "40",   "2",
					    "20.0", "20.0", "10",
					    "30",   "14.1", "[CUDA memcpy HtoD]" };
	static const char *const size[] = { "2.501", "2",     "1.251", "1.251",
					    "0.001", "2.500", "1.767", "[CUDA memcpy HtoD]" };
	struct small_model s;
	struct table *r;

	(void)state;
	small_open(&s);
	make_model(&s, "Nsight Systems 2023.3.1");
	r = report(&s, "cuda_gpu_mem_time_sum");
	assert_int_equal(r->row_count, 3);
	expect(r, 0, time);
	assert_string_equal(cell(r, 1, "Operation"), "[CUDA Unified Memory memcpy DtoH]");
	assert_string_equal(cell(r, 2, "Operation"), "[CUDA memset]");
	table_free(r);
	r = report(&s, "gpumemsizesum");
	expect(r, 0, size);
	table_free(r);
	small_close(&s);
	small_open(&s);
	make_model(&s, "Nsight Systems 2023.4.1.97");
	r = report(&s, "cuda_gpu_mem_time_sum");
	assert_string_equal(cell(r, 0, "Operation"), "[CUDA memcpy Host-to-Device]");
	assert_string_equal(cell(r, 1, "Operation"), "[CUDA memcpy Unified Device-to-Host]");
	table_free(r);
	small_close(&s);
}

static void ranges(void **state)
{
	struct small_model s;
	struct table *r;

	(void)state;
	small_open(&s);
	make_model(&s, "x");
	r = report(&s, "nvtx_sum");
	assert_int_equal(r->row_count, 3);
	assert_string_equal(cell(r, 0, "Style"), "StartEnd");
	assert_string_equal(cell(r, 1, "Range"), ":step");
	assert_string_equal(cell(r, 1, "Style"), "PushPop");
	assert_string_equal(cell(r, 1, "Total Time (ns)"), "250");
	assert_string_equal(cell(r, 1, "Med (ns)"), "125.0");
	assert_string_equal(cell(r, 2, "Range"), "MPI:MPI_Send");
	table_free(r);
	small_close(&s);
}

static void launches(void **state)
{
	struct small_model s;
	struct table *r;

	(void)state;
	small_open(&s);
	make_model(&s, "x");
	r = report(&s, "cuda_kern_exec_sum");
	assert_int_equal(r->row_count, 2);
	assert_string_equal(cell(r, 0, "Kernel Name"), "gemm(int)");
	assert_string_equal(cell(r, 0, "API Name"), "cudaLaunchKernel");
	assert_string_equal(cell(r, 0, "PID"), "5");
	assert_string_equal(cell(r, 0, "TID"), "6");
	assert_string_equal(cell(r, 0, "DevId"), "1");
	assert_string_equal(cell(r, 0, "Count"), "2");
	assert_string_equal(cell(r, 0, "QCount"), "1"); /* the first starts during the call */
	assert_string_equal(cell(r, 0, "TAvg (ns)"), "110.5"); /* 105 and 116 */
	assert_string_equal(cell(r, 0, "AAvg (ns)"), "10.0");
	assert_string_equal(cell(r, 0, "QAvg (ns)"), "5.0");
	assert_string_equal(cell(r, 0, "KMax (ns)"), "101");
	assert_string_equal(cell(r, 1, "QAvg (ns)"), "5.0");
	table_free(r);
	small_close(&s);
}

static void nothing_and_too_little(void **state)
{
	struct view_options options;
	struct small_model s;
	ow_status status = OW_E_NO_MEMORY;

	(void)state;
	assert_null(nsys_report_find("cuda_gpu_sum"));
	small_open(&s);
	small_freeze(&s);
	for (size_t i = 0; i < nsys_report_count; i++) {
		struct table *r = report(&s, nsys_reports[i].name);

		assert_int_equal(r->row_count, 0);
		table_free(r);
	}
	small_close(&s);
	small_open(&s);
	make_model(&s, "x");
	view_options_init(&options);
	for (size_t i = 0; i < nsys_report_count; i++) {
		status = OW_E_NO_MEMORY;
		for (uint64_t n = 1; status != OW_OK; n++) {
			struct table *r = table_new(&s.mem, "x", &s.err);

			assert_true(n < 1000);
			mem_fail_after(n, false);
			status = nsys_report_run(s.m, &nsys_reports[i], &options, r, &s.err);
			mem_fail_after(0, false);
			assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
			table_free(r);
		}
	}
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_and_calls),
		cmocka_unit_test(memory),
		cmocka_unit_test(ranges),
		cmocka_unit_test(launches),
		cmocka_unit_test(nothing_and_too_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
