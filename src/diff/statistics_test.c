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
	double change = stat_detectable(a, 4, b, 4);

	(void)state;
	/* level 2/70: t(6) of 0.9857 is 2.8333, of 0.8 is 0.9057; standard error sqrt(2/3 / 2) = 0.57735; 70 ways, 6 degrees */
	assert_true(
		near(change, (2.8333 + 0.9057) * 0.57735 * (1 + 5.0 / 70) / (1 - 1.0 / 24), 0.03));
	assert_true(isnan(stat_detectable(a, 3, b, 3)) == (2.0 / 20 > 0.05));
	assert_true(isnan(stat_detectable(a, 1, b, 4)));
	assert_int_equal(stat_runs_needed(a, 4, b, 4, change), 4);
	assert_true(stat_runs_needed(a, 4, b, 4, change / 3) > 8);
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

static double rarely_cold(void)
{
	return normal() + (uniform() < 0.08 ? 25 : 0);
}

struct noise {
	double (*of)(void);
	size_t n, m;
	int from, to; /* percent of the cases in which the printed change is seen */
};

#define CASES 2000

static void draw(const struct noise *noise, double shift, double *a, double *b)
{
	for (size_t i = 0; i < noise->n; i++)
		a[i] = 100 + noise->of();
	for (size_t i = 0; i < noise->m; i++)
		b[i] = 100 + shift + noise->of();
}

/* The interval holds the true shift in 95 % of the cases, whatever the noise; the change that is printed is seen in 4 of 5, within 10 points.
 * Where runs have two speeds the chance jumps when the change is as large as their distance: there it may be seen more often.
 * Where one run of twelve is cold, a few runs do not show how much they vary: 65 % of the cases. */
static void promises(void **state)
{
	static const struct noise all[] = {
		{ even, 4, 4, 72, 88 },	       { even, 5, 5, 72, 88 },
		{ even, 8, 4, 72, 88 },	       { skewed, 4, 4, 70, 90 },
		{ skewed, 4, 8, 70, 90 },      { two_modes, 4, 4, 70, 100 },
		{ two_modes, 4, 10, 70, 100 }, { two_modes, 6, 6, 70, 100 },
		{ rarely_cold, 4, 8, 65, 90 }, { rarely_cold, 5, 5, 65, 90 },
	};
	double a[16], b[16];

	(void)state;
	for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
		const struct noise *noise = &all[k];
		int held = 0, seen = 0, failed = 0;
		double change = 0;

		for (int i = 0; i < CASES; i++) {
			struct shift s;

			draw(noise, 0, a, b);
			s = stat_means(a, noise->n, b, noise->m);
			held += s.low <= 0 && 0 <= s.high;
			failed += s.low > 3;
			change += stat_detectable(a, noise->n, b, noise->m) / CASES;
		}
		for (int i = 0; i < CASES; i++) {
			draw(noise, change, a, b);
			seen += stat_permutation(a, noise->n, b, noise->m) <= 0.05;
		}
		print_message("%zu: %zu against %zu: holds %.1f %%, gate of 3 %%: %.2f %%, change "
			      "%.2f seen in %.1f %%\n",
			      k, noise->n, noise->m, 100.0 * held / CASES, 100.0 * failed / CASES,
			      change, 100.0 * seen / CASES);
		assert_true(held >= CASES * 95 / 100);
		assert_true(failed <= CASES / 100);
		assert_true(seen * 100 >= noise->from * CASES && seen * 100 <= noise->to * CASES);
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
		cmocka_unit_test(detectable_change), cmocka_unit_test(adjusted),
		cmocka_unit_test(promises),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
