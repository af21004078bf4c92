/*
 * result_test.c: what opwatch.h promises about results: defaults of views, rows that exist or an error, and structs that are
 * filled up to the caller's size.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "opwatch/live.h"

static ow_profile *open_sample(void)
{
	const char *root = getenv("OPWATCH_SRC");
	char path[4096];
	const char *paths[] = { path };
	struct ow_error err = { 0 };
	ow_profile *profile = NULL;

	snprintf(path, sizeof(path), "%s/samples/resnet.profile", root ? root : ".");
	if (ow_profile_open(paths, 1, NULL, &profile, &err) != OW_OK)
		fail_msg("%s", err.text);
	return profile;
}

static ow_result *run_view(ow_profile *profile, const char *view,
			   const struct ow_view_options *options)
{
	struct ow_error err = { 0 };
	ow_result *result = NULL;

	if (ow_view(profile, view, options, &result, &err) != OW_OK)
		fail_msg("%s", err.text);
	return result;
}

static void assert_descending(const ow_result *result, const char *column)
{
	uint32_t number = ow_result_find(result, column);

	assert_int_not_equal(number, UINT32_MAX);
	for (uint32_t row = 1; row < ow_result_rows(result); row++)
		assert_true(ow_result_int(result, row - 1, number) >=
			    ow_result_int(result, row, number));
}

static void costliest_first(void **state)
{
	static const char *const columns[] = { "op_types", "bytes" };
	ow_profile *profile = open_sample();
	struct ow_view_options options;
	ow_result *result = run_view(profile, "op", NULL);

	(void)state;
	assert_in_range(ow_result_rows(result), 10, 30);
	assert_descending(result, "micros");
	ow_result_free(result);
	ow_view_options_init(&options);
	options.select = (struct ow_list){ columns, 2 };
	result = run_view(profile, "op", &options);
	assert_descending(result, "bytes");
	ow_result_free(result);
	options.limit = 5;
	result = run_view(profile, "op", &options);
	assert_int_equal(ow_result_rows(result), 5);
	ow_result_free(result);
	ow_profile_free(profile);
}

static void deferred_rows(void **state)
{
	ow_profile *profile = open_sample();
	ow_result *now = run_view(profile, "scope", NULL), *later;
	struct ow_view_options options;

	(void)state;
	ow_view_options_init(&options);
	options.defer_rows = true;
	later = run_view(profile, "scope", &options);
	assert_int_equal(ow_result_rows(later), 0);
	assert_int_equal(ow_result_columns(later), 0);
	assert_int_equal(ow_result_fill(later, NULL), OW_OK);
	assert_true(ow_result_rows(now) > 1);
	assert_int_equal(ow_result_rows(later), ow_result_rows(now));
	ow_result_free(now);
	ow_result_free(later);
	ow_profile_free(profile);
}

/* A view that succeeds has all of its rows, wherever memory ran out. */
static void rows_or_an_error(void **state)
{
	ow_profile *profile = open_sample();
	ow_result *result = run_view(profile, "op", NULL);
	uint32_t rows = ow_result_rows(result);
	bool failed = true;

	(void)state;
	ow_result_free(result);
	for (uint64_t n = 1; failed && n < 100000; n++) {
		struct ow_error err = { 0 };
		ow_status status;

		mem_fail_after(n, false);
		status = ow_view(profile, "op", NULL, &result, &err);
		failed = mem_fail_left() == 0;
		mem_fail_after(0, false);
		if (status == OW_OK)
			assert_int_equal(ow_result_rows(result), rows);
		else
			assert_null(result);
		assert_true(status == OW_OK || err.text[0]);
		ow_result_free(result);
	}
	assert_false(failed);
	ow_profile_free(profile);
}

/* A program that was built against an older header has shorter structs. */
static void shorter_structs(void **state)
{
	struct ow_column column = { .size = offsetof(struct ow_column, title), .title = "kept" };
	struct ow_part_info part = { .size = offsetof(struct ow_part_info, summary),
				     .summary = "kept" };
	struct ow_memory_use use = { .size = sizeof(use.size) };
	struct ow_view_options options;
	ow_profile *profile = open_sample();
	ow_result *result = run_view(profile, "op", NULL);

	(void)state;
	assert_true(ow_result_column(result, 0, &column));
	assert_string_equal(column.name, "name");
	assert_string_equal(column.title, "kept");
	assert_int_equal(column.size, offsetof(struct ow_column, title));
	assert_false(ow_result_column(result, ow_result_columns(result), &column));
	assert_true(ow_view_info(0, &part));
	assert_non_null(part.name);
	assert_string_equal(part.summary, "kept");
	ow_profile_memory(profile, &use);
	assert_int_equal(use.peak, 0);
	ow_result_free(result);
	ow_view_options_init(&options);
	options.size = offsetof(struct ow_view_options, limit);
	options.limit = 1; /* beyond the size: not read */
	result = run_view(profile, "op", &options);
	assert_true(ow_result_rows(result) > 1);
	ow_result_free(result);
	ow_profile_free(profile);
}

static void steps(void **state)
{
	ow_profile *profile = open_sample();
	int64_t numbers[2] = { 0 };
	size_t count = 0;

	(void)state;
	assert_int_equal(ow_profile_steps(profile, NULL, 0, &count, NULL), OW_OK);
	assert_int_equal(count, 3);
	assert_int_equal(ow_profile_steps(profile, numbers, 2, &count, NULL), OW_OK);
	assert_int_equal(count, 3);
	assert_true(numbers[0] < numbers[1]);
	ow_profile_free(profile);
}

static void process_ids(void **state)
{
	static const int64_t wrong[] = { (int64_t)1 << 40 };
	struct ow_error err = { 0 };

	(void)state;
	assert_int_equal(ow_attach(wrong, 1, "/nonexistent/x.opw", NULL, NULL, &err),
			 OW_E_NOT_FOUND);
	assert_non_null(strstr(err.text, "1099511627776"));
	assert_int_equal(ow_attach(NULL, 0, "/nonexistent/x.opw", NULL, NULL, &err), OW_E_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costliest_first),
		cmocka_unit_test(deferred_rows),
		cmocka_unit_test(rows_or_an_error),
		cmocka_unit_test(shorter_structs),
		cmocka_unit_test(steps),
		cmocka_unit_test(process_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
