/*
 * tfprof_numbers_test.c: numbers as printf would print the original's expressions: thresholds, ties,
 * and many others.
 */
#include "sink/tfprof/tfprof_numbers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void expect(size_t (*put)(char *, int64_t), int64_t value, const char *want)
{
	char text[TFPROF_NUMBER_BYTES + 1];

	text[put(text, value)] = '\0';
	assert_string_equal(text, want);
}

static void thresholds(void **state)
{
	(void)state;
	expect(tfprof_count, 0, "0");
	expect(tfprof_count, -5, "-5");
	expect(tfprof_count, 999, "999");
	expect(tfprof_count, 1000, "1.00k");
	expect(tfprof_count, 999999, "1000.00k");
	expect(tfprof_count, 1000000, "1.00m");
	expect(tfprof_count, 1000000000, "1.00b");
	expect(tfprof_count, INT64_MIN, "-9223372036854775808");
	expect(tfprof_micros, 999, "999us");
	expect(tfprof_micros, 999999, "1000.00ms");
	expect(tfprof_micros, 1000000, "1.00sec");
	expect(tfprof_micros, INT64_MAX, "9223372036854.78sec");
	expect(tfprof_memory, 1005, "1.00KB");
	expect(tfprof_memory, 1125, "1.12KB");
	expect(tfprof_memory, 30464, "30.46KB");
	expect(tfprof_memory, INT64_MAX, "9223372036854.78MB");
}

/* Every value around ties, and some of every size. */
static void like_printf(void **state)
{
	char want[64];

	(void)state;
	for (int64_t i = 1000; i < 1000000; i += i < 20000 ? 1 : 5) {
		snprintf(want, sizeof(want), "%.2fms", (double)i / 1000.0);
		expect(tfprof_micros, i, want);
	}
	for (int64_t i = 1000000, k = 1; i > 0 && i < INT64_MAX / 3; i += i / 97 + k++ * 5000) {
		snprintf(want, sizeof(want), "%.2fMB", (double)i / 1000000.0);
		expect(tfprof_memory, i, want);
		snprintf(want, sizeof(want), "%.2fMB",
			 (double)(i / 10000 * 10000 + 5000) / 1000000.0);
		expect(tfprof_memory, i / 10000 * 10000 + 5000, want);
		if (i < 1000000000)
			continue;
		snprintf(want, sizeof(want), "%.2fb", (double)i / 1000000000.0);
		expect(tfprof_count, i, want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(thresholds),
					    cmocka_unit_test(like_printf) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
