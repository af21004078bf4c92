/* clock_test.c: times as text, moved exactly, however they are written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "merge/merge_int.h"

static void check(const char *text, int64_t shift_ns, const char *want)
{
	struct buf out;
	struct mem mem;
	bool good;

	mem_init(&mem, 0);
	buf_init(&out, &mem);
	good = decimal_shift(str_from(text), shift_ns, &out);
	if (want) {
		assert_true(good);
		assert_string_equal(buf_cstr(&out), want);
	} else {
		assert_false(good);
		assert_int_equal(out.len, 0);
	}
	buf_release(&out);
}

static void short_numbers(void **state)
{
	(void)state;
	check("0", 0, "0");
	check("5", 1000, "6");
	check("5", -5000, "0");
	check("5", -6000, "-1");
	check("-5", 6000, "1");
	check("5", 1, "5.001");
	check("5", 10, "5.01");
	check("5", 100, "5.1");
	check("5", -1, "4.999");
	check("0", -1, "-0.001");
	check("5.5", 1000, "6.5");
	check("5.5", -5500, "0.0");
	check("5.500", 1000, "6.500");
	check("5.5", 1, "5.501");
	check("1712195495406752.797", -1712195495406752797, "0.000");
	check("1712195495406752", INT64_MAX, "10935567532261527.807");
	check("0.000000001", 1, "0.001000001");
	check("999.9", 100, "1000.0");
}

static void long_numbers(void **state)
{
	(void)state;
	check("1712195495406753.05799999999", -1712195495406752797, "0.26099999999");
	check("123456789012345678901234567890", 1000, "123456789012345678901234567891");
	check("-123456789012345678901234567890", 1000, "-123456789012345678901234567889");
	check("1.5e3", 1, "1500.001");
	check("15e-1", 500, "2.0");
	check("1E0", 1000, "2");
	check("0.0000000000000000000000001", -1000, "-0.9999999999999999999999999");
	check("1e18", -1, "999999999999999999.999");
	check("+5", 1000, "6");
	check("5.", 1000, "6");
	check(".5", 500, "1.0");
	check("0e0", 0, "0");
	check("-0.0", 0, "0.0");
	check("1e5", INT64_MIN + 1, "-9223372036754775.807");
}

static void no_numbers(void **state)
{
	static const char *const texts[] = { "",	 "-",	"null",	 "abc",	  "1e",
					     "1e+",	 ".",	"1.2.3", "0x10",  "1 ",
					     "1e999999", "NaN", "--1",	 "1e-401" };

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
		check(texts[i], 1000, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_numbers),
		cmocka_unit_test(long_numbers),
		cmocka_unit_test(no_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
