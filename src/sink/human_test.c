/* human_test.c: three significant digits, suffixes, and no number rounded to four digits. */
#include "sink/human.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void expect_int(int64_t value, enum result_unit unit, const char *want)
{
	char text[HUMAN_BYTES];

	assert_int_equal(human_int(text, value, unit, false), strlen(want));
	assert_string_equal(text, want);
}

static void ints(void **state)
{
	(void)state;
	expect_int(0, RESULT_NS, "0ns");
	expect_int(999, RESULT_NS, "999ns");
	expect_int(1000, RESULT_NS, "1.00us");
	expect_int(1234567, RESULT_NS, "1.23ms");
	expect_int(999999, RESULT_NS, "1.00ms");
	expect_int(12345678, RESULT_NS, "12.3ms");
	expect_int(9996000, RESULT_NS, "10.0ms");
	expect_int(123456789012, RESULT_NS, "123s");
	expect_int(7200000000000, RESULT_NS, "2.00h");
	expect_int(-1500, RESULT_NS, "-1.50us");
	expect_int(0, RESULT_MICROS, "0us");
	expect_int(7, RESULT_MICROS, "7us");
	expect_int(1234, RESULT_MICROS, "1.23ms");
	expect_int(4500000, RESULT_BYTES, "4.50MB");
	expect_int(999, RESULT_BYTES, "999B");
	expect_int(1000, RESULT_BYTES, "1.00kB");
	expect_int(INT64_MAX, RESULT_BYTES, "9223PB");
	expect_int(INT64_MIN, RESULT_COUNT, "-9223P");
	expect_int(1200, RESULT_COUNT, "1.20k");
	expect_int(42, RESULT_COUNT, "42");
	expect_int(1234567, RESULT_PLAIN, "1234567");
	expect_int(50, RESULT_PERCENT, "50.0%");
}

static void expect_real(double value, enum result_unit unit, bool full, const char *want)
{
	char text[HUMAN_BYTES];

	assert_int_equal(human_real(text, value, unit, full), strlen(want));
	assert_string_equal(text, want);
}

static void reals(void **state)
{
	(void)state;
	expect_real(12.345, RESULT_PERCENT, false, "12.3%");
	expect_real(0.25, RESULT_NS, false, "0.25ns");
	expect_real(1234.5, RESULT_PLAIN, false, "1234"); /* to even */
	expect_real((double)NAN, RESULT_BYTES, false, "nan");
	expect_real(-(double)INFINITY, RESULT_COUNT, false, "-inf");
	expect_real(1e300, RESULT_BYTES, false, "1e+300B");
	expect_real(97906.25, RESULT_PLAIN, false, "97906"); /* results of SQL */
	expect_real(1584128411446459, RESULT_PLAIN, false, "1584128411446459");
	expect_real(-24590.7, RESULT_PLAIN, false, "-24591");
	expect_real(293.71, RESULT_PLAIN, false, "293.7");
	expect_real(0.00012345, RESULT_PLAIN, false, "0.0001234");
	expect_real(1e300, RESULT_BYTES, true, "1e+300B");
	expect_real(293.7, RESULT_PLAIN, true, "293.7");
	expect_real(0.1 + 0.2, RESULT_PLAIN, true, "0.30000000000000004");
	expect_real(5e-324, RESULT_PLAIN, true, "4.94065645841247e-324");
	expect_real(-DBL_MAX, RESULT_MICROS, true, "-1.7976931348623157e+308us");
	expect_real(0.5, RESULT_NS, true, "0.5ns");
}

/* Numbers are printed without printf where that is safe; it must not show, least of all at ties. */
static void as_printf(void **state)
{
	char text[HUMAN_BYTES], want[HUMAN_BYTES];

	(void)state;
	for (int i = -50; i < 200000; i++) {
		double value = i / 80.0, scaled = (1000 + i + 50) / 1000.0;

		human_real(text, value, RESULT_PERCENT, false);
		snprintf(want, sizeof(want), "%.1f%%", value);
		assert_string_equal(text, want);
		human_int(text, 1000 + i + 50, RESULT_BYTES, false);
		snprintf(want, sizeof(want), "%.*fkB",
			 scaled < 9.995	  ? 2
			 : scaled < 99.95 ? 1
					  : 0,
			 scaled);
		assert_string_equal(text, want);
	}
	human_real(text, -0.0, RESULT_PERCENT, false);
	assert_string_equal(text, "-0.0%");
}

static void full(void **state)
{
	char text[HUMAN_BYTES];

	(void)state;
	human_int(text, 1234567, RESULT_NS, true);
	assert_string_equal(text, "1234567ns");
	human_int(text, INT64_MIN, RESULT_BYTES, true);
	assert_string_equal(text, "-9223372036854775808B");
}

static void metrics(void **state)
{
	(void)state;
	assert_int_equal(metric_find(NULL), METRIC_MICROS);
	assert_int_equal(metric_find(""), METRIC_MICROS);
	assert_int_equal(metric_find("float_ops"), METRIC_FLOAT_OPS);
	assert_int_equal(metric_find("occurrence"), METRIC_RUN_COUNT);
	assert_int_equal(metric_find("colour"), METRIC_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ints), cmocka_unit_test(reals),   cmocka_unit_test(as_printf),
		cmocka_unit_test(full), cmocka_unit_test(metrics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
