/* answer_test.c: answers of a server as results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "push/answer.h"

static ow_status read_text(struct mem *mem, struct str text, struct table **r, struct ow_error *err)
{
	*r = table_new(mem, "sql", err);
	return *r ? answer_read(*r, text, err) : OW_E_NO_MEMORY;
}

static void types_and_values(void **state)
{
	struct ow_error err = { 0 };
	struct table *r;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	assert_int_equal(
		read_text(
			&mem,
			STR("n\tu\tr\tb\tt\twhen\tbig\n"
			    "Int64\tNullable(UInt8)\tFloat64\tBool\tLowCardinality(Nullable(String)"
			    ")\t"
			    "DateTime\tUInt64\n"
			    "-5\t7\t1.5\ttrue\ta\\tb\\\\c\\nd\t2026-01-02 03:04:05\t3\n"
			    "9223372036854775807\t\\N\tnan\tfalse\t\\N\t\t18446744073709551615\n"),
			&r, &err),
		OW_OK);
	assert_int_equal(r->column_count, 7);
	assert_int_equal(r->row_count, 2);
	assert_string_equal(r->columns[5].name, "when");
	assert_int_equal(r->columns[0].type, TYPE_INT);
	assert_int_equal(r->columns[0].ints[0], -5);
	assert_int_equal(r->columns[0].ints[1], INT64_MAX);
	assert_int_equal(r->columns[1].ints[0], 7);
	assert_int_equal(r->columns[1].known[0], 1);
	assert_int_equal(r->columns[1].known[1], 0);
	assert_true(r->columns[2].reals[0] == 1.5 &&
		    r->columns[2].reals[1] != r->columns[2].reals[1]);
	assert_int_equal(r->columns[3].type, TYPE_BOOL);
	assert_int_equal(r->columns[3].ints[0], 1);
	assert_int_equal(r->columns[3].ints[1], 0);
	assert_true(str_eq(r->columns[4].texts[0], STR("a\tb\\c\nd")));
	assert_int_equal(r->columns[4].known[1], 0);
	/* One number too large for an integer makes its column one of digits. */
	assert_int_equal(r->columns[6].type, TYPE_NUMBER);
	assert_true(str_eq(r->columns[6].texts[0], STR("3")));
	assert_true(str_eq(r->columns[6].texts[1], STR("18446744073709551615")));
	table_free(r);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void empty_ones(void **state)
{
	struct ow_error err = { 0 };
	struct table *r;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	assert_int_equal(read_text(&mem, STR(""), &r, &err), OW_OK);
	assert_int_equal(r->column_count, 0);
	table_free(r);
	assert_int_equal(read_text(&mem, STR("a\nString\n"), &r, &err), OW_OK);
	assert_int_equal(r->column_count, 1);
	assert_int_equal(r->row_count, 0);
	table_free(r);
	assert_int_equal(read_text(&mem, STR("a\nString\n\n\nx\n"), &r, &err), OW_OK);
	assert_int_equal(r->row_count, 3);
	assert_int_equal(r->columns[0].texts[0].len, 0);
	assert_true(str_eq(r->columns[0].texts[2], STR("x")));
	table_free(r);
}

static void unreadable(void **state)
{
	static const struct str texts[] = {
		STR("{\"meta\":[]}\n"),		/* another format */
		STR("a\tb\nString\n"),		/* fewer types than names */
		STR("a\nString\tString\n"),	/* more */
		STR("a\tb\nInt64\tInt64\n1\n"), /* a short row */
		STR("a\nInt64\n1\t2\n"),	/* a long one */
		STR("a\nFloat64\nabc\n"),	/* no number */
	};
	struct ow_error err = { 0 };
	struct table *r;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
		assert_int_equal(read_text(&mem, texts[i], &r, &err), OW_E_FORMAT);
		table_free(r);
	}
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void too_many_columns(void **state)
{
	struct ow_error err = { 0 };
	struct table *r;
	struct buf text;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&text, &mem);
	for (int line = 0; line < 2; line++)
		for (int i = 0; i <= TABLE_COLUMNS_MAX; i++)
			buf_puts(&text, i < TABLE_COLUMNS_MAX ? "Int8\t" : "Int8\n");
	assert_int_equal(read_text(&mem, buf_str(&text), &r, &err), OW_E_LIMIT);
	table_free(r);
	buf_release(&text);
}

static void without_memory(void **state)
{
	struct ow_error err = { 0 };
	ow_status status = OW_E_NO_MEMORY;
	struct table *r;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	for (uint64_t n = 1; status == OW_E_NO_MEMORY; n++) {
		mem_fail_after(n, false);
		status = read_text(&mem, STR("a\tb\nInt64\tString\n1\tx\\ty\n2\t\\N\n"), &r, &err);
		mem_fail_after(0, false);
		table_free(r);
		assert_int_equal(atomic_load(&mem.used), 0);
		assert_true(n < 1000);
	}
	assert_int_equal(status, OW_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_and_values), cmocka_unit_test(empty_ones),
		cmocka_unit_test(unreadable),	    cmocka_unit_test(too_many_columns),
		cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
