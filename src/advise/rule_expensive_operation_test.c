/* rule_expensive_operation_test.c: tfprof's three reports, line by line, and the lines for stderr. */
#include "advise/rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "support/one_rule.h"

static void fill(struct small_model *s)
{
	static const struct small_frame conv[] = { { "/p/main.py", 10, "<module>" },
						   { "/p/net.py", 5, "build" },
						   { "/p/net.py", 9, "conv" },
						   { 0 } };
	static const struct small_frame dense[] = { { "/p/main.py", 10, "<module>" },
						    { "/p/net.py", 5, "build" },
						    { "/p/net.py", 20, "dense" },
						    { 0 } };
	static const struct small_frame tiny[] = { { "/p/main.py", 10, "<module>" },
						   { "/p/net.py", 5, "build" },
						   { "/p/net.py", 30, "tiny" },
						   { 0 } };
	op_id op;

	op = small_op(s, "net/conv", "Conv2D", GPU0);
	small_run(s, op, 0, 1000, 2000, 3000);
	small_code(s, op, conv);
	op = small_op(s, "net/dense", "MatMul", GPU0);
	small_run(s, op, 0, 3000, 1000, 1000);
	small_code(s, op, dense);
	op = small_op(s, "small", "Add", CPU0);
	small_run(s, op, 0, 4000, 500, 0);
	small_code(s, op, tiny);
	small_run(s, small_op(s, "x", "Mul", CPU0), 0, 4500, 99, 0);
}

/* What a program does before its first step is no part of a step. */
static void outside_of_steps(void **state)
{
	struct small_model s;
	struct arena arena;
	struct findings out;
	op_id op;

	(void)state;
	small_open(&s);
	op = small_op(&s, "read", "read", CPU0);
	builder_add_op_step(
		&s.b, &(struct op_step_row){ .op = op, .run_count = 900, .cpu_ns = 800000000 });
	small_run(&s, op, 1, 1000, 1000, 0);
	for (int64_t step = 1; step <= 2; step++)
		small_run(&s, small_op(&s, "aten::mm", "aten::mm", CPU0), step, 2000, 2000, 0);
	out = one_rule_run(&rule_expensive_operation, &s, &arena);
	assert_int_equal(out.count, 1); /* nor are there scopes */
	assert_string_equal(out.items[0].what.ptr,
			    "top 1 operation type: aten::mm, cpu: 2.00ms, accelerator: 0us, "
			    "total: 2.00ms (80.00%)\n"
			    "top 2 operation type: read, cpu: 500us, accelerator: 0us, "
			    "total: 500us (20.00%)");
	one_rule_close(&s, &arena);
}

static void three_reports(void **state)
{
	struct small_model s;
	struct arena arena;
	struct findings out;

	(void)state;
	small_open(&s);
	fill(&s);
	out = one_rule_run(&rule_expensive_operation, &s, &arena);
	assert_int_equal(out.count, 3);
	assert_string_equal(out.items[0].what.ptr,
			    "top 1 operation type: Conv2D, cpu: 2.00ms, accelerator: 3.00ms, "
			    "total: 5.00ms (65.80%)\n"
			    "top 2 operation type: MatMul, cpu: 1.00ms, accelerator: 1.00ms, "
			    "total: 2.00ms (26.32%)\n"
			    "top 3 operation type: Add, cpu: 500us, accelerator: 0us, "
			    "total: 500us (6.58%)");
	assert_string_equal(out.items[0].where.ptr, "Conv2D");
	/* own times: none for a scope; x is below the minimum */
	assert_string_equal(out.items[1].what.ptr,
			    "top 1 graph node: net, cpu: 0us, accelerator: 0us, total: 0us\n"
			    "top 2 graph node: small, cpu: 500us, accelerator: 0us, total: 500us");
	/* below the lines that have one child only; less than a millisecond is left out */
	assert_string_equal(out.items[2].what.ptr,
			    "net.py:9:conv, cpu: 2.00ms, accelerator: 3.00ms, total: 5.00ms\n"
			    "net.py:20:dense, cpu: 1.00ms, accelerator: 1.00ms, total: 2.00ms");
	assert_int_equal(out.message_count, 0);
	assert_int_equal(out.not_checked.len, 0);
	one_rule_close(&s, &arena);
}

static void without_code(void **state)
{
	struct small_model s;
	struct arena arena;
	struct findings out;

	(void)state;
	small_open(&s);
	small_run(&s, small_op(&s, "x", "Mul", CPU0), 0, 4500, 99, 0);
	out = one_rule_run(&rule_expensive_operation, &s, &arena);
	assert_int_equal(out.count, 1); /* the scope is below its minimum */
	assert_int_equal(out.message_count, 1);
	assert_string_equal(out.messages[0].ptr,
			    "Missing op_log (code traces) for ExpensiveOperationChecker");
	assert_true(str_has(out.not_checked, STR("code traces")));
	one_rule_close(&s, &arena);
}

/* An op log whose traces are all empty, or of gradients only: the view of the code has no lines. */
static void without_frames(void **state)
{
	struct small_model s;
	struct arena arena;
	struct findings out;

	(void)state;
	small_open(&s);
	small_run(&s, small_op(&s, "x", "Mul", CPU0), 0, 4500, 990, 0);
	s.m->has_code = true;
	out = one_rule_run(&rule_expensive_operation, &s, &arena);
	assert_int_equal(out.count, 2); /* types and scopes are told all the same */
	assert_int_equal(out.message_count, 1);
	assert_string_equal(out.messages[0].ptr,
			    "Missing op_log (code traces) for ExpensiveOperationChecker");
	assert_true(str_has(out.not_checked, STR("code traces")));
	one_rule_close(&s, &arena);
}

static void without_steps(void **state)
{
	struct small_model s;
	struct arena arena;
	struct findings out;

	(void)state;
	small_open(&s);
	small_op(&s, "x", "Mul", "");
	out = one_rule_run(&rule_expensive_operation, &s, &arena);
	assert_int_equal(out.count, 0);
	assert_int_equal(out.message_count, 3);
	assert_string_equal(out.messages[0].ptr,
			    "Missing RunMetadata info. Skip ExpensiveOperationChecker");
	assert_string_equal(out.messages[1].ptr, "Missing run_meta for ExpensiveOperationChecker");
	assert_true(str_has(out.not_checked, STR("run-time statistics")));
	one_rule_close(&s, &arena);
}

/* All lines below a millisecond: a report, but an empty one. */
static void empty_report(void **state)
{
	static const struct small_frame one[] = { { "/p/a.py", 1, "f" }, { 0 } };
	static const struct small_frame two[] = { { "/p/a.py", 2, "g" }, { 0 } };
	struct small_model s;
	struct arena arena;
	struct findings out;
	op_id op;

	(void)state;
	small_open(&s);
	op = small_op(&s, "x", "Mul", CPU0);
	small_run(&s, op, 0, 100, 50, 0);
	small_code(&s, op, one);
	op = small_op(&s, "y", "Mul", CPU0);
	small_run(&s, op, 0, 100, 40, 0);
	small_code(&s, op, two);
	out = one_rule_run(&rule_expensive_operation, &s, &arena);
	assert_int_equal(out.count, 2);
	assert_int_equal(out.items[1].what.len, 0);
	one_rule_close(&s, &arena);
}

static void ends_when_memory_does(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	fill(&s);
	one_rule_every_failure(&rule_expensive_operation, &s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_reports),	 cmocka_unit_test(outside_of_steps),
		cmocka_unit_test(without_code),		 cmocka_unit_test(without_frames),
		cmocka_unit_test(without_steps),	 cmocka_unit_test(empty_report),
		cmocka_unit_test(ends_when_memory_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
