/*
 * sink_tfprof_test.c: the text of tfprof, from worked examples whose output was taken from the
 * original, and the corners of its format.
 */
#include "sink/sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "support/tfprof_text.h"

static op_id add_run(struct small_model *s, op_id op, int64_t step, int64_t runs, int64_t cpu_us,
		     int64_t accelerator_us)
{
	builder_add_op_step(&s->b,
			    &(struct op_step_row){ .op = op,
						   .step = builder_step(&s->b, step),
						   .run_count = runs,
						   .cpu_ns = cpu_us * 1000,
						   .accelerator_ns = accelerator_us * 1000 });
	return op;
}

static void add_memory(struct small_model *s, int64_t bytes, int64_t peak, int64_t residual,
		       int64_t output)
{
	builder_add_memory(&s->b, &(struct memory_row){ .op_step = s->m->op_step.count - 1,
							.requested = bytes,
							.peak = peak,
							.residual = residual,
							.output = output });
}

/* ---- A: metrics, two steps ---- */

static void open_metrics(struct small_model *s)
{
	op_id n, m, g;

	small_open(s);
	n = small_op(s, "n", "T", CPU0);
	m = small_op(s, "m", "T", CPU0);
	g = small_op(s, "g", "T", GPU0);
	add_run(s, n, 0, 1, 1, 1000);
	add_memory(s, 17, 27, -1, 59);
	add_run(s, m, 0, 1, 7, 0);
	add_memory(s, 0, 0, 0, 0);
	add_run(s, g, 0, 2, 10, 30);
	add_memory(s, 103, 93, 82, 0);
	add_memory(s, 0, 0, 0, 0);
	add_run(s, small_op(s, "xc", "xc", NULL), 0, 0, 0, 0);
	add_run(s, small_op(s, "t", "t", NULL), 0, 0, 0, 0);
	add_run(s, n, 1, 1, 11, 0);
	add_memory(s, 10, 20, -50, 0);
	s->m->missing_streams = true;
	small_freeze(s);
}

static void metrics(void **state)
{
	struct small_model s;

	(void)state;
	open_metrics(&s);
	tfprof_expect(&s, &sink_tfprof, "scope", "-select micros,residual_bytes,occurrence -step 0",
		      "node name | residual bytes | total execution time | accelerator execution "
		      "time | cpu execution time | op count (run|defined)\n"
		      "_TFProfRoot (--/81B, --/1.05ms, --/1.03ms, --/18us, --/4|--/5)\n"
		      "  g (82B/82B, 40us/40us, 30us/30us, 10us/10us, 2/2|1/1)\n"
		      "  m (0B/0B, 7us/7us, 0us/0us, 7us/7us, 1/1|1/1)\n"
		      "  t (0B/0B, 0us/0us, 0us/0us, 0us/0us, 0/0|1/1)\n"
		      "  xc (0B/0B, 0us/0us, 0us/0us, 0us/0us, 0/0|1/1)\n");
	/* the average is that of the op's own steps; a negative one turns huge by unsigned division */
	tfprof_expect(
		&s, &sink_tfprof, "scope",
		"-select micros,bytes,peak_bytes,output_bytes -show_name_regexes [nm]",
		"node name | requested bytes | peak bytes | output bytes | total execution time "
		"| accelerator execution time | cpu execution time\n"
		"_TFProfRoot (--/116B, --/116B, --/29B, --/553us, --/530us, --/23us)\n"
		"  m (0B/0B, 0B/0B, 0B/0B, 7us/7us, 0us/0us, 7us/7us)\n"
		"  n (13B/13B, 23B/23B, 29B/29B, 506us/506us, 500us/500us, 6us/6us)\n");
	tfprof_expect(&s, &sink_tfprof, "scope", "-select residual_bytes -show_name_regexes n",
		      "node name | residual bytes\n"
		      "_TFProfRoot (--/-9223372036854775752B)\n"
		      "  n (9223372036854.78MB/9223372036854.78MB)\n");
	small_close(&s);
}

/* Times below zero: averages are divided without a sign and are more than nanoseconds can hold. */
static void negative_times(void **state)
{
	struct small_model s;
	op_id n, m;

	(void)state;
	small_open(&s);
	s.m->time_unit_ns = 1000;
	n = small_op(&s, "n", "T", CPU0);
	m = small_op(&s, "m", "U", CPU0);
	add_run(&s, n, 0, 1, -3, 5);
	add_run(&s, n, 1, 1, -4, 0);
	add_run(&s, m, 0, 1, 7, 0);
	small_freeze(&s);
	/* (2^64 - 2) / 2 and (2^64 - 7) / 2 microseconds; sums wrap as the original's do */
	tfprof_expect(&s, &sink_tfprof, "scope", "-min_micros -9223372036854775808",
		      "node name | total execution time | accelerator execution time | cpu "
		      "execution time\n"
		      "_TFProfRoot (--/-9223372036854775802us, --/2us, --/-9223372036854775805us)\n"
		      "  m (7us/7us, 0us/0us, 7us/7us)\n"
		      "  n (9223372036854.78sec/9223372036854.78sec, 2us/2us, "
		      "9223372036854.78sec/9223372036854.78sec)\n");
	tfprof_expect(&s, &sink_tfprof, "op", "-step 0 -select cpu_micros -min_cpu_micros -3",
		      "node name | cpu execution time\n"
		      "T                               -3us (100.00%, -75.00%)\n"
		      "U                                7us (175.00%, 175.00%)\n");
	tfprof_expect(&s, &sink_tfprof, "op",
		      "-min_micros 9223372036854775807 -select '' -account_type_regexes T",
		      "node name | \n"
		      "T                        \n");
	small_close(&s);
}

static void head(void **state)
{
	struct small_model s;
	struct table *r;
	struct buf text;

	(void)state;
	open_metrics(&s);
	r = tfprof_run(&s, "graph", "-select params,colour,zebra,device,colour");
	small_write(&sink_tfprof, r, &(struct sink_options){ 0 }, &text);
	text.ptr[strstr(text.ptr, "_TFProfRoot") - text.ptr] = '\0';
	assert_string_equal(
		text.ptr,
		"\n\nFound accelerator operation but misses accelerator stream stats!\n\n"
		"It's likely a gpu tracing issue rather than tf-profiler issue.\n"
		"If you found your operation missing accelerator time, consider filing a bug to "
		"xprof-dev@!\n\n"
		"\nDoc:\n"
		"scope: The nodes in the model graph are organized by their names, which is "
		"hierarchical like filesystem.\n"
		"Unknown select: colour\n"
		"device: which device is placed on.\n"
		"param: Number of parameters (in the Variable).\n"
		"Unknown select: zebra\n\n"
		"Profile:\n"
		"node name | # parameters | assigned devices\n");
	buf_release(&text);
	table_free(r);

	s.m->missing_streams = false;
	r = tfprof_run(&s, "op", "-select ''"); /* T is hidden: its residual bytes are negative */
	small_expect(&sink_tfprof, r, &(struct sink_options){ 0 },
		     "\nDoc:\n"
		     "op: The nodes are operation kernel type, such as MatMul, Conv2D. Graph nodes "
		     "belonging to the same type are aggregated together.\n\n\n"
		     "Profile:\n"
		     "node name | \n"
		     "t                        \n"
		     "xc                       \n");
	table_free(r);
	small_close(&s);
}

/* ---- B: the code view ---- */

static void add_coded(struct small_model *s, const char *name, int64_t flops,
		      const struct small_frame *frames)
{
	op_id op = small_op(s, name, "T", NULL);

	s->m->op.float_ops[op.v] = flops;
	small_code(s, op, frames);
}

#define MAIN                                                                                       \
	{ "/p/main.py", 10, "<module>" },                                                          \
	{                                                                                          \
		"/p/main.py", 5, "build_a_very_long_function_name"                                 \
	}

static void code(void **state)
{
	static const struct small_frame x[] = { MAIN,
						{ "/p/lib/ops.py", 77, "xxxxxxxxxxxxxxxxxxx" },
						{ 0 } },
					y[] = { MAIN,
						{ "/p/lib/ops.py", 78, "yyyyyyyyyyyyyyyyyyyy" },
						{ 0 } },
					w[] = { MAIN, { 0 } };
	struct small_model s;
	struct table *r;

	(void)state;
	small_open(&s);
	add_coded(&s, "a/x", 1000, x);
	add_coded(&s, "a/y", 500, y);
	add_coded(&s, "w", 20, w);
	add_coded(&s, "gradients/a/x_grad/mul", 3, w);
	add_coded(&s, "gradients/a/y_grad/z", 7, w);
	add_coded(&s, "gradients/nofwd_grad/q", 1, w);
	small_freeze(&s);
	tfprof_expect(&s, &sink_tfprof, "code", "-select float_ops",
		      "node name | # float_ops\n"
		      "_TFProfRoot (--/1.53k flops)\n"
		      "  main.py:10:<module> (0/1.52k flops)\n"
		      "    main.py:5:build_a_very_long... (20/1.52k flops)\n"
		      "      ops.py:77:xxxxxxxxxxxxxxxxxxx (1.00k/1.00k flops)\n"
		      "      ops.py:78:yyyyyyyyyyyyyyyyy... (500/500 flops)\n"
		      "  main.py:10:<module> (gradient) (0/10 flops)\n"
		      "    main.py:5:build_a_very_long... (gradient) (0/10 flops)\n"
		      "      ops.py:77:xxxxxxxxxxxxxxxxxxx (gradient) (3/3 flops)\n"
		      "      ops.py:78:yyyyyyyyyyyyyyyyy... (gradient) (7/7 flops)\n");
	tfprof_expect(&s, &sink_tfprof, "code", "-max_depth 0 -select op_types,device",
		      "node name | assigned devices | op types\n_TFProfRoot ()\n");
	tfprof_expect(&s, &sink_tfprof, "code", "-trim_name_regexes _TFP.* -select occurrence",
		      "node name | op occurrence (run|defined)\n"
		      "_TFProfRoot (occurrence N/A in code view)\n");
	tfprof_expect(&s, &sink_tfprof, "code",
		      "-select device,op_types,input_shapes -show_name_regexes ops.py:77.* "
		      "-order_by occurrence",
		      "node name | assigned devices | op types | input shapes\n"
		      "_TFProfRoot (, input_shapes N/A in code view)\n"
		      "  ops.py:77:xxxxxxxxxxxxxxxxxxx (, T, input_shapes N/A in code view)\n"
		      "  ops.py:77:xxxxxxxxxxxxxxxxxxx (gradient) (, T, input_shapes N/A in code "
		      "view)\n");
	r = tfprof_run(&s, "code", "-account_displayed_op_only true");
	assert_int_equal(r->tree->message_count, 2);
	assert_string_equal(r->tree->messages[0].ptr, "1 gradient nodes not accounted");
	assert_string_equal(r->tree->messages[1].ptr,
			    "Note: code view ignores account_displayed_op_only");
	table_free(r);
	small_close(&s);
}

/* ---- C: shapes ---- */

static void add_input(struct small_model *s, op_id op, op_id src, int32_t shown_port)
{
	struct model *m = s->m;

	if (!m->op.input_count[op.v])
		m->op.input_first[op.v] = m->op_input.count;
	builder_add_op_input(&s->b,
			     &(struct op_input_row){ .src = src,
						     .name = src.v ? m->op.name[src.v]
								   : builder_cstr(&s->b, "nobody"),
						     .index = (int32_t)m->op.input_count[op.v]++,
						     .shown_port = shown_port });
}

static void open_shapes(struct small_model *s)
{
	static const int64_t dims[] = { 2, 3, 4, -1 };
	op_id src, a, b, c;

	small_open(s);
	src = small_op(s, "src", "Src", CPU0);
	a = small_op(s, "a", "P", CPU0);
	b = small_op(s, "b", "P", NULL);
	c = small_op(s, "c", "P", CPU0);
	s->m->op.output_first[src.v] = s->m->op_output.count;
	s->m->op.output_count[src.v] = 4;
	builder_add_op_output(&s->b, &(struct op_output_row){
					     .index = 0, .shape = builder_shape(&s->b, dims, 2) });
	builder_add_op_output(
		&s->b,
		&(struct op_output_row){ .index = 1, .shape = builder_shape(&s->b, dims + 2, 1) });
	builder_add_op_output(&s->b, &(struct op_output_row){
					     .index = 2, .shape = builder_shape(&s->b, dims, 0) });
	builder_add_op_output(&s->b, &(struct op_output_row){
					     .index = 3, .shape = builder_shape(&s->b, NULL, -1) });
	for (int i = 0; i < 3; i++)
		add_input(s, a, src, 0);
	for (int i = 0; i < 2; i++)
		add_input(s, b, src, 2);
	add_input(s, c, src, 2);
	add_input(s, c, src, 3);
	add_input(s, c, (op_id){ 0 }, 0);
	s->m->op.shape[src.v] = builder_shape(&s->b, dims, 2);
	s->m->op.shape[b.v] = builder_shape(&s->b, dims, 4);
	s->m->op.shape[c.v] = builder_shape(&s->b, NULL, -1);
	add_run(s, src, 0, 1, 5, 0);
	add_run(s, a, 0, 1, 6, 0);
	add_run(s, c, 0, 1, 10, 0);
	small_freeze(s);
}

static void shapes(void **state)
{
	struct small_model s;
	struct table *r;

	(void)state;
	open_shapes(&s);
	tfprof_expect(&s, &sink_tfprof, "scope", "-select input_shapes,params",
		      "node name | # parameters | input shapes\n"
		      "_TFProfRoot (--/6 params, )\n"
		      "  a (0/0 params, 0:2x3|1:2x3|2:2x3)\n"
		      "  b (2x3x4x-1, 0/0 params, 0:1|1:1)\n"
		      "  c (0/0 params, 0:1|1:unknown|2:unknown)\n"
		      "  src (2x3, 6/6 params, )\n");
	tfprof_expect(
		&s, &sink_tfprof, "op",
		"-select micros,occurrence,input_shapes,device -show_name_regexes P",
		"node name | total execution time | accelerator execution time | cpu execution "
		"time | assigned devices | op occurrence (run|defined) | input shapes\n"
		"P                                16us (100.00%, 76.19%),             0us (0.00%, "
		"0.00%),         16us (100.00%, 76.19%), |" CPU0 ",        2|3\n"
		"\n"
		"input_type: 0:1,\t1:unknown,\t2:unknown\t(run*1|defined*1)\texec_time: 10us\n"
		"input_type: 0:2x3,\t1:2x3,\t2:2x3\t(run*1|defined*1)\texec_time: 6us\n"
		"input_type: 0:1,\t1:1\t(run*0|defined*1)\texec_time: 0us\n"
		"\n");
	r = tfprof_run(&s, "op", "");
	assert_int_equal(r->tree->message_count, 1);
	assert_string_equal(r->tree->messages[0].ptr, "Incomplete shape.");
	table_free(r);
	small_close(&s);
}

/* ---- corners ---- */

static void empty_store(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	small_freeze(&s);
	tfprof_expect(&s, &sink_tfprof, "op", "-select cpu_micros,occurrence",
		      "_TFProfRoot                          0us (0.00%, 0.00%),        0|0\n");
	tfprof_expect(&s, &sink_tfprof, "scope", "-select cpu_micros",
		      "node name | cpu execution time\n_TFProfRoot (--/0us)\n");
	tfprof_expect(&s, &sink_tfprof, "graph", "-select accelerator_micros,op_types",
		      "node name | accelerator execution time | op types\n"
		      "_TFProfRoot (--/0us, _TFGraphParent)\n");
	small_close(&s);
}

static void put_tensor(void *arg, struct str name, struct buf *text, struct buf *message)
{
	(void)arg;
	if (str_eq(name, STR("b")))
		buf_puts(text, "[1.00 ],\n");
	else
		buf_printf(message, "Key %.*s not found in checkpoint\n", STR_ARG(name));
}

static void tensors(void **state)
{
	struct small_model s;
	struct buf lines;
	struct sink_options options = { .tensor = put_tensor,
					.message = small_line,
					.message_arg = &lines };
	struct table *r;

	(void)state;
	open_shapes(&s);
	buf_init(&lines, &s.mem);
	r = tfprof_run(&s, "scope", "-select tensor_value");
	small_expect(
		&sink_tfprof, r, &options,
		"\nDoc:\n"
		"scope: The nodes in the model graph are organized by their names, which is "
		"hierarchical like filesystem.\n"
		"tensor_value: Not supported now.\n\n"
		"Profile:\nnode name | \n_TFProfRoot ()\n  a ()\n  b ()\n[1.00 ],\n  c ()\n  src "
		"()\n");
	assert_string_equal(buf_cstr(&lines), "Key a not found in checkpoint\n"
					      "Key c not found in checkpoint\n"
					      "Key src not found in checkpoint\n");
	table_free(r);
	buf_release(&lines);
	small_close(&s);
}

static void failures(void **state)
{
	struct small_model s;
	struct table *r;

	(void)state;
	open_shapes(&s);
	r = tfprof_run(&s, "op", "-select micros,bytes,device,op_types,occurrence,input_shapes");
	small_starve(&sink_tfprof, r, &(struct sink_options){ 0 });
	small_hang_up(&sink_tfprof, r, &(struct sink_options){ 0 });
	table_free(r);
	r = tfprof_run(&s, "scope", "-select params,device,op_types,occurrence,input_shapes");
	small_starve(&sink_tfprof, r, &(struct sink_options){ 0 });
	table_free(r);
	small_close(&s);
}

/* A chain this long would print ten gigabytes of blanks. */
static void too_deep(void **state)
{
	struct small_model s;
	struct table *r;

	(void)state;
	small_open(&s);
	small_freeze(&s);
	r = small_tree(&s, TREE_GRAPH, -1);
	small_node(r, 0, "deep", (op_id){ 0 }, 0, 0);
	r->tree->nodes[1].depth = 2100000000;
	small_node(r, 1, "deeper", (op_id){ 0 }, 0, 0);
	small_refuse(&sink_tfprof, r, &(struct sink_options){ 0 }, OW_E_LIMIT);
	table_free(r);
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(metrics),  cmocka_unit_test(negative_times),
		cmocka_unit_test(head),	    cmocka_unit_test(code),
		cmocka_unit_test(shapes),   cmocka_unit_test(empty_store),
		cmocka_unit_test(tensors),  cmocka_unit_test(failures),
		cmocka_unit_test(too_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
