/*
 * phases_test.c: a step whose shares were worked out by hand, windows and the steps that means leave
 * out, and random traces whose phases are known because each moment was painted one by one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analyze/steps/phases.h"
#include "support/trace_model.h"

static const struct event_filter everything = { INT64_MIN, INT64_MAX, -1, 0, 0 };

static void analyse(struct small_model *s, const struct event_filter *filter, struct phases *p)
{
	assert_int_equal(phases_analyse(s->m, filter, p, &s->err), OW_OK);
}

static void expect_shares(const struct phase_row *row, const int64_t want[CLASS_COUNT])
{
	for (unsigned c = 0; c < CLASS_COUNT; c++)
		assert_int_equal(row->sums.share[c], want[c] * MS);
}

/* ---- by hand ---- */

static const int64_t known_shares[CLASS_COUNT] = {
	[CLASS_COMPUTE] = 50,	    [CLASS_COMMUNICATION] = 8, [CLASS_DEVICE_TO_HOST] = 4,
	[CLASS_HOST_TO_DEVICE] = 6, [CLASS_INPUT] = 12,	       [CLASS_SYNCHRONISATION] = 12,
	[CLASS_LAUNCH] = 2,	    [CLASS_HOST] = 2,	       [CLASS_IDLE] = 4,
};

static void open_known(struct small_model *s, source_id *source, track_id *host, track_id *stream,
		       track_id *second)
{
	small_open(s);
	*source = trace_source(s, "a.json", 0);
	*host = trace_track(s, *source, "main", TRACK_HOST, NULL);
	*stream = trace_track(s, *source, "stream 7", TRACK_STREAM, "/device:GPU:0");
	*second = trace_track(s, *source, "stream 20", TRACK_STREAM, "/device:GPU:0");
}

static void worked_example(void **state)
{
	track_id host, stream, second;
	struct small_model s;
	struct phases p;
	source_id source;

	(void)state;
	open_known(&s, &source, &host, &stream, &second);
	trace_known_step(&s, source, host, stream, second, 5, 0);
	small_freeze(&s);
	analyse(&s, &everything, &p);
	assert_int_equal(p.window_count, 1);
	assert_int_equal(p.row_count, 1);
	assert_int_equal(p.windows[0].end_ns - p.windows[0].start_ns, 100 * MS);
	assert_int_equal(p.windows[0].device_slices, 5);
	expect_shares(&p.rows[0], known_shares);
	assert_int_equal(p.rows[0].sums.device_busy, 68 * MS);
	assert_int_equal(p.rows[0].sums.total[CLASS_COMMUNICATION], 25 * MS);
	assert_int_equal(p.rows[0].sums.overlapped[CLASS_COMMUNICATION], 17 * MS);
	assert_int_equal(p.rows[0].sums.total[CLASS_HOST_TO_DEVICE], 6 * MS);
	assert_int_equal(p.rows[0].sums.overlapped[CLASS_HOST_TO_DEVICE], 0);
	assert_int_equal(p.rows[0].sums.total[CLASS_INPUT], 12 * MS);
	assert_int_equal(p.rows[0].sums.overlapped[CLASS_INPUT], 0);
	assert_int_equal(p.rows[0].queued, 3);
	assert_int_equal(p.rows[0].queue_delay_ns, 16 * MS); /* 0 + 0 + (58 - 42) */
	phases_release(&p);
	small_close(&s);
}

/* A copy during compute is overlapped and changes no share. */
static void overlapped_copy(void **state)
{
	track_id host, stream, second;
	struct small_model s;
	struct phases p;
	source_id source;

	(void)state;
	open_known(&s, &source, &host, &stream, &second);
	trace_known_step(&s, source, host, stream, second, 5, 0);
	trace_slice(&s, second, "Memcpy HtoD", PHASE_HOST_TO_DEVICE, 46, 49);
	small_freeze(&s);
	analyse(&s, &everything, &p);
	expect_shares(&p.rows[0], known_shares);
	assert_int_equal(p.rows[0].sums.total[CLASS_HOST_TO_DEVICE], 9 * MS);
	assert_int_equal(p.rows[0].sums.overlapped[CLASS_HOST_TO_DEVICE], 3 * MS);
	phases_release(&p);
	small_close(&s);
}

/* ---- windows ---- */

/* The host runs ahead: markers of 10 ms, kernels of 50 ms each. */
static void launch_extended(void **state)
{
	track_id host, stream, second;
	struct small_model s;
	struct phases p;
	source_id source;

	(void)state;
	open_known(&s, &source, &host, &stream, &second);
	for (int i = 0; i < 3; i++) {
		event_id call, work;

		trace_step(&s, source, i, i * 10, i * 10 + 10);
		call = trace_slice(&s, host, "launch", PHASE_LAUNCH, i * 10 + 2, i * 10 + 4);
		work = trace_slice(&s, stream, "k", PHASE_COMPUTE, 4 + i * 50, 4 + (i + 1) * 50);
		trace_launch(&s, call, work);
		trace_launch(&s, call, work); /* told twice, counts once */
	}
	small_freeze(&s);
	analyse(&s, &everything, &p);
	assert_true(p.extended);
	assert_int_equal(p.window_count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(p.windows[i].end_ns, (4 + (i + 1) * 50) * MS);
		assert_int_equal(p.windows[i].start_ns, i ? (4 + i * 50) * MS : 0);
		assert_int_equal(p.rows[i].sums.share[CLASS_COMPUTE], 50 * MS);
		assert_int_equal(p.windows[i].device_slices, 1);
	}
	assert_int_equal(p.windows[0].between_ns, TIME_UNKNOWN);
	assert_int_equal(p.windows[1].between_ns, 0);
	phases_release(&p);
	small_close(&s);
}

/* Less than half of the work has a launch: markers are taken as they are. */
static void plain_windows(void **state)
{
	track_id host, stream, second;
	struct small_model s;
	struct phases p;
	source_id source;

	(void)state;
	open_known(&s, &source, &host, &stream, &second);
	trace_step(&s, source, 1, 0, 10);
	trace_step(&s, source, 2, 14, 20);
	trace_launch(&s, trace_slice(&s, host, "launch", PHASE_LAUNCH, 1, 2),
		     trace_slice(&s, stream, "k", PHASE_COMPUTE, 8, 12));
	trace_slice(&s, stream, "k", PHASE_COMPUTE, 12, 13);
	trace_slice(&s, stream, "k", PHASE_COMPUTE, 13, 16);
	small_freeze(&s);
	analyse(&s, &everything, &p);
	assert_false(p.extended);
	assert_int_equal(p.windows[0].end_ns, 10 * MS);
	assert_int_equal(p.windows[1].start_ns, 14 * MS);
	assert_int_equal(p.windows[1].between_ns, 4 * MS);
	assert_int_equal(p.rows[1].sums.share[CLASS_COMPUTE], 2 * MS);
	phases_release(&p);
	small_close(&s);
}

static void expect_uses(uint32_t count, const uint64_t *slices, const char *want)
{
	struct phase_window windows[16] = { 0 }, *list[16] = { NULL };

	for (uint32_t i = 0; i < count; i++) {
		windows[i].device_slices = slices[i];
		list[i] = &windows[i];
	}
	steady_choose(list, count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal((int)windows[i].use, want[i] - '0');
}

static void left_out_of_means(void **state)
{
	(void)state;
	expect_uses(1, (const uint64_t[]){ 0 }, "0");
	expect_uses(2, (const uint64_t[]){ 10, 7 }, "03");
	expect_uses(2, (const uint64_t[]){ 10, 8 }, "00");
	expect_uses(5, (const uint64_t[]){ 9, 9, 9, 9, 9 }, "00000");
	expect_uses(6, (const uint64_t[]){ 9, 9, 9, 9, 9, 1 }, "100003");
	expect_uses(3, (const uint64_t[]){ 0, 0, 0 }, "000");
}

static void no_markers(void **state)
{
	track_id host, stream, frames;
	struct small_model s;
	struct phases p;
	source_id source;

	(void)state;
	small_open(&s);
	source = trace_source(&s, "a.json", -1);
	host = trace_track(&s, source, "main", TRACK_HOST, NULL);
	stream = trace_track(&s, source, "all", TRACK_DERIVED, "/device:GPU:0");
	frames = trace_track(&s, source, "main", TRACK_FRAMES, NULL);
	s.m->source.step[source.v] = builder_step(&s.b, 42);
	trace_slice(&s, host, "setup", PHASE_UNKNOWN, 10, 12);
	trace_slice(&s, host, "op", PHASE_COMPUTE, 20, 30);
	trace_slice(&s, host, "inner", PHASE_COMPUTE, 22, 25);
	trace_slice(&s, stream, "op", PHASE_COMPUTE, 0, 100);
	trace_slice(&s, frames, "f.py(1): g", PHASE_HOST, 0, 100);
	small_freeze(&s);
	analyse(&s, &everything, &p);
	assert_int_equal(p.window_count, 1);
	assert_int_equal(s.m->step.number[p.windows[0].step.v], 42);
	assert_int_equal(p.windows[0].start_ns, 10 * MS);
	assert_int_equal(p.windows[0].end_ns, 30 * MS);
	assert_int_equal(p.lanes[0].device.v, 0);
	assert_int_equal(p.rows[0].sums.share[CLASS_COMPUTE], 10 * MS);
	assert_int_equal(p.rows[0].sums.share[CLASS_HOST], 10 * MS);
	assert_int_equal(p.rows[0].sums.device_busy, 0);
	phases_release(&p);
	small_close(&s);
}

/* Two devices: each has its partition, and the mean adds up, too. A loader's work is not waited for. */
static void devices_and_loaders(void **state)
{
	static const int64_t ends[] = { 4, 9 };
	track_id host, streams[2], loader;
	struct phase_row mean;
	struct small_model s;
	int64_t sum = 0;
	struct phases p;
	source_id source;

	(void)state;
	small_open(&s);
	source = trace_source(&s, "a.json", 3);
	host = trace_track(&s, source, "main", TRACK_HOST, NULL);
	loader = trace_track(&s, source, "worker", TRACK_LOADER, NULL);
	streams[0] = trace_track(&s, source, "s0", TRACK_STREAM, "/device:GPU:0");
	streams[1] = trace_track(&s, source, "s1", TRACK_STREAM, "/device:GPU:1");
	trace_step(&s, source, 1, 0, 10);
	trace_slice(&s, host, "op", PHASE_COMPUTE, 0, 10); /* feeds the devices: host */
	trace_slice(&s, loader, "decode", PHASE_COMPUTE, 0, 10);
	trace_slice(&s, loader, "IteratorGetNext", PHASE_INPUT, 8, 10);
	for (int i = 0; i < 2; i++)
		trace_slice(&s, streams[i], "k", PHASE_COMPUTE, 1, ends[i]);
	small_freeze(&s);
	analyse(&s, &everything, &p);
	assert_int_equal(p.row_count, 2);
	assert_int_equal(p.rows[0].sums.share[CLASS_COMPUTE], 3 * MS);
	assert_int_equal(p.rows[0].sums.share[CLASS_HOST], 5 * MS);
	assert_int_equal(p.rows[0].sums.share[CLASS_INPUT], 2 * MS);
	assert_int_equal(p.rows[1].sums.share[CLASS_COMPUTE], 8 * MS);
	assert_int_equal(p.rows[1].sums.share[CLASS_INPUT], 1 * MS);
	phases_mean(p.rows, 2, &mean);
	for (unsigned c = 0; c < CLASS_COUNT; c++)
		sum += mean.sums.share[c];
	assert_int_equal(sum, 10 * MS);
	assert_int_equal(mean.sums.share[CLASS_COMPUTE], 5500000);
	phases_release(&p);
	small_close(&s);
}

static void gaps(void **state)
{
	track_id host, stream, second;
	struct small_model s;
	struct phases p;
	source_id source;

	(void)state;
	open_known(&s, &source, &host, &stream, &second);
	trace_step(&s, source, 1, 0, 40);
	trace_launch(&s, trace_slice(&s, host, "l", PHASE_LAUNCH, 0, 1),
		     trace_slice(&s, stream, "k", PHASE_COMPUTE, 2, 10));
	trace_launch(&s, trace_slice(&s, host, "l", PHASE_LAUNCH, 5, 6), /* before the end: waits */
		     trace_slice(&s, stream, "k", PHASE_COMPUTE, 13, 20));
	trace_launch(&s, trace_slice(&s, host, "l", PHASE_LAUNCH, 25, 26), /* too late */
		     trace_slice(&s, stream, "k", PHASE_COMPUTE, 27, 30));
	trace_slice(&s, stream, "k", PHASE_COMPUTE, 35, 36); /* nobody knows */
	small_freeze(&s);
	analyse(&s, &everything, &p);
	assert_int_equal(p.rows[0].dependency_gap_ns, 3 * MS);
	assert_int_equal(p.rows[0].launch_gap_ns, 7 * MS);
	assert_int_equal(p.rows[0].queued, 3);
	assert_int_equal(p.rows[0].queue_delay_ns, (1 + 7 + 1) * MS);
	phases_release(&p);
	small_close(&s);
}

/* ---- filters ---- */

static void filters(void **state)
{
	struct event_filter filter = everything;
	track_id host, stream, second;
	source_id source, other;
	struct small_model s;
	struct phases p;

	(void)state;
	open_known(&s, &source, &host, &stream, &second);
	trace_known_step(&s, source, host, stream, second, 1, 0);
	trace_known_step(&s, source, host, stream, second, 2, 100);
	other = trace_source(&s, "b.json", 1);
	host = trace_track(&s, other, "main", TRACK_HOST, NULL);
	trace_slice(&s, host, "op", PHASE_COMPUTE, 0, 7);
	small_freeze(&s);

	analyse(&s, &everything, &p);
	assert_int_equal(p.window_count, 3);
	phases_release(&p);

	filter.rank = 1;
	analyse(&s, &filter, &p);
	assert_int_equal(p.window_count, 1);
	assert_int_equal(p.rows[0].sums.share[CLASS_COMPUTE], 7 * MS);
	phases_release(&p);

	filter = everything;
	filter.step = model_find_step(s.m, 2).v;
	analyse(&s, &filter, &p);
	assert_int_equal(p.window_count, 1);
	assert_int_equal(p.windows[0].start_ns, 100 * MS);
	assert_int_equal(p.windows[0].between_ns, 0);
	expect_shares(&p.rows[0], known_shares);
	phases_release(&p);

	filter = everything;
	filter.from_ns = 96 * MS;
	filter.to_ns = 113 * MS;
	filter.rank = 0;
	analyse(&s, &filter, &p);
	assert_int_equal(p.window_count, 2);
	assert_int_equal(p.rows[0].sums.share[CLASS_IDLE], 4 * MS);
	assert_int_equal(p.rows[1].sums.share[CLASS_INPUT], 12 * MS);
	assert_int_equal(p.rows[1].sums.share[CLASS_HOST], 1 * MS);
	phases_release(&p);
	small_close(&s);
}

/* ---- random traces ---- */

#define MOMENTS 120 /* ms */
#define DEVICES 2

/* What is active in each moment, painted from the same random numbers. */
struct painted {
	uint32_t classes[DEVICES][MOMENTS]; /* bits: enum phase_class; CLASS_IDLE = device work */
	int64_t steps[8][2];
	uint32_t step_count;
};

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

static const struct {
	enum event_phase phase;
	enum phase_class class;
	bool device;
} kinds[] = {
	{ PHASE_COMPUTE, CLASS_COMPUTE, true },
	{ PHASE_COMMUNICATION, CLASS_COMMUNICATION, true },
	{ PHASE_DEVICE_TO_HOST, CLASS_DEVICE_TO_HOST, true },
	{ PHASE_HOST_TO_DEVICE, CLASS_HOST_TO_DEVICE, true },
	{ PHASE_COMMUNICATION, CLASS_COMMUNICATION, false },
	{ PHASE_INPUT, CLASS_INPUT, false },
	{ PHASE_SYNCHRONISATION, CLASS_SYNCHRONISATION, false },
	{ PHASE_LAUNCH, CLASS_LAUNCH, false },
	{ PHASE_ALLOCATION, CLASS_ALLOCATION, false },
	{ PHASE_INITIALISATION, CLASS_INITIALISATION, false },
	{ PHASE_HOST, CLASS_HOST, false },
	{ PHASE_COMPUTE, CLASS_HOST, false },
	{ PHASE_UNKNOWN, CLASS_COUNT, false },
};

static void paint(struct painted *to, int device, bool work, enum phase_class class, int64_t begin,
		  int64_t end)
{
	for (int64_t t = begin; t < end && class != CLASS_COUNT; t++)
		to->classes[device][t] |= 1u << class | (work ? 1u << CLASS_IDLE : 0);
}

static void make_random(struct small_model *s, uint32_t seed, struct painted *to)
{
	static const char *const devices[DEVICES] = { "/device:GPU:0", "/device:GPU:1" };
	static const char *const names[DEVICES][2] = { { "a", "b" }, { "c", "d" } };
	source_id source = trace_source(s, "a.json", 0);
	track_id hosts[2], streams[DEVICES][2];

	memset(to, 0, sizeof(*to));
	for (int i = 0; i < 2; i++) {
		hosts[i] = trace_track(s, source, i ? "h1" : "h0", TRACK_HOST, NULL);
		for (int d = 0; d < DEVICES; d++)
			streams[d][i] =
				trace_track(s, source, names[d][i], TRACK_STREAM, devices[d]);
	}
	for (int d = 0; d < DEVICES; d++) { /* so that both exist */
		trace_slice(s, streams[d][0], "k", PHASE_COMPUTE, 0, 1);
		paint(to, d, true, CLASS_COMPUTE, 0, 1);
	}
	for (uint32_t n = next_random(&seed) % 60; n; n--) {
		uint32_t kind = next_random(&seed) % ARRAY_COUNT(kinds);
		int64_t begin = next_random(&seed) % MOMENTS;
		int64_t len = next_random(&seed) % 20, end = MIN(begin + len, MOMENTS);
		uint32_t lane = next_random(&seed) % 2;
		int device = (int)(next_random(&seed) % DEVICES);

		trace_slice(s, kinds[kind].device ? streams[device][lane] : hosts[lane], "x",
			    kinds[kind].phase, begin, end);
		for (int d = 0; d < DEVICES; d++)
			if (!kinds[kind].device || d == device)
				paint(to, d, kinds[kind].device, kinds[kind].class, begin, end);
	}
	to->step_count = next_random(&seed) % 6 + 1;
	for (uint32_t i = 0, at = 0; i < to->step_count; i++) {
		uint32_t begin = at + next_random(&seed) % 5;
		uint32_t end = begin + next_random(&seed) % 15;

		to->steps[i][0] = begin;
		to->steps[i][1] = at = end;
		trace_step(s, source, i, begin, end);
	}
}

static void expect_painted(const struct painted *want, int device, const int64_t step[2],
			   const struct phase_sums *got)
{
	struct phase_sums sums = { 0 };
	int64_t shares = 0;

	for (int64_t t = step[0]; t < step[1]; t++) {
		uint32_t bits = want->classes[device][t], classes = bits & ~(1u << CLASS_IDLE);

		sums.share[classes ? __builtin_ctz(classes) : CLASS_IDLE] += MS;
		sums.device_busy += bits >> CLASS_IDLE & 1 ? MS : 0;
		for (unsigned c = 0; c < CLASS_IDLE; c++) {
			sums.total[c] += bits >> c & 1 ? MS : 0;
			sums.overlapped[c] += bits >> c & 1 && bits & 1 ? MS : 0;
		}
	}
	for (unsigned c = 0; c < CLASS_COUNT; c++) {
		assert_int_equal(got->share[c], sums.share[c]);
		shares += got->share[c];
		assert_true(got->share[c] <= got->total[c]);
		assert_in_range(got->overlapped[c], 0, got->total[c]);
		if (c != CLASS_IDLE)
			assert_int_equal(got->total[c], sums.total[c]);
		if (c > CLASS_COMPUTE && c < CLASS_INPUT)
			assert_int_equal(got->overlapped[c], sums.overlapped[c]);
	}
	assert_int_equal(shares, (step[1] - step[0]) * MS);
	assert_int_equal(got->device_busy, sums.device_busy);
	/* exposed communication is its share */
	assert_int_equal(got->total[CLASS_COMMUNICATION] - got->overlapped[CLASS_COMMUNICATION],
			 got->share[CLASS_COMMUNICATION]);
}

static void random_traces(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 300; seed++) {
		struct small_model s;
		struct painted want;
		struct phases p;

		small_open(&s);
		make_random(&s, seed, &want);
		small_freeze(&s);
		analyse(&s, &everything, &p);
		assert_int_equal(p.window_count, want.step_count);
		assert_int_equal(p.row_count, want.step_count * DEVICES);
		for (uint32_t i = 0; i < p.row_count; i++)
			expect_painted(&want, (int)p.rows[i].lane, want.steps[p.rows[i].window],
				       &p.rows[i].sums);
		phases_release(&p);
		small_close(&s);
	}
}

/* ---- hostile and poor ---- */

static void nothing_classified(void **state)
{
	struct small_model s;
	struct phases p;

	(void)state;
	small_open(&s);
	small_run(&s, small_op(&s, "a", "MatMul", GPU0), 1, 0, 10, 20);
	small_freeze(&s);
	analyse(&s, &everything, &p);
	assert_int_equal(p.window_count, 0);
	assert_int_equal(p.lane_count, 0);
	phases_release(&p);
	small_close(&s);
}

static void hostile_times(void **state)
{
	static const int64_t times[] = { INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX };
	struct small_model s;
	struct phases p;
	source_id source;
	track_id host;

	(void)state;
	small_open(&s);
	source = trace_source(&s, "a.json", 0);
	host = trace_track(&s, source, "main", TRACK_HOST, NULL);
	for (size_t i = 0; i < ARRAY_COUNT(times); i++)
		for (size_t k = 0; k < ARRAY_COUNT(times); k++) {
			builder_add_event(&s.b, &(struct event_row){ .ts_ns = times[i],
								     .dur_ns = times[k],
								     .track = host,
								     .phase = (uint8_t)(1 + i) });
			builder_add_window(&s.b, &(struct window_row){ .source = source,
								       .start_ns = times[i],
								       .end_ns = times[k] });
		}
	builder_add_link(&s.b,
			 &(struct link_row){ .src = { 1 }, .dst = { 2 }, .kind = LINK_LAUNCH });
	small_freeze(&s);
	analyse(&s, &everything, &p);
	assert_true(p.window_count > 0);
	phases_release(&p);
	small_close(&s);
}

static void without_memory(void **state)
{
	struct small_model s;
	struct painted want;
	bool done = false;

	(void)state;
	small_open(&s);
	make_random(&s, 11, &want);
	trace_launch(&s, (event_id){ 3 }, (event_id){ 1 });
	small_freeze(&s);
	for (uint64_t n = 1; !done; n++)
		for (int sticky = 0; sticky < 2; sticky++) {
			size_t before = atomic_load(&s.mem.used);
			struct phases p;
			ow_status status;

			mem_fail_after(n, sticky);
			status = phases_analyse(s.m, &everything, &p, &s.err);
			mem_fail_after(0, false);
			assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
			done = status == OW_OK;
			phases_release(&p);
			assert_int_equal(atomic_load(&s.mem.used), before);
		}
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worked_example),
		cmocka_unit_test(overlapped_copy),
		cmocka_unit_test(launch_extended),
		cmocka_unit_test(plain_windows),
		cmocka_unit_test(left_out_of_means),
		cmocka_unit_test(no_markers),
		cmocka_unit_test(devices_and_loaders),
		cmocka_unit_test(gaps),
		cmocka_unit_test(filters),
		cmocka_unit_test(random_traces),
		cmocka_unit_test(nothing_classified),
		cmocka_unit_test(hostile_times),
		cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
