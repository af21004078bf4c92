/* rule_accelerator_utilization_test.c: the figures, the text and what is told when nothing was measured. */
#include "advise/rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "support/one_rule.h"

static void takes_the_latest_step(void **state)
{
	struct small_model s;
	struct arena arena;
	struct findings out;
	op_id a, b, c;

	(void)state;
	small_open(&s);
	a = small_op(&s, "a", "Conv2D", GPU0);
	b = small_op(&s, "b", "MatMul", GPU0);
	c = small_op(&s, "c", "Read", CPU0);
	small_run(&s, a, 7, 1000, 100, 90); /* the later step comes first in the file */
	small_run(&s, a, 2, 10, 100, 1);
	small_run(&s, b, 2, 1100, 100, 30); /* its only step */
	small_run(&s, c, 7, 5000, 999, 0);  /* not on an accelerator */
	out = one_rule_run(&rule_accelerator_utilization, &s, &arena);
	assert_int_equal(out.count, 1);
	/* 1000 to 1200, busy 120 */
	assert_string_equal(out.items[0].what.ptr, "device: " GPU0 " utilization: 0.60");
	assert_string_equal(out.items[0].where.ptr, GPU0);
	assert_int_equal(out.items[0].severity, SEVERITY_INFO);
	assert_int_equal(out.items[0].gain_ns, 0);
	assert_int_equal(out.not_checked.len, 0);
	one_rule_close(&s, &arena);
}

static void low_use_by_device_name(void **state)
{
	struct small_model s;
	struct arena arena;
	struct findings out;

	(void)state;
	small_open(&s);
	small_run(&s, small_op(&s, "b", "MatMul", GPU1), 0, 100, 1000, 400);
	small_run(&s, small_op(&s, "a", "MatMul", GPU0), 0, 100, 1000, 100);
	out = one_rule_run(&rule_accelerator_utilization, &s, &arena);
	assert_int_equal(out.count, 2);
	assert_string_equal(out.items[0].what.ptr, "device: " GPU0 " low utilization: 0.10");
	assert_int_equal(out.items[0].severity, SEVERITY_HIGH);
	assert_int_equal(out.items[0].gain_ns, 400000);
	assert_string_equal(out.items[1].what.ptr, "device: " GPU1 " low utilization: 0.40");
	assert_int_equal(out.items[1].severity, SEVERITY_MEDIUM);
	one_rule_close(&s, &arena);
}

static void says_when_it_cannot_tell(void **state)
{
	struct small_model s;
	struct arena arena;
	struct findings out;

	(void)state;
	small_open(&s);
	out = one_rule_run(&rule_accelerator_utilization, &s, &arena);
	assert_int_equal(out.count, 0);
	assert_string_equal(out.not_checked.ptr, "not checked: no run-time statistics");
	one_rule_close(&s, &arena);

	small_open(&s);
	small_run(&s, small_op(&s, "a", "MatMul", CPU0), 0, 100, 1000, 0);
	out = one_rule_run(&rule_accelerator_utilization, &s, &arena);
	assert_int_equal(out.count, 0);
	assert_true(str_has(out.not_checked, STR("accelerator")));
	one_rule_close(&s, &arena);
}

static void ends_when_memory_does(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	small_run(&s, small_op(&s, "a", "MatMul", GPU0), 0, 100, 1000, 400);
	one_rule_every_failure(&rule_accelerator_utilization, &s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_the_latest_step),
		cmocka_unit_test(low_use_by_device_name),
		cmocka_unit_test(says_when_it_cannot_tell),
		cmocka_unit_test(ends_when_memory_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
