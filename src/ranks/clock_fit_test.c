/*
 * clock_fit_test.c: clocks with known offset and drift: what is called certain holds always, what is called likely in 95 of 100 cases, also when one
 * side always leaves later; and what is impossible is said to be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ranks/clock_fit.h"

#include <math.h>

#define MIDDLE ((int64_t)1700000000 * 1000000000)
#define MS 1000000.0

struct truth {
	double offset, drift; /* a = b + offset + drift × (b - MIDDLE) */
	uint64_t state;
};

static double uniform(struct truth *t)
{
	t->state = t->state * 6364136223846793005u + 1442695040888963407u;
	return (double)(t->state >> 11) / 9007199254740992.0;
}

static double exponential(struct truth *t, double mean)
{
	return -mean * log(1 - uniform(t));
}

/* The time of b at which a's clock shows `a` nanoseconds after the middle. */
static int64_t on_b(const struct truth *t, double a)
{
	return MIDDLE + llround((a - t->offset) / (1 + t->drift));
}

/* Collectives over ten seconds. Both ends come late by an exponential delay, that of b by another mean. */
static void make_pairs(struct truth *t, struct clock_pair *pairs, size_t count, double late_a,
		       double late_b)
{
	for (size_t i = 0; i < count; i++) {
		double start = -5000 * MS + 10000 * MS * ((double)i + uniform(t)) / (double)count;
		double a = start + exponential(t, 0.5 * MS), b = start + exponential(t, 0.5 * MS);
		double end = fmax(a, b) + 0.05 * MS + exponential(t, 0.3 * MS);

		pairs[i] = (struct clock_pair){ .a_start = MIDDLE + llround(a),
						.a_end = MIDDLE +
							 llround(end + exponential(t, late_a)),
						.b_start = on_b(t, b),
						.b_end = on_b(t, end + exponential(t, late_b)) };
	}
}

static void fit(struct clock_pair *pairs, size_t count, struct clock_fit *out)
{
	struct ow_error err = { 0 };
	struct mem mem;

	mem_init(&mem, 0);
	assert_int_equal(clock_fit(pairs, count, 1, MIDDLE, &mem, out, &err), OW_OK);
	assert_int_equal(mem.used, 0);
}

static void test_bounds_hold(void **state)
{
	static const double late[][2] = {
		{ 1000, 1000 }, { 5000, 5000 }, { 500, 30000 }, { 30000, 500 }
	};
	unsigned likely = 0, all = 0;

	(void)state;
	for (unsigned seed = 1; seed <= 400; seed++) {
		struct truth t = { .state = seed * 7919u };
		struct clock_pair pairs[200];
		struct clock_fit f;
		size_t count = 12 + seed % 180;
		const double *l = late[seed % 4];
		double wrong;

		t.offset = (uniform(&t) - 0.5) * 2e9;
		t.drift = (uniform(&t) - 0.5) * 2e-4;
		make_pairs(&t, pairs, count, l[0], l[1]);
		fit(pairs, count, &f);
		assert_int_equal(f.span_count, 1);
		assert_true(f.spans[0].low - 1 <= t.offset && t.offset <= f.spans[0].high + 1);
		wrong = fabs(f.spans[0].offset - t.offset);
		likely += wrong <= f.spans[0].likely;
		all++;
		assert_true(fabs(f.spans[0].drift - t.drift) < 5e-5);
	}
	assert_true(likely >= 0.95 * all);
}

static void test_wrong_pairs(void **state)
{
	struct truth t = { .offset = 3e6, .drift = 2e-5, .state = 5 };
	struct clock_pair pairs[100];
	struct clock_fit f;

	(void)state;
	make_pairs(&t, pairs, 100, 2000, 2000);
	for (size_t i = 0; i < 100; i += 10) { /* one in ten is paired with another one */
		pairs[i].b_start += 40000000;
		pairs[i].b_end += 40000000;
	}
	fit(pairs, 100, &f);
	assert_int_equal(f.span_count, 1);
	assert_int_equal(f.rejected, 10);
	assert_int_equal(f.used, 90);
	assert_true(f.spans[0].low <= t.offset && t.offset <= f.spans[0].high);
	assert_true(fabs(f.spans[0].offset - t.offset) < 100000);

	make_pairs(&t, pairs, 100, 2000, 2000);
	for (size_t i = 0; i < 100; i++) {
		double by = i % 5 < 2 ? (uniform(&t) - 0.5) * 4e8 : 0;

		pairs[i].b_start += llround(by);
		pairs[i].b_end += llround(by);
	}
	fit(pairs, 100, &f);
	assert_int_equal(f.span_count, 0);
	assert_string_equal(f.why,
			    "more than 20 % of the shared collectives contradict each other");
}

static void test_impossible(void **state)
{
	struct truth t = { .offset = 1e6, .state = 9 };
	struct clock_pair pairs[20];
	struct clock_fit f;

	(void)state;
	fit(pairs, 0, &f);
	assert_int_equal(f.span_count, 0);
	assert_string_equal(f.why, "no shared collective");
	make_pairs(&t, pairs, 2, 1000, 1000);
	fit(pairs, 2, &f);
	assert_string_equal(f.why, "fewer than 3 shared collectives");
	make_pairs(&t, pairs, 20, 1000, 1000);
	for (size_t i = 0; i < 20; i++)
		pairs[i].direction = PAIR_A_TO_B;
	fit(pairs, 20, &f);
	assert_int_equal(f.span_count, 0);
	assert_string_equal(f.why, "messages go in one direction only");
}

/* Messages in both directions bound the clock from both sides. */
static void test_messages(void **state)
{
	struct truth t = { .offset = -7e6, .drift = -3e-5, .state = 77 };
	struct clock_pair pairs[60];
	struct clock_fit f;

	(void)state;
	make_pairs(&t, pairs, 60, 1000, 1000);
	for (size_t i = 0; i < 60; i++)
		pairs[i].direction = i % 2 ? PAIR_A_TO_B : PAIR_B_TO_A;
	fit(pairs, 60, &f);
	assert_int_equal(f.span_count, 1);
	assert_true(f.spans[0].low <= t.offset && t.offset <= f.spans[0].high);
	assert_true(f.spans[0].likely >=
		    fmax(f.spans[0].high - f.spans[0].offset, f.spans[0].offset - f.spans[0].low) -
			    1);
}

/* Both sides of a message end together: the ends say more than the middle of what is possible. If senders end earlier, they say nothing. */
static void test_messages_that_end_together(void **state)
{
	(void)state;
	for (unsigned eager = 0; eager < 2; eager++) {
		struct truth t = { .offset = -7e6, .drift = 0, .state = 77 };
		struct clock_pair pairs[60];
		struct clock_fit f;

		make_pairs(&t, pairs, 60, 1000, 1000);
		for (size_t i = 0; i < 60; i++) {
			bool to_b = i % 2;

			pairs[i].direction = to_b ? PAIR_A_TO_B : PAIR_B_TO_A;
			if (to_b) /* the other side is ready early, and waits for the message */
				pairs[i].a_start = pairs[i].a_end - 400000;
			if (eager && to_b)
				pairs[i].a_end = pairs[i].a_start + 10000;
		}
		fit(pairs, 60, &f);
		assert_int_equal(f.span_count, 1);
		assert_true(f.spans[0].low <= t.offset && t.offset <= f.spans[0].high);
		assert_true(fabs(f.spans[0].offset - t.offset) <= f.spans[0].likely);
		if (!eager)
			assert_true(fabs(f.spans[0].offset - t.offset) < 3000);
	}
}

/* NTP sets the clock of b back by 20 ms in the middle of the recording. */
static void test_clock_was_set(void **state)
{
	struct truth t = { .offset = 5e6, .drift = 1e-5, .state = 3 };
	struct clock_pair pairs[120];
	struct clock_fit f;

	(void)state;
	make_pairs(&t, pairs, 120, 2000, 2000);
	for (size_t i = 70; i < 120; i++) {
		pairs[i].b_start -= 20000000;
		pairs[i].b_end -= 20000000;
	}
	fit(pairs, 120, &f);
	assert_int_equal(f.span_count, 2);
	assert_true(fabs(f.spans[0].offset - 5e6) < 100000);
	assert_true(fabs(f.spans[1].offset - 25e6) < 100000);
	assert_true(f.spans[1].low <= 25e6 + 300 && 25e6 - 300 <= f.spans[1].high);
}

/* The clock is set back so far that many of b's times come twice, or early in the recording, or two times. */
static void test_clock_was_set_far(void **state)
{
	static const struct {
		size_t first, second;
		double by, then;
	} cases[] = { { 60, 120, -3e9, 0 },
		      { 30, 120, -2e7, 0 },
		      { 85, 120, 5e7, 0 },
		      { 40, 80, 3e7, -6e7 } };

	(void)state;
	for (unsigned c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		struct truth t = { .offset = 5e6, .drift = 1e-5, .state = 11 + c };
		struct clock_pair pairs[120];
		struct clock_fit f;

		make_pairs(&t, pairs, 120, 2000, 2000);
		for (size_t i = cases[c].first; i < 120; i++) {
			double by = cases[c].by + (i >= cases[c].second ? cases[c].then : 0);

			pairs[i].b_start += llround(by);
			pairs[i].b_end += llround(by);
		}
		fit(pairs, 120, &f);
		assert_int_equal(f.span_count, cases[c].second < 120 ? 3 : 2);
		assert_true(f.rejected <= 2);
		assert_true(fabs(f.spans[0].offset - 5e6) < 100000);
		assert_true(fabs(f.spans[1].offset - (5e6 - cases[c].by)) < 200000);
	}
}

/* One collective per step of a short recording: few pairs on each side. Few pairs whose ends differ at random are not cut. */
static void test_clock_was_set_between_few(void **state)
{
	(void)state;
	for (size_t count = 8; count < 20; count += 3)
		for (size_t cut = 3; cut + 3 <= count; cut++) {
			struct truth t = { .offset = 5e6, .drift = 1e-5, .state = count };
			struct clock_pair pairs[20];
			struct clock_fit f;

			make_pairs(&t, pairs, count, 1000, 1000);
			fit(pairs, count, &f);
			assert_int_equal(f.span_count, 1);
			for (size_t i = cut; i < count; i++) {
				pairs[i].b_start -= 20000000;
				pairs[i].b_end -= 20000000;
			}
			for (size_t i = 0; i < count; i++)
				pairs[i].rejected = false;
			fit(pairs, count, &f);
			assert_int_equal(f.span_count, 2);
			assert_true(fabs(f.spans[1].offset - 25e6) < 100000);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages_that_end_together),
		cmocka_unit_test(test_clock_was_set_between_few),
		cmocka_unit_test(test_bounds_hold),
		cmocka_unit_test(test_wrong_pairs),
		cmocka_unit_test(test_impossible),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_clock_was_set),
		cmocka_unit_test(test_clock_was_set_far),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
