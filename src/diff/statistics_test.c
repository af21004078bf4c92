/*
 * statistics_test.c: unit test of statistics.c against values that tables and hand computations give.
 */
#include "diff/statistics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static bool near(double a, double b, double by)
{
	return fabs(a - b) <= by;
}

static void student(void **state)
{
	(void)state;
	assert_true(near(student_quantile(0.975, 6), 2.446912, 1e-5));
	assert_true(near(student_quantile(0.975, 1), 12.7062, 1e-3));
	assert_true(near(student_quantile(0.5, 9), 0, 1e-6));
	assert_true(near(student_quantile(0.8, 10), 0.879058, 1e-5));
	assert_true(near(student_quantile(0.025, 30), -2.042272, 1e-5));
}

/* 4 against 4 that do not overlap: 2 of the 70 ways are as far apart. */
static void permutation(void **state)
{
	const double low[] = { 1, 2, 3, 4 }, high[] = { 11, 12, 13, 14 };

	(void)state;
	assert_true(near(stat_permutation(low, 4, high, 4), 2.0 / 70, 1e-12));
	assert_true(near(stat_permutation(low, 4, low, 4), 1, 1e-12));
	assert_true(near(stat_permutation(low, 1, high, 1), 1, 1e-12));
	assert_true(near(stat_permutation(low, 0, high, 4), 1, 0));
}

/* More ways than can be tried: drawn ones, the same each time. */
static void many_runs(void **state)
{
	double a[20], b[20], p;

	(void)state;
	for (int i = 0; i < 20; i++) {
		a[i] = i;
		b[i] = i + 1.5;
	}
	p = stat_permutation(a, 20, b, 20);
	assert_true(p > 0.3 && p < 0.6);
	assert_true(near(stat_permutation(a, 20, b, 20), p, 0));
	for (int i = 0; i < 20; i++)
		b[i] = i + 40;
	assert_true(stat_permutation(a, 20, b, 20) < 1e-4);
}

static void shifts(void **state)
{
	const double a[] = { 10, 11, 12, 13 }, b[] = { 15, 16, 17, 18 };
	struct shift s;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	assert_true(stat_hodges_lehmann(&mem, a, 4, b, 4, &s));
	assert_true(near(s.estimate, 5, 1e-12));
	/* 4 against 4: the interval has all 16 differences, with a level of 97 %. */
	assert_true(near(s.low, 2, 1e-12) && near(s.high, 8, 1e-12));
	s = stat_means(a, 4, b, 4);
	assert_true(near(s.estimate, 5, 1e-12));
	/* t(6) of 0.98 is 2.6122, standard error sqrt(5/3 / 4 × 2) = 0.9129 */
	assert_true(near(s.low, 5 - 2.6122 * 0.91287, 1e-3));
	s = stat_means(a, 1, b, 4);
	assert_true(isnan(s.low) && isnan(s.high));
	assert_true(stat_hodges_lehmann(&mem, a, 0, b, 4, &s));
	assert_true(isnan(s.estimate));
}

static void detectable_change(void **state)
{
	const double a[] = { 100, 101, 99, 100 }, b[] = { 100, 99, 101, 100 };
	const double all_equal[] = { 5, 5, 5, 5 };
	const double mixed[] = { 101, 100, 100, 99 };
	double change = stat_detectable(a, 4, b, 4);

	(void)state;
	/* 4 against 4 are seen apart only if they do not overlap: a change as large as the range, at most. */
	assert_true(change > 1 && change < 2.6);
	assert_true(near(stat_detectable(mixed, 4, b, 4), change, 1e-12)); /* in any order */
	assert_true(isnan(stat_detectable(a, 3, b, 4)) && isnan(stat_detectable(a, 4, b, 3)));
	assert_true(near(stat_detectable(all_equal, 4, all_equal, 4), 0, 1e-12));
	assert_int_equal(stat_runs_needed(a, 4, b, 4, change), 4);
	assert_true(stat_runs_needed(a, 4, b, 4, change / 3) > 8);
	assert_true(stat_runs_needed(a, 3, b, 3, 1) > 4);
}

/* One cold run does not hide that all others became slower; a value far away counts as one that is less far. */
static void cold_run(void **state)
{
	const double base[] = { 100, 101, 99, 100.5, 99.5, 300 };
	const double new[] = { 104, 105, 103, 104.5, 103.5, 104.2, 103.8, 104.1, 104.9, 103.3 };
	double values[] = { 1, 2, 3, 4, 5, 6, 70 }, scratch[7];

	(void)state;
	assert_true(stat_permutation(base, 6, new, 10) <= 0.05);
	stat_clip(values, scratch, 7); /* median 4, median deviation 2 */
	assert_true(near(values[0], 1, 0) && near(values[6], 4 + 3 * 1.4826 * 2, 1e-9));
}

/* ---- runs of simulated jobs ---- */

static uint64_t random_state = 88172645463325252u;

static double uniform(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (double)(random_state >> 11) / 0x1p53;
}

static double normal(void)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += uniform();
	return sum;
}

/* What a run is slower than usual by, in percent. */
static double even(void)
{
	return 2 * normal();
}

static double skewed(void)
{
	return exp(normal());
}

static double two_modes(void)
{
	return normal() * 0.5 + (uniform() < 0.25 ? 8 : 0);
}

static double half_slow(void)
{
	return normal() + (uniform() < 0.5 ? 30 : 0);
}

static double rarely_cold(void)
{
	return normal() + (uniform() < 0.08 ? 25 : 0);
}

struct noise {
	double (*of)(void);
	size_t n, m;
};

#define CASES 2000
#define CHANGES 250 /* cases whose detectable change is tried */
#define TRIES 4	    /* comparisons with a change of that size */

static void draw(const struct noise *noise, double shift, double *a, double *b)
{
	for (size_t i = 0; i < noise->n; i++)
		a[i] = 100 + noise->of();
	for (size_t i = 0; i < noise->m; i++)
		b[i] = 100 + shift + noise->of();
}

/* Part of the comparisons in which a change is seen that is as large as an earlier comparison of the same job says. `part`: how much of it that
 * one had already. */
static double seen_part(const struct noise *noise, double part)
{
	double a[16], b[16], change = 0, changed = 0;
	int seen = 0;

	for (int i = 0; i < CHANGES; i++) {
		draw(noise, part * changed, a, b);
		change = stat_detectable(a, noise->n, b, noise->m);
		changed += (change - changed) / (i + 1);
		for (int k = 0; k < TRIES; k++) {
			draw(noise, change, a, b);
			seen += stat_permutation(a, noise->n, b, noise->m) <= 0.05;
		}
	}
	return (double)seen / (CHANGES * TRIES);
}

/* The interval holds the true shift in 95 % of the cases, the gate fails in at most 1 %, and the change that is printed is seen in 4 of 5,
 * within 10 points: whatever the noise. */
static void promises(void **state)
{
	static const struct noise all[] = {
		{ half_slow, 5, 5 },   { even, 4, 4 },	      { even, 5, 5 },
		{ skewed, 4, 4 },      { two_modes, 4, 4 },   { two_modes, 4, 10 },
		{ two_modes, 6, 6 },   { rarely_cold, 4, 4 }, { rarely_cold, 4, 8 },
		{ rarely_cold, 5, 5 },
	};
	double a[16], b[16];

	(void)state;
	for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
		const struct noise *noise = &all[k];
		double same = seen_part(noise, 0), other = seen_part(noise, 1);
		int held = 0, failed = 0, different = 0;

		for (int i = 0; i < CASES; i++) {
			bool is_different;
			struct shift s;

			draw(noise, 0, a, b);
			s = stat_means(a, noise->n, b, noise->m);
			held += s.low <= 0 && 0 <= s.high;
			is_different = stat_permutation(a, noise->n, b, noise->m) <= 0.05;
			different += is_different;
			failed +=
				is_different && stat_means_surely(a, noise->n, b, noise->m).low > 3;
		}
		print_message("%zu: %zu against %zu: holds %.1f %%, gate of 3 %%: %.2f %%, same "
			      "jobs differ %.1f %%, change seen in %.1f and %.1f %%\n",
			      k, noise->n, noise->m, 100.0 * held / CASES, 100.0 * failed / CASES,
			      100.0 * different / CASES, 100 * same, 100 * other);
		assert_true(held >= CASES * 95 / 100);
		assert_true(failed <= CASES / 100);
		assert_true(different <= CASES * 65 / 1000); /* 5 %, and three deviations */
		assert_true(same >= 0.7 && same <= 0.9);
		assert_true(other >= 0.7 && other <= 0.9);
	}
}

static void adjusted(void **state)
{
	double p[] = { 0.01, 0.04, 0.03, 0.005 };
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	assert_true(stat_adjust(&mem, p, 4));
	assert_true(near(p[0], 0.02, 1e-12));
	assert_true(near(p[1], 0.04, 1e-12));
	assert_true(near(p[2], 0.04, 1e-12));
	assert_true(near(p[3], 0.02, 1e-12));
	assert_true(stat_adjust(&mem, NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(student),	     cmocka_unit_test(permutation),
		cmocka_unit_test(many_runs),	     cmocka_unit_test(shifts),
		cmocka_unit_test(detectable_change), cmocka_unit_test(cold_run),
		cmocka_unit_test(adjusted),	     cmocka_unit_test(promises),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
