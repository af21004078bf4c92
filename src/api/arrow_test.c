/*
 * arrow_test.c: results through Arrow's C data interface have the values that the cells have, whoever releases
 * what in which order; memory that runs out at any point is told and nothing stays behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/api_int.h"
#include "opwatch/sql.h"

static int released;

static void count_release(void *owner)
{
	assert_ptr_equal(owner, &released);
	released++;
}

static ow_profile *open_sample(const char *relative)
{
	const char *root = getenv("OPWATCH_SRC");
	struct ow_error err = { 0 };
	ow_profile *profile = NULL;
	char path[4096];
	const char *name = path;

	snprintf(path, sizeof(path), "%s/%s", root ? root : ".", relative);
	if (ow_profile_open(&name, 1, NULL, &profile, &err) != OW_OK)
		fail_msg("%s", err.text);
	return profile;
}

static bool bit(const void *bits, int64_t i)
{
	return ((const uint8_t *)bits)[i / 8] >> (i % 8) & 1;
}

static void expect_text(const char *format, const struct ArrowArray *array, int64_t i,
			const char *text, size_t len)
{
	const int32_t *small = array->buffers[1];

	assert_string_equal(format, "u");
	assert_int_equal(small[i + 1] - small[i], len);
	assert_memory_equal((const char *)array->buffers[2] + small[i], text, len);
}

static void expect_cell(const ow_result *result, uint32_t row, uint32_t column,
			const struct ArrowSchema *schema, const struct ArrowArray *array)
{
	size_t len;
	const char *text;

	if (!ow_result_known(result, row, column)) {
		assert_false(bit(array->buffers[0], row));
		return;
	}
	assert_true(!array->buffers[0] || bit(array->buffers[0], row));
	switch (schema->format[0]) {
	case 'l':
		assert_true(((const int64_t *)array->buffers[1])[row] ==
			    ow_result_int(result, row, column));
		break;
	case 'g':
		assert_true(((const double *)array->buffers[1])[row] ==
			    ow_result_real(result, row, column));
		break;
	case 'b':
		assert_int_equal(bit(array->buffers[1], row), ow_result_int(result, row, column));
		break;
	default:
		text = ow_result_text(result, row, column, &len);
		expect_text(schema->format, array, row, text, len);
	}
}

static void expect_columns(const ow_result *result, const struct ArrowSchema *schema,
			   const struct ArrowArray *array)
{
	struct ow_column info = { .size = sizeof(info) };

	assert_string_equal(schema->format, "+s");
	assert_int_equal(schema->n_children, ow_result_columns(result));
	assert_int_equal(array->n_children, ow_result_columns(result));
	assert_int_equal(array->length, ow_result_rows(result));
	for (uint32_t c = 0; c < ow_result_columns(result); c++) {
		assert_true(ow_result_column(result, c, &info));
		assert_string_equal(schema->children[c]->name, info.name);
		for (uint32_t row = 0; row < ow_result_rows(result); row++)
			expect_cell(result, row, c, schema->children[c], array->children[c]);
	}
}

static void expect_same(ow_profile *profile, const char *view)
{
	struct ow_arrow_options options;
	struct ow_error err = { 0 };
	struct ArrowSchema schema;
	struct ArrowArray array;
	ow_result *result;

	ow_arrow_options_init(&options);
	options.release = count_release;
	options.owner = &released;
	assert_int_equal(ow_view(profile, view, NULL, &result, &err), OW_OK);
	released = 0;
	assert_int_equal(ow_result_arrow(result, &options, &schema, &array, &err), OW_OK);
	expect_columns(result, &schema, &array);
	schema.release(&schema);
	assert_null(schema.release);
	assert_int_equal(released, 0);
	array.release(&array);
	assert_null(array.release);
	assert_int_equal(released, 1);
	ow_result_free(result);
}

static void test_every_view(void **state)
{
	const char *const files[] = { "samples/resnet.profile",
				      "tests/fuzz/seeds/trace/kineto.json" };
	struct ow_part_info info = { .size = sizeof(info) };

	(void)state;
	for (size_t f = 0; f < ARRAY_COUNT(files); f++) {
		ow_profile *profile = open_sample(files[f]);

		for (size_t i = 0; ow_view_info(i, &info); i++)
			expect_same(profile, info.name);
		ow_profile_free(profile);
	}
}

/* A consumer takes one column, and lets go of the rest. */
static void test_moved_child(void **state)
{
	ow_profile *profile = open_sample("samples/resnet.profile");
	struct ow_arrow_options options = { sizeof(options), count_release, &released };
	struct ow_error err = { 0 };
	struct ArrowArray array, kept;
	struct ArrowSchema schema;
	ow_result *result;

	(void)state;
	released = 0;
	assert_int_equal(ow_view(profile, "scope", NULL, &result, &err), OW_OK);
	assert_int_equal(ow_result_arrow(result, &options, &schema, &array, &err), OW_OK);
	kept = *array.children[0];
	array.children[0]->release = NULL;
	array.release(&array);
	assert_int_equal(released, 0);
	expect_cell(result, 3, 0, schema.children[0], &kept);
	kept.release(&kept);
	schema.release(&schema);
	assert_int_equal(released, 1);
	ow_result_free(result);
	ow_profile_free(profile);
}

static void test_metadata(void **state)
{
	ow_profile *profile = open_sample("samples/resnet.profile");
	struct ow_error err = { 0 };
	struct ArrowSchema schema;
	ow_result *result;
	uint32_t column;
	const char *text;

	(void)state;
	assert_int_equal(ow_view(profile, "op", NULL, &result, &err), OW_OK);
	column = ow_result_find(result, "micros");
	assert_int_equal(ow_result_arrow(result, NULL, &schema, NULL, &err), OW_OK);
	text = schema.children[column]->metadata;
	assert_memory_equal(text, "\2\0\0\0\15\0\0\0opwatch.title\4\0\0\0time", 29);
	assert_memory_equal(text + 29, "\14\0\0\0opwatch.unit\2\0\0\0us", 22);
	schema.release(&schema);
	ow_result_free(result);
	ow_profile_free(profile);
}

static void test_stream(void **state)
{
	ow_profile *profile = open_sample("samples/resnet.profile");
	struct ow_arrow_options options = { sizeof(options), count_release, &released };
	struct ArrowArrayStream stream;
	struct ow_error err = { 0 };
	struct ArrowSchema schema;
	struct ArrowArray array;
	ow_result *result;

	(void)state;
	released = 0;
	assert_int_equal(ow_view(profile, "steps", NULL, &result, &err), OW_OK);
	assert_int_equal(ow_result_arrow_stream(result, &options, &stream, &err), OW_OK);
	for (int i = 0; i < 2; i++) { /* as often as somebody likes */
		assert_int_equal(stream.get_schema(&stream, &schema), 0);
		if (!i)
			schema.release(&schema);
	}
	assert_int_equal(stream.get_next(&stream, &array), 0);
	expect_columns(result, &schema, &array);
	schema.release(&schema);
	stream.release(&stream); /* before what came out of it */
	array.release(&array);
	assert_int_equal(released, 1);

	assert_int_equal(ow_result_arrow_stream(result, NULL, &stream, &err), OW_OK);
	assert_int_equal(stream.get_next(&stream, &array), 0);
	array.release(&array);
	assert_int_equal(stream.get_next(&stream, &array), 0);
	assert_null(array.release); /* the end */
	stream.release(&stream);
	ow_result_free(result);
	ow_profile_free(profile);
}

/* Texts that are not UTF-8, texts that repeat, unknown values, and no rows at all. */
static void test_odd_values(void **state)
{
	const struct str odd = STR("a\xff\xe2\x82z\xe2\x82\xac");
	struct ow_profile *profile = open_sample("samples/resnet.profile");
	struct ow_arrow_options options = { sizeof(options), NULL, NULL };
	struct ow_error err = { 0 };
	struct table *r = table_new(&profile->mem, "odd", &err);
	uint32_t text = table_add_column(r, "t", "text", TYPE_TEXT, UNIT_NONE);
	uint32_t flag = table_add_column(r, "b", "flag", TYPE_BOOL, UNIT_NONE);
	struct ArrowSchema schema;
	struct ArrowArray array;
	ow_result *result;

	(void)state;
	for (uint32_t i = 0; i < 200; i++) {
		uint32_t row = table_add_row(r, 0);

		table_set_model_text(r, row, text, i % 2 ? odd : STR("even"));
		table_set_int(r, row, flag, i % 3 == 0);
		if (i % 5 == 0)
			table_set_unknown(r, row, flag);
	}
	assert_int_equal(api_wrap_result(profile, r, &result, &err), OW_OK);
	assert_int_equal(ow_result_arrow(result, &options, &schema, &array, &err), OW_OK);
	expect_text("u", array.children[0], 0, "even", 4);
	expect_text("u", array.children[0], 199, "a???z\xe2\x82\xac", odd.len);
	assert_int_equal(array.children[1]->null_count, 40);
	assert_true(bit(array.children[1]->buffers[1], 198));
	assert_false(bit(array.children[1]->buffers[0], 195));
	array.release(&array);
	schema.release(&schema);

	table_limit(r, 0);
	assert_int_equal(ow_result_arrow(result, &options, &schema, &array, &err), OW_OK);
	assert_int_equal(array.length, 0);
	array.release(&array);
	schema.release(&schema);
	ow_result_free(result);
	ow_profile_free(profile);
}

/* Digits of a query: integers where they fit, else as near as a float64 comes. */
static void test_numbers(void **state)
{
	struct ow_profile *profile = open_sample("samples/resnet.profile");
	struct ow_error err = { 0 };
	struct table *r = table_new(&profile->mem, "numbers", &err);
	uint32_t fits = table_add_column(r, "a", "a", TYPE_NUMBER, UNIT_NONE);
	uint32_t wide = table_add_column(r, "b", "b", TYPE_NUMBER, UNIT_NONE);
	struct ArrowSchema schema;
	struct ArrowArray array;
	ow_result *result;

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		table_add_row(r, 0);
	table_set_text(r, 0, fits, STR("-9223372036854775808"));
	table_set_unknown(r, 1, fits);
	table_set_text(r, 2, fits, STR("7"));
	table_set_text(r, 0, wide, STR("9223372036854775808"));
	table_set_text(r, 1, wide, STR("0.25"));
	table_set_unknown(r, 2, wide);
	table_narrow(r);
	assert_int_equal(api_wrap_result(profile, r, &result, &err), OW_OK);
	assert_true(ow_result_ints(result, 0)[0] == INT64_MIN);
	assert_int_equal(ow_result_ints(result, 0)[2], 7);
	assert_int_equal(ow_result_texts(result, 1)[1].len, 4);
	assert_int_equal(ow_result_arrow(result, NULL, &schema, &array, &err), OW_OK);
	assert_string_equal(schema.children[0]->format, "l");
	assert_string_equal(schema.children[1]->format, "g");
	assert_int_equal(array.children[0]->null_count, 1);
	assert_true(((const double *)array.children[1]->buffers[1])[0] == 9223372036854775808.0);
	assert_true(((const double *)array.children[1]->buffers[1])[1] == 0.25);
	assert_false(bit(array.children[1]->buffers[0], 2));
	array.release(&array);
	schema.release(&schema);
	ow_result_free(result);
	ow_profile_free(profile);
}

/* What people read is what the text table shows. */
static void test_shown(void **state)
{
	ow_profile *profile = open_sample("samples/resnet.profile");
	struct ow_error err = { 0 };
	ow_result *result;
	char text[32];

	(void)state;
	assert_int_equal(ow_view(profile, "steps", NULL, &result, &err), OW_OK);
	assert_int_equal(ow_result_show(result, 0, ow_result_find(result, "duration_ns"), text, 32),
			 5);
	assert_string_equal(text, "103ms");
	ow_result_show(result, 2, ow_result_find(result, "outlier"), text, 32);
	assert_string_equal(text, "yes");
	ow_result_show(result, 0, ow_result_find(result, "xprof_step_ps"), text, 32);
	assert_string_equal(text, "-");
	ow_result_show(result, 0, ow_result_find(result, "input_ns"), text, 32);
	assert_string_equal(text, "85.2ms");
	assert_int_equal(ow_result_show(result, 0, ow_result_find(result, "duration_ns"), text, 3),
			 5);
	assert_string_equal(text, "10");
	ow_result_free(result);
	ow_profile_free(profile);
}

static void test_no_memory(void **state)
{
	ow_profile *profile = open_sample("samples/resnet.profile");
	struct ow_arrow_options options = { sizeof(options), count_release, &released };
	struct ow_memory_use before = { .size = sizeof(before) }, after = { .size = sizeof(after) };
	struct ow_error err = { 0 };
	struct ArrowSchema schema;
	struct ArrowArray array;
	ow_result *result;
	uint64_t n;

	(void)state;
	released = 0;
	assert_int_equal(ow_view(profile, "steps", NULL, &result, &err), OW_OK);
	ow_profile_memory(profile, &before);
	for (n = 1; n < 1000; n++) {
		ow_status status;

		mem_fail_after(n, false);
		status = ow_result_arrow(result, &options, &schema, &array, &err);
		mem_fail_after(0, false);
		if (status == OW_OK)
			break;
		assert_int_equal(status, OW_E_NO_MEMORY);
		assert_int_equal(released, 0);
		ow_profile_memory(profile, &after);
		assert_int_equal(after.used, before.used);
	}
	assert_in_range(n, 20, 999);
	array.release(&array);
	schema.release(&schema);
	assert_int_equal(released, 1);
	ow_result_free(result);
	ow_profile_free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_view), cmocka_unit_test(test_moved_child),
		cmocka_unit_test(test_metadata),   cmocka_unit_test(test_stream),
		cmocka_unit_test(test_odd_values), cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_shown),	   cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
