/*
 * step_change_test.c: no alarm for what is only noise (of several kinds, two hundred thousand steps), an alarm within some steps when they
 * become a fifth longer, one alarm per change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "watch/step_change.h"

#include <math.h>

/* Always the same numbers. */
struct noise {
	uint64_t state;
};

static double uniform(struct noise *n)
{
	n->state = n->state * 6364136223846793005u + 1442695040888963407u;
	return ((double)(n->state >> 33) + 0.5) / 2147483648.0;
}

static double normal(struct noise *n)
{
	return sqrt(-2 * log(uniform(n))) * cos(6.283185307179586 * uniform(n));
}

/* Milliseconds of a step, in turn steady, noisy, with a long tail, with a checkpoint now and then. */
static double step_of(struct noise *n, unsigned kind, unsigned number, double base)
{
	switch (kind) {
	case 0:
		return base;
	case 1:
		return base * (1 + 0.03 * normal(n));
	case 2:
		return base * (1 + 0.15 * normal(n));
	case 3:
		return base * exp(0.3 * normal(n));
	case 4:
		return base * (number % 10 == 0 ? 4 : 1 + 0.05 * normal(n));
	default: /* long and short ones alternate */
		return base * (number % 2 ? 1.5 : 1) * (1 + 0.02 * normal(n));
	}
}
#define KINDS 6u

static int64_t ns(double ms)
{
	return (int64_t)(MAX(ms, 0.001) * 1e6);
}

static void noise_is_no_change(void **state)
{
	struct step_change_found found;

	(void)state;
	for (unsigned kind = 0; kind < KINDS; kind++)
		for (unsigned seed = 1; seed <= 12; seed++) {
			struct noise n = { seed };
			struct step_change c;

			step_change_init(&c, 0.2);
			for (unsigned i = 0; i < 3000; i++)
				if (step_change_add(&c, ns(step_of(&n, kind, i, 50)), &found))
					fail_msg("kind %u seed %u step %u: %.0f %%", kind, seed, i,
						 found.by * 100);
		}
}

static void one_long_step_is_no_change(void **state)
{
	struct step_change_found found;
	struct step_change c;

	(void)state;
	step_change_init(&c, 0.2);
	for (unsigned i = 0; i < 300; i++)
		assert_false(
			step_change_add(&c, ns(i % 100 >= 60 && i % 100 < 64 ? 500 : 50), &found));
}

/* How many steps after the change it was reported; fails when it was not within 60. */
static unsigned told_after(unsigned kind, unsigned seed, double factor,
			   struct step_change_found *found)
{
	struct noise n = { seed };
	struct step_change c;

	step_change_init(&c, 0.2);
	for (unsigned i = 0; i < 100; i++)
		assert_false(step_change_add(&c, ns(step_of(&n, kind, i, 50)), found));
	for (unsigned i = 0; i < 60; i++)
		if (step_change_add(&c, ns(step_of(&n, kind, 100 + i, 50 * factor)), found))
			return i + 1;
	fail_msg("kind %u seed %u factor %.2f: not noticed", kind, seed, factor);
	return 0;
}

static void a_fifth_is_noticed(void **state)
{
	struct step_change_found found;

	(void)state;
	for (unsigned seed = 1; seed <= 50; seed++) {
		assert_true(told_after(0, seed, 1.2, &found) <= STEP_CHANGE_LAST);
		assert_true(told_after(1, seed, 1.2, &found) <= 3 * STEP_CHANGE_LAST);
		assert_true(found.by > 0.15 && found.by < 0.25);
		assert_true(told_after(1, seed, 1.3, &found) <= STEP_CHANGE_LAST);
		assert_true(told_after(4, seed, 1.3, &found) <= 2 * STEP_CHANGE_LAST);
		assert_true(told_after(2, seed, 2, &found) <= STEP_CHANGE_LAST);
		assert_true(told_after(3, seed, 3, &found) <= STEP_CHANGE_LAST);
	}
}

static void tells_when_it_began(void **state)
{
	struct step_change_found found;
	unsigned after = told_after(0, 1, 1.5, &found);

	(void)state;
	assert_int_equal(found.steps_ago + 1, after);
	assert_int_equal(found.before_ns, 50000000);
	assert_int_equal(found.after_ns, 75000000);
}

/* A job that slows down soon is reported of later, when there are steps enough; all of its long steps are known as such. */
static void tells_when_it_began_soon(void **state)
{
	struct step_change_found found = { 0 };
	struct step_change c;
	unsigned number = 0;

	(void)state;
	step_change_init(&c, 0.2);
	while (!step_change_add(&c, ns(number < 15 ? 50 : 200), &found))
		assert_true(++number < 60);
	assert_int_equal(number - found.steps_ago, 15);
	/* one long step before is not the beginning */
	step_change_init(&c, 0.2);
	number = 0;
	while (!step_change_add(&c, ns(number < 40 && number != 37 ? 50 : 200), &found))
		assert_true(++number < 90);
	assert_int_equal(number - found.steps_ago, 40);
}

static void is_told_once(void **state)
{
	unsigned reported = 0;
	struct step_change_found found;
	struct noise n = { 7 };
	struct step_change c;

	(void)state;
	step_change_init(&c, 0.2);
	for (unsigned i = 0; i < 1000; i++)
		reported += step_change_add(&c, ns(step_of(&n, 1, i, i < 500 ? 50 : 80)), &found);
	assert_int_equal(reported, 1);
	/* Shorter again is good, and longer once more is reported once more. */
	for (unsigned i = 0; i < 300; i++)
		assert_false(step_change_add(&c, ns(step_of(&n, 1, i, 50)), &found));
	for (unsigned i = 0; i < 100; i++)
		reported += step_change_add(&c, ns(step_of(&n, 1, i, 80)), &found);
	assert_int_equal(reported, 2);
}

/* How often a job of 3000 steps is reported of, of which ten are tried. */
static unsigned told_of_ten(double (*step)(struct noise *n, unsigned number, double *memory))
{
	struct step_change_found found;
	unsigned reported = 0;

	for (unsigned seed = 1; seed <= 10; seed++) {
		struct noise n = { seed * 7919u };
		double memory = 0;
		struct step_change c;

		step_change_init(&c, 0.2);
		for (unsigned i = 0; i < 3000; i++)
			reported += step_change_add(&c, ns(step(&n, i, &memory)), &found);
	}
	return reported;
}

/* Twenty of a hundred steps are with another model. */
static double with_validation(struct noise *n, unsigned number, double *memory)
{
	(void)memory;
	return (number % 100 >= 80 ? 150 : 50) * (1 + 0.03 * normal(n));
}

/* Now and then twice as long, by chance: texts of any length. */
static double of_two_kinds(struct noise *n, unsigned number, double *memory)
{
	(void)number;
	(void)memory;
	return (uniform(n) < 0.4 ? 100 : 50) * (1 + 0.03 * normal(n));
}

/* Each is much like the one before, as on a machine that others use. */
static double wandering(struct noise *n, unsigned number, double *memory)
{
	(void)number;
	*memory = 0.9 * *memory + 0.05 * normal(n);
	return 50 * exp(*memory);
}

static double in_waves(struct noise *n, unsigned number, double *memory)
{
	(void)memory;
	return 50 * (1 + 0.1 * sin(number / 40.0)) * (1 + 0.03 * normal(n));
}

/* What was there before is no news; without that these are reported of 300, 190, 35 and 50 times. */
static void what_comes_again_is_hardly_told(void **state)
{
	(void)state;
	assert_int_equal(told_of_ten(with_validation), 10);
	assert_in_range(told_of_ten(of_two_kinds), 0, 2);
	assert_in_range(told_of_ten(wandering), 0, 15);
	assert_int_equal(told_of_ten(in_waves), 0);
}

/* One of two lengths, by chance: texts of any length, a cache that hits or not. */
static double one_of_two(struct noise *n, double part, double factor)
{
	return 50 * (uniform(n) < part ? factor : 1) * (1 + 0.03 * normal(n));
}

static const struct {
	double part, factor;
} twos[] = { { 0.2, 2 }, { 0.3, 8 }, { 0.4, 2 }, { 0.4, 1.3 }, { 0.5, 2 } };

/* Rows of long ones come by chance; without knowing that, a third of such jobs is reported of. */
static void two_lengths_are_no_change(void **state)
{
	struct step_change_found found;
	unsigned reported = 0;

	(void)state;
	for (size_t kind = 0; kind < ARRAY_COUNT(twos); kind++)
		for (unsigned seed = 1; seed <= 60; seed++) {
			struct noise n = { seed * 104729u };
			struct step_change c;

			step_change_init(&c, 0.2);
			for (unsigned i = 0; i < 400; i++)
				reported += step_change_add(
					&c, ns(one_of_two(&n, twos[kind].part, twos[kind].factor)),
					&found);
		}
	assert_in_range(reported, 0, 6); /* of 300 */
}

/* Both kinds becoming longer is one, also when that is not longer than the long ones were. */
static void two_lengths_that_grow_are_noticed(void **state)
{
	struct step_change_found found;
	unsigned reported = 0, early = 0;

	(void)state;
	for (size_t kind = 0; kind < 2; kind++)
		for (unsigned seed = 1; seed <= 50; seed++) {
			struct noise n = { seed * 7919u };
			struct step_change c;
			bool seen = false;

			step_change_init(&c, 0.2);
			for (unsigned i = 0; i < 550; i++) {
				double ms = one_of_two(&n, twos[kind].part, twos[kind].factor) *
					    (i < 500 ? 1 : 1.5);
				bool now = step_change_add(&c, ns(ms), &found);

				early += now && i < 500;
				seen |= now && i >= 500;
			}
			reported += seen;
		}
	assert_in_range(reported, 90, 100);
	assert_in_range(early, 0, 3);
}

static void a_small_change_is_left_alone(void **state)
{
	struct step_change_found found;
	struct step_change c;

	(void)state;
	step_change_init(&c, 0.2);
	for (unsigned i = 0; i < 400; i++)
		assert_false(step_change_add(&c, ns(i < 200 ? 50 : 54), &found));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(noise_is_no_change),
		cmocka_unit_test(one_long_step_is_no_change),
		cmocka_unit_test(a_fifth_is_noticed),
		cmocka_unit_test(tells_when_it_began),
		cmocka_unit_test(tells_when_it_began_soon),
		cmocka_unit_test(is_told_once),
		cmocka_unit_test(what_comes_again_is_hardly_told),
		cmocka_unit_test(two_lengths_are_no_change),
		cmocka_unit_test(two_lengths_that_grow_are_noticed),
		cmocka_unit_test(a_small_change_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
