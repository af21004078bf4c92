/* nearest_test.c: what is suggested, and what is too far away to be. */
#include "base/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const char *nearest(const char *word)
{
	static const char *const words[] = { "select", "step", "to", "json" };
	size_t least = nearest_limit(str_from(word));
	const char *best = NULL;

	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		nearest_try(str_from(word), words[i], &best, &least);
	return best;
}

static void suggestions(void **state)
{
	(void)state;
	assert_string_equal(nearest("selct"), "select");
	assert_string_equal(nearest("stp"), "step");
	assert_string_equal(nearest("jsn"), "json");
	assert_null(nearest("q"));
	assert_null(nearest("bandwidth"));
	assert_null(nearest(""));
	assert_int_equal(nearest_edits(STR("kitten"), "sitting"), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(suggestions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
