/*
 * tf_inline_test.c: functions that the graph calls: their ops appear in the model with shapes and float operations, whatever
 * calls them; what cannot be opened is told; hostile libraries end.
 */
#include "import/tensorflow/shapes/tf_shape.h"

#include "support/tf_world.h"

#include <stdlib.h>

struct function {
	const char *name, *args, *returns, *body;
};

/* Many functions, then a graph. */
static ow_status add_library(struct world *w, const struct function *functions, size_t count,
			     const char *graph)
{
	struct buf bytes;

	buf_init(&bytes, &w->mem);
	for (size_t i = 0; i < count; i++)
		gt_function(&bytes, functions[i].name, functions[i].args, functions[i].returns,
			    functions[i].body);
	gt_graph(&bytes, graph);
	return add_bytes(w, "graphdef", &bytes);
}

static void open_world(struct world *w, const struct function *functions, size_t count,
		       const char *graph)
{
	world_begin(w);
	if (add_library(w, functions, count, graph) != OW_OK || finish(w) != OW_OK)
		fail_msg("%s", w->err.text);
}

static bool has_op(const struct world *w, const char *name)
{
	return model_find_op(w->m, str_from(name)).v != 0;
}

static void assert_shape(const struct world *w, const char *name, const char *expected)
{
	op_id op = model_find_op(w->m, str_from(name));
	struct tf_shape shape = tf_shape_unknown();
	char text[128];

	assert_true(op.v != 0);
	for (uint32_t i = 0; i < w->m->op.output_count[op.v]; i++)
		if (w->m->op_output.index[w->m->op.output_first[op.v] + i] == 0)
			shape = tf_shape_load(
				w->m, w->m->op_output.shape[w->m->op.output_first[op.v] + i]);
	assert_string_equal(tf_shape_text(&shape, text, sizeof(text)), expected);
}

/* ---- plain calls ---- */

/* As TensorFlow 2 saves a model: a signature that calls a function that calls layers. */
static const struct function MODEL[] = {
	{ "signature", "x w b", "out=call:output:0",
	  "call StatefulPartitionedCall x w b f=@model" },
	{ "model", "inputs w b", "r=layer:output:1 s=layer:output:0",
	  "layer PartitionedCall inputs w b f=@dense" },
	{ "dense", "x kernel bias", "left=Relu:activations:0 right=BiasAdd:output:0",
	  "MatMul/Read ReadVariableOp kernel; MatMul MatMul x MatMul/Read:value:0; "
	  "BiasAdd/Read ReadVariableOp bias; BiasAdd BiasAdd MatMul:product:0 "
	  "BiasAdd/Read:value:0; "
	  "Relu Relu BiasAdd:output:0 ^MatMul" },
};
#define MODEL_GRAPH                                                                                \
	"w VarHandleOp <784x10>; b VarHandleOp <10>; x Placeholder <?x784>; "                      \
	"call StatefulPartitionedCall x w b f=@signature; y Neg call"

static void test_nested_calls(void **state)
{
	static const char *const shapes[] = { "x=3x784" };
	struct world w;

	(void)state;
	world_begin(&w);
	w.options.input_shapes = shapes;
	w.options.input_shape_count = 1;
	assert_int_equal(add_library(&w, MODEL, ARRAY_COUNT(MODEL), MODEL_GRAPH), OW_OK);
	assert_int_equal(finish(&w), OW_OK);
	assert_int_equal(flops_of(&w, "call/call/layer/MatMul"), 2 * 3 * 784 * 10);
	assert_int_equal(flops_of(&w, "call/call/layer/BiasAdd"), 30);
	assert_shape(&w, "call/call/layer/Relu", "3x10");
	assert_shape(&w, "call", "3x10");
	assert_int_equal(flops_of(&w, "y"), 30);
	assert_int_equal(total_flops(&w), 2 * 3 * 784 * 10 + 30 + 30);
	assert_note(&w, "3 function calls were expanded into 7 ops");
	assert_false(has_note(&w, "not counted"));
	world_end(&w);
}

static void test_open_batch(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, MODEL, ARRAY_COUNT(MODEL), MODEL_GRAPH);
	assert_shape(&w, "call/call/layer/MatMul", "?x10");
	assert_note(&w, "3 ops have no float operations because their shapes are unknown: BiasAdd "
			"1, MatMul 1, Neg 1; give the shapes of inputs: --input-shape x=Nx784");
	world_end(&w);
}

/* As tfprof nothing is opened. */
static void test_not_asked(void **state)
{
	struct world w;

	(void)state;
	world_begin(&w);
	w.options.infer = false;
	assert_int_equal(add_library(&w, MODEL, ARRAY_COUNT(MODEL), MODEL_GRAPH), OW_OK);
	assert_int_equal(finish(&w), OW_OK);
	assert_int_equal(w.m->op.count, 1 + 5);
	assert_int_equal(w.m->note.count, 1);
	world_end(&w);
}

/* The function's name may be the op type; results are read by name. */
static void test_direct_call(void **state)
{
	static const struct function functions[] = {
		{ "pair", "x", "narrow=s:output:0 wide=t", "s Sum x axis; axis Const #1; t Neg x" },
		{ "outer", "x", "r=n:y:0", "p pair x; n Neg p:wide:0" },
	};
	struct world w;

	(void)state;
	open_world(&w, functions, ARRAY_COUNT(functions),
		   "x Const <4x6>; p pair x; a Neg p; b Neg p:1; o outer x");
	assert_shape(&w, "a", "4");
	assert_shape(&w, "b", "4x6");
	assert_int_equal(flops_of(&w, "p/s"), 24 - 4);
	assert_shape(&w, "o/n", "4x6");
	assert_int_equal(flops_of(&w, "o/p/t"), 24);
	world_end(&w);
}

/* Bodies name outputs; which number that is depends on the op type. */
static void test_named_outputs(void **state)
{
	static const struct function functions[] = {
		{ "f", "x c", "a=n:y:0 b=m:y:0 c=o:y:0 d=p:y:0",
		  "bn FusedBatchNormV3 x c c c c; n Neg bn:batch_mean:0; m Neg bn:y:0; "
		  "axis Const #0; s Split axis x num_split=2; o Neg s:output:1; "
		  "k Const #3; top TopKV2 x k; p Neg top:indices:0; "
		  "odd Unknown x _output_shapes=<7>,<8>; q Neg odd:second:0; "
		  "one Unknown x _output_shapes=<9>; r Neg one:any:0" },
	};
	struct world w;

	(void)state;
	open_world(&w, functions, ARRAY_COUNT(functions),
		   "x Const <4x6x6x5>; c Const <5>; f StatefulPartitionedCall x c f=@f; a Neg f; b "
		   "Neg f:1; "
		   "d Neg f:2; e Neg f:3");
	assert_shape(&w, "a", "5");
	assert_shape(&w, "b", "4x6x6x5");
	assert_shape(&w, "d", "2x6x6x5");
	assert_shape(&w, "e", "4x6x6x3");
	assert_shape(&w, "f/q", "unknown"); /* second of two that nobody told us the names of */
	assert_shape(&w, "f/r", "unknown");
	world_end(&w);
}

/* What is given to the call is what the body reads, by value as well. */
static void test_values_pass(void **state)
{
	static const struct function functions[] = {
		{ "f", "x shape", "r=y:output:0 same=shape", "y Reshape x shape" },
	};
	struct world w;

	(void)state;
	open_world(
		&w, functions, ARRAY_COUNT(functions),
		"x Const <4x6>; s Const {2,12}; f PartitionedCall x s f=@f; y Neg f; z Fill f:1 v; "
		"v Const <>; n Neg z");
	assert_shape(&w, "y", "2x12");
	assert_shape(&w, "n", "2x12");
	world_end(&w);
}

/* ---- branches and loops ---- */

static void test_branches(void **state)
{
	static const struct function functions[] = {
		{ "then", "a b", "r=n:y:0 s=n:y:0", "n Neg a" },
		{ "else", "a b", "r=q:y:0 s=b", "q Square a" },
	};
	struct world w;

	(void)state;
	open_world(&w, functions, ARRAY_COUNT(functions),
		   "p Placeholder <>; a Const <4x6>; b Const <4x7>; "
		   "if If p a b then_branch=@then else_branch=@else; x Neg if; y Neg if:1; "
		   "case StatelessCase p a b branches=@then,@else,@then; z Neg case");
	assert_int_equal(flops_of(&w, "if/then_branch/n"), 24);
	assert_int_equal(flops_of(&w, "if/else_branch/q"), 24);
	assert_shape(&w, "x", "4x6");
	assert_shape(&w, "y", "4x?");
	assert_int_equal(flops_of(&w, "case/branches_2/n"), 24);
	assert_shape(&w, "z", "4x6");
	world_end(&w);
}

static void test_loop(void **state)
{
	static const struct function functions[] = {
		{ "body", "i n x w", "i_1=add:z:0 n_1=n x_1=MatMul:product:0 w_1=w",
		  "one Const #1; add AddV2 i one; MatMul MatMul x w; "
		  "z Const <>; counted Fill i z; zeros Fill n z" },
		{ "cond", "i n x w", "r=Less:z:0", "Less Less i n" },
	};
	struct world w;

	(void)state;
	open_world(&w, functions, ARRAY_COUNT(functions),
		   "i Const {0}; n Const {9}; x Const <5x8>; k Const <8x8>; "
		   "loop While i n x k body=@body cond=@cond; y Neg loop:2; c Fill loop v; v Const "
		   "<>");
	assert_int_equal(flops_of(&w, "loop/body/MatMul"), 2 * 5 * 8 * 8);
	assert_int_equal(flops_of(&w, "loop/cond/Less"), 1);
	assert_shape(&w, "y", "5x8");
	/* The counter has another value each time, the limit has not. */
	assert_shape(&w, "loop/body/counted", "?");
	assert_shape(&w, "c", "?");
	assert_shape(&w, "loop/body/zeros", "9");
	assert_note(&w, "the body of a loop counts once, however often it runs");
	world_end(&w);
}

/* A recurrent layer as Keras writes it: inputs and results in lists. */
static void test_lists_in_loops(void **state)
{
	static const struct function functions[] = {
		{ "body", "i in out h w",
		  "i_1=add:z:0 in_1=in out_1=set:output_handle:0 h_1=h_new:z:0 w_1=w",
		  "one Const #1; add AddV2 i one; get TensorListGetItem in i es; es Const {-1,6}; "
		  "MatMul MatMul get:item:0 w; h_new AddV2 h MatMul:product:0; "
		  "set TensorListSetItem out i h_new:z:0" },
		{ "cond", "i in out h w", "r=Less:z:0", "nine Const #9; Less Less i nine" },
	};
	struct world w;

	(void)state;
	open_world(
		&w, functions, ARRAY_COUNT(functions),
		"x Const <9x3x6>; i Const #0; es Const {-1,6}; in TensorListFromTensor x es; "
		"any Const #-1; n Const #9; out TensorListReserve any n; h Const <3x4>; k Const "
		"<6x4>; "
		"loop StatelessWhile i in out h k body=@body cond=@cond; "
		"es2 Const {-1,4}; all TensorListStack loop:2 es2 num_elements=9; y Neg all; "
		"known Const {3,4}; out2 TensorListReserve known n; s2 TensorListStack out2 es2; "
		"len TensorListLength out2; z Const <>; f Fill len z; "
		"e EmptyTensorList any n; p TensorListPushBack e h; q TensorListPopBack p any; o "
		"Neg q:1; "
		"ix Const {0,1}; g TensorListGather in ix es; r TensorListResize out2 two; two "
		"Const #2; "
		"s3 TensorListStack r es2");
	assert_int_equal(flops_of(&w, "loop/body/MatMul"), 2 * 3 * 6 * 4);
	assert_shape(&w, "y", "9x3x4");
	assert_shape(&w, "s2", "9x3x4");
	assert_shape(&w, "f", "9");
	assert_shape(&w, "o", "3x4");
	assert_shape(&w, "g", "2x3x6");
	assert_shape(&w, "s3", "2x3x4");
	world_end(&w);
}

/* ---- what is not opened ---- */

static void test_closed(void **state)
{
	static const struct function functions[] = {
		{ "self", "x", "r=c:output:0", "c PartitionedCall x f=@self; n Neg x" },
		{ "ping", "x", "r=c:output:0", "c PartitionedCall x f=@pong" },
		{ "pong", "x", "r=c:output:0", "c PartitionedCall x f=@ping" },
		{ "alone", "x", "r=c:output:0", "c PartitionedCall x f=@helper" },
		{ "helper", "x", "r=n:y:0", "n Neg x" },
	};
	struct world w;

	(void)state;
	open_world(&w, functions, ARRAY_COUNT(functions),
		   "x Const <4x6>; a PartitionedCall x f=@self _output_shapes=<4x6>,<1>; b "
		   "PartitionedCall x f=@ping; "
		   "c PartitionedCall x f=@nobody; d PartitionedCall x; e While x x body=@self; "
		   "y Neg a");
	assert_int_equal(flops_of(&w, "a/n"), 24);
	assert_false(has_op(&w, "a/c/n"));
	assert_true(has_op(&w, "b/c/c"));
	assert_note(&w, "2 function calls are not counted: the function calls itself");
	assert_note(&w, "3 function calls are not counted: the graph does not have the "
			"function");
	assert_note(&w, "2 functions are not counted: no call in the graph reaches them");
	assert_int_equal(flops_of(&w, "y"), 24); /* as the graph says */
	world_end(&w);
}

/* Each function calls the next one twice: 2^40 ops in a small file. */
static void test_explosion(void **state)
{
	struct world w;
	struct buf bytes;

	(void)state;
	world_begin(&w);
	buf_init(&bytes, &w.mem);
	for (int i = 0; i < 40; i++) {
		char name[16], body[128];

		snprintf(name, sizeof(name), "f%d", i);
		snprintf(body, sizeof(body),
			 "a PartitionedCall x f=@f%d; b PartitionedCall x f=@f%d; n Neg x", i + 1,
			 i + 1);
		gt_function(&bytes, name, "x", "r=n:y:0", body);
	}
	gt_graph(&bytes, "x Const <4x6>; y PartitionedCall x f=@f0");
	assert_int_equal(add_bytes(&w, "graphdef", &bytes), OW_OK);
	assert_int_equal(finish(&w), OW_OK);
	assert_in_range(w.m->op.count, 1000, 400000);
	assert_note(&w, "function calls are not counted: the graph has too many calls");
	world_end(&w);
}

/* Names grow with every level: long ones count for more. */
static void test_long_names(void **state)
{
	struct world w;
	struct buf bytes;
	char *graph = malloc(200000 + 64), body[200];
	size_t used;

	(void)state;
	assert_non_null(graph);
	memset(graph, 'n', 200000);
	snprintf(graph + 200000, 64, " PartitionedCall x f=@f0; x Const <4x6>");
	world_begin(&w);
	buf_init(&bytes, &w.mem);
	for (int i = 0; i < 12; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%d", i);
		snprintf(body, sizeof(body),
			 "a PartitionedCall x f=@f%d; b PartitionedCall x f=@f%d; c "
			 "PartitionedCall x f=@f%d",
			 i + 1, i + 1, i + 1);
		gt_function(&bytes, name, "x", "", body);
	}
	gt_graph(&bytes, graph);
	assert_int_equal(add_bytes(&w, "graphdef", &bytes), OW_OK);
	assert_int_equal(finish(&w), OW_OK);
	used = atomic_load(&w.mem.used);
	assert_in_range(used, 0, (size_t)512 << 20);
	assert_note(&w, "the graph has too many calls");
	world_end(&w);
	free(graph);
}

/* ---- names that are there already ---- */

static void test_taken_name(void **state)
{
	static const struct function functions[] = { { "f", "x", "r=n:y:0",
						       "n Neg x; n Square x" } };
	struct world w;

	(void)state;
	open_world(&w, functions, 1,
		   "x Const <4x6>; f PartitionedCall x f=@f; f/n Relu x; y Log f");
	assert_int_equal(flops_of(&w, "f/n"), 0);
	assert_int_equal(flops_of(&w, "y"), 24);
	assert_int_equal(total_flops(&w), 3 * 24);
	world_end(&w);
}

/* An op that only a run knows gets its definition from the body: TensorFlow names inlined nodes the same way. */
static void test_run_names(void **state)
{
	static const struct function functions[] = { { "f", "x", "r=n:y:0", "n Neg x" } };
	struct world w;
	op_id op;

	(void)state;
	world_begin(&w);
	assert_int_equal(add_library(&w, functions, 1, "x Const <4x6>; f PartitionedCall x f=@f"),
			 OW_OK);
	op = builder_new_op(&w.b, &(struct op_row){ .name = builder_cstr(&w.b, "f/n") });
	assert_int_equal(finish(&w), OW_OK);
	assert_int_equal(model_find_op(w.m, STR("f/n")).v, op.v);
	assert_int_equal(flops_of(&w, "f/n"), 24);
	world_end(&w);
}

/* The graph leads from a call into what it runs. */
static void test_edges(void **state)
{
	struct world w;
	uint32_t call, row;

	(void)state;
	open_world(&w, MODEL, ARRAY_COUNT(MODEL), MODEL_GRAPH);
	call = model_find_op(w.m, STR("call/call/layer")).v;
	assert_int_equal(w.m->op.input_count[call], 3 + 2);
	row = w.m->op.input_first[call];
	assert_int_equal(w.m->op_input.src[row].v, model_find_op(w.m, STR("x")).v);
	assert_int_equal(w.m->op_input.port[row + 3], -1);
	assert_int_equal(w.m->op_input.src[row + 3].v,
			 model_find_op(w.m, STR("call/call/layer/Relu")).v);
	world_end(&w);
}

/* ---- damage, and no memory ---- */

static ow_status load_cut(const struct buf *whole, size_t len)
{
	struct world w;
	struct buf bytes;
	ow_status status = OW_E_NO_MEMORY;

	world_begin(&w);
	if (w.m) {
		buf_init(&bytes, &w.mem);
		buf_add(&bytes, whole->ptr, len);
		status = add_bytes(&w, "graphdef", &bytes);
		if (status == OW_OK)
			status = finish(&w);
	}
	mem_fail_after(0, false);
	world_end(&w);
	return status;
}

/* The graph first, so that its calls are there when the library ends too early. */
static void write_model(struct buf *whole)
{
	gt_graph(whole, MODEL_GRAPH);
	for (size_t i = 0; i < ARRAY_COUNT(MODEL); i++)
		gt_function(whole, MODEL[i].name, MODEL[i].args, MODEL[i].returns, MODEL[i].body);
}

static void test_truncation(void **state)
{
	struct mem mem;
	struct buf whole;
	ow_status status;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&whole, &mem);
	write_model(&whole);
	for (size_t len = 1; len < whole.len; len++) {
		status = load_cut(&whole, len);
		assert_true(status == OW_OK || status == OW_E_CORRUPT || status == OW_E_FORMAT);
	}
	/* any byte of the library may be wrong */
	for (size_t at = 0; at < whole.len; at++) {
		char old = whole.ptr[at];

		whole.ptr[at] = (char)(old ^ 0x15);
		(void)load_cut(&whole, whole.len);
		whole.ptr[at] = old;
	}
	buf_release(&whole);
}

static void test_allocation_failures(void **state)
{
	ow_status status = OW_E_NO_MEMORY;
	struct mem mem;
	struct buf whole;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&whole, &mem);
	write_model(&whole);
	for (uint64_t n = 1; n < 3000 && status != OW_OK; n++) {
		mem_fail_after(n, true);
		status = load_cut(&whole, whole.len);
		if (status != OW_OK)
			assert_int_equal(status, OW_E_NO_MEMORY);
	}
	assert_int_equal(status, OW_OK);
	buf_release(&whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested_calls),
		cmocka_unit_test(test_open_batch),
		cmocka_unit_test(test_not_asked),
		cmocka_unit_test(test_direct_call),
		cmocka_unit_test(test_named_outputs),
		cmocka_unit_test(test_values_pass),
		cmocka_unit_test(test_branches),
		cmocka_unit_test(test_loop),
		cmocka_unit_test(test_lists_in_loops),
		cmocka_unit_test(test_closed),
		cmocka_unit_test(test_explosion),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_taken_name),
		cmocka_unit_test(test_run_names),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_truncation),
		cmocka_unit_test(test_allocation_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
