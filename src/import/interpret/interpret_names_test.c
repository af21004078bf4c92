/* interpret_names_test.c: which texts are ops, by the rules of XProf. */
#include "import/interpret/interpret.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void check(const char *text, enum tf_op_kind kind, const char *name, const char *type)
{
	struct tf_op_name op = tf_op_name_parse(str_from(text), true);

	if (op.kind != kind || !str_eq(op.name, str_from(name)) || !str_eq(op.type, str_from(type)))
		fail_msg("%s: kind %d, name %.*s, type %.*s", text, (int)op.kind, STR_ARG(op.name),
			 STR_ARG(op.type));
}

static void ops_are_told_from_annotations(void **state)
{
	(void)state;
	check("a/b/MatMul_1:MatMul", TF_OP_TENSORFLOW, "a/b/MatMul_1", "MatMul");
	check("x:_Arg", TF_OP_TENSORFLOW, "x", "_Arg");
	check("jit(f)/mul:mul", TF_OP_JAX, "jit(f)/mul", "mul");
	check("jit(f)/dot_general[a=1 b=[2]]:", TF_OP_JAX, "jit(f)/dot_general[a=1 b=[2]]",
	      "dot_general");
	check("f/Dense:", TF_OP_TENSORFLOW, "f/Dense", "Dense");
	check("f/add_any_12:", TF_OP_JAX, "f/add_any_12", "add_any");
	check("f/x:pjit[name=g]", TF_OP_JAX, "f/x", "pjit");
	check("Iterator::Batch::Map", TF_OP_DATA, "Iterator::Batch::Map", "Dataset");
	check("MEMCPYHtoD", TF_OP_COPY, "MEMCPYHtoD", "MemcpyHToD");
	check("MemcpyD2H", TF_OP_NONE, "", "");
	check("EagerExecute: __inference_1", TF_OP_NONE, "", "");
	check("ThreadpoolListener::StartRegion", TF_OP_NONE, "", "");
	check("run", TF_OP_NONE, "", "");
	check(":", TF_OP_NONE, "", "");
	check("", TF_OP_NONE, "", "");
}

static void old_names_have_no_hyphen(void **state)
{
	(void)state;
	assert_int_equal(tf_op_name_parse(STR("a-b:MatMul"), true).kind, TF_OP_TENSORFLOW);
	assert_int_equal(tf_op_name_parse(STR("a-b:MatMul"), false).kind, TF_OP_NONE);
}

static void metadata_is_stripped(void **state)
{
	(void)state;
	assert_true(str_eq(tf_op_name_strip(STR("a:B#id=1,x=2#")), STR("a:B")));
	assert_true(str_eq(tf_op_name_strip(STR("ProfilerStep#3")), STR("ProfilerStep#3")));
	assert_true(str_eq(tf_op_name_strip(STR("#")), STR("#")));
}

static void bytes_of_copies_are_told(void **state)
{
	(void)state;
	assert_int_equal(tf_copy_bytes(STR("kind_src:pageable size:4096 dest:0 async:1")), 4096);
	assert_int_equal(tf_copy_bytes(STR("kind:device num_bytes:12 async:0 size:7")), 12);
	assert_int_equal(tf_copy_bytes(STR("num_bytes:x size:7")), 7);
	assert_int_equal(tf_copy_bytes(STR("size:99999999999999999999")), 0);
	assert_int_equal(tf_copy_bytes(STR("")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ops_are_told_from_annotations),
		cmocka_unit_test(old_names_have_no_hyphen),
		cmocka_unit_test(metadata_is_stripped),
		cmocka_unit_test(bytes_of_copies_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
