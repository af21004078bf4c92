/* relation_test.c: relations over models made by hand: columns, NULLs, references, several runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/relation_text.h"
#include "support/trace_model.h"

static void fill_model(struct small_model *s)
{
	source_id source = trace_source(s, "rank0.json", 3);
	track_id host = trace_track(s, source, "main", TRACK_HOST, NULL);
	track_id stream = trace_track(s, source, "stream 7", TRACK_STREAM, "/gpu:0");
	event_id call;

	trace_step(s, source, 5, 0, 100);
	call = trace_slice(s, host, "cudaLaunchKernel", PHASE_LAUNCH, 1, 3);
	trace_launch(s, call, trace_slice(s, stream, "gemm", PHASE_COMPUTE, 4, 9));
	builder_add_event(&s->b, &(struct event_row){ .ts_ns = 50 * MS,
						      .dur_ns = TIME_UNKNOWN,
						      .name = builder_cstr(&s->b, "tick"),
						      .ph = 'i',
						      .track = host });
}

static void expect(const struct relation_run *runs, size_t count, const char *name,
		   const char *columns, const char *lines)
{
	struct error err = { 0 };
	struct mem mem;
	struct buf text;

	mem_init(&mem, 0);
	buf_init(&text, &mem);
	if (relation_text(name, runs, count, columns, &mem, &text, &err) != OW_OK)
		fail_msg("%s: %s", name, err.text);
	assert_string_equal(buf_cstr(&text), lines);
	buf_release(&text);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void event_columns(void **state)
{
	struct relation_run run = { .name = "a", .number = 1 };
	struct small_model s;

	(void)state;
	small_open(&s);
	fill_model(&s);
	small_freeze(&s);
	run.m = s.m;
	expect(&run, 1, "event",
	       "run,id,name,ts,dur,ph,op,op_id,track,track_id,device,rank,phase,track_kind",
	       "a|1|cudaLaunchKernel|1000000|2000000|X|cudaLaunchKernel|1|main|1|-|3|launch|host\n"
	       "a|2|tick|50000000|-|i|-|-|main|1|-|3|-|host\n"
	       "a|3|gemm|4000000|5000000|X|gemm|2|stream 7|2|/gpu:0|3|compute|stream\n");
	expect(&run, 1, "source", "id,path,rank,step_id", "1|rank0.json|3|-\n");
	expect(&run, 1, "step", "id,number", "1|5\n");
	small_close(&s);
}

static void several_runs(void **state)
{
	struct relation_run runs[2] = { { .name = "a", .number = 1 },
					{ .name = "b", .number = 2 } };
	struct small_model s[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		small_open(&s[i]);
		fill_model(&s[i]);
		small_freeze(&s[i]);
		runs[i].m = s[i].m;
	}
	expect(runs, 2, "op", "run,id,name",
	       "a|1|cudaLaunchKernel\na|2|gemm\nb|4294967297|cudaLaunchKernel\nb|4294967298|"
	       "gemm\n");
	expect(runs, 2, "event", "run,op_id", "a|1\na|-\na|2\nb|4294967297\nb|-\nb|4294967298\n");
	for (int i = 0; i < 2; i++)
		small_close(&s[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_columns),
		cmocka_unit_test(several_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
