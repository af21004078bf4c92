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
	/* t(6) = 2.4469, standard error sqrt(5/3 / 4 × 2) = 0.9129 */
	assert_true(near(s.low, 5 - 2.4469 * 0.91287, 1e-3));
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
	/* level 2/70: t(6) of 0.9857 is 2.8333, of 0.8 is 0.9057; standard error sqrt(2/3 / 2) = 0.57735 */
	assert_true(near(change, (2.8333 + 0.9057) * 0.57735, 0.02));
	assert_true(isnan(stat_detectable(a, 3, b, 3)) == (2.0 / 20 > 0.05));
	assert_true(isnan(stat_detectable(a, 1, b, 4)));
	assert_int_equal(stat_runs_needed(a, 4, b, 4, change), 4);
	assert_true(stat_runs_needed(a, 4, b, 4, change / 3) > 8);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
