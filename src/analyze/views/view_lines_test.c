/* view_lines_test.c: ops count for the innermost frame of the user's own, gradients for their op's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/view_text.h"

#define LIBRARY "/usr/lib/python3/dist-packages/tensorflow/ops.py"

static const struct small_frame in_model[] = {
	{ "/home/me/train.py", 10, "main" },
	{ "/home/me/model.py", 20, "layer" },
	{ LIBRARY, 1768, "__init__" },
	{ NULL, 0, NULL },
};
static const struct small_frame in_train[] = {
	{ "/home/me/train.py", 30, "main" },
	{ LIBRARY, 1768, "__init__" },
	{ NULL, 0, NULL },
};
static const struct small_frame nowhere[] = {
	{ LIBRARY, 1768, "__init__" },
	{ NULL, 0, NULL },
};

static void rows(void **state)
{
	struct small_model s;
	op_id forward, gradient, other;

	(void)state;
	small_open(&s);
	forward = small_op(&s, "a/conv", "Conv2D", CPU0);
	gradient = small_op(&s, "gradients/a/conv_grad/x", "Conv2DBackpropInput", CPU0);
	other = small_op(&s, "lib", "NoOp", CPU0);
	small_code(&s, forward, in_model);
	small_code(&s, gradient, in_train);
	small_code(&s, other, nowhere);
	small_run(&s, forward, 0, 100, 10, 0);
	small_run(&s, gradient, 0, 200, 30, 0);
	small_run(&s, other, 0, 300, 60, 0);
	small_freeze(&s);
	view_text_expect_columns(&s, &view_lines, NULL, "name,time_ns,percent,ops,top_type",
				 "ops.py:1768 __init__|60000|60|1|NoOp\n"
				 "model.py:20 layer|40000|40|2|Conv2DBackpropInput\n");
	view_text_fail_each(&s, &view_lines);
	small_close(&s);
}

static void without_stacks(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	small_run(&s, small_op(&s, "a", "A", CPU0), 0, 1, 1, 0);
	small_freeze(&s);
	view_text_expect(&s, &view_lines, NULL, "");
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(rows),
					    cmocka_unit_test(without_stacks) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
