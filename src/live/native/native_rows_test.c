/*
 * native_rows_test.c: unit test of native_rows.c: native and Python stacks that belong together, and that do not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "live/native/native_rows.h"

#include <string.h>

/* Native frames by a letter each, L for the loop; Python frames by a digit, with c behind when C called it. Both innermost
 * first; the result in the same letters and digits. */
static const char *join(const char *native, const char *python, bool whole)
{
	static char text[64];
	struct mixed_frame out[64];
	bool is_loop[32], was_called[32];
	char digits[32] = "";
	struct mixed_input in = { is_loop, 0, whole, was_called, 0 };
	size_t count;

	for (; native[in.native_count]; in.native_count++)
		is_loop[in.native_count] = native[in.native_count] == 'L';
	for (; *python; python++) {
		if (*python == 'c') {
			was_called[in.python_count - 1] = true;
			continue;
		}
		digits[in.python_count] = *python;
		was_called[in.python_count++] = false;
	}
	count = mixed_stack_join(&in, out);
	for (size_t i = 0; i < count; i++)
		text[i] = out[i].is_python ? digits[out[i].index] : native[out[i].index];
	text[count] = '\0';
	return text;
}

static void belong_together(void **state)
{
	(void)state;
	assert_string_equal(join("Lm", "1c", true), "1m");
	/* before 3.11 each function has its loop */
	assert_string_equal(join("aLvLvLm", "1c2c3c", true), "a1v2v3m");
	/* since 3.11 several share one */
	assert_string_equal(join("abLvLm", "12c345c", true), "ab12v345m");
	/* called back by C: sorted(key=…) */
	assert_string_equal(join("LksLm", "1c2c", true), "1ks2m");
}

static void only_the_inner_part_is_known(void **state)
{
	(void)state;
	assert_string_equal(join("aLvLv", "1c2c3c4c", false), "a1v2v34");
	assert_string_equal(join("aL", "12c34c", false), "a1234");
}

static void of_two_moments(void **state)
{
	(void)state;
	assert_string_equal(join("aLvLm", "1c", true), "");
	assert_string_equal(join("aLvLm", "1c", false), "");
	assert_string_equal(join("aLm", "1c2c", true), "");
	assert_string_equal(join("abm", "1c", true), ""); /* no Python code runs */
	assert_string_equal(join("abm", "1c", false), "");
	assert_string_equal(join("aLm", "", true), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(belong_together),
		cmocka_unit_test(only_the_inner_part_is_known),
		cmocka_unit_test(of_two_moments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
