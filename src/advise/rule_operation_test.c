/* rule_operation_test.c: when tfprof's two sentences appear, and when not. */
#include "advise/rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "support/small_model.h"

#define BATCH_NORM "Maybe use faster FusedBatchNorm instead of BatchNorm"
#define NHWC "Found operation using NHWC data_format on GPU. Maybe NCHW is faster."

static void set_format(struct small_model *s, op_id op, const char *format)
{
	BUILDER_SET(&s->b, op, data_format, op, builder_cstr(&s->b, format));
}

/* Runs the rule; the texts joined with '|'. */
static void expect(struct small_model *s, const char *want, const char *where)
{
	struct arena arena;
	struct findings out = { .arena = &arena };
	char got[1024] = "";
	size_t len = 0;

	small_freeze(s);
	arena_init(&arena, &s->mem);
	assert_int_equal(rule_operation.check(s->m, &out, &s->err), OW_OK);
	for (size_t i = 0; i < out.count; i++)
		len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%s", i ? "|" : "",
					out.items[i].what.ptr);
	assert_string_equal(got, want);
	if (where)
		assert_string_equal(out.items[0].where.ptr, where);
	arena_release(&arena);
	small_close(s);
}

static void unfused_batch_norm(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	small_op(&s, "net/BatchNorm/mul", "Mul", "");
	small_op(&s, "net/BatchNorm/add", "Add", "");
	expect(&s, BATCH_NORM, "net/BatchNorm/mul and 1 more");

	small_open(&s);
	small_op(&s, "net/BatchNorm/mul", "Mul", "");
	small_op(&s, "net/x", "FusedBatchNorm", "");
	expect(&s, "", NULL);

	small_open(&s);
	small_op(&s, "net/batchnorm/mul", "Mul", "");
	expect(&s, "", NULL);
}

/* The type may come from the op log as well. */
static void fused_by_user_type(void **state)
{
	struct small_model s;
	op_id op;

	(void)state;
	small_open(&s);
	op = small_op(&s, "net/BatchNorm/mul", "Mul", "");
	s.m->op.types[op.v] =
		builder_strset_add(&s.b, s.m->op.types[op.v], builder_cstr(&s.b, "FusedBatchNorm"));
	expect(&s, "", NULL);
}

static void layout(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	set_format(&s, small_op(&s, "conv", "Conv2D", GPU0), "NHWC");
	expect(&s, NHWC, "conv");

	small_open(&s);
	set_format(&s, small_op(&s, "conv", "Conv2D", CPU0), "NHWC");
	set_format(&s, small_op(&s, "conv_1", "Conv2D", GPU0), "NCHW");
	expect(&s, "", NULL);

	small_open(&s);
	set_format(&s, small_op(&s, "conv", "Conv2D", "/device:sycl:0"), "NHWC");
	small_op(&s, "BatchNorm", "Mul", "");
	expect(&s, BATCH_NORM "|" NHWC, "BatchNorm");
}

static void nothing_to_check(void **state)
{
	struct small_model s;
	struct arena arena;
	struct findings out = { .arena = &arena };

	(void)state;
	small_open(&s);
	small_freeze(&s);
	arena_init(&arena, &s.mem);
	assert_int_equal(rule_operation.check(s.m, &out, &s.err), OW_OK);
	assert_int_equal(out.count, 0);
	assert_true(out.not_checked.len > 0);
	arena_release(&arena);
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unfused_batch_norm),
		cmocka_unit_test(fused_by_user_type),
		cmocka_unit_test(layout),
		cmocka_unit_test(nothing_to_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
