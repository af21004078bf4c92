/* Unit tests of the replay: small traces whose critical paths and what-if answers are known by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replay/change.h"
#include "support/trace_model.h"

static const struct event_filter everything = { INT64_MIN, INT64_MAX, -1, 0, 0 };
static const struct graph_extent all_steps = { .until = TIME_UNKNOWN };

struct job {
	struct small_model s;
	source_id source;
	track_id host, other, stream, second;
};

static void open_job(struct job *j)
{
	small_open(&j->s);
	j->source = trace_source(&j->s, "a.json", 0);
	j->host = trace_track(&j->s, j->source, "main", TRACK_HOST, NULL);
	j->other = trace_track(&j->s, j->source, "autograd", TRACK_HOST, NULL);
	j->stream = trace_track(&j->s, j->source, "stream 7", TRACK_STREAM, "/device:GPU:0");
	j->second = trace_track(&j->s, j->source, "stream 20", TRACK_STREAM, "/device:GPU:0");
}

/* Input 4, operator 2, launch 1; the kernel runs for 5, and the host waits for it: 12 in all. */
static void add_plain_step(struct job *j, int64_t number, int64_t at)
{
	struct small_model *s = &j->s;
	event_id call;

	trace_step(s, j->source, number, at, at + 12);
	trace_slice(s, j->host, "DataLoader.__next__", PHASE_INPUT, at, at + 4);
	trace_slice(s, j->host, "aten::mm", PHASE_HOST, at + 4, at + 7);
	call = trace_slice(s, j->host, "cudaLaunchKernel", PHASE_LAUNCH, at + 6, at + 7);
	trace_slice(s, j->host, "cudaDeviceSynchronize", PHASE_SYNCHRONISATION, at + 7, at + 12);
	trace_launch(s, call, trace_slice(s, j->stream, "gemm", PHASE_COMPUTE, at + 7, at + 12));
}

static void open_session(struct job *j, struct session *s)
{
	small_freeze(&j->s);
	assert_int_equal(session_open(j->s.m, &everything, &all_steps, s, &j->s.err), OW_OK);
	assert_string_equal(s->g.refused, "");
}

static void close_session(struct job *j, struct session *s)
{
	session_close(s);
	small_close(&j->s);
}

static int64_t predict(const struct session *s, const char *text)
{
	struct scenario scenario;
	struct change change;
	struct arena arena;
	struct replay r;
	uint64_t matched;

	arena_init(&arena, s->g.m->mem);
	assert_int_equal(change_parse(text, &arena, &change, NULL), OW_OK);
	assert_int_equal(scenario_make(&s->g, &arena, &scenario, NULL), OW_OK);
	assert_int_equal(change_apply(s, &change, &scenario, &matched, NULL), OW_OK);
	assert_int_equal(replay_run(&s->g, &scenario, &arena, &r, NULL), OW_OK);
	arena_release(&arena);
	return r.median_ns;
}

/* Path pieces of one kind in the median step; the path sums to the step. */
static int64_t on_path(const struct session *s, enum node_kind kind)
{
	int64_t sum = 0, all = 0;
	struct critical_path path;
	struct arena arena;

	arena_init(&arena, s->g.m->mem);
	assert_int_equal(path_find(&s->base, median_step(&s->g), &arena, &path, NULL), OW_OK);
	for (uint32_t i = 0; i < path.count; i++) {
		all += path.items[i].dur_ns;
		if (path.items[i].kind == kind)
			sum += path.items[i].dur_ns;
	}
	assert_int_equal(all, path.step_ns);
	arena_release(&arena);
	return sum;
}

static void plain_steps(void **state)
{
	struct session s;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 4; i++)
		add_plain_step(&j, i, 12 * i);
	open_session(&j, &s);
	assert_int_equal(s.g.step_ns, 12 * MS);
	assert_int_equal(s.base.median_ns, 12 * MS);
	assert_int_equal(on_path(&s, NODE_INPUT), 4 * MS);
	assert_int_equal(on_path(&s, NODE_HOST), 2 * MS);
	assert_int_equal(on_path(&s, NODE_LAUNCH), 1 * MS);
	assert_int_equal(on_path(&s, NODE_KERNEL), 5 * MS);
	assert_int_equal(on_path(&s, NODE_SYNC), 0); /* a wait is not work */
	assert_true(s.replay_error >= 0 && s.replay_error < 1e-9);
	assert_int_equal(predict(&s, "input=0"), 8 * MS);
	assert_int_equal(predict(&s, "kernel:gemm*0"), 7 * MS);
	assert_int_equal(predict(&s, "kernel:gemm*2"), 17 * MS);
	assert_int_equal(predict(&s, "op:aten::mm*0"), 4 * MS);
	/* without the wait the host runs ahead: 7 per step, the kernel of 5 is hidden behind it */
	assert_int_equal(predict(&s, "sync=0"), 7 * MS);
	assert_int_equal(predict(&s, "network*2"), 12 * MS);
	close_session(&j, &s);
}

/* The device is busy all the time: a faster host saves nothing. */
static void hidden_costs(void **state)
{
	struct session s;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 5; i++) {
		event_id call;

		trace_step(&j.s, j.source, i, 4 * i, 4 * i + 4);
		trace_slice(&j.s, j.host, "DataLoader.__next__", PHASE_INPUT, 4 * i, 4 * i + 3);
		call = trace_slice(&j.s, j.host, "cudaLaunchKernel", PHASE_LAUNCH, 4 * i + 3,
				   4 * i + 4);
		trace_launch(&j.s, call,
			     trace_slice(&j.s, j.stream, "gemm", PHASE_COMPUTE, 4 + 10 * i,
					 14 + 10 * i));
	}
	open_session(&j, &s);
	assert_int_equal(s.base.median_ns, 10 * MS);
	assert_int_equal(predict(&s, "input=0"), 10 * MS);
	assert_int_equal(predict(&s, "launch=0"), 10 * MS);
	assert_int_equal(predict(&s, "kernel:gemm*0.9"), 9 * MS);
	assert_int_equal(on_path(&s, NODE_KERNEL), 10 * MS);
	close_session(&j, &s);
}

/* The main thread pauses while another thread runs the backward pass. */
static void other_thread(void **state)
{
	struct session s;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 4; i++) {
		int64_t at = 20 * i;

		trace_step(&j.s, j.source, i, at, at + 20);
		trace_slice(&j.s, j.host, "forward", PHASE_COMPUTE, at, at + 5);
		trace_slice(&j.s, j.other, "backward", PHASE_COMPUTE, at + 6, at + 16);
		trace_slice(&j.s, j.host, "optimizer", PHASE_COMPUTE, at + 17, at + 20);
	}
	open_session(&j, &s);
	assert_int_equal(s.base.median_ns, 20 * MS);
	assert_int_equal(predict(&s, "op:backward*0.5"), 15 * MS);
	assert_int_equal(predict(&s, "op:forward*0"), 15 * MS);
	assert_int_equal(predict(&s, "op:backward*2"), 30 * MS);
	close_session(&j, &s);
}

/* A copy that blocks its thread: the kernel of the step before is on the path through it. */
static void blocking_copy(void **state)
{
	struct session s;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 4; i++) {
		int64_t at = 10 * i;
		event_id call, copy;

		trace_step(&j.s, j.source, i, at, at + 10);
		call = trace_slice(&j.s, j.host, "cudaLaunchKernel", PHASE_LAUNCH, at, at + 1);
		trace_launch(&j.s, call,
			     trace_slice(&j.s, j.stream, "gemm", PHASE_COMPUTE, at + 1, at + 7));
		copy = trace_slice(&j.s, j.host, "cudaMemcpyAsync", PHASE_LAUNCH, at + 1, at + 8);
		trace_launch(&j.s, copy,
			     trace_slice(&j.s, j.stream, "Memcpy DtoH", PHASE_DEVICE_TO_HOST,
					 at + 7, at + 8));
		trace_slice(&j.s, j.host, "aten::item", PHASE_HOST, at + 8, at + 10);
	}
	open_session(&j, &s);
	assert_int_equal(s.base.median_ns, 10 * MS);
	assert_int_equal(on_path(&s, NODE_KERNEL), 6 * MS);
	assert_int_equal(on_path(&s, NODE_TO_HOST), 1 * MS);
	/* 20 us of the call are taken for its own work */
	assert_int_equal(predict(&s, "kernel:gemm*0.5"), 7 * MS);
	close_session(&j, &s);
}

/* A stream starts when the work of another one ends: inferred, and marked so. */
static void streams(void **state)
{
	struct session s;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 4; i++) {
		int64_t at = 20 * i;
		event_id a, b;

		trace_step(&j.s, j.source, i, at, at + 20);
		a = trace_slice(&j.s, j.host, "cudaLaunchKernel", PHASE_LAUNCH, at, at + 1);
		b = trace_slice(&j.s, j.host, "cudaLaunchKernel", PHASE_LAUNCH, at + 1, at + 2);
		trace_launch(&j.s, a,
			     trace_slice(&j.s, j.stream, "gemm", PHASE_COMPUTE, at + 1, at + 9));
		trace_launch(&j.s, b,
			     trace_slice(&j.s, j.second, "ncclKernel", PHASE_COMMUNICATION, at + 9,
					 at + 20));
		trace_slice(&j.s, j.host, "cudaStreamSynchronize", PHASE_SYNCHRONISATION, at + 2,
			    at + 20);
	}
	open_session(&j, &s);
	assert_true(s.g.inferred_count >= 4);
	assert_int_equal(predict(&s, "kernel:gemm*0.5"), 16 * MS);
	assert_int_equal(predict(&s, "network*2"), 20 * MS - 11 * MS / 2);
	close_session(&j, &s);
}

/* What the second stream is recorded to wait for, although work of the first ends nearer to its begin. */
static void recorded_waits(void **state)
{
	struct session s;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 4; i++) {
		int64_t at = 20 * i;
		event_id calls[3], work[3], sync;

		trace_step(&j.s, j.source, i, at, at + 20);
		for (int k = 0; k < 3; k++)
			calls[k] = trace_slice(&j.s, j.host, "cudaLaunchKernel", PHASE_LAUNCH,
					       at + k, at + k + 1);
		sync = trace_slice(&j.s, j.host, "cudaEventSynchronize", PHASE_SYNCHRONISATION,
				   at + 3, at + 20);
		work[0] = trace_slice(&j.s, j.stream, "first", PHASE_COMPUTE, at + 1, at + 8);
		work[1] = trace_slice(&j.s, j.stream, "second", PHASE_COMPUTE, at + 8, at + 9);
		work[2] = trace_slice(&j.s, j.second, "ncclKernel", PHASE_COMMUNICATION, at + 9,
				      at + 20);
		for (int k = 0; k < 3; k++)
			trace_launch(&j.s, calls[k], work[k]);
		trace_wait(&j.s, work[1], work[2]);
		trace_wait(&j.s, work[2], sync);
	}
	open_session(&j, &s);
	assert_int_equal(s.g.inferred_count, 0);
	assert_int_equal(on_path(&s, NODE_SYNC), 0);
	assert_int_equal(on_path(&s, NODE_COMMUNICATION), 11 * MS);
	assert_int_equal(predict(&s, "kernel:second*0"), 19 * MS);
	assert_int_equal(predict(&s, "network*2"), 20 * MS - 11 * MS / 2);
	close_session(&j, &s);
}

/* Who waits has begun when that ends: the recording contradicts itself, and times decide. */
static void impossible_waits(void **state)
{
	struct session s;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 4; i++) {
		int64_t at = 20 * i;
		event_id a, b, work, other;

		trace_step(&j.s, j.source, i, at, at + 20);
		a = trace_slice(&j.s, j.host, "cudaLaunchKernel", PHASE_LAUNCH, at, at + 1);
		b = trace_slice(&j.s, j.host, "cudaLaunchKernel", PHASE_LAUNCH, at + 1, at + 2);
		work = trace_slice(&j.s, j.stream, "gemm", PHASE_COMPUTE, at + 1, at + 19);
		other = trace_slice(&j.s, j.second, "ncclKernel", PHASE_COMMUNICATION, at + 2,
				    at + 10);
		trace_launch(&j.s, a, work);
		trace_launch(&j.s, b, other);
		trace_wait(&j.s, work, other);
		trace_wait(&j.s, other, other);
		trace_slice(&j.s, j.host, "cudaDeviceSynchronize", PHASE_SYNCHRONISATION, at + 2,
			    at + 20);
	}
	open_session(&j, &s);
	assert_int_equal(predict(&s, "network*2"), 20 * MS);
	close_session(&j, &s);
}

/* A call whose end was not recorded has no node: its launch is at the next node, which may be a gap without an event. */
static void launch_without_node(void **state)
{
	struct session s;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 4; i++) {
		int64_t at = 20 * i;
		event_id call;

		trace_step(&j.s, j.source, i, at, at + 20);
		trace_slice(&j.s, j.host, "aten::mm", PHASE_HOST, at, at + 4);
		call = builder_add_event(&j.s.b, &(struct event_row){ .ts_ns = (at + 3) * MS,
								      .dur_ns = TIME_UNKNOWN,
								      .op = j.s.m->event.op[1],
								      .track = j.host,
								      .phase = PHASE_LAUNCH });
		trace_launch(&j.s, call,
			     trace_slice(&j.s, j.stream, "gemm", PHASE_COMPUTE, at + 5, at + 19));
		trace_slice(&j.s, j.host, "cudaDeviceSynchronize", PHASE_SYNCHRONISATION, at + 6,
			    at + 20);
	}
	open_session(&j, &s);
	assert_int_equal(s.g.launched, 4);
	for (uint32_t i = 0; i < s.g.node_count; i++)
		if (s.g.launch[i])
			assert_int_equal(s.g.event[s.g.launch[i] - 1], 0);
	assert_int_equal(on_path(&s, NODE_KERNEL), 14 * MS);
	close_session(&j, &s);
}

/* Device work that begins long after its launch, and nothing says why: no replay. */
static void unexplained(void **state)
{
	struct session s;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 4; i++) {
		int64_t at = 20 * i;

		trace_step(&j.s, j.source, i, at, at + 20);
		trace_launch(
			&j.s,
			trace_slice(&j.s, j.host, "cudaLaunchKernel", PHASE_LAUNCH, at, at + 1),
			trace_slice(&j.s, j.stream, "gemm", PHASE_COMPUTE, at + 12, at + 20));
		trace_slice(&j.s, j.host, "cudaDeviceSynchronize", PHASE_SYNCHRONISATION, at + 1,
			    at + 20);
	}
	small_freeze(&j.s);
	assert_int_equal(session_open(j.s.m, &everything, &all_steps, &s, &j.s.err), OW_OK);
	assert_string_equal(s.g.refused, "in 54 % of a step the cause of waiting was not recorded");
	session_close(&s);
	small_close(&j.s);
}

static void nothing(void **state)
{
	struct session s;
	struct job j;

	(void)state;
	open_job(&j);
	small_freeze(&j.s);
	assert_int_equal(session_open(j.s.m, &everything, &all_steps, &s, &j.s.err), OW_OK);
	assert_true(*s.g.refused);
	session_close(&s);
	small_close(&j.s);
}

static void hostile_times(void **state)
{
	static const int64_t times[] = { INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX };
	struct session s;
	struct job j;

	(void)state;
	open_job(&j);
	for (size_t i = 0; i < ARRAY_COUNT(times); i++)
		for (size_t k = 0; k < ARRAY_COUNT(times); k++) {
			builder_add_event(&j.s.b, &(struct event_row){ .ts_ns = times[i],
								       .dur_ns = times[k],
								       .track = j.host,
								       .phase = (uint8_t)(1 + i) });
			builder_add_event(&j.s.b, &(struct event_row){ .ts_ns = times[i],
								       .dur_ns = times[k],
								       .track = j.stream,
								       .phase = (uint8_t)(1 + i) });
			builder_add_window(&j.s.b, &(struct window_row){ .source = j.source,
									 .start_ns = times[i],
									 .end_ns = times[k] });
		}
	builder_add_link(&j.s.b,
			 &(struct link_row){ .src = { 1 }, .dst = { 2 }, .kind = LINK_LAUNCH });
	small_freeze(&j.s);
	assert_int_equal(session_open(j.s.m, &everything, &all_steps, &s, &j.s.err), OW_OK);
	session_close(&s);
	small_close(&j.s);
}

static void without_memory(void **state)
{
	struct job j;
	bool done = false;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 3; i++)
		add_plain_step(&j, i, 12 * i);
	small_freeze(&j.s);
	for (uint64_t n = 1; !done; n++) {
		size_t before = atomic_load(&j.s.mem.used);
		struct session s;
		ow_status status;

		mem_fail_after(n, true);
		status = session_open(j.s.m, &everything, &all_steps, &s, &j.s.err);
		mem_fail_after(0, false);
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		done = status == OW_OK;
		session_close(&s);
		assert_int_equal(atomic_load(&j.s.mem.used), before);
	}
	small_close(&j.s);
}

/* A recording without steps: 400 times a call of 1 and a pause of 1; a part in its middle is cut out, and its path sums to it. */
static void part_of_a_recording(void **state)
{
	struct graph_extent part = { .until = TIME_UNKNOWN, .part = true, .events_most = 100 };
	struct critical_path path;
	struct arena arena;
	struct session s;
	int64_t sum = 0;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 400; i++)
		trace_slice(&j.s, j.host, "aten::add", PHASE_COMPUTE, 2 * i, 2 * i + 1);
	small_freeze(&j.s);
	assert_int_equal(session_open(j.s.m, &everything, &part, &s, &j.s.err), OW_OK);
	assert_string_equal(s.g.refused, "");
	assert_int_equal(s.g.steps[0].part_of_ns, 799 * MS);
	assert_in_range(s.g.steps[0].measured_ns, 150 * MS, 201 * MS);
	assert_in_range(s.g.steps[0].begin_ns, 250 * MS, 350 * MS);
	assert_true(s.g.node_count < 250);
	arena_init(&arena, s.g.m->mem);
	assert_int_equal(path_find(&s.base, 0, &arena, &path, NULL), OW_OK);
	for (uint32_t i = 0; i < path.count; i++)
		sum += path.items[i].dur_ns;
	assert_int_equal(sum, s.g.steps[0].measured_ns);
	assert_int_equal(path.unexplained_ns, 0);
	arena_release(&arena);
	session_close(&s);
	part.part = false;
	assert_int_equal(session_open(j.s.m, &everything, &part, &s, &j.s.err), OW_OK);
	assert_int_equal(s.g.steps[0].part_of_ns, 0);
	assert_int_equal(s.g.steps[0].measured_ns, 799 * MS);
	close_session(&j, &s);
}

/* Backward pass: the main thread waits for another one, which works from 3 to 9, but runs two short pieces in between (at 6 and 8). Its pauses are
 * not its own time: without the other thread's work the step has only what is left. */
static void pauses_with_work_between(void **state)
{
	struct session s;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 4; i++) {
		int64_t at = 1000 * i;

		trace_step(&j.s, j.source, i, at, at + 1000);
		trace_slice(&j.s, j.host, "forward", PHASE_COMPUTE, at, at + 290);
		trace_slice(&j.s, j.host, "aten::detach", PHASE_COMPUTE, at + 600, at + 601);
		trace_slice(&j.s, j.host, "aten::detach", PHASE_COMPUTE, at + 800, at + 801);
		trace_slice(&j.s, j.host, "optimizer", PHASE_COMPUTE, at + 905, at + 1000);
		trace_slice(&j.s, j.other, "backward", PHASE_COMPUTE, at + 295, at + 500);
		trace_slice(&j.s, j.other, "backward", PHASE_COMPUTE, at + 500, at + 700);
		trace_slice(&j.s, j.other, "backward", PHASE_COMPUTE, at + 700, at + 900);
	}
	open_session(&j, &s);
	assert_int_equal(s.base.median_ns, 1000 * MS);
	assert_in_range(on_path(&s, NODE_GAP), 0, 20 * MS);
	assert_in_range(predict(&s, "op:backward*0.5"), 695 * MS, 710 * MS);
	close_session(&j, &s);
}

/* Times of doubles are rounded to a quarter of a microsecond: a call may begin before the operator before it has ended, whose own call has ended. */
static void calls_that_overlap_by_rounding(void **state)
{
	struct session s;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 4; i++) {
		int64_t at = 10 * i;
		event_id call, early;

		trace_step(&j.s, j.source, i, at, at + 10);
		trace_slice(&j.s, j.host, "aten::mm", PHASE_HOST, at, at + 4);
		call = trace_slice(&j.s, j.host, "cudaLaunchKernel", PHASE_LAUNCH, at + 1, at + 2);
		early = trace_slice(&j.s, j.host, "cudaFree", PHASE_ALLOCATION, at + 4, at + 10);
		j.s.m->event.ts_ns[early.v] -= 250;
		j.s.m->event.dur_ns[early.v] += 250;
		trace_launch(&j.s, call,
			     trace_slice(&j.s, j.stream, "gemm", PHASE_COMPUTE, at + 2, at + 3));
	}
	open_session(&j, &s);
	assert_in_range(on_path(&s, NODE_ALLOC), 6 * MS, 6 * MS + 250);
	assert_int_equal(on_path(&s, NODE_GAP), 0);
	close_session(&j, &s);
}

static void bad_changes(void **state)
{
	static const char *const texts[] = { "",	 "op:",		  "op:a",
					     "op:(*0.5", "kernel:a*-1",	  "input=1",
					     "foo",	 "rank:x=median", "network*0",
					     "fuse:" };
	struct change change;
	struct arena arena;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	arena_init(&arena, &mem);
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
		struct ow_error err = { 0 };

		assert_int_equal(change_parse(texts[i], &arena, &change, &err), OW_E_USAGE);
		assert_true(*err.text);
	}
	arena_release(&arena);
}

/* ---- ranks ---- */

struct rank_tracks {
	source_id source;
	track_id host, compute, communication;
};

static void open_rank(struct job *j, struct rank_tracks *r, const char *path, int32_t rank)
{
	r->source = trace_source(&j->s, path, rank);
	r->host = trace_track(&j->s, r->source, "main", TRACK_HOST, NULL);
	r->compute = trace_track(&j->s, r->source, "stream 7", TRACK_STREAM, "/device:GPU:0");
	r->communication =
		trace_track(&j->s, r->source, "stream 20", TRACK_STREAM, "/device:GPU:0");
}

/* A kernel of `work`; the rank then is in the all-reduce up to 15, in which data moves from 13 to 15. The host waits for it. */
static void add_rank_step(struct job *j, const struct rank_tracks *r, int64_t number, int64_t at,
			  int64_t work)
{
	struct small_model *s = &j->s;
	event_id call;

	trace_step(s, r->source, number, at, at + 15);
	call = trace_slice(s, r->host, "cudaLaunchKernel", PHASE_LAUNCH, at, at + 1);
	trace_launch(s, call,
		     trace_slice(s, r->compute, "gemm", PHASE_COMPUTE, at + 1, at + 1 + work));
	call = trace_slice(s, r->host, "cudaLaunchKernelExC", PHASE_LAUNCH, at + 1, at + 2);
	trace_launch(s, call,
		     trace_slice(s, r->communication, "ncclDevKernel_AllReduce",
				 PHASE_COMMUNICATION, at + 1 + work, at + 15));
	trace_slice(s, r->host, "cudaDeviceSynchronize", PHASE_SYNCHRONISATION, at + 2, at + 15);
}

/* Rank 1 computes for 12 instead of 8, and rank 0 waits for it; their clocks are 1000 apart. */
static void ranks_wait_for_each_other(void **state)
{
	struct rank_tracks ranks[2];
	struct critical_path path;
	struct arena arena;
	struct session s;
	struct job j;
	int64_t of_rank[2] = { 0 };

	(void)state;
	small_open(&j.s);
	open_rank(&j, &ranks[0], "rank0.json", 0);
	open_rank(&j, &ranks[1], "rank1.json", 1);
	for (int64_t i = 0; i < 5; i++) {
		add_rank_step(&j, &ranks[0], i, 15 * i, 8);
		add_rank_step(&j, &ranks[1], i, 1000 + 15 * i, 12);
	}
	open_session(&j, &s);
	assert_int_equal(s.g.joined_count, 5);
	assert_int_equal(s.base.median_ns, 15 * MS);
	assert_int_equal(s.unexplained * 1000, 0);
	assert_int_equal(predict(&s, "rank:1=median"), 11 * MS);
	assert_int_equal(predict(&s, "rank:0=median"), 15 * MS); /* it waits anyway */
	assert_int_equal(predict(&s, "network*2"), 14 * MS);
	assert_int_equal(predict(&s, "kernel:gemm*0.5"), 9 * MS);
	/* The path of rank 0 goes through the kernel of rank 1. */
	arena_init(&arena, j.s.m->mem);
	assert_int_equal(path_find(&s.base, median_step(&s.g), &arena, &path, NULL), OW_OK);
	assert_int_equal(path.step_ns, 15 * MS);
	for (uint32_t i = 0; i < path.count; i++)
		of_rank[lane_of_node(&s.g, path.items[i].node)->source.v == ranks[1].source.v] +=
			path.items[i].dur_ns;
	assert_int_equal(of_rank[0] + of_rank[1], 15 * MS);
	assert_true(of_rank[1] >= 12 * MS);
	arena_release(&arena);
	close_session(&j, &s);
}

/* Events that overlap by a rounding follow each other. */
static void rounded_times(void **state)
{
	struct session s;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 4; i++)
		add_plain_step(&j, i, 12 * i);
	for (uint32_t i = 1; i < j.s.m->event.count; i++)
		j.s.m->event.dur_ns[i] += 700;
	open_session(&j, &s);
	assert_int_equal(s.base.median_ns / 10000, 1200);
	assert_int_equal(predict(&s, "kernel:gemm*0") / 10000, 700);
	close_session(&j, &s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_steps),
		cmocka_unit_test(hidden_costs),
		cmocka_unit_test(other_thread),
		cmocka_unit_test(blocking_copy),
		cmocka_unit_test(streams),
		cmocka_unit_test(recorded_waits),
		cmocka_unit_test(impossible_waits),
		cmocka_unit_test(launch_without_node),
		cmocka_unit_test(unexplained),
		cmocka_unit_test(nothing),
		cmocka_unit_test(hostile_times),
		cmocka_unit_test(without_memory),
		cmocka_unit_test(bad_changes),
		cmocka_unit_test(calls_that_overlap_by_rounding),
		cmocka_unit_test(part_of_a_recording),
		cmocka_unit_test(pauses_with_work_between),
		cmocka_unit_test(ranks_wait_for_each_other),
		cmocka_unit_test(rounded_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
