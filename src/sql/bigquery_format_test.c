/* bigquery_format_test.c: FORMAT of BigQuery: what it refuses, and that any text ends. The values it writes are in tests/cli/sql_test.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sql/bigquery_format.h"

static const struct str values[] = { STR("12"), STR("-3.5"), { 0 }, STR("text") };

static ow_status format(const char *text, size_t count, bool *is_null, struct ow_error *err)
{
	struct mem mem;
	struct buf out;
	ow_status status;

	mem_init(&mem, 0);
	buf_init(&out, &mem);
	status = bigquery_format(&out, str_from(text), values, count, is_null, err);
	buf_release(&out);
	assert_int_equal(atomic_load(&mem.used), 0);
	return status;
}

static void refuse(const char *text, size_t count, const char *part)
{
	struct ow_error err = { 0 };
	bool is_null;

	assert_int_equal(format(text, count, &is_null, &err), OW_E_USAGE);
	if (!strstr(err.text, part))
		fail_msg("'%s' is not in: %s", part, err.text);
}

static void refused(void **state)
{
	(void)state;
	refuse("%P", 1, "FORMAT has no %P here");
	refuse("%q", 1, "has no %q");
	refuse("%d", 2, "has 2 arguments and uses 1");
	refuse("%d %d", 2, "takes an integer, not '-3.5'");
	refuse("5 %", 1, "ends inside");
	refuse("%99999d", 1, "widths up to");
	refuse("%d%f%t%f", 4, "takes a number, not 'text'");
	refuse("%d%*d", 3, "needs an integer for *");
}

static void nulls(void **state)
{
	struct ow_error err = { 0 };
	bool is_null;

	(void)state;
	assert_int_equal(format("%d%f%t", 3, &is_null, &err), OW_OK);
	assert_false(is_null);
	assert_int_equal(format("%d%f%s", 3, &is_null, &err), OW_OK);
	assert_true(is_null);
}

static void anything(void **state)
{
	static const char bytes[] = "%%%'-+ #0.*1259dioxXfFeEgGstTpa";
	struct ow_error err = { 0 };
	uint64_t seed = 1;
	bool is_null;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		char text[16] = { 0 };

		for (size_t i = 0; i < (size_t)round % sizeof(text); i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			text[i] = bytes[(seed >> 33) % (sizeof(bytes) - 1)];
		}
		(void)format(text, (size_t)round % 5 % 4, &is_null, &err);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused),
		cmocka_unit_test(nulls),
		cmocka_unit_test(anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
