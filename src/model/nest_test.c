/* nest_test.c: self times and depths of random slices against a plain way to find them; sums per op. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/small_model.h"

#define SLICES 300

static uint64_t seed;

static int64_t below(int64_t limit)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (int64_t)(seed >> 33) % limit;
}

static track_id add_track(struct small_model *s, enum track_kind kind)
{
	return builder_add_track(&s->b, &(struct track_row){ .kind = (uint8_t)kind,
							     .source = s->b.source,
							     .flags = TRACK_SLICES });
}

static void add_event(struct small_model *s, track_id track, op_id op, int64_t ts, int64_t dur)
{
	builder_add_event(&s->b, &(struct event_row){ .ts_ns = ts,
						      .dur_ns = dur,
						      .op = op,
						      .track = track,
						      .step = builder_step(&s->b, 1) });
}

/* Slices that nest properly, made from the outside in: what remains of each is its self time. */
static void add_nested(struct small_model *s, track_id track, op_id op, int64_t ts, int64_t dur,
		       uint16_t depth, int64_t *self_of, uint16_t *depth_of)
{
	int64_t at = ts, self = dur;

	/* names the slice by its start and duration, which are unique enough to find it again */
	add_event(s, track, op, ts, dur);
	while (depth < 6 && at < ts + dur - 4 && below(3)) {
		int64_t from = at + below(3), len = 1 + below(ts + dur - from);

		if (from + len > ts + dur || (from == ts && len == dur))
			break;
		add_nested(s, track, op, from, len, (uint16_t)(depth + 1), self_of, depth_of);
		self -= len;
		at = from + len;
	}
	self_of[ts * 128 + dur % 128] += self; /* equal slices share a place: sums are compared */
	depth_of[ts * 128 + dur % 128] = MAX(depth_of[ts * 128 + dur % 128], depth);
}

static void test_proper_nesting(void **state)
{
	(void)state;
	for (int round = 0; round < 50; round++) {
		static int64_t self_of[40000 * 128];
		static uint16_t depth_of[40000 * 128];
		struct small_model s;
		int64_t total = 0, sum = 0;
		track_id track;
		op_id op;

		seed = (uint64_t)round + 1;
		memset(self_of, 0, sizeof(self_of));
		memset(depth_of, 0, sizeof(depth_of));
		small_open(&s);
		small_source(&s, "t", "trace");
		track = add_track(&s, TRACK_HOST);
		op = small_op(&s, "op", "op", "");
		for (int64_t ts = 0; ts < 39000; ts += 100) {
			int64_t dur = 1 + below(99);

			add_nested(&s, track, op, ts, dur, 0, self_of, depth_of);
			total += dur;
		}
		small_freeze(&s);
		assert_null(s.m->event.self_ns); /* until somebody asks */
		assert_int_equal(model_require_nesting(s.m, &s.err), OW_OK);
		for (uint32_t i = 1; i < s.m->event.count; i++) {
			size_t place =
				(size_t)(s.m->event.ts_ns[i] * 128 + s.m->event.dur_ns[i] % 128);

			self_of[place] -= s.m->event.self_ns[i];
			assert_true(s.m->event.depth[i] <= depth_of[place]);
			sum += s.m->event.self_ns[i];
			assert_true(i == 1 || s.m->event.ts_ns[i] >= s.m->event.ts_ns[i - 1]);
		}
		for (size_t i = 0; i < ARRAY_COUNT(self_of); i++)
			assert_int_equal(self_of[i], 0);
		assert_int_equal(sum, total); /* never counted twice */
		assert_int_equal(s.m->op_step.count, 2);
		assert_int_equal(s.m->op_step.cpu_ns[1], total);
		assert_int_equal(s.m->op_step.run_count[1], s.m->event.count - 1);
		small_close(&s);
	}
}

/* Anything at all, on every kind of track: nothing is lost, self times stay within durations. */
static void test_any_slices(void **state)
{
	(void)state;
	for (int round = 0; round < 100; round++) {
		struct small_model s;
		track_id tracks[3];
		op_id ops[4];
		int64_t runs = 0;

		seed = (uint64_t)round + 1000;
		small_open(&s);
		small_source(&s, "t", "trace");
		tracks[0] = add_track(&s, TRACK_HOST);
		tracks[1] = add_track(&s, TRACK_STREAM);
		tracks[2] = add_track(&s, TRACK_ASYNC);
		for (int i = 0; i < 4; i++)
			ops[i] = small_op(&s, (const char *[]){ "a", "b", "c", "d" }[i], "t", "");
		for (int i = 0; i < SLICES; i++)
			add_event(&s, tracks[below(3)], ops[below(4)], below(1000),
				  below(10) ? below(round + 1) : TIME_UNKNOWN);
		small_freeze(&s);
		assert_int_equal(model_require_nesting(s.m, &s.err), OW_OK);
		assert_int_equal(s.m->event.count, SLICES + 1);
		for (uint32_t i = 1; i < s.m->event.count; i++) {
			const struct event_table *e = &s.m->event;

			if (e->dur_ns[i] == TIME_UNKNOWN)
				continue;
			assert_in_range(e->self_ns[i], 0, e->dur_ns[i]);
			runs += e->track[i].v != tracks[2].v;
			if (e->track[i].v != tracks[0].v)
				assert_int_equal(e->self_ns[i], e->dur_ns[i]);
			if (i > 1 && e->track[i].v == e->track[i - 1].v)
				assert_true(e->ts_ns[i] > e->ts_ns[i - 1] ||
					    e->dur_ns[i] <= e->dur_ns[i - 1]);
		}
		for (uint32_t i = 1; i < s.m->op_step.count; i++)
			runs -= s.m->op_step.run_count[i];
		assert_int_equal(runs, 0);
		small_close(&s);
	}
}

/* Events of other sources are left as they are, and rows that are there are added to. */
static void test_beside_others(void **state)
{
	struct small_model s;
	track_id plain, traced;
	op_id op;

	(void)state;
	small_open(&s);
	small_source(&s, "t", "trace");
	plain = builder_add_track(&s.b, &(struct track_row){ .kind = TRACK_DEVICE });
	traced = add_track(&s, TRACK_HOST);
	op = small_op(&s, "op", "op", "");
	add_event(&s, plain, op, 50, 10);
	add_event(&s, plain, op, 40, 10); /* in no order, and stays so */
	add_event(&s, traced, op, 10, 10);
	builder_add_op_step(&s.b, &(struct op_step_row){ .op = op,
							 .step = builder_step(&s.b, 1),
							 .run_count = 2,
							 .cpu_ns = 20,
							 .first_start_ns = 40,
							 .latest_end_ns = 60 });
	small_freeze(&s);
	assert_int_equal(s.m->event.ts_ns[1], 50);
	assert_int_equal(s.m->event.ts_ns[2], 40);
	assert_int_equal(s.m->op_step.count, 2);
	assert_int_equal(s.m->op_step.run_count[1], 3);
	assert_int_equal(s.m->op_step.cpu_ns[1], 30);
	assert_int_equal(s.m->op_step.first_start_ns[1], 10);
	assert_int_equal(s.m->op_step.latest_end_ns[1], 60);
	small_close(&s);
}

/* Rows that name events keep naming the same ones when freeze has to sort. */
static void test_references(void **state)
{
	struct small_model s;
	track_id track;
	op_id op;

	(void)state;
	small_open(&s);
	small_source(&s, "t", "trace");
	track = add_track(&s, TRACK_HOST);
	op = small_op(&s, "op", "op", "");
	add_event(&s, track, op, 30, 1);
	add_event(&s, track, op, 20, 1);
	add_event(&s, track, op, 10, 1);
	builder_add_link(&s.b, &(struct link_row){ .src = { 1 }, .dst = { 3 } });
	builder_add_event_key(&s.b, &(struct event_key_row){ .event = { 2 }, .id = 7 });
	small_freeze(&s);
	assert_int_equal(s.m->event.ts_ns[s.m->link.src[1].v], 30);
	assert_int_equal(s.m->event.ts_ns[s.m->link.dst[1].v], 10);
	assert_int_equal(s.m->event.ts_ns[s.m->event_key.event[1].v], 20);
	small_close(&s);
}

static void test_no_memory(void **state)
{
	(void)state;
	for (uint64_t n = 1, done = 0; !done; n++) {
		struct small_model s;
		track_id track;
		ow_status status;
		op_id op;

		seed = 5;
		small_open(&s);
		small_source(&s, "t", "trace");
		track = add_track(&s, TRACK_HOST);
		op = small_op(&s, "op", "op", "");
		for (int i = 0; i < 50; i++)
			add_event(&s, track, op, below(100), below(30));
		mem_fail_after(n, n % 2);
		status = model_freeze(&s.b);
		if (status == OW_OK)
			status = model_require_nesting(s.m, &s.err);
		mem_fail_after(0, false);
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		done = status == OW_OK;
		small_close(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_proper_nesting), cmocka_unit_test(test_any_slices),
		cmocka_unit_test(test_beside_others),  cmocka_unit_test(test_references),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
