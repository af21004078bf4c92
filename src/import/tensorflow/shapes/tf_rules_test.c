/*
 * tf_rules_test.c: every shape rule and every flop formula on small graphs (support/graph_text.h). A case
 * names an op and says what its output 0 must be: "?" for an unknown size, "unknown" for nothing at
 * all; scalars are kept as "1", as the importers do.
 */
#include "import/importer.h"
#include "import/tensorflow/shapes/tf_flops.h"
#include "import/tensorflow/tf_finish.h"

#include "support/graph_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define ANY INT64_MIN

struct test_case {
	const char *graph;
	const char *op, *shape;
	int64_t flops;
};

static struct mem mem;

static struct model *load(const char *graph)
{
	struct import_options options = { .infer = true, .step = INT64_MIN };
	struct ow_error err = { 0 };
	struct model *m = model_new(&mem, &err);
	struct builder b;
	struct input in;
	struct buf bytes;
	void *copy;

	buf_init(&bytes, &mem);
	gt_graph(&bytes, graph);
	assert_false(bytes.failed);
	builder_init(&b, m, &err);
	copy = mem_alloc(&mem, bytes.len + 1);
	memcpy(copy, bytes.ptr, bytes.len);
	assert_int_equal(
		input_adopt_memory(&in, &mem, "graph", copy, bytes.len, bytes.len + 1, &err),
		OW_OK);
	assert_int_equal(
		import_input(&b, &in, importer_find(STR("graphdef")), &options, NULL, &err), OW_OK);
	if (import_finish(&b, &options, &err) != OW_OK)
		fail_msg("%s", err.text);
	assert_int_equal(model_freeze(&b), OW_OK);
	buf_release(&bytes);
	return m;
}

static const char *shape_of(const struct model *m, op_id op, char *text, size_t size)
{
	struct tf_shape shape = tf_shape_unknown();

	for (uint32_t i = 0; i < m->op.output_count[op.v]; i++)
		if (m->op_output.index[m->op.output_first[op.v] + i] == 0)
			shape = tf_shape_load(m, m->op_output.shape[m->op.output_first[op.v] + i]);
	return tf_shape_text(&shape, text, size);
}

static void run_case(const struct test_case *t)
{
	struct model *m;
	char text[256];
	op_id op;

	mem_init(&mem, 0);
	m = load(t->graph);
	op = model_find_op(m, str_from(t->op));
	if (!op.v)
		fail_msg("no op %s in: %s", t->op, t->graph);
	if (t->shape && strcmp(shape_of(m, op, text, sizeof(text)), t->shape) != 0)
		fail_msg("%s is %s, expected %s in: %s", t->op, text, t->shape, t->graph);
	if (t->flops != ANY && m->op.float_ops[op.v] != t->flops)
		fail_msg("%s has %" PRId64 " flops, expected %" PRId64 " in: %s", t->op,
			 m->op.float_ops[op.v], t->flops, t->graph);
	model_free(m);
	assert_int_equal(atomic_load(&mem.used), 0);
}

#define RUN(cases)                                                                                 \
	for (size_t i_ = 0; i_ < ARRAY_COUNT(cases); i_++)                                         \
	run_case(&(cases)[i_])

/* The graphs need an op with a formula, or nothing is inferred at all. */
#define F "; zz Neg"

static void test_sources(void **state)
{
	static const struct test_case cases[] = {
		{ "c Const <2x3>" F, "c", "2x3", ANY },
		{ "c Const {1,2,3}; y Fill c c" F, "y", "1x2x3", ANY },
		{ "v VariableV2 <4x5>" F, "v", "4x5", ANY },
		{ "v VariableV2 <>" F, "v", "1", ANY },
		{ "v Variable <>" F, "v", "unknown", ANY },
		{ "x Placeholder <?x7>" F, "x", "?x7", ANY },
		{ "x Placeholder <*>" F, "x", "unknown", ANY },
		{ "x Placeholder <>; y Identity x; z Fill y y" F, "x", "1", ANY },
		{ "d Const <3x3>; x PlaceholderWithDefault d <?x3>" F, "x", "?x3", ANY },
		{ "h VarHandleOp <6x7>; r ReadVariableOp h" F, "r", "6x7", ANY },
		{ "h VarHandleOp <6x7>; e Enter h; s Switch e e; r ReadVariableOp s:1" F, "r",
		  "6x7", ANY },
		{ "h VarHandleOp <6x7>; s VariableShape h; y Fill s s" F, "y", "6x7", ANY },
		{ "h VarHandleOp <6x7>; i Const <2x3>; y ResourceGather h i" F, "y", "2x3x7", ANY },
		{ "i IteratorGetNext output_shapes=<2x3>,<4>,<5x?>; y Identity i:2" F, "y", "5x?",
		  ANY },
		/* what the source says stays */
		{ "c Const <2x3> _output_shapes=<9x9>,<1>" F, "c", "9x9", ANY },
		{ "a Const <2x3>; y Relu a _output_shapes=<?x3>,<1>" F, "y", "2x3", ANY },
	};

	(void)state;
	RUN(cases);
}

static void test_control_flow(void **state)
{
	static const struct test_case cases[] = {
		{ "x Const <2x3>; y Identity x" F, "y", "2x3", ANY },
		{ "x Const <2x3>; w Const <4>; y IdentityN x w; z Identity y:1" F, "z", "4", ANY },
		{ "x Const <2x3>; p Const <>; s Switch x p; a Identity s:1; b Relu s; m Merge a "
		  "b" F,
		  "m", "2x3", ANY },
		{ "x Const <2x3>; w Const <5x3>; m Merge x w" F, "m", "?x3", ANY },
		{ "x Const <2x3>; w Const <5>; m Merge x w; i Identity m:1" F, "i", "1", ANY },
		/* a loop, with its nodes in no good order */
		{ "n NextIteration b; m Merge e n; s Switch m c; b Add s:1 o; o Const <3>; "
		  "c LoopCond p; p Const <>; e Enter x; x Const <2x3>; q Exit s" F,
		  "q", "2x3", ANY },
		{ "n NextIteration b; m Merge e n; s Switch m c; b Add s:1 o; o Const <3>; "
		  "c LoopCond p; p Const <>; e Enter x; x Const <2x3>; q Exit s" F,
		  "b", "2x3", 6 },
		{ "x Const <2x3>; s StackV2; e Enter s; p StackPushV2 e x; f Enter s; y StackPopV2 "
		  "f" F,
		  "y", "2x3", ANY },
		/* read before it is written */
		{ "y StackPopV2 f; f Enter s; s StackV2; e Enter s; p StackPushV2 e x; x Const "
		  "<2x3>; "
		  "z Neg y",
		  "z", "2x3", 6 },
		{ "x Const {4,5}; s StackV2; p StackPushV2 s x; v StackPopV2 s; y Fill v v" F, "y",
		  "4x5", ANY },
		{ "n Const #7; a TensorArrayV3 n; x Const <7x2x3>; i Const <7>; "
		  "w TensorArrayScatterV3 a i x a:1; y TensorArrayReadV3 a i w" F,
		  "y", "2x3", ANY },
		{ "n Const #7; a TensorArrayV3 n; x Const <2x3>; i Const #0; "
		  "w TensorArrayWriteV3 a i x a:1; k TensorArraySizeV3 a w; s Const #0; d Const "
		  "#1; "
		  "r Range s k d; y TensorArrayGatherV3 a r w" F,
		  "y", "7x2x3", ANY },
		{ "n Const #7; a TensorArrayV3 n dynamic_size=true; s Const #0; d Const #1; "
		  "k TensorArraySizeV3 a; r Range s k d" F,
		  "r", "?", ANY },
		{ "n Const #7; a TensorArrayV3 n element_shape=<2x?>; g TensorArrayGradV3 a a:1; "
		  "i Const #0; y TensorArrayReadV3 g i a:1" F,
		  "y", "2x?", ANY },
	};

	(void)state;
	RUN(cases);
}

static void test_elementwise(void **state)
{
	static const struct test_case cases[] = {
		{ "x Const <2x3>; y Relu x" F, "y", "2x3", ANY },
		{ "x Const <2x3>; y Sigmoid x" F, "y", "2x3", ANY },
		{ "x Const <2x3>; w Const <3>; y BiasAdd x w", "y", "2x3", 6 },
		{ "x Const <2x3>; w Const <3>; y Add x w", "y", "2x3", 6 },
		{ "x Const <2x1x4>; w Const <3x1>; y AddV2 x w", "y", "2x3x4", 24 },
		{ "x Const <2x3>; w Const <>; y Mul w x", "y", "2x3", 6 },
		{ "x Const <2x3>; w Const <4>; y Mul w x", "y", "unknown", 0 },
		{ "x Placeholder <?x3>; w Const <5x1>; y Sub x w", "y", "5x3", 15 },
		{ "x Placeholder <?x3>; w Const <1x3>; y Sub x w", "y", "?x3", 0 },
		{ "x Placeholder <*>; w Const <1x3>; y Sub x w", "y", "unknown", 0 },
		{ "x Const <2x3>; w Const <2x3>; y Greater x w; z LogicalAnd y y" F, "z", "2x3",
		  ANY },
		{ "c Const <3>; x Const <3x5>; w Const <3x5>; y Select c x w" F, "y", "3x5", ANY },
		{ "c Const <3x1>; x Const <5>; w Const <>; y SelectV2 c x w" F, "y", "3x5", ANY },
		{ "x Placeholder <?x3>; w Const <2x?>; y AddN x w x", "y", "2x3", 0 },
		{ "x Const <2x3>; w Placeholder <*>; y TanhGrad w x" F, "y", "2x3", ANY },
		{ "x Const <2x3>; v Const <2x3>; y Assign v x" F, "y", "2x3", ANY },
		{ "x Const {3,-4}; w Const {5}; a Add x w; y Fill a a" F, "y", "8x1", ANY },
		{ "x Const {7,9}; w Const #2; a FloorDiv x w; y Fill a a" F, "y", "3x4", ANY },
		{ "x Const {-7,9}; w Const #4; a FloorMod x w; y Fill a a" F, "y", "1x1", ANY },
		{ "x Const {3,4}; w Const {5,2}; a Maximum x w; b Minimum a x; c Mul b a; y Fill c "
		  "c" F,
		  "y", "15x16", ANY },
		{ "x Const {9223372036854775807}; w Const #2; a Mul x w; y Fill a a" F, "y", "?",
		  ANY },
	};

	(void)state;
	RUN(cases);
}

static void test_products(void **state)
{
	static const struct test_case cases[] = {
		{ "a Const <2x3>; b Const <3x5>; y MatMul a b", "y", "2x5", 60 },
		{ "a Const <3x2>; b Const <3x5>; y MatMul a b transpose_a=true", "y", "2x5", 60 },
		{ "a Const <2x3>; b Const <5x3>; y MatMul a b transpose_b=true", "y", "2x5", 60 },
		{ "a Placeholder <?x3>; b Const <3x5>; y MatMul a b", "y", "?x5", 0 },
		{ "a Placeholder <*>; b Const <3x5>; y MatMul a b", "y", "?x5", 0 },
		{ "a Const <3>; b Const <3x5>; y MatMul a b", "y", "unknown", 0 },
		{ "a Const <7x2x3>; b Const <7x3x5>; y BatchMatMul a b", "y", "7x2x5", 420 },
		/* as in TensorFlow: the last dimension whatever adj_x says */
		{ "a Const <7x3x2>; b Const <7x3x5>; y BatchMatMul a b adj_x=true", "y", "7x2x5",
		  280 },
		{ "a Const <7x3x2>; b Const <7x3x5>; y BatchMatMulV2 a b adj_x=true", "y", "7x2x5",
		  420 },
		{ "a Const <7x2x3>; b Const <5x3>; y BatchMatMulV2 a b adj_y=true", "y", "7x2x5",
		  420 },
		{ "a Const <4x1x2x3>; b Const <6x3x5>; y BatchMatMulV3 a b", "y", "4x6x2x5", 1440 },
		{ "a Const <2x3>; b Const <3x5>; y _FusedMatMul a b", "y", "2x5", 60 },
	};

	(void)state;
	RUN(cases);
}

static void test_einsum(void **state)
{
	static const struct test_case cases[] = {
		{ "a Const <2x3>; b Const <3x5>; y Einsum a b equation=ab,bc->ac", "y", "2x5", 60 },
		/* an attention: heads and their scores */
		{ "a Const <8x128x12x64>; b Const <8x128x12x64>; y Einsum a b "
		  "equation=aecd,abcd->acbe",
		  "y", "8x12x128x128", 2LL * 8 * 12 * 128 * 128 * 64 },
		{ "a Const <8x128x768>; b Const <768x12x64>; y Einsum a b equation=abc,cde->abde",
		  "y", "8x128x12x64", 2LL * 8 * 128 * 768 * 768 },
		{ "a Const <7x4x2x3>; b Const <3x5>; y Einsum a b equation=...ab,bc->...ac", "y",
		  "7x4x2x5", 2 * 28 * 30 },
		{ "a Const <4x2x3>; b Const <7x1x3x5>; y Einsum a b equation=...ab,...bc->...ac",
		  "y", "7x4x2x5", 2 * 28 * 30 },
		{ "a Const <2x3>; y Einsum a equation=ab->ba", "y", "3x2", 0 },
		{ "a Const <2x3>; b Const <2x3>; y Einsum a b equation=ab,ab->", "y", "1", 12 },
		{ "a Placeholder <?x3>; b Const <3x5>; y Einsum a b equation=ab,bc->ac", "y", "?x5",
		  0 },
		{ "a Placeholder <*>; b Const <3x5>; y Einsum a b equation=ab,bc->ac", "y", "?x5",
		  0 },
		{ "a Placeholder <*>; b Const <3x5>; y Einsum a b equation=...b,bc->...c", "y",
		  "unknown", 0 },
		/* nonsense */
		{ "a Const <2x3>; b Const <4x5>; y Einsum a b equation=ab,bc->ac", "y", "unknown",
		  0 },
		{ "a Const <2x3>; b Const <3x5>; y Einsum a b equation=ab,bc->az", "y", "unknown",
		  0 },
		{ "a Const <2x3>; b Const <3x5>; y Einsum a b equation=abc,bc->a", "y", "unknown",
		  0 },
		{ "a Const <2x3>; y Einsum a equation=ab,bc->ac", "y", "unknown", 0 },
		{ "a Const <2x3>; y Einsum a equation=ab", "y", "unknown", 0 },
		{ "a Const <2x3>; y Einsum a equation=ab->a.", "y", "unknown", 0 },
		{ "a Const <2x3>; y Einsum a", "y", "unknown", 0 },
	};

	(void)state;
	RUN(cases);
}

static void test_later_types(void **state)
{
	static const struct test_case cases[] = {
		{ "x Const <4x512>; n Const {512}; y RFFT x n" F, "y", "4x257", ANY },
		{ "x Const <4x257>; n Const {512}; y IRFFT x n" F, "y", "4x512", ANY },
		{ "x Const <4x512>; n Placeholder <1>; y RFFT x n" F, "y", "4x?", ANY },
		{ "s Const {4,5}; k Const {1,2}; y StatelessRandomUniformV2 s k k k" F, "y", "4x5",
		  ANY },
		{ "s Const {4,5}; r Const <>; a Const #1; y StatefulUniform r a s r r" F, "y",
		  "4x5", ANY },
		{ "x Const <2x3>; h Const <2x7>; y LSTMBlockCell x h h; z Neg y:6", "z", "2x7",
		  14 },
		{ "x Const <1x8x8x3>; f Const <3x3x3x4>; y _FusedConv2D x f strides=[1,1,1,1] "
		  "padding=SAME",
		  "y", "1x8x8x4", 2 * 256 * 27 },
		{ "x Const <1x8x8x3>; f Const <3x3x3x1>; y _FusedDepthwiseConv2dNative x f "
		  "strides=[1,1,1,1] "
		  "padding=SAME",
		  "y", "1x8x8x3", 2 * 192 * 9 },
	};

	(void)state;
	RUN(cases);
}

static void test_reductions(void **state)
{
	static const struct test_case cases[] = {
		{ "x Const <2x3x4>; a Const {0,2}; y Sum x a", "y", "3", 21 },
		{ "x Const <2x3x4>; a Const {-1}; y Sum x a keep_dims=true", "y", "2x3x1", 18 },
		{ "x Const <2x3x4>; a Const #1; y Mean x a", "y", "2x4", 24 },
		{ "x Const <2x3x4>; a Const {}; y Max x a" F, "y", "2x3x4", ANY },
		{ "x Const <2x3x4>; a Placeholder <2>; y Prod x a" F, "y", "?", ANY },
		{ "x Const <2x3x4>; a Placeholder <*>; y Min x a keep_dims=true" F, "y", "?x?x?",
		  ANY },
		{ "x Const <2x3x4>; a Placeholder <3>; y Sum x a", "y", "1", 23 },
		{ "x Const <2x3x4>; a Const {5}; y Sum x a", "y", "?x?", 0 },
		{ "x Const <2x3x4>; a Const #1; y ArgMax x a", "y", "2x4", 16 },
		{ "x Const <2x3x4>; a Const #-1; y ArgMin x a", "y", "2x3", 18 },
		{ "x Const <2x3>; y L2Loss x", "y", "1", 17 },
		{ "x Const <0x3>; y L2Loss x", "y", "1", -1 },
		{ "x Const {2,3,4}; a Const {0}; p Prod x a; s Pack p; y Fill s s" F, "y", "24",
		  ANY },
		{ "x Const {2,3,4}; a Const {0}; p Max x a keep_dims=true; y Fill p p" F, "y", "4",
		  ANY },
		{ "x Const <8x4>; i Const <8>; y SegmentSum x i" F, "y", "?x4", ANY },
		{ "x Const <8x2x4>; i Const <8x2>; n Const #5; y UnsortedSegmentSum x i n" F, "y",
		  "5x4", ANY },
		{ "x Const <8x4>; y BiasAddGrad x", "y", "4", 28 },
		{ "x Const <8x4x5x5>; y BiasAddGrad x data_format=NCHW", "y", "4", 796 },
	};

	(void)state;
	RUN(cases);
}

static void test_broadcast_gradient(void **state)
{
	static const struct test_case cases[] = {
		{ "x Const <2x3>; a Const {2,3}; b Const {3}; g BroadcastGradientArgs a b; "
		  "y Sum x g:1",
		  "y", "3", 3 },
		{ "x Const <2x3>; a Const {2,3}; b Const {3}; g BroadcastGradientArgs a b; y Sum x "
		  "g",
		  "y", "2x3", 0 },
		{ "x Const <2x3>; a Const {2,1}; b Const {2,3}; g BroadcastGradientArgs a b; y Sum "
		  "x g",
		  "y", "2", 4 },
		{ "x Const <1x3>; a Const {1,3}; g BroadcastGradientArgs a a; y Sum x g", "y",
		  "1x3", 0 },
		{ "p Placeholder <?x3>; a Shape p; b Const {3}; g BroadcastGradientArgs a b; "
		  "y Identity g" F,
		  "y", "?", ANY },
	};

	(void)state;
	RUN(cases);
}

static void test_reshape(void **state)
{
	static const struct test_case cases[] = {
		{ "x Const <4x6>; s Const {2,12}; y Reshape x s" F, "y", "2x12", ANY },
		{ "x Const <4x6>; s Const {-1,8}; y Reshape x s" F, "y", "3x8", ANY },
		{ "x Const <4x6>; s Const {-1,7}; y Reshape x s" F, "y", "?x7", ANY },
		{ "x Const <4x6>; s Const {}; y Reshape x s" F, "y", "1", ANY },
		{ "x Placeholder <?x6>; s Const {-1,3}; y Reshape x s" F, "y", "?x3", ANY },
		{ "x Placeholder <*>; s Const {2,3}; y Reshape x s" F, "y", "2x3", ANY },
		{ "x Const <4x6>; s Placeholder <3>; y Reshape x s" F, "y", "?x?x?", ANY },
		{ "x Const <4x6>; s Placeholder <*>; y Reshape x s" F, "y", "unknown", ANY },
		/* x.shape[0] stacked with a constant */
		{ "x Const <4x6>; h Shape x; b Const {0}; e Const {1}; t Const {1}; "
		  "n StridedSlice h b e t shrink_axis_mask=1; m Const #-1; s Pack n m; y Reshape x "
		  "s" F,
		  "y", "4x6", ANY },
		{ "x Placeholder <?x28x28>; h Shape x; b Const {0}; e Const {1}; t Const {1}; "
		  "n StridedSlice h b e t shrink_axis_mask=1; m Const #784; s Pack n m; y Reshape "
		  "x s" F,
		  "y", "?x784", ANY },
		/* one size that is not known, of a tensor that is */
		{ "x Const <4x6>; n Placeholder <>; m Const #8; s Pack n m; y Reshape x s" F, "y",
		  "3x8", ANY },
		{ "x Const <2x1x3x1>; y Squeeze x" F, "y", "2x3", ANY },
		{ "x Const <2x1x3x1>; y Squeeze x squeeze_dims=[-1]" F, "y", "2x1x3", ANY },
		{ "x Placeholder <?x1>; y Squeeze x" F, "y", "unknown", ANY },
		{ "x Placeholder <?x1>; y Squeeze x squeeze_dims=[1]" F, "y", "?", ANY },
		{ "x Const <2x3>; a Const #1; y ExpandDims x a" F, "y", "2x1x3", ANY },
		{ "x Const <2x3>; a Const #-1; y ExpandDims x a" F, "y", "2x3x1", ANY },
		{ "x Const <2x3>; a Placeholder <>; y ExpandDims x a" F, "y", "?x?x?", ANY },
		{ "x Const <2x3x4>; p Const {2,0,1}; y Transpose x p" F, "y", "4x2x3", ANY },
		{ "x Const <2x3x4>; p Const {2,0,1}; q InvertPermutation p; t Transpose x p; "
		  "y Transpose t q" F,
		  "y", "2x3x4", ANY },
		{ "x Const <2x3x4>; p Placeholder <3>; y Transpose x p" F, "y", "?x?x?", ANY },
		{ "x Const <2x3x4>; p Const {2,0,9}; y Transpose x p" F, "y", "unknown", ANY },
	};

	(void)state;
	RUN(cases);
}

static void test_join_and_split(void **state)
{
	static const struct test_case cases[] = {
		{ "x Const <2x3>; y Pack x x x" F, "y", "3x2x3", ANY },
		/* paddings as they are made: pairs, stacked */
		{ "a Const {1,2}; b Const {3,1}; p Pack a b; x Const <4x5>; y Pad x p" F, "y",
		  "7x9", ANY },
		{ "a Const {1,2}; b Placeholder <2>; p Pack a b; x Const <4x5>; y Pad x p" F, "y",
		  "7x?", ANY },
		{ "a Const {1,2}; b Const {3,1}; p Pack a b axis=1; x Const <4x5>; y Pad x p" F,
		  "y", "?x?", ANY },
		{ "x Const <2x3>; y Pack x x axis=-1" F, "y", "2x3x2", ANY },
		{ "x Const <2x3>; c Const <>; y Pack x x ^c N=2" F, "y", "2x2x3", ANY },
		{ "x Const <2x3x4>; u Unpack x axis=1; y Identity u:2" F, "y", "2x4", ANY },
		{ "x Const {5,6}; u Unpack x; s Pack u:1; y Fill s s" F, "y", "6", ANY },
		{ "a Const #0; x Const <2x3>; w Const <5x3>; y Concat a x w" F, "y", "7x3", ANY },
		{ "a Const #-1; x Const <2x3>; w Const <2x5>; y ConcatV2 x w a N=2" F, "y", "2x8",
		  ANY },
		{ "a Const #0; x Const <2x3>; w Placeholder <?x3>; y ConcatV2 x w a" F, "y", "?x3",
		  ANY },
		{ "a Placeholder <>; x Const <2x3>; w Const <2x3>; y ConcatV2 x w a" F, "y", "?x?",
		  ANY },
		{ "a Const #0; x Const <2x3>; w Const <2>; y ConcatV2 x w a" F, "y", "unknown",
		  ANY },
		{ "a Const #0; x Const {4}; w Const {5,6}; c ConcatV2 x w a; y Fill c c" F, "y",
		  "4x5x6", ANY },
		{ "a Const #0; p Placeholder <1>; w Const {5,6}; c ConcatV2 p w a; y Fill c c" F,
		  "y", "?x5x6", ANY },
		{ "a Const #1; x Const <2x12>; s Split a x num_split=4; y Identity s:3" F, "y",
		  "2x3", ANY },
		{ "a Const #1; x Const <2x12>; s Split a x num_split=5; y Identity s:3" F, "y",
		  "2x?", ANY },
		{ "a Const #1; x Const <2x12>; n Const {3,-1,4}; s SplitV x n a; y Identity s:1" F,
		  "y", "2x5", ANY },
		{ "a Const #1; x Const <2x12>; n Const {3,-1,4}; s SplitV x n a; y Identity s:2" F,
		  "y", "2x4", ANY },
		{ "a Const #0; s Const {1,2}; o ConcatOffset a s s; y Identity o:1" F, "y", "2",
		  ANY },
		{ "i Const {0,2}; j Const {1}; a Const {5,7}; b Const {6}; s DynamicStitch i j a "
		  "b; "
		  "y Fill s s" F,
		  "y", "5x6x7", ANY },
		{ "i Placeholder <?>; j Const {1}; a Const <9x4>; b Const <9x4>; "
		  "y DynamicStitch i j a b" F,
		  "y", "?x4", ANY },
	};

	(void)state;
	RUN(cases);
}

static void test_repeat(void **state)
{
	static const struct test_case cases[] = {
		{ "s Const {2,3}; y RandomUniform s" F, "y", "2x3", ANY },
		{ "x Const <2x3>; s Shape x; y TruncatedNormal s" F, "y", "2x3", ANY },
		{ "x Const <2x3>; w Const <4>; s ShapeN x w; y RandomStandardNormal s:1" F, "y",
		  "4", ANY },
		{ "x Const <2x3>; n Size x; s Pack n n; y Fill s s" F, "y", "6x6", ANY },
		{ "x Const <2x3>; n Rank x; s Pack n; y Fill s s" F, "y", "2", ANY },
		{ "a Const #2; b Const #9; d Const #3; y Range a b d" F, "y", "3", ANY },
		{ "a Const #2; b Const #9; d Const #3; r Range a b d; y Fill r r" F, "y", "2x5x8",
		  ANY },
		{ "a Const #9; b Const #2; d Const #-3; y Range a b d" F, "y", "3", ANY },
		{ "a Const #9; b Const #2; d Const #3; y Range a b d" F, "y", "0", ANY },
		{ "a Const #9; b Const #2; d Const #0; y Range a b d" F, "y", "?", ANY },
		{ "x Const <2x3>; t Const {4,5}; y Tile x t" F, "y", "8x15", ANY },
		{ "x Const <2x3>; t Placeholder <2>; y Tile x t" F, "y", "?x?", ANY },
		{ "x Const <2x3>; p Const {1,2,0,5}; y Pad x p" F, "y", "5x8", ANY },
		{ "x Const <2x3>; p Placeholder <2x2>; y MirrorPad x p" F, "y", "?x?", ANY },
		{ "x Const <5x8>; p Const {1,2,0,5}; y MirrorPadGrad x p" F, "y", "2x3", ANY },
		{ "x Const <3>; s Const {2,3}; y BroadcastTo x s" F, "y", "2x3", ANY },
		{ "x Const <2x3>; d Const #10; y OneHot x d d d axis=-1" F, "y", "2x3x10", ANY },
		{ "x Const <2x3>; d Const #10; y OneHot x d d d axis=0" F, "y", "10x2x3", ANY },
		{ "x Const <2x3>; y Where x" F, "y", "?x2", ANY },
		{ "n Const #3; s Pack n n; v Const #4; f Fill s v; y Shape f; z Fill y y" F, "z",
		  "3x3", ANY },
	};

	(void)state;
	RUN(cases);
}

static void test_slices(void **state)
{
	static const struct test_case cases[] = {
		{ "x Const <9x8>; b Const {1,2}; s Const {3,4}; y Slice x b s" F, "y", "3x4", ANY },
		{ "x Const <9x8>; b Const {1,2}; s Const {-1,4}; y Slice x b s" F, "y", "8x4",
		  ANY },
		{ "x Const <9x8>; b Placeholder <2>; s Const {3,4}; y Slice x b s" F, "y", "3x4",
		  ANY },
		{ "x Const <9x8>; b Placeholder <2>; s Placeholder <2>; y Slice x b s" F, "y",
		  "?x?", ANY },
		{ "x Const {5,6,7}; b Const {1}; s Const {-1}; v Slice x b s; y Fill v v" F, "y",
		  "6x7", ANY },
		{ "x Const <9x8x7>; b Const {1,2}; e Const {4,8}; s Const {1,2}; y StridedSlice x "
		  "b e s" F,
		  "y", "3x3x7", ANY },
		{ "x Const <9x8>; b Const {0,0}; e Const {0,0}; s Const {1,1}; "
		  "y StridedSlice x b e s begin_mask=3 end_mask=3" F,
		  "y", "9x8", ANY },
		{ "x Const <9x8>; b Const {-1,0}; e Const {0,-1}; s Const {1,1}; "
		  "y StridedSlice x b e s shrink_axis_mask=1" F,
		  "y", "7", ANY },
		{ "x Const <9x8>; b Const {0}; e Const {0}; s Const {-1}; "
		  "y StridedSlice x b e s begin_mask=1 end_mask=1" F,
		  "y", "9x8", ANY },
		{ "x Const <9x8x7>; b Const {0,1}; e Const {0,3}; s Const {1,1}; "
		  "y StridedSlice x b e s ellipsis_mask=1" F,
		  "y", "9x8x2", ANY },
		{ "x Const <9x8>; b Const {0,1}; e Const {0,3}; s Const {1,1}; "
		  "y StridedSlice x b e s new_axis_mask=1" F,
		  "y", "1x2x8", ANY },
		{ "x Placeholder <?x8>; b Const {0,1}; e Const {4,3}; s Const {1,1}; "
		  "y StridedSlice x b e s" F,
		  "y", "?x2", ANY },
		{ "x Const <9x8>; b Placeholder <2>; e Const {4,3}; s Const {1,1}; "
		  "y StridedSlice x b e s shrink_axis_mask=2" F,
		  "y", "?", ANY },
		{ "x Const <9>; b Const {0,0}; e Const {1,1}; s Const {1,1}; y StridedSlice x b e "
		  "s" F,
		  "y", "unknown", ANY },
		{ "x Const {4,5,6,7}; b Const {3}; e Const {0}; s Const {-2}; v StridedSlice x b e "
		  "s; "
		  "y Fill v v" F,
		  "y", "7x5", ANY },
		{ "x Const {4,5,6,7}; b Const {-3}; e Const {9}; s Const {1}; v StridedSlice x b e "
		  "s; "
		  "y Fill v v" F,
		  "y", "5x6x7", ANY },
		{ "s Const {9,8}; y StridedSliceGrad s s s s s" F, "y", "9x8", ANY },
		{ "x Const <9x8>; i Const <2x3>; y Gather x i" F, "y", "2x3x8", ANY },
		{ "x Const <9x8x7>; i Const <2x3>; a Const #1; y GatherV2 x i a" F, "y", "9x2x3x7",
		  ANY },
		{ "x Const <9x8x7>; i Const <9x3>; a Const #1; y GatherV2 x i a batch_dims=1" F,
		  "y", "9x3x7", ANY },
		{ "x Const {4,5,6}; i Const {2,0}; a Const #0; v GatherV2 x i a; y Fill v v" F, "y",
		  "6x4", ANY },
		{ "x Const <9x8x7>; i Const <5x2>; y GatherNd x i" F, "y", "5x7", ANY },
		{ "x Const <9x8>; y TopK x k=3" F, "y", "9x3", ANY },
		{ "x Const <9x8>; k Const #4; t TopKV2 x k; y Identity t:1" F, "y", "9x4", ANY },
	};

	(void)state;
	RUN(cases);
}

static void test_convolutions(void **state)
{
	static const struct test_case cases[] = {
		{ "x Const <8x28x28x3>; f Const <5x5x3x16>; "
		  "y Conv2D x f strides=[1,1,1,1] padding=SAME data_format=NHWC",
		  "y", "8x28x28x16", 2 * 8 * 28 * 28 * 16 * 75 },
		{ "x Const <8x28x29x3>; f Const <5x5x3x16>; "
		  "y Conv2D x f strides=[1,2,2,1] padding=SAME",
		  "y", "8x14x15x16", 2 * 8 * 14 * 15 * 16 * 75 },
		{ "x Const <8x28x29x3>; f Const <5x4x3x16>; "
		  "y Conv2D x f strides=[1,2,2,1] padding=VALID",
		  "y", "8x12x13x16", 2 * 8 * 12 * 13 * 16 * 60 },
		{ "x Const <8x3x28x29>; f Const <5x4x3x16>; "
		  "y Conv2D x f strides=[1,1,2,2] padding=VALID data_format=NCHW",
		  "y", "8x16x12x13", 2 * 8 * 12 * 13 * 16 * 60 },
		{ "x Const <8x28x28x3>; f Const <3x3x3x16>; "
		  "y Conv2D x f strides=[1,1,1,1] padding=VALID dilations=[1,2,2,1]",
		  "y", "8x24x24x16", 2 * 8 * 24 * 24 * 16 * 27 },
		{ "x Const <8x28x28x3>; f Const <3x3x3x16>; y Conv2D x f strides=[1,1,1,1] "
		  "padding=EXPLICIT explicit_paddings=[0,0,2,1,0,0,0,0]",
		  "y", "8x29x26x16", 2 * 8 * 29 * 26 * 16 * 27 },
		{ "x Placeholder <?x28x28x3>; f Const <5x5x3x16>; "
		  "y Conv2D x f strides=[1,1,1,1] padding=SAME",
		  "y", "?x28x28x16", 0 },
		{ "x Placeholder <*>; f Const <5x5x3x16>; y Conv2D x f strides=[1,1,1,1] "
		  "padding=SAME",
		  "y", "?x?x?x16", 0 },
		{ "x Const <8x2x2x3>; f Const <5x5x3x16>; y Conv2D x f strides=[1,1,1,1] "
		  "padding=VALID",
		  "y", "8x?x?x16", 0 },
		{ "x Const <8x28x28x3>; f Const <5x5x3x2>; "
		  "y DepthwiseConv2dNative x f strides=[1,1,1,1] padding=SAME",
		  "y", "8x28x28x6", 2 * 8 * 28 * 28 * 6 * 25 },
		{ "x Const <2x8x8x8x3>; f Const <3x3x3x3x4>; "
		  "y Conv3D x f strides=[1,1,2,2,1] padding=SAME data_format=NDHWC",
		  "y", "2x8x4x4x4", 2 * 2 * 8 * 4 * 4 * 4 * 81 },
		{ "x Const <8x28x28x3>; f Const <3x3x3>; "
		  "y Dilation2D x f strides=[1,1,1,1] rates=[1,2,2,1] padding=VALID",
		  "y", "8x24x24x3", 2 * 8 * 24 * 24 * 3 * 9 },
		{ "s Const {8,28,28,3}; f Const <5x5x3x16>; g Const <8x14x14x16>; y "
		  "Conv2DBackpropInput "
		  "s f g strides=[1,2,2,1] padding=SAME data_format=NHWC",
		  "y", "8x28x28x3", 2 * 8 * 28 * 28 * 3 * 400 / 4 },
		{ "x Const <8x28x28x3>; s Const {5,5,3,16}; g Const <8x14x14x16>; "
		  "y Conv2DBackpropFilter x s g strides=[1,2,2,1] padding=SAME data_format=NHWC",
		  "y", "5x5x3x16", 2 * 8 * 28 * 28 * 400 * 3 / 4 },
		/* 2·n(out)·n(f)/(c·9) is not whole: cut */
		{ "s Const {1,5,5,1}; f Const <2x2x1x1>; g Const <1x2x2x1>; y Conv2DBackpropInput "
		  "s f g strides=[1,3,3,1] padding=SAME data_format=NHWC",
		  "y", "1x5x5x1", 22 },
		{ "s Const {8,3,28,28}; f Const <5x5x3x16>; g Const <8x16x14x14>; y "
		  "Conv2DBackpropInput "
		  "s f g strides=[1,1,2,2] padding=SAME data_format=NCHW",
		  "y", "8x3x28x28", 0 },
		{ "s Const {8,28,28,3}; f Const <5x5x3x16>; g Const <8x14x14x16>; "
		  "y DepthwiseConv2dNativeBackpropInput s f g" F,
		  "y", "8x28x28x3", ANY },
	};

	(void)state;
	RUN(cases);
}

static void test_pooling(void **state)
{
	static const struct test_case cases[] = {
		{ "x Const <8x28x28x3>; y MaxPool x ksize=[1,3,3,1] strides=[1,2,2,1] padding=SAME "
		  "data_format=NHWC",
		  "y", "8x14x14x3", 9 * 8 * 14 * 14 * 3 },
		{ "x Const <8x28x28x3>; y AvgPool x ksize=[1,3,3,1] strides=[1,2,2,1] "
		  "padding=VALID "
		  "data_format=NHWC",
		  "y", "8x13x13x3", 9 * 8 * 13 * 13 * 3 },
		{ "x Const <8x3x28x28>; y MaxPool x ksize=[1,1,2,2] strides=[1,1,2,2] "
		  "padding=VALID "
		  "data_format=NCHW",
		  "y", "8x3x14x14", 0 },
		{ "x Const <8x28x28x3>; y MaxPool x ksize=[1,3,3,1] strides=[1,2,2,1] padding=SAME",
		  "y", "8x14x14x3", 9 * 8 * 14 * 14 * 3 },
		{ "x Const <8x28x28x3>; k Const {1,2,2,1}; y MaxPoolV2 x k k padding=VALID "
		  "data_format=NHWC" F,
		  "y", "8x14x14x3", ANY },
		{ "x Const <2x8x8x8x3>; y AvgPool3D x ksize=[1,2,2,2,1] strides=[1,2,2,2,1] "
		  "padding=VALID data_format=NDHWC" F,
		  "y", "2x4x4x4x3", ANY },
		{ "x Const <8x28x28x3>; o Const <8x14x14x3>; y MaxPoolGrad x o o ksize=[1,2,2,1] "
		  "strides=[1,2,2,1] padding=SAME data_format=NHWC",
		  "y", "8x28x28x3", 5 * 8 * 14 * 14 * 3 },
		{ "s Const {8,28,28,3}; g Const <8x14x14x3>; y AvgPoolGrad s g ksize=[1,2,2,1] "
		  "strides=[1,2,2,1] padding=SAME data_format=NHWC",
		  "y", "8x28x28x3", 2 * 4 * 8 * 14 * 14 * 3 },
	};

	(void)state;
	RUN(cases);
}

static void test_networks(void **state)
{
	static const struct test_case cases[] = {
		{ "x Const <8x5x5x3>; c Const <3>; n FusedBatchNorm x c c c c data_format=NHWC; "
		  "y Identity n:2" F,
		  "y", "3", ANY },
		{ "x Const <8x3x5x5>; c Const <3>; n FusedBatchNormV3 x c c c c data_format=NCHW" F,
		  "n", "8x3x5x5", ANY },
		{ "g Const <8x5x5x3>; c Const <3>; n FusedBatchNormGrad g g c c c; y Identity "
		  "n:1" F,
		  "y", "3", ANY },
		{ "x Const <8x10>; y Softmax x", "y", "8x10", 400 },
		{ "x Const <8x10>; l Const <8x10>; s SoftmaxCrossEntropyWithLogits x l; y Identity "
		  "s:1" F,
		  "y", "8x10", ANY },
		{ "x Placeholder <?x10>; l Const <8>; y SparseSoftmaxCrossEntropyWithLogits x l" F,
		  "y", "8", ANY },
		{ "x Const <8x10>; t Const <8>; y InTopK x t" F, "y", "8", ANY },
		{ "x Const <8x10>; n Const #4; y Multinomial x n" F, "y", "8x4", ANY },
		{ "x Const <8x5x5x3>; y LRN x" F, "y", "8x5x5x3", ANY },
		{ "x Const <8x5x5x3>; s Const {9,7}; y ResizeBilinear x s" F, "y", "8x9x7x3", ANY },
		{ "x Const <8x5x5x3>; s Placeholder <2>; y ResizeNearestNeighbor x s" F, "y",
		  "8x?x?x3", ANY },
		{ "x Const <8x5x5x3>; b Const <6x4>; i Const <6>; s Const {9,7}; "
		  "y CropAndResize x b i s" F,
		  "y", "6x9x7x3", ANY },
		{ "x Const <>; y DecodeJpeg x channels=3" F, "y", "?x?x3", ANY },
		{ "x Const <8x6x6x3>; y SpaceToDepth x block_size=2" F, "y", "8x3x3x12", ANY },
		{ "x Const <8x3x3x12>; y DepthToSpace x block_size=2" F, "y", "8x6x6x3", ANY },
		{ "x Const <2x7x9x3>; b Const {2,3}; p Const {0,1,0,0}; y SpaceToBatchND x b p" F,
		  "y", "12x4x3x3", ANY },
		{ "x Const <12x4x3x3>; b Const {2,3}; p Const {0,1,0,0}; y BatchToSpaceND x b p" F,
		  "y", "2x7x9x3", ANY },
		{ "x Const <8x10x10x3>; y ExtractImagePatches x ksizes=[1,3,3,1] strides=[1,5,5,1] "
		  "rates=[1,1,1,1] padding=VALID" F,
		  "y", "8x2x2x27", ANY },
	};

	(void)state;
	RUN(cases);
}

/* Formulas that the cases above do not reach, and what makes them silent. */
static void test_formulas(void **state)
{
	static const struct test_case cases[] = {
		{ "x Const <2x3>; y Reciprocal x", "y", "2x3", 6 },
		{ "x Const <2x3>; y Square x", "y", "2x3", 6 },
		{ "x Const <2x3>; y Log x", "y", "2x3", 6 },
		{ "x Const <2x3>; y Neg x", "y", "2x3", 6 },
		{ "x Const <2x3>; y Rsqrt x", "y", "2x3", 12 },
		{ "x Const <2x3>; y AssignSub x x", "y", "2x3", 6 },
		{ "x Const <2x3>; y AssignAdd x x", "y", "2x3", 6 },
		{ "x Const <2x3>; y RealDiv x x", "y", "2x3", 6 },
		{ "x Const <2x3>; y Maximum x x", "y", "2x3", 6 },
		{ "x Const <2x3>; y Minimum x x", "y", "2x3", 6 },
		{ "x Const <2x3>; y Pow x x", "y", "2x3", 6 },
		{ "x Const <2x3>; y GreaterEqual x x", "y", "2x3", 6 },
		{ "x Const <2x3>; y Greater x x", "y", "2x3", 6 },
		{ "x Const <2x3>; y LessEqual x x", "y", "2x3", 6 },
		{ "x Const <2x3>; y Less x x", "y", "2x3", 6 },
		{ "x Const <2x3>; y Equal x x", "y", "2x3", 6 },
		{ "x Const <2x3>; y NotEqual x x", "y", "2x3", 6 },
		{ "x Const <2x3>; y SquaredDifference x x", "y", "2x3", 12 },
		{ "x Const <2x3>; y RsqrtGrad x x", "y", "2x3", 24 },
		{ "x Const <2x3>; y AddN x x x", "y", "2x3", 12 },
		{ "x Const <2x3>; c Const <>; y AddN x x ^c", "y", "2x3", 12 },
		{ "x Const <2x3>; y AddN", "y", "unknown", 0 },
		{ "x Const <2x3>; y Relu x; z Exp y; w Neg x", "z", "2x3", 0 },
		/* what the formula reads is not there */
		{ "x Const <2x3>; y Neg ^x", "y", "unknown", 0 },
		{ "x Const <2x3>; y Neg nobody", "y", "unknown", 0 },
		{ "x Const <2x3>; f Const <2x3>; y Conv2D x f", "y", "unknown", 0 },
		{ "s Const {1,5,5,1}; f Const <2x2x1x1>; y Conv2DBackpropInput s f f strides=[1,3] "
		  "data_format=NHWC",
		  "y", "1x5x5x1", 0 },
		/* too large for a number */
		{ "x Const <9223372036854775807x2>; y Neg x", "y", "9223372036854775807x2", 0 },
		{ "x Const <4294967296x1073741824>; y Rsqrt x", "y", NULL, 0 },
	};

	(void)state;
	RUN(cases);
}

/* A type twice in a table would silently use one of the two. */
static void test_tables(void **state)
{
	(void)state;
	for (size_t i = 0; i < tf_rule_count; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(tf_rules[i].type, tf_rules[k].type) == 0)
				fail_msg("two rules for %s", tf_rules[i].type);
	for (size_t i = 0; i < tf_flops_count; i++) {
		bool found = false;

		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(tf_flops_table[i].type, tf_flops_table[k].type);
		for (size_t k = 0; k < tf_rule_count; k++)
			found |= strcmp(tf_rules[k].type, tf_flops_table[i].type) == 0;
		if (!found)
			fail_msg("%s has a formula but no shape rule", tf_flops_table[i].type);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sources),	     cmocka_unit_test(test_control_flow),
		cmocka_unit_test(test_elementwise),  cmocka_unit_test(test_products),
		cmocka_unit_test(test_einsum),	     cmocka_unit_test(test_later_types),
		cmocka_unit_test(test_reductions),   cmocka_unit_test(test_broadcast_gradient),
		cmocka_unit_test(test_reshape),	     cmocka_unit_test(test_join_and_split),
		cmocka_unit_test(test_repeat),	     cmocka_unit_test(test_slices),
		cmocka_unit_test(test_convolutions), cmocka_unit_test(test_pooling),
		cmocka_unit_test(test_networks),     cmocka_unit_test(test_formulas),
		cmocka_unit_test(test_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
