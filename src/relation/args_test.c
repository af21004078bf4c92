/* args_test.c: arguments of events from the texts of a trace: of the begin, of the end, and of both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "relation/args.h"
#include "support/relation_text.h"
#include "support/stack_model.h"

static const char text[] =
	"[{\"ph\":\"B\",\"name\":\"both\",\"ts\":1,\"pid\":1,\"tid\":1,\"args\":{\"a\":1,\"b\":"
	"\"x\"}},"
	"{\"ph\":\"E\",\"name\":\"both\",\"ts\":2,\"pid\":1,\"tid\":1,\"args\":{\"b\":\"y\",\"c\":"
	"null}},"
	"{\"ph\":\"B\",\"name\":\"end only\",\"ts\":3,\"pid\":1,\"tid\":1},"
	"{\"ph\":\"E\",\"name\":\"end only\",\"ts\":4,\"pid\":1,\"tid\":1,\"args\":{\"d\":[2]}},"
	"{\"ph\":\"X\",\"name\":\"whole\",\"ts\":5,\"dur\":1,\"pid\":1,\"tid\":1,\"args\":{\"e\":3}"
	"},"
	"{\"ph\":\"X\",\"name\":\"none\",\"ts\":7,\"dur\":1,\"pid\":1,\"tid\":1}]";

static void rows_of_both_ends(void **state)
{
	struct table_run run = { .name = "r", .number = 1 };
	struct ow_error err = { 0 };
	struct small_model s;
	struct buf lines;

	(void)state;
	stack_open(&s, "trace", text, sizeof(text) - 1);
	run.m = s.m;
	buf_init(&lines, &s.mem);
	assert_int_equal(relation_text("arg", &run, 1, "event_id,key,value", &s.mem, &lines, &err),
			 OW_OK);
	assert_string_equal(buf_cstr(&lines), "1|a|1\n1|b|x\n1|b|y\n1|c|-\n2|d|[2]\n3|e|3\n");
	buf_release(&lines);
	small_close(&s);
}

/* One key has one value: that of the end, which is later. What stands in the file as one event stays so. */
static void values(void **state)
{
	const uint32_t rows[] = { 4, 0, 1, 2 };
	struct ow_error err = { 0 };
	struct small_model s;
	struct arena arena;
	struct str all[4], own[4], value;

	(void)state;
	stack_open(&s, "trace", text, sizeof(text) - 1);
	arena_init(&arena, &s.mem);
	assert_int_equal(args_read_all(s.m, rows, 4, all, &arena, &err), OW_OK);
	assert_int_equal(args_read(s.m, rows, 4, own, &arena, &err), OW_OK);
	assert_null(all[0].ptr);
	assert_null(all[1].ptr);
	assert_int_equal(args_value(all[2], STR("b"), &arena, &value, &err), OW_OK);
	assert_true(str_eq(value, STR("y")));
	assert_true(str_eq(own[2], STR("{\"a\":1,\"b\":\"x\"}")));
	assert_true(str_eq(all[3], STR("{\"d\":[2]}")));
	assert_true(str_eq(own[3], all[3])); /* the begin, which says nothing, has them */
	arena_release(&arena);
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_both_ends),
		cmocka_unit_test(values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
