/* verdict_test.c: the sentence for each thing that can be wrong, and for profiles without phases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analyze/verdict/verdict.h"
#include "support/trace_model.h"

static const struct event_filter everything = { INT64_MIN, INT64_MAX, -1, 0, 0 };

static void expect(struct small_model *s, const char *want)
{
	struct buf text;

	buf_init(&text, &s->mem);
	assert_int_equal(verdict_write(s->m, &everything, NULL, &text, &s->err), OW_OK);
	assert_string_equal(buf_cstr(&text), want);
	buf_release(&text);
}

struct lane {
	source_id source;
	track_id host, stream;
};

static struct lane open_trace(struct small_model *s)
{
	struct lane lane;

	small_open(s);
	lane.source = trace_source(s, "a.json", 0);
	lane.host = trace_track(s, lane.source, "main", TRACK_HOST, NULL);
	lane.stream = trace_track(s, lane.source, "stream 7", TRACK_STREAM, "/device:GPU:0");
	trace_step(s, lane.source, 1, 0, 100);
	return lane;
}

static void close_trace(struct small_model *s, const char *want)
{
	small_freeze(s);
	expect(s, want);
	small_close(s);
}

static void input(void **state)
{
	struct small_model s;
	struct lane l = open_trace(&s);
	track_id loader = trace_track(&s, l.source, "tf_data", TRACK_LOADER, NULL);

	(void)state;
	trace_slice(&s, l.host, "IteratorGetNext", PHASE_INPUT, 0, 82);
	trace_slice(&s, loader, "Iterator::Model::ParallelMap", PHASE_UNKNOWN, 0, 60);
	trace_slice(&s, loader, "Iterator::Model::Shuffle", PHASE_UNKNOWN, 60, 70);
	trace_slice(&s, l.stream, "gemm", PHASE_COMPUTE, 82, 96);
	close_trace(&s, "82 % of a step waits for input; the slowest stage is ParallelMap; "
			"14 % computes.");

	l = open_trace(&s);
	trace_slice(&s, l.host, "enumerate(DataLoader)#_Iter.__next__", PHASE_INPUT, 0, 30);
	trace_slice(&s, l.stream, "gemm", PHASE_COMPUTE, 30, 100);
	close_trace(&s, "30 % of a step waits for input; the slowest stage is "
			"enumerate(DataLoader)#_Iter.__next__; 70 % computes.");
}

/* Two ranks with one step each: so long they wait for input; then each for the other. */
static void add_two_ranks(struct small_model *to, const int64_t ready[2], uint32_t run)
{
	for (int rank = 0; rank < 2; rank++) {
		source_id source = trace_source(to, rank ? "b.json" : "a.json", rank);
		track_id host = trace_track(to, source, "main", TRACK_HOST, NULL);

		to->m->source.run[source.v] = run;
		trace_step(to, source, 1, 0, 100);
		trace_slice(to, host, "DataLoader", PHASE_INPUT, 0, ready[rank]);
		trace_slice(to, host, "mm", PHASE_HOST, ready[rank], ready[rank] + 10);
		trace_slice(to, host, "gloo:all_reduce", PHASE_COMMUNICATION, ready[rank] + 10,
			    100);
	}
}

static void two_ranks(const int64_t ready[2], const char *want)
{
	struct small_model s;

	small_open(&s);
	add_two_ranks(&s, ready, 1);
	close_trace(&s, want);
}

/* Ranks of two jobs do not wait for each other. */
static void ranks_of_two_jobs(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	add_two_ranks(&s, (int64_t[]){ 40, 41 }, 1);
	add_two_ranks(&s, (int64_t[]){ 20, 70 }, 2);
	close_trace(&s, "2 different jobs, each judged by itself. a.json: 50 % of a step is "
			"communication that compute does not hide; the costliest call is "
			"gloo:all_reduce; 40 % waits for input. a.json: 45 % of a step is "
			"communication that compute does not hide; the costliest call is "
			"gloo:all_reduce, of which at least 56 % is waiting for the other rank; "
			"45 % waits for input. Rank 1 is slow: it waits for input for 70.0 ms "
			"of a step, rank 0 for 20.0 ms, and the others wait for it in "
			"communication.");
}

static void ranks(void **state)
{
	(void)state;
	two_ranks((int64_t[]){ 20, 70 },
		  "45 % of a step is communication that compute does not hide; the costliest call "
		  "is gloo:all_reduce, of which at least 56 % is waiting for the other rank; 45 % "
		  "waits for input. Rank 1 is slow: it waits for input "
		  "for 70.0 ms of a step, rank 0 for 20.0 ms, and the others wait for it in "
		  "communication.");
	two_ranks((int64_t[]){ 40, 45 },
		  "48 % of a step is communication that compute does not hide; the costliest call "
		  "is gloo:all_reduce; 42 % waits for input.");
}

static void compute(void **state)
{
	struct small_model s;
	struct lane l = open_trace(&s);

	(void)state;
	trace_slice(&s, l.stream, "gemm", PHASE_COMPUTE, 0, 60);
	trace_slice(&s, l.stream, "relu", PHASE_COMPUTE, 60, 91);
	trace_slice(&s, l.host, "DataLoader", PHASE_INPUT, 91, 98);
	close_trace(&s, "Compute-bound: 91 % of a step computes; the costliest kernel is gemm "
			"(66 % of compute); 7 % waits for input.");
}

static void launches(void **state)
{
	struct small_model s;
	struct lane l = open_trace(&s);

	(void)state;
	for (int i = 0; i < 10; i++)
		trace_launch(
			&s,
			trace_slice(&s, l.host, "cudaLaunchKernel", PHASE_LAUNCH, i * 10,
				    i * 10 + 8),
			trace_slice(&s, l.stream, "tiny", PHASE_COMPUTE, i * 10 + 8, i * 10 + 10));
	close_trace(&s, "80 % of a step launches work while the device waits; it starts 10 kernels "
			"and copies; 20 % computes.");
}

static void communication(void **state)
{
	struct small_model s;
	struct lane l = open_trace(&s);

	(void)state;
	trace_slice(&s, l.stream, "gemm", PHASE_COMPUTE, 0, 60);
	trace_slice(&s, l.stream, "ncclAllReduce", PHASE_COMMUNICATION, 60, 84);
	trace_slice(&s, l.host, "aten::item", PHASE_HOST, 84, 100);
	close_trace(&s, "24 % of a step is communication that compute does not hide; the costliest "
			"call is ncclAllReduce; 16 % is host code.");
}

static void host(void **state)
{
	struct small_model s;
	struct lane l = open_trace(&s);

	(void)state;
	trace_slice(&s, l.stream, "gemm", PHASE_COMPUTE, 0, 40);
	trace_slice(&s, l.host, "aten::nonzero", PHASE_HOST, 40, 100);
	close_trace(&s, "60 % of a step is host code while the device waits; the costliest "
			"operator is aten::nonzero; 40 % computes.");

	l = open_trace(&s); /* nothing is on a device, and something is missing */
	trace_slice(&s, l.host, "Conv", PHASE_COMPUTE, 0, 70);
	close_trace(&s, "30 % of a step has nothing recorded; 70 % computes.");
}

static void flag(struct small_model *s, event_id event, uint32_t flags)
{
	s->m->op.flags[s->m->event.op[event.v].v] |= flags;
}

/* What goes around others is no culprit, and neither is what ran outside of steps. */
static void wrappers(void **state)
{
	struct small_model s;
	struct lane l = open_trace(&s);
	event_id load, kernel;

	(void)state;
	load = trace_slice(&s, l.host, "load_model", PHASE_HOST, 200, 900);
	flag(&s, trace_slice(&s, l.host, "## backward ##", PHASE_HOST, 0, 100), OP_WRAPS);
	trace_slice(&s, l.host, "aten::mm", PHASE_HOST, 30, 40);
	kernel = trace_slice(&s, l.stream, "void gemm<float, 128>", PHASE_COMPUTE, 0, 30);
	for (uint32_t i = 1; i < s.m->event.count; i++)
		if (i != load.v)
			s.m->event.step[i] = builder_step(&s.b, 1);
	flag(&s, kernel, OP_SHORT_TYPE);
	close_trace(&s, "70 % of a step is host code while the device waits; the costliest "
			"operator is aten::mm; 30 % computes. Steps cover 11 % of the recording.");

	l = open_trace(&s);
	flag(&s, trace_slice(&s, l.host, "## backward ##", PHASE_HOST, 0, 100), OP_WRAPS);
	trace_slice(&s, l.stream, "gemm", PHASE_COMPUTE, 0, 30);
	close_trace(&s, "70 % of a step is host code while the device waits; the costliest range "
			"is ## backward ##; 30 % computes.");

	l = open_trace(&s);
	kernel = trace_slice(&s, l.stream, "void gemm<float, 128>", PHASE_COMPUTE, 0, 100);
	flag(&s, kernel, OP_SHORT_TYPE);
	s.m->op.type[s.m->event.op[kernel.v].v] = builder_cstr(&s.b, "gemm<…>");
	close_trace(
		&s,
		"Compute-bound: 100 % of a step computes; the costliest kernel is gemm<…> (100 % "
		"of compute).");
}

/* Calls that take longer than all launches are named; a share that is there is never "0 %". */
static void slow_calls(void **state)
{
	struct small_model s;
	struct lane l = open_trace(&s);
	event_id call, work;
	source_id source;

	(void)state;
	trace_slice(&s, l.host, "cudaFree", PHASE_LAUNCH, 0, 90);
	call = trace_slice(&s, l.host, "cudaLaunchKernel", PHASE_LAUNCH, 90, 100);
	work = builder_add_event(&s.b, &(struct event_row){ .ts_ns = 99 * MS,
							    .dur_ns = MS / 5,
							    .op = s.m->event.op[call.v],
							    .track = l.stream,
							    .phase = PHASE_COMPUTE });
	trace_launch(&s, call, work);
	close_trace(&s,
		    "Over 99 % of a step launches work while the device waits; the costliest call "
		    "is cudaFree (90 % of launching); under 1 % computes.");

	small_open(&s); /* a device that is called, and of which nothing is recorded */
	source = trace_source(&s, "a.json", 0);
	l.host = trace_track(&s, source, "main", TRACK_HOST, NULL);
	trace_slice(&s, l.host, "aten::mm", PHASE_COMPUTE, 0, 98);
	trace_slice(&s, l.host, "cudaLaunchKernel", PHASE_LAUNCH, 98, 100);
	close_trace(
		&s,
		"The file does not show what the device did; 98 % of the recording runs operators "
		"on the host; the costliest op is aten::mm (100 % of their own time).");

	small_open(&s); /* calls inside operators are not their own time */
	source = trace_source(&s, "a.json", 0);
	l.host = trace_track(&s, source, "main", TRACK_HOST, NULL);
	trace_slice(&s, l.host, "aten::mm", PHASE_COMPUTE, 0, 100);
	trace_slice(&s, l.host, "cudaLaunchKernel", PHASE_LAUNCH, 10, 60);
	close_trace(
		&s,
		"The file does not show what the device did; 100 % of the recording runs operators "
		"on the host, 50 % in calls that launch work; the costliest op is aten::mm (100 % "
		"of "
		"their own time).");
}

/* One name that means something does not make a training job of any program. */
static void hardly_any_phase(void **state)
{
	struct small_model s;
	struct lane l = open_trace(&s);

	(void)state;
	trace_slice(&s, l.host, "RunTask", PHASE_UNKNOWN, 0, 90);
	trace_slice(&s, l.host, "Synchronize", PHASE_SYNCHRONISATION, 90, 91);
	close_trace(&s, "100 % of op time is RunTask."); /* waiting is not work */

	small_open(&s);
	l.host = trace_track(&s, trace_source(&s, "a.json", 0), "main", TRACK_HOST, NULL);
	builder_add_event(&s.b,
			  &(struct event_row){
				  .ts_ns = 5, .dur_ns = TIME_UNKNOWN, .track = l.host, .ph = 'i' });
	close_trace(&s, "No work on a thread or a device has a duration: the input has only points "
			"in time, counters or asynchronous events.");
}

/* Three steps of a recording, of 100 ms each, of which an operator takes this many; then a line of Python is seen. With 1
 * nothing tells that these are steps. */
static void add_live_steps(struct small_model *s, int64_t busy, bool stacks)
{
	source_id source = small_source(s, "a.opw", "live");
	track_id host = trace_track(s, source, "main", TRACK_HOST, NULL);
	metric_id wall = builder_metric(&s->b, STR("wall"), STR("ns"));

	s->m->metric.is_default[wall.v] = 1;
	for (int line = 0; line < 2 && stacks; line++) {
		struct frame_row row = { .file = builder_cstr(&s->b, "/home/me/train.py"),
					 .function = builder_cstr(&s->b, line ? "wait" : "main"),
					 .line = line ? 12 : 34 };
		stack_id stack = builder_stack(&s->b, (stack_id){ 0 }, builder_frame(&s->b, &row));

		/* During the operator; and where nothing was recorded. */
		for (int64_t i = 0; i < 30; i++)
			builder_add_sample(
				&s->b,
				&(struct sample_row){ .ts_ns = (i % 3 * 100 + (line ? 99 : 0)) * MS,
						      .weight = 10,
						      .metric = wall,
						      .stack = stack,
						      .track = host });
	}
	for (int64_t step = 0; step < 3; step++) {
		if (busy > 1)
			trace_step(s, source, step + 1, step * 100, step * 100 + 100);
		trace_slice(s, host, "aten::mm", PHASE_COMPUTE, step * 100, step * 100 + busy);
	}
}

static void nothing_recorded(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	add_live_steps(&s, 60, true);
	close_trace(&s,
		    "40 % of a step has nothing recorded; 100 % of that is in train.py:12 wait; 60 "
		    "% computes.");
	small_open(&s); /* next to nothing is recorded, of what is known to be steps */
	add_live_steps(&s, 2, true);
	close_trace(&s,
		    "98 % of a step has nothing recorded; 100 % of that is in train.py:12 wait; 2 "
		    "% computes.");
	small_open(&s);
	add_live_steps(&s, 1, true);
	close_trace(&s, "50 % of wall is spent in main (train.py:34) itself; as much in "
			"wait. Recorded "
			"calls cover 1 % of the run (3.00ms of 299ms).");
	small_open(&s);
	add_live_steps(&s, 1, false);
	close_trace(&s, "Recorded calls cover 1.5 % of the 201ms from the first to the last of "
			"them (3.00ms); what it did otherwise is not in the file. 100 % of op time "
			"is aten::mm.");
	small_open(&s);
	add_live_steps(&s, 2, false);
	close_trace(&s,
		    "98 % of a step has nothing recorded, and a recording with --stacks shows what "
		    "runs there; 2 % computes.");
}

static void ops(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	small_run(&s,
		  small_op(&s, "gradients/conv1/Conv2D_grad/Conv2DBackpropFilter",
			   "Conv2DBackpropFilter", GPU0),
		  1, 0, 3, 40);
	small_run(&s,
		  small_op(&s, "gradients/conv2/Conv2D_grad/Conv2DBackpropFilter",
			   "Conv2DBackpropFilter", GPU0),
		  1, 50, 0, 20);
	small_run(&s, small_op(&s, "fc/MatMul", "MatMul", GPU0), 1, 90, 7, 30);
	close_trace(&s, "63 % of op time is Conv2DBackpropFilter; the costliest is the gradient of "
			"conv1/Conv2D (43 %).");

	small_open(&s);
	small_run(&s, small_op(&s, "input/MatchingFiles", "MatchingFiles", CPU0), 1, 0, 60, 0);
	small_run(&s, small_op(&s, "fc/MatMul", "MatMul", CPU0), 1, 0, 40, 0);
	close_trace(&s, "60 % of op time is MatchingFiles, all of it in input/MatchingFiles.");
}

static void without_times(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	small_source(&s, "graph.pb", "graphdef");
	small_op(&s, "a", "MatMul", NULL);
	close_trace(&s, "The input has no times: it describes a program, not a run.");
	small_open(&s);
	small_source(&s, "model.index", "checkpoint");
	small_op(&s, "a", "VariableV2", NULL);
	close_trace(&s, "The input has no times: it has the variables of a model, not a run.");
	small_open(&s);
	small_source(&s, "events", "tfevents");
	close_trace(&s, "The input has nothing to profile: neither operations nor times.");
}

/* An op that is slow in one of many steps leads no list, whatever it adds up to. */
static void outliers(void **state)
{
	struct small_model s;
	struct lane l;
	op_id clip, conv;

	(void)state;
	small_open(&s);
	clip = small_op(&s, "Clip_7", "Clip", CPU0);
	conv = small_op(&s, "Conv_1", "Conv", CPU0);
	for (int i = 0; i < 5; i++) {
		small_run(&s, conv, i, i * 100, 30, 0);
		small_run(&s, clip, i, i * 100 + 40, i == 2 ? 5000 : 10, 0);
	}
	close_trace(&s, "75 % of op time, outliers apart, is Conv, all of it in Conv_1.");

	l = open_trace(&s); /* the same where phases are known */
	for (int i = 0; i < 4; i++) {
		int64_t at = i * 100, len = i == 2 ? 10 : 60;
		event_id events[2];

		if (i)
			trace_step(&s, l.source, i + 1, at, at + 100);
		events[0] = trace_slice(&s, l.stream, "gemm", PHASE_COMPUTE, at, at + len);
		events[1] = trace_slice(&s, l.stream, "clip", PHASE_COMPUTE, at + len,
					at + (i == 2 ? 99 : 64));
		for (int k = 0; k < 2; k++)
			s.m->event.step[events[k].v] = builder_step(&s.b, i + 1);
	}
	/* clip adds up to 101 ms, of which 89 are in one step */
	close_trace(&s, "Compute-bound: 73 % of a step computes; the costliest kernel is gemm (92 "
			"% of compute, outliers apart); 27 % has nothing recorded.");
}

/* Traces of which nothing is known but names. */
static void jobs_without_phases(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	for (int i = 0; i < 2; i++) {
		source_id source = trace_source(&s, i ? "b.json" : "a.json", -1);
		track_id host = trace_track(&s, source, "main", TRACK_HOST, NULL);

		s.m->source.run[source.v] = (uint32_t)i + 1;
		trace_slice(&s, host, i ? "parse" : "draw", PHASE_UNKNOWN, 0, 30);
		trace_slice(&s, host, "both", PHASE_UNKNOWN, 40, i ? 50 : 110);
	}
	close_trace(&s, "2 different jobs, each judged by itself. a.json: 70 % of op time is both. "
			"b.json: 75 % of op time is parse.");
}

static void without_memory(void **state)
{
	struct small_model s;
	struct lane l = open_trace(&s);
	bool done = false;

	(void)state;
	trace_slice(&s, l.stream, "gemm", PHASE_COMPUTE, 0, 40);
	trace_slice(&s, l.host, "next", PHASE_INPUT, 40, 100);
	add_live_steps(&s, 2, true); /* in the same model: stacks are looked at, too */
	small_freeze(&s);
	for (uint64_t n = 1; !done; n++) {
		struct buf text;
		ow_status status;

		buf_init(&text, &s.mem);
		mem_fail_after(n, true);
		status = verdict_write(s.m, &everything, NULL, &text, &s.err);
		mem_fail_after(0, false);
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		done = status == OW_OK;
		buf_release(&text);
	}
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(input),
		cmocka_unit_test(compute),
		cmocka_unit_test(ranks),
		cmocka_unit_test(ranks_of_two_jobs),
		cmocka_unit_test(launches),
		cmocka_unit_test(communication),
		cmocka_unit_test(host),
		cmocka_unit_test(ops),
		cmocka_unit_test(without_times),
		cmocka_unit_test(outliers),
		cmocka_unit_test(jobs_without_phases),
		cmocka_unit_test(without_memory),
		cmocka_unit_test(wrappers),
		cmocka_unit_test(nothing_recorded),
		cmocka_unit_test(slow_calls),
		cmocka_unit_test(hardly_any_phase),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
