/* view_steps_test.c: sums, order by number, outliers, one step only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/view_text.h"

static void rows(void **state)
{
	struct view_options options;
	struct small_model s;
	struct result *r;
	op_id a, b;

	(void)state;
	small_open(&s);
	a = small_op(&s, "a", "MatMul", GPU0);
	b = small_op(&s, "b", "Add", CPU0);
	small_run(&s, a, 20, 5000, 10, 20); /* numbers need not come in order */
	small_run(&s, a, 3, 1000, 10, 12);
	small_run(&s, b, 3, 1002, 8, 0);
	builder_step(&s.b, 5); /* nothing measured */
	builder_add_memory(&s.b, &(struct memory_row){ .op_step = 1, .in_use = 4096 });
	small_freeze(&s);
	view_text_expect(&s, &view_steps, NULL,
			 "3||0|12000|3|2|18000|12000|-|0\n"
			 "5||-|-|0|0|0|0|-|0\n"
			 "20||4000000|20000|2|1|10000|20000|4096|0\n");
	view_options_init(&options);
	options.step = 20;
	view_text_expect(&s, &view_steps, &options, "20||4000000|20000|2|1|10000|20000|4096|0\n");
	options.step = 4;
	r = result_new(&s.mem, "steps", &s.err);
	assert_int_equal(view_steps.run(s.m, &options, r, &s.err), OW_E_NOT_FOUND);
	result_free(r);
	view_text_fail_each(&s, &view_steps);
	small_close(&s);
}

/* Which of the steps of these durations are outliers: "0010". */
static void expect_outliers(const int64_t *durations, uint32_t count, const char *want)
{
	struct view_options options;
	struct small_model s;
	struct result *r;
	op_id op;

	small_open(&s);
	op = small_op(&s, "a", "MatMul", CPU0);
	for (uint32_t i = 0; i < count; i++)
		small_run(&s, op, i, 1000 * (i + 1), durations[i], 0);
	small_freeze(&s);
	view_options_init(&options);
	r = result_new(&s.mem, "steps", &s.err);
	assert_int_equal(view_steps.run(s.m, &options, r, &s.err), OW_OK);
	assert_int_equal(r->row_count, count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(r->columns[r->column_count - 1].ints[i], want[i] - '0');
	result_free(r);
	small_close(&s);
}

static void outliers(void **state)
{
	(void)state;
	expect_outliers((const int64_t[]){ 10, 100 }, 2, "00");
	expect_outliers((const int64_t[]){ 10, 10, 16 }, 3, "001");
	expect_outliers((const int64_t[]){ 10, 10, 15 }, 3, "000");
	expect_outliers((const int64_t[]){ 400, 10, 10, 10 }, 4, "1000");
	/* within 1.5 medians, but beyond three sigma */
	expect_outliers((const int64_t[]){ 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100,
					   100, 110 },
			13, "0000000000001");
}

static void empty(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	small_freeze(&s);
	view_text_expect(&s, &view_steps, NULL, "");
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(rows), cmocka_unit_test(outliers),
					    cmocka_unit_test(empty) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
