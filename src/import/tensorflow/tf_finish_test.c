/*
 * tf_finish_test.c: what is computed when all inputs are in: shapes from the user, from runs and from
 * profiles, notes, parameters of frozen graphs; hostile and random graphs; every allocation failing
 * once. OPWATCH_CORPUS may point to real files, whose totals were worked out by hand or by TensorFlow.
 */
#include "import/importer.h"
#include "import/tensorflow/shapes/tf_flops.h"
#include "import/tensorflow/tf_finish.h"

#include "support/tf_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- what the user says ---- */

static const char *const NETWORK =
	"x Placeholder <?x784>; w Const <784x10>; w/read Identity w; m MatMul x w/read; "
	"b Const <10>; y BiasAdd m b; p Placeholder <*>; z Mul y p";

static ow_status with_shapes(struct world *w, const char *const *shapes, size_t count)
{
	world_begin(w);
	assert_int_equal(add_graph(w, NETWORK), OW_OK);
	w->options.input_shapes = shapes;
	w->options.input_shape_count = count;
	return finish(w);
}

static void test_unknown_shapes(void **state)
{
	struct world w;

	(void)state;
	assert_int_equal(with_shapes(&w, NULL, 0), OW_OK);
	assert_int_equal(total_flops(&w), 0);
	assert_true(flags_of(&w, "m") & OP_UNKNOWN_FLOPS);
	assert_note(&w, "3 ops have no float operations because their shapes are unknown: "
			"BiasAdd 1, MatMul 1, Mul 1; give the shapes of inputs: "
			"--input-shape x=Nx784 --input-shape p=…");
	assert_false(w.m->damaged);
	world_end(&w);
}

static void test_given_shapes(void **state)
{
	static const char *const shapes[] = { "x=100x784", "p:0=scalar" };
	struct world w;

	(void)state;
	assert_int_equal(with_shapes(&w, shapes, 2), OW_OK);
	assert_int_equal(flops_of(&w, "m"), 2 * 100 * 784 * 10);
	assert_int_equal(flops_of(&w, "y"), 1000);
	assert_int_equal(flops_of(&w, "z"), 1000);
	assert_true(flags_of(&w, "m") & OP_INFERRED_FLOPS);
	assert_false(has_note(&w, "no float operations"));
	world_end(&w);
	/* only what is unknown needs a number */
	assert_int_equal(with_shapes(&w, (const char *const[]){ "x=5x?" }, 1), OW_OK);
	assert_int_equal(flops_of(&w, "m"), 2 * 5 * 784 * 10);
	world_end(&w);
}

static void refuse(const char *shape, const char *message)
{
	struct world w;

	assert_int_equal(with_shapes(&w, &shape, 1), OW_E_USAGE);
	if (!strstr(w.err.text, message))
		fail_msg("%s: %s", shape, w.err.text);
	world_end(&w);
}

static void test_bad_shapes(void **state)
{
	struct world w;

	(void)state;
	refuse("nobody=3", "the graph has no node 'nobody'; its placeholders are x, p");
	refuse("x:7=3", "the graph has no node 'x:7'");
	refuse("x=100x785", "the graph declares it as ?x784");
	refuse("x=3", "the graph declares it as ?x784");
	refuse("x", "expected NAME=100x784");
	refuse("=3", "expected NAME=100x784");
	refuse("x=3xy", "expected NAME=100x784");
	refuse("x=-3", "expected NAME=100x784");
	refuse("x=", "expected NAME=100x784");
	refuse("x=99999999999999999999", "expected NAME=100x784");
	refuse("x=1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1", "expected");
	world_begin(&w);
	w.options.input_shapes = (const char *const[]){ "x=1" };
	w.options.input_shape_count = 1;
	assert_int_equal(finish(&w), OW_E_USAGE);
	assert_non_null(strstr(w.err.text, "it has no placeholders"));
	world_end(&w);
}

/* ---- what other sources say ---- */

/* RunMetadata in which `name` put out tensors of these shapes. */
static void add_run(struct world *w, const char *name, const char *shape)
{
	size_t stats, device, node, output, tensor;
	struct buf out;

	buf_init(&out, &w->mem);
	stats = pb_begin(&out, 1);
	device = pb_begin(&out, 1);
	pb_put_str(&out, 1, STR("/job:localhost/replica:0/task:0/device:CPU:0"));
	node = pb_begin(&out, 2);
	pb_put_str(&out, 1, str_from(name));
	pb_put_varint(&out, 2, 1000);
	pb_put_varint(&out, 5, 10);
	output = pb_begin(&out, 7);
	tensor = pb_begin(&out, 3);
	pb_put_varint(&out, 1, 1);
	gt_shape(&out, 2, str_from(shape));
	pb_end(&out, tensor);
	pb_end(&out, output);
	pb_end(&out, node);
	pb_end(&out, device);
	pb_end(&out, stats);
	assert_int_equal(add_bytes(w, "runmeta", &out), OW_OK);
}

static void test_traced_shapes(void **state)
{
	struct world w;

	(void)state;
	world_begin(&w);
	assert_int_equal(add_graph(&w, NETWORK), OW_OK);
	add_run(&w, "x", "64x784");
	add_run(&w, "p", "10");
	finish(&w);
	assert_int_equal(flops_of(&w, "m"), 2 * 64 * 784 * 10);
	assert_int_equal(flops_of(&w, "z"), 640);
	world_end(&w);
	/* the user's word is the last; a trace that contradicts the graph is not believed */
	world_begin(&w);
	assert_int_equal(add_graph(&w, NETWORK), OW_OK);
	add_run(&w, "x", "64x784");
	add_run(&w, "m", "64x11");
	w.options.input_shapes = (const char *const[]){ "x=2x784" };
	w.options.input_shape_count = 1;
	finish(&w);
	assert_int_equal(flops_of(&w, "m"), 2 * 2 * 784 * 10);
	world_end(&w);
}

static void test_given_flops_stay(void **state)
{
	struct world w;
	op_id op;

	(void)state;
	world_begin(&w);
	assert_int_equal(add_graph(&w, "x Const <2x3>; y Neg x; z Neg y"), OW_OK);
	op = model_find_op(w.m, STR("y"));
	w.m->op.float_ops[op.v] = 12345;
	assert_int_equal(finish(&w), OW_OK);
	assert_int_equal(flops_of(&w, "y"), 12345);
	assert_false(flags_of(&w, "y") & OP_INFERRED_FLOPS);
	assert_int_equal(flops_of(&w, "z"), 6);
	world_end(&w);
}

static void test_switched_off(void **state)
{
	struct world w;

	(void)state;
	world_begin(&w);
	w.options.infer = false;
	assert_int_equal(add_graph(&w, "x Const <2x3>; y Neg x"), OW_OK);
	assert_int_equal(finish(&w), OW_OK);
	assert_int_equal(flops_of(&w, "y"), 0);
	assert_int_equal(w.m->op_output.count, 1);
	world_end(&w);
}

/* Nodes of a profile have their attributes under another number, and inputs without control marks. */
static void test_profile(void **state)
{
	static const char *const names[] = { "a", "b", "y" };
	static const char *const types[] = { "Placeholder", "Placeholder", "MatMul" };
	struct world w;
	struct buf out;

	(void)state;
	world_begin(&w);
	buf_init(&out, &w.mem);
	for (uint64_t i = 0; i < 3; i++) {
		size_t entry = pb_begin(&out, 1), node, part, value;

		pb_put_varint(&out, 1, i);
		node = pb_begin(&out, 2);
		pb_put_str(&out, 1, str_from(names[i]));
		for (uint64_t k = 0; k < 2 && i == 2; k++) {
			part = pb_begin(&out, 2);
			pb_put_varint(&out, 1, k);
			pb_put_varint(&out, 2, k);
			pb_end(&out, part);
		}
		pb_put_str(&out, 9, str_from(types[i]));
		part = pb_begin(&out, 11);
		pb_put_str(&out, 1, i == 2 ? STR("transpose_a") : STR("shape"));
		value = pb_begin(&out, 2);
		if (i == 2)
			pb_put_varint(&out, 5, 1);
		else
			gt_shape(&out, 7, i ? STR("7x5") : STR("7x3"));
		pb_end(&out, value);
		pb_end(&out, part);
		pb_put_varint(&out, 13, i);
		pb_end(&out, node);
		pb_end(&out, entry);
	}
	assert_int_equal(add_bytes(&w, "profile", &out), OW_OK);
	assert_int_equal(finish(&w), OW_OK);
	assert_int_equal(flops_of(&w, "y"), 2 * 7 * 3 * 5);
	world_end(&w);
}

/* ---- parameters ---- */

static void test_frozen_weights(void **state)
{
	struct world w;
	op_id op;

	(void)state;
	world_begin(&w);
	assert_int_equal(
		add_graph(&w, "k Const <3x4>; k/read Identity k; s Const <>; s/read Identity s; "
			      "one Const <>; n Const {5,6}; x Placeholder <2x3>; "
			      "y MatMul x k/read; z Add y one"),
		OW_OK);
	assert_int_equal(finish(&w), OW_OK);
	assert_note(&w, "13 parameters were found in 2 constants");
	op = model_find_op(w.m, STR("k"));
	assert_true(w.m->op.shape[op.v].v != 0);
	op = model_find_op(w.m, STR("one"));
	assert_int_equal(w.m->op.shape[op.v].v, 0);
	world_end(&w);
	world_begin(&w);
	assert_int_equal(add_graph(&w, "k Const <3x4>; v VariableV2 <2>; y Neg k"), OW_OK);
	assert_int_equal(finish(&w), OW_OK);
	assert_false(has_note(&w, "parameters"));
	world_end(&w);
}

static void test_layout_note(void **state)
{
	struct world w;

	(void)state;
	world_begin(&w);
	assert_int_equal(add_graph(&w, "x Const <8x3x28x28>; y MaxPool x ksize=[1,1,2,2] "
				       "strides=[1,1,2,2] padding=VALID data_format=NCHW"),
			 OW_OK);
	assert_int_equal(finish(&w), OW_OK);
	assert_note(&w, "1 ops have no float operations because TensorFlow's formula holds for "
			"data_format NHWC only: MaxPool 1");
	assert_true(flags_of(&w, "y") & OP_UNKNOWN_FLOPS);
	world_end(&w);
}

/* Before version 24 an empty shape said nothing. */
/* More than a number holds is not an unknown shape. */
static void test_too_large(void **state)
{
	struct world w;

	(void)state;
	world_begin(&w);
	assert_int_equal(
		add_graph(&w,
			  "a Const <1099511627776x1048576>; b Const <1048576x1099511627776>; "
			  "y MatMul a b; z Softmax p; p Const <4611686018427387904x4>; q Neg p"),
		OW_OK);
	assert_int_equal(finish(&w), OW_OK);
	assert_int_equal(total_flops(&w), 0);
	assert_note(
		&w,
		"3 ops have more float operations than can be counted: MatMul 1, Neg 1, Softmax 1");
	assert_false(has_note(&w, "shapes are unknown"));
	world_end(&w);
}

/* What depends on values: the note says where it begins, and a shape given there helps. */
static void test_values_unknown(void **state)
{
	static const char *const shapes[] = { "w=3x2" };
	const char *graph = "c Const <5x6>; w Where c; f Cast w; y Neg f; z Mul y y";
	struct world w;

	(void)state;
	world_begin(&w);
	assert_int_equal(add_graph(&w, graph), OW_OK);
	assert_int_equal(finish(&w), OW_OK);
	assert_note(
		&w,
		"2 ops have no float operations because their shapes are unknown: Mul 1, Neg 1; "
		"the first depends on 'w' (Where), whose size is not in the graph: --input-shape "
		"w=Nx2");
	world_end(&w);
	world_begin(&w);
	assert_int_equal(add_graph(&w, graph), OW_OK);
	w.options.input_shapes = shapes;
	w.options.input_shape_count = 1;
	assert_int_equal(finish(&w), OW_OK);
	assert_int_equal(total_flops(&w), 12);
	assert_false(has_note(&w, "unknown"));
	world_end(&w);
}

static void test_old_placeholder(void **state)
{
	struct world w;
	struct buf out;

	(void)state;
	world_begin(&w);
	buf_init(&out, &w.mem);
	gt_node(&out, STR("x Placeholder <>"));
	gt_node(&out, STR("y Neg x"));
	assert_int_equal(add_bytes(&w, "graphdef", &out), OW_OK);
	w.options.input_shapes = (const char *const[]){ "x=4x5" };
	w.options.input_shape_count = 1;
	assert_int_equal(finish(&w), OW_OK);
	assert_int_equal(flops_of(&w, "y"), 20);
	world_end(&w);
}

/* ---- large and hostile graphs ---- */

static void test_long_chain(void **state)
{
	const int count = 100000;
	struct world w;
	struct buf out;
	char text[64];

	(void)state;
	for (int backwards = 0; backwards < 2; backwards++) {
		world_begin(&w);
		buf_init(&out, &w.mem);
		for (int i = 0; i < count; i++) {
			int n = backwards ? count - 1 - i : i;

			if (n)
				snprintf(text, sizeof(text), "n%d Neg n%d", n, n - 1);
			else
				snprintf(text, sizeof(text), "n0 Const <2x3>");
			gt_node(&out, str_from(text));
		}
		assert_int_equal(add_bytes(&w, "graphdef", &out), OW_OK);
		assert_int_equal(finish(&w), OW_OK);
		assert_int_equal(flops_of(&w, "n99999"), 6);
		assert_int_equal(total_flops(&w), 6 * (count - 1));
		world_end(&w);
	}
}

static void test_hostile(void **state)
{
	static const char *const graphs[] = {
		"a Neg a",
		"a Neg b; b Neg c; c Neg a",
		"a Merge a a; b Neg a",
		"x Const <2x3>; a Neg x:2147483647; b Neg x:-1; c Neg x:99999999999",
		"a Const #0; x Const <4>; s Split a x num_split=9223372036854775807; y Neg s:3",
		"a Const #0; x Const <4>; s Split a x num_split=-1; y Neg s:3",
		"x Const <2x3>; p Pack x x axis=-9223372036854775808 N=-5; y Neg p",
		"x Const <2x3>; p Pack x x N=9223372036854775807; y Neg p",
		"b Const {-9223372036854775808}; x Const <9>; e Const {9223372036854775807}; "
		"s StridedSlice x b e b begin_mask=-1 end_mask=-1 ellipsis_mask=-1; y Neg s",
		"b Const {-9223372036854775807}; x Const {1,2}; e Const {9223372036854775807}; "
		"s StridedSlice x b e b; t StridedSlice x e b b; y Fill s t; z Neg y",
		"a Const #-9223372036854775808; b Const #9223372036854775807; r Range a b b; "
		"q Range b a a; y Neg r; z Neg q; s Sub a b; m Mul a a; d FloorDiv a s; e FloorMod "
		"a b; "
		"f Fill m d",
		"x Const <9223372036854775807x9223372036854775807>; y Neg x; s Size x; t Tile x x; "
		"z Fill s s; c ConcatV2 x x s; p Pad x t; m MatMul x x; b BatchMatMulV2 x x",
		"x Const <5x5x5x5>; f Const <5x5x5x5>; y Conv2D x f strides=[0,0,0,0] "
		"padding=VALID; "
		"z Conv2D x f strides=[1,-9223372036854775808,1,1] padding=SAME "
		"dilations=[1,0,0,1]; "
		"v Conv2D x f strides=[1,1,1,1] padding=EXPLICIT "
		"explicit_paddings=[0,0,-9223372036854775808,-9223372036854775808,0,0,0,0]; "
		"w MaxPool x ksize=[0,-1,9223372036854775807,9223372036854775807] "
		"strides=[1,1,1,1] "
		"padding=VALID data_format=NHWC",
		"p Const {-9223372036854775808,9223372036854775807,9223372036854775807,1}; "
		"x Const <3x3>; y Pad x p; z MirrorPadGrad x p; b Const {-9223372036854775808}; "
		"q Const {9223372036854775807,9223372036854775807}; s SpaceToBatchND x b q; "
		"t BatchToSpaceND x b q; d DepthToSpace x block_size=9223372036854775807; n Neg y",
		"s StackV2; p StackPushV2 s p; y StackPopV2 s; e Enter e; q StackPopV2 e; z Neg y",
		"i IteratorGetNext; a Neg i:1000000; b Neg i:5",
		"y Neg x; x Placeholder <0x9223372036854775807x9223372036854775807>",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(graphs); i++) {
		struct world w;

		world_begin(&w);
		assert_int_equal(add_graph(&w, graphs[i]), OW_OK);
		assert_int_equal(finish(&w), OW_OK);
		world_end(&w);
	}
}

/* Ten thousand readers of ten thousand outputs that an attribute declares. */
static void test_many_outputs(void **state)
{
	struct world w;
	struct buf out, text;

	(void)state;
	world_begin(&w);
	buf_init(&out, &w.mem);
	buf_init(&text, &w.mem);
	buf_puts(&text, "i IteratorGetNext output_shapes=<2x3>");
	for (int i = 1; i < 10000; i++)
		buf_printf(&text, ",<%d>", i);
	gt_node(&out, buf_str(&text));
	for (int i = 0; i < 10000; i++) {
		buf_clear(&text);
		buf_printf(&text, "n%d Neg i:%d", i, i);
		gt_node(&out, buf_str(&text));
	}
	buf_release(&text);
	assert_int_equal(add_bytes(&w, "graphdef", &out), OW_OK);
	assert_int_equal(finish(&w), OW_OK);
	assert_int_equal(flops_of(&w, "n0"), 6);
	assert_int_equal(flops_of(&w, "n9999"), 9999);
	world_end(&w);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* A node of any known type with inputs from anywhere and a few attributes that rules read. */
static void random_node(struct buf *text, uint32_t *seed, uint32_t at, uint32_t count)
{
	static const char *const attrs[] = {
		" <2x3>",
		" <?x4x4x3>",
		" {1,2}",
		" {0,-1,5}",
		" {2,2,1,1}",
		" #1",
		" #-1",
		" #0",
		" axis=1",
		" axis=-1",
		" N=2",
		" strides=[1,2,2,1]",
		" ksize=[1,2,2,1]",
		" padding=SAME",
		" padding=VALID",
		" data_format=NHWC",
		" data_format=NCHW",
		" transpose_a=true",
		" adj_y=true",
		" keep_dims=true",
		" num_split=2",
		" begin_mask=1",
		" end_mask=3",
		" ellipsis_mask=1",
		" new_axis_mask=2",
		" shrink_axis_mask=1",
		" squeeze_dims=[0]",
		" block_size=2",
		" _output_shapes=<2>,<?x3>",
	};
	bool source = next_random(seed) % 3 == 0;
	const char *type = source ? "Const" : tf_rules[next_random(seed) % tf_rule_count].type;

	buf_printf(text, "n%u %s", at, type);
	for (uint32_t i = next_random(seed) % 5; i && !source; i--)
		buf_printf(text, " %sn%u:%u", next_random(seed) % 16 ? "" : "^",
			   next_random(seed) % (next_random(seed) % 8 && at ? at : count),
			   next_random(seed) % 8 ? 0 : next_random(seed) % 4);
	if (source) {
		buf_puts(text, attrs[next_random(seed) % 8]);
		return;
	}
	for (uint32_t i = next_random(seed) % 6; i; i--)
		buf_puts(text, attrs[next_random(seed) % ARRAY_COUNT(attrs)]);
}

static void test_random_graphs(void **state)
{
	const char *rounds = getenv("OPWATCH_TEST_ROUNDS");
	uint32_t limit = rounds ? (uint32_t)strtoul(rounds, NULL, 10) : 300;

	(void)state;
	for (uint32_t round = 0; round < limit; round++) {
		uint32_t seed = round, count = 2 + next_random(&seed) % 60;
		struct world w;
		struct buf text;

		world_begin(&w);
		buf_init(&text, &w.mem);
		for (uint32_t i = 0; i < count; i++) {
			random_node(&text, &seed, i, count);
			buf_puts(&text, ";");
		}
		assert_int_equal(add_graph(&w, buf_cstr(&text)), OW_OK);
		buf_release(&text);
		assert_int_equal(finish(&w), OW_OK);
		for (uint32_t i = 1; i < w.m->op_output.count; i++)
			assert_true(w.m->op_output.shape[i].v < w.m->shape.count);
		world_end(&w);
	}
}

static ow_status run_failing(uint64_t n)
{
	struct world w;
	ow_status status = OW_E_NO_MEMORY;

	mem_fail_after(n, true);
	world_begin(&w);
	if (w.m) {
		w.options.input_shapes = (const char *const[]){ "x=3x784" };
		w.options.input_shape_count = 1;
		status = add_graph(&w,
				   "x Placeholder <?x784>; w Const <784x10>; w/read Identity w; "
				   "m MatMul x w/read; s Shape m; r Fill s s; t Split s m "
				   "num_split=2; q Neg t:1; u Neg v; d Const {1,2,3}; e Fill d d");
		if (status == OW_OK)
			status = finish(&w);
	}
	mem_fail_after(0, false);
	world_end(&w);
	return status;
}

static void test_allocation_failures(void **state)
{
	ow_status status = OW_E_NO_MEMORY;
	uint64_t n = 0;

	(void)state;
	while (status != OW_OK && ++n < 5000) {
		status = run_failing(n);
		if (status != OW_OK)
			assert_int_equal(status, OW_E_NO_MEMORY);
	}
	assert_int_equal(status, OW_OK);
	assert_true(n > 30);
}

/* ---- definitions that are not in memory ---- */

/* A tensor of n floats with its bytes. */
static void add_weights(struct buf *out, const char *name, size_t n)
{
	size_t node = pb_begin(out, 1), entry, value, tensor, content;
	char shape[32];

	snprintf(shape, sizeof(shape), "%zux1", n);
	pb_put_str(out, 1, str_from(name));
	pb_put_str(out, 2, STR("Const"));
	gt_type(out, STR("dtype"), 1);
	entry = pb_begin(out, 5);
	pb_put_str(out, 1, STR("value"));
	value = pb_begin(out, 2);
	tensor = pb_begin(out, 8);
	content = pb_begin(out, 4);
	buf_add_repeat(out, 'w', 4 * n);
	pb_end(out, content);
	pb_put_varint(out, 1, 1);
	gt_shape(out, 2, str_from(shape));
	pb_end(out, tensor);
	pb_end(out, value);
	pb_end(out, entry);
	pb_end(out, node);
}

static ow_status add_file(struct world *w, const char *path)
{
	struct input in;
	ow_status status = input_open(&in, &w->mem, path, &w->err);

	return status == OW_OK ? import_input(&w->b, &in, NULL, &w->options, NULL, &w->err)
			       : status;
}

static void write_whole(int fd, const struct buf *bytes)
{
	assert_false(bytes->failed);
	for (size_t at = 0; at < bytes->len;) {
		ssize_t n = write(fd, bytes->ptr + at, bytes->len - at);

		assert_true(n > 0);
		at += (size_t)n;
	}
	assert_int_equal(close(fd), 0);
}

static void test_large_file(void **state)
{
	char path[] = "/tmp/opwatch-test-XXXXXX", text[96];
	struct world w;
	struct buf out;

	(void)state;
	world_begin(&w);
	buf_init(&out, &w.mem);
	gt_node(&out, STR("last Neg n19999")); /* comes first, so that reading has to jump */
	add_weights(&out, "a", 300000);
	add_weights(&out, "b", 30000);
	add_weights(&out, "c", 7);
	gt_node(&out, STR("x Const <2x300000>"));
	gt_node(&out, STR("n0 MatMul x a transpose_b=false"));
	gt_node(&out, STR("nb Neg b"));
	gt_node(&out, STR("nc Neg c"));
	for (int i = 1; i < 20000; i++) {
		snprintf(text, sizeof(text), "n%d Transpose n%d p filler=%032d", i, i - 1, i);
		gt_node(&out, str_from(text));
	}
	gt_node(&out, STR("p Const {1,0}"));
	write_whole(mkstemp(path), &out);
	buf_release(&out);
	assert_int_equal(add_file(&w, path), OW_OK);
	assert_int_equal(finish(&w), OW_OK);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(flops_of(&w, "n0"), 2 * 300000 * 2);
	assert_int_equal(flops_of(&w, "nb"), 30000);
	assert_int_equal(flops_of(&w, "nc"), 7);
	assert_int_equal(flops_of(&w, "last"), 2);
	assert_note(&w, "parameters were found in 4 constants");
	world_end(&w);
}

static ow_status load_failing(const char *path, uint64_t n)
{
	struct world w;
	ow_status status = OW_E_NO_MEMORY;

	mem_fail_after(n, true);
	world_begin(&w);
	if (w.m) {
		status = add_file(&w, path);
		if (status == OW_OK)
			status = finish(&w);
	}
	mem_fail_after(0, false);
	if (status == OW_OK)
		assert_int_equal(flops_of(&w, "y"), 2 * 300000 * 2);
	world_end(&w);
	return status;
}

static void test_large_file_failures(void **state)
{
	char path[] = "/tmp/opwatch-test-XXXXXX";
	ow_status status = OW_E_NO_MEMORY;
	struct mem mem;
	struct buf out;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&out, &mem);
	add_weights(&out, "a", 300000);
	gt_node(&out, STR("x Const <2x300000>"));
	gt_node(&out, STR("y MatMul x a"));
	write_whole(mkstemp(path), &out);
	buf_release(&out);
	for (uint64_t n = 1; n < 2000 && status != OW_OK; n++) {
		status = load_failing(path, n);
		if (status != OW_OK)
			assert_int_equal(status, OW_E_NO_MEMORY);
	}
	assert_int_equal(unlink(path), 0);
	assert_int_equal(status, OW_OK);
}

/* A call that is given thousands of variables is as large as one with weights; its function is named after them. */
static void test_large_call(void **state)
{
	char path[] = "/tmp/opwatch-test-XXXXXX", name[128];
	struct world w;
	struct buf out;
	size_t call;

	(void)state;
	world_begin(&w);
	buf_init(&out, &w.mem);
	snprintf(name, sizeof(name), "%0100d Const <4x6>", 7);
	gt_node(&out, str_from(name));
	call = pb_begin(&out, 1);
	pb_put_str(&out, 1, STR("call"));
	pb_put_str(&out, 2, STR("PartitionedCall"));
	for (int i = 0; i < 5000; i++)
		pb_put_str(&out, 3, str_first(str_from(name), 100));
	gt_attr(&out, STR("f"), GT_PLAIN, STR("@f"));
	pb_end(&out, call);
	gt_function(&out, "f", "x", "r=n:y:0", "n Neg x");
	write_whole(mkstemp(path), &out);
	buf_release(&out);
	assert_int_equal(add_file(&w, path), OW_OK);
	assert_int_equal(finish(&w), OW_OK);
	assert_int_equal(flops_of(&w, "call/n"), 24);
	assert_int_equal(unlink(path), 0);
	world_end(&w);
}

/* ---- real files ---- */

static bool corpus_file(char *path, size_t size, const char *name)
{
	const char *corpus = getenv("OPWATCH_CORPUS");

	if (!corpus) {
		print_message("OPWATCH_CORPUS is not set: %s is not tried\n", name);
		return false;
	}
	snprintf(path, size, "%s/%s", corpus, name);
	return true;
}

static void check_total(const char *name, const char *const *shapes, size_t count, int64_t flops,
			const char *note)
{
	char path[4096];
	struct world w;

	if (!corpus_file(path, sizeof(path), name))
		return;
	world_begin(&w);
	assert_int_equal(add_file(&w, path), OW_OK);
	w.options.input_shapes = shapes;
	w.options.input_shape_count = count;
	assert_int_equal(finish(&w), OW_OK);
	if (total_flops(&w) != flops)
		fail_msg("%s: %" PRId64 " flops, expected %" PRId64, name, total_flops(&w), flops);
	if (note)
		assert_note(&w, note);
	else
		assert_false(has_note(&w, "no float operations"));
	world_end(&w);
}

static void test_corpus_graphs(void **state)
{
	(void)state;
	check_total("tf-graph/regression-frozen.pb", (const char *const[]){ "X=17" }, 1, 34,
		    "2 parameters were found in 2 constants");
	/* three dense layers: 2·100·(784·256 + 256·256 + 256·10), and 100·(256 + 256 + 10) for biases */
	check_total("tf-graph/fc-layers-frozen.pb", (const char *const[]){ "X=100x784" }, 1,
		    2 * 100 * (784 * 256 + 256 * 256 + 256 * 10) + 100 * (256 + 256 + 10),
		    "269322 parameters were found in 6 constants");
	check_total("tf-graph/fc-layers-frozen.pb", NULL, 0, 0,
		    "6 ops have no float operations because their shapes are unknown: BiasAdd 3, "
		    "MatMul 3; give the shapes of inputs: --input-shape X=Nx784");
	/* 28 steps of a cell: one product, one bias, five elementwise ops of 100x128 each; then the
	 * dropout (five, and one subtraction of scalars) and the last layer */
	check_total("tf-graph/lstm-frozen.pb",
		    (const char *const[]){ "X=100x784", "keep_prob=scalar" }, 2,
		    28 * (2 * 100 * 156 * 512 + 100 * 512 + 5 * 100 * 128) + 5 * 100 * 128 + 1 +
			    2 * 100 * 128 * 10 + 100 * 10,
		    "81674 parameters were found in 4 constants");
	check_total("tf-graph/lite-multi_add.pb", NULL, 0, 3 * 8 * 8 * 3, NULL);
}

/* TensorFlow's own numbers, thrown away and computed again. */
static void check_profile(const char *name, const char *const *shapes, size_t count, int64_t total)
{
	int64_t *given, sum = 0;
	char path[4096];
	struct world w;

	if (!corpus_file(path, sizeof(path), name))
		return;
	world_begin(&w);
	assert_int_equal(add_file(&w, path), OW_OK);
	given = calloc(w.m->op.count, sizeof(*given));
	assert_non_null(given);
	for (uint32_t op = 1; op < w.m->op.count; op++) {
		given[op] = w.m->op.float_ops[op];
		w.m->op.float_ops[op] = 0;
		sum += given[op];
	}
	assert_int_equal(sum, total);
	w.options.input_shapes = shapes;
	w.options.input_shape_count = count;
	assert_int_equal(finish(&w), OW_OK);
	for (uint32_t op = 1; op < w.m->op.count; op++)
		if (given[op] && given[op] != w.m->op.float_ops[op])
			fail_msg("%s: %" PRId64 ", TensorFlow says %" PRId64,
				 model_str(w.m, w.m->op.name[op]).ptr, w.m->op.float_ops[op],
				 given[op]);
	/* Nothing is left open once the batch is known; the original knew only what was traced. */
	assert_false(has_note(&w, "no float operations"));
	if (!count)
		assert_int_equal(total_flops(&w), total);
	free(given);
	world_end(&w);
}

static void test_corpus_profiles(void **state)
{
	static const char *const shapes[] = { "FunctionBufferingResourceGetNext=1x32x32x3",
					      "FunctionBufferingResourceGetNext:1=1" };

	(void)state;
	check_profile("tf1-profile/resnet-dist2-profile_0", NULL, 0, 20030000000);
	check_profile("tf1-profile/resnet-dist2-profile_100", shapes, 2, 6229008);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unknown_shapes),
		cmocka_unit_test(test_given_shapes),
		cmocka_unit_test(test_bad_shapes),
		cmocka_unit_test(test_traced_shapes),
		cmocka_unit_test(test_given_flops_stay),
		cmocka_unit_test(test_switched_off),
		cmocka_unit_test(test_profile),
		cmocka_unit_test(test_frozen_weights),
		cmocka_unit_test(test_layout_note),
		cmocka_unit_test(test_values_unknown),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_old_placeholder),
		cmocka_unit_test(test_long_chain),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_many_outputs),
		cmocka_unit_test(test_random_graphs),
		cmocka_unit_test(test_allocation_failures),
		cmocka_unit_test(test_large_file),
		cmocka_unit_test(test_large_file_failures),
		cmocka_unit_test(test_large_call),
		cmocka_unit_test(test_corpus_graphs),
		cmocka_unit_test(test_corpus_profiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
