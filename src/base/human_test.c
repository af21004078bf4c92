/* human_test.c: three significant digits, suffixes, and no number rounded to four digits. */
#include "base/human.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void expect_int(int64_t value, enum human_unit unit, const char *want)
{
	char text[HUMAN_SIZE];

	assert_int_equal(human_int(text, value, unit, false), strlen(want));
	assert_string_equal(text, want);
}

static void ints(void **state)
{
	(void)state;
	expect_int(0, HUMAN_UNIT_NS, "0ns");
	expect_int(999, HUMAN_UNIT_NS, "999ns");
	expect_int(1000, HUMAN_UNIT_NS, "1.00us");
	expect_int(1234567, HUMAN_UNIT_NS, "1.23ms");
	expect_int(999999, HUMAN_UNIT_NS, "1.00ms");
	expect_int(12345678, HUMAN_UNIT_NS, "12.3ms");
	expect_int(9996000, HUMAN_UNIT_NS, "10.0ms");
	expect_int(123456789012, HUMAN_UNIT_NS, "123s");
	expect_int(7200000000000, HUMAN_UNIT_NS, "2.00h");
	expect_int(-1500, HUMAN_UNIT_NS, "-1.50us");
	expect_int(0, HUMAN_UNIT_US, "0us");
	expect_int(7, HUMAN_UNIT_US, "7us");
	expect_int(1234, HUMAN_UNIT_US, "1.23ms");
	expect_int(4500000, HUMAN_UNIT_BYTES, "4.50MB");
	expect_int(999, HUMAN_UNIT_BYTES, "999B");
	expect_int(1000, HUMAN_UNIT_BYTES, "1.00kB");
	expect_int(INT64_MAX, HUMAN_UNIT_BYTES, "9223PB");
	expect_int(INT64_MIN, HUMAN_UNIT_COUNT, "-9223P");
	expect_int(1200, HUMAN_UNIT_COUNT, "1.20k");
	expect_int(42, HUMAN_UNIT_COUNT, "42");
	expect_int(1234567, HUMAN_UNIT_NONE, "1234567");
	expect_int(50, HUMAN_UNIT_PERCENT, "50.0%");
}

static void expect_real(double value, enum human_unit unit, bool full, const char *want)
{
	char text[HUMAN_SIZE];

	assert_int_equal(human_real(text, value, unit, full), strlen(want));
	assert_string_equal(text, want);
}

static void reals(void **state)
{
	(void)state;
	expect_real(12.345, HUMAN_UNIT_PERCENT, false, "12.3%");
	expect_real(0.25, HUMAN_UNIT_NS, false, "0.25ns");
	expect_real(1234.5, HUMAN_UNIT_NONE, false, "1234"); /* to even */
	expect_real((double)NAN, HUMAN_UNIT_BYTES, false, "nan");
	expect_real(-(double)INFINITY, HUMAN_UNIT_COUNT, false, "-inf");
	expect_real(1e300, HUMAN_UNIT_BYTES, false, "1e+300B");
	expect_real(97906.25, HUMAN_UNIT_NONE, false, "97906"); /* results of SQL */
	expect_real(1584128411446459, HUMAN_UNIT_NONE, false, "1584128411446459");
	expect_real(-24590.7, HUMAN_UNIT_NONE, false, "-24591");
	expect_real(293.71, HUMAN_UNIT_NONE, false, "293.7");
	expect_real(0.00012345, HUMAN_UNIT_NONE, false, "0.0001234");
	expect_real(1e300, HUMAN_UNIT_BYTES, true, "1e+300B");
	expect_real(293.7, HUMAN_UNIT_NONE, true, "293.7");
	expect_real(0.1 + 0.2, HUMAN_UNIT_NONE, true, "0.30000000000000004");
	expect_real(5e-324, HUMAN_UNIT_NONE, true, "4.94065645841247e-324");
	expect_real(-DBL_MAX, HUMAN_UNIT_US, true, "-1.7976931348623157e+308us");
	expect_real(0.5, HUMAN_UNIT_NS, true, "0.5ns");
}

/* Numbers are printed without printf where that is safe; it must not show, least of all at ties. */
static void as_printf(void **state)
{
	char text[HUMAN_SIZE], want[HUMAN_SIZE];

	(void)state;
	for (int i = -50; i < 200000; i++) {
		double value = i / 80.0, scaled = (1000 + i + 50) / 1000.0;

		human_real(text, value, HUMAN_UNIT_PERCENT, false);
		snprintf(want, sizeof(want), "%.1f%%", value);
		assert_string_equal(text, want);
		human_int(text, 1000 + i + 50, HUMAN_UNIT_BYTES, false);
		snprintf(want, sizeof(want), "%.*fkB",
			 scaled < 9.995	  ? 2
			 : scaled < 99.95 ? 1
					  : 0,
			 scaled);
		assert_string_equal(text, want);
	}
	human_real(text, -0.0, HUMAN_UNIT_PERCENT, false);
	assert_string_equal(text, "-0.0%");
}

static void full(void **state)
{
	char text[HUMAN_SIZE];

	(void)state;
	human_int(text, 1234567, HUMAN_UNIT_NS, true);
	assert_string_equal(text, "1234567ns");
	human_int(text, INT64_MIN, HUMAN_UNIT_BYTES, true);
	assert_string_equal(text, "-9223372036854775808B");
}

/* The command line's spelling of times: never ns or h in columns, a blank in sentences. */
static void times_of_the_command_line(void **state)
{
	(void)state;
	expect_real(0.5, HUMAN_UNIT_US_TO_S, false, "0.50us");
	expect_real(7, HUMAN_UNIT_US_TO_S, false, "7us");
	expect_real(999.6, HUMAN_UNIT_US_TO_S, false, "1.00ms");
	expect_real(7.2e9, HUMAN_UNIT_US_TO_S, false, "7200s");
	expect_int(999, HUMAN_UNIT_NS_APART, "999 ns");
	expect_int(1000, HUMAN_UNIT_NS_APART, "1.00 us");
	expect_int(97900000, HUMAN_UNIT_NS_APART, "97.9 ms");
	expect_int(119000000000, HUMAN_UNIT_NS_APART, "119 s");
	expect_int(150000000000, HUMAN_UNIT_NS_APART, "2.50 min");
}

/* A name must not drive the terminal, nor read as another one. */
static void printable(void **state)
{
	struct mem mem;
	struct buf text;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&text, &mem);
	human_printable(&text, STR("a\x1b[31m \xe2\x80\xaegnp.exe \xe2\x81\xa6 \xd8\x9c é中"));
	assert_true(str_eq(buf_str(&text), STR("a\xef\xbf\xbd[31m \xef\xbf\xbdgnp.exe \xef\xbf\xbd "
					       "\xef\xbf\xbd é中")));
	assert_int_equal(utf8_width(STR("a\xe2\x80\xae\xe2\x80\x8fz")), 4);
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(printable), cmocka_unit_test(ints),
		cmocka_unit_test(reals),     cmocka_unit_test(as_printf),
		cmocka_unit_test(full),	     cmocka_unit_test(times_of_the_command_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
