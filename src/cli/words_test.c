/* words_test.c: numbers and paragraphs. */
#include "cli/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void numbers(void **state)
{
	char text[WORDS_NUMBER];

	(void)state;
	assert_string_equal(words_time(text, 0), "0us");
	assert_string_equal(words_time(text, 7), "7us");
	assert_string_equal(words_time(text, 999.6), "1.00ms");
	assert_string_equal(words_time(text, 97910), "97.9ms");
	assert_string_equal(words_time(text, 3.6e9), "3600s");
	assert_string_equal(words_bytes(text, 61438), "61.4kB");
	assert_string_equal(words_count(text, 62.95e9), "63.0G");
	assert_string_equal(words_count(text, 12), "12");
	assert_string_equal(words_plural(1), "");
	assert_string_equal(words_plural(0), "s");
}

static void expect_wrapped(const char *mark, const char *text, uint32_t indent, uint32_t width,
			   const char *want)
{
	char *got = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&got, &len);

	assert_non_null(to);
	words_wrap(to, mark, text, indent, width);
	fclose(to);
	assert_string_equal(got, want);
	free(got);
}

static void paragraphs(void **state)
{
	(void)state;
	expect_wrapped("- ", "one two three", 2, 9, "- one two\n  three\n");
	expect_wrapped("  check: ", "one two three", 4, 16, "  check: one two\n    three\n");
	expect_wrapped("", "one\ntwo\n", 1, 0, " one\n two\n");
	expect_wrapped("", "  hang on to it", 0, 10, "  hang on\n    to it\n");
	expect_wrapped("", "averylongword b", 0, 5, "averylongword\nb\n");
	expect_wrapped("", "only 78 % of 12.5 ms, then", 0, 8, "only\n78 % of\n12.5 ms,\nthen\n");
	expect_wrapped("", "a 5 s", 0, 3, "a\n5 s\n");
	expect_wrapped("", "a5 steps", 0, 3, "a5\nsteps\n");
	expect_wrapped("", "\033[31m", 0, 0, "\xef\xbf\xbd[31m\n");
	expect_wrapped("", "", 2, 10, "  \n");
}

static void expect_name(const char *name, size_t room, const char *want)
{
	char *got;
	size_t len;
	FILE *to = open_memstream(&got, &len);

	assert_non_null(to);
	assert_int_equal(words_name(to, str_from(name), room), utf8_width(str_from(want)));
	fclose(to);
	assert_string_equal(got, want);
	free(got);
}

static void names(void **state)
{
	(void)state;
	expect_name("gemm<float>", 20, "gemm<float>");
	expect_name("gemm<float>", 6, "gemm<…");
	expect_name("/home/me/model.py:22", 12, "…model.py:22");
	expect_name("/a", 1, "…");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(paragraphs),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
