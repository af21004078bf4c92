/*
 * sink_pprof_test.c: the message of a small code tree field by field: numbering, order, gradients,
 * hidden leaves, names of files. That pprof itself reads it is checked in tests/integration.
 */
#include "sink/sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <zlib.h>

#include "support/small_tree.h"
#include "wire/protobuf/pb_write.h"

#define LONG "build_a_very_long_function_name"

struct program {
	struct small_model s;
	struct table *r;
	op_id x, y, w, x_grad, y_grad;
};

static frame_id frame(struct small_model *s, const char *file, int32_t line, const char *function,
		      int32_t start)
{
	return builder_frame(&s->b, &(struct frame_row){ .file = builder_cstr(&s->b, file),
							 .line = line,
							 .function = builder_cstr(&s->b, function),
							 .function_line = start });
}

static op_id flops(struct small_model *s, const char *name, int64_t count)
{
	op_id op = small_op(s, name, "T", NULL);

	s->m->op.float_ops[op.v] = count;
	return op;
}

static void attach(struct table *r, uint32_t code, op_id op, uint32_t at)
{
	r->tree->code_ops[at] = op;
	r->tree->code_nodes[code].op_first = at;
	r->tree->code_nodes[code].op_count = 1;
}

static uint32_t show(struct table *r, uint32_t parent, uint32_t code)
{
	uint32_t node = small_node(r, parent, "label", (op_id){ 0 }, 0, 0);

	r->tree->nodes[node].code = code;
	return node;
}

/* Four leaves below main → build, twice: as it is and as gradient. */
static void open_program(struct program *p)
{
	struct small_model *s = &p->s;
	frame_id main_frame, build, ops_x, ops_y;

	small_open(s);
	p->x = flops(s, "a/x", 1000);
	p->y = flops(s, "a/y", 500);
	p->w = flops(s, "w", 20);
	p->x_grad = flops(s, "gradients/a/x_grad/mul", 3);
	p->y_grad = flops(s, "gradients/a/y_grad/z", 7);
	main_frame = frame(s, "/p/main.py", 10, "<module>", 1);
	build = frame(s, "/p/main.py", 5, LONG, 3);
	ops_x = frame(s, "/p/lib/ops.py", 77, "xx", 70);
	ops_y = frame(s, "/p/lib/ops.py", 78, "yy", 0);
	small_freeze(s);
	p->r = small_tree(s, TREE_CODE, -1);
	p->r->tree->select = SELECT_FLOAT_OPS;
	for (uint32_t grad = 0; grad < 2; grad++) {
		uint32_t m = small_code_node(p->r, 0, main_frame, grad);
		uint32_t b = small_code_node(p->r, m, build, grad);
		uint32_t x = small_code_node(p->r, b, ops_x, grad);
		uint32_t y = small_code_node(p->r, b, ops_y, grad);

		if (!grad)
			attach(p->r, b, p->w, 0); /* an inner node: not sampled */
		attach(p->r, x, grad ? p->x_grad : p->x, 1 + 2 * grad);
		attach(p->r, y, grad ? p->y_grad : p->y, 2 + 2 * grad);
	}
}

static void show_all(struct program *p)
{
	for (uint32_t grad = 0; grad < 2; grad++) {
		uint32_t m = show(p->r, 0, 1 + 4 * grad);
		uint32_t b = show(p->r, m, 2 + 4 * grad);

		show(p->r, b, 3 + 4 * grad);
		show(p->r, b, 4 + 4 * grad);
	}
}

static void close_program(struct program *p)
{
	table_free(p->r);
	small_close(&p->s);
}

/* ---- what is wanted ---- */

static void want_number(struct buf *to, uint32_t field, uint64_t value)
{
	if (value)
		pb_put_varint(to, field, value);
}

static void want_type(struct buf *to, uint64_t type, uint64_t unit)
{
	size_t mark = pb_begin(to, 1);

	want_number(to, 1, type);
	want_number(to, 2, unit);
	pb_end(to, mark);
}

static void want_sample(struct buf *to, const char *locations, uint64_t value, uint64_t key,
			uint64_t label)
{
	size_t mark = pb_begin(to, 2), inner;

	if (*locations) {
		inner = pb_begin(to, 1);
		for (; *locations; locations++)
			pb_add_varint(to, (uint64_t)(*locations - '0'));
		pb_end(to, inner);
	}
	inner = pb_begin(to, 2);
	pb_add_varint(to, 1);
	pb_add_varint(to, value);
	pb_end(to, inner);
	inner = pb_begin(to, 3);
	want_number(to, 1, key);
	want_number(to, 2, label);
	pb_end(to, inner);
	pb_end(to, mark);
}

static void want_location(struct buf *to, uint64_t id, uint64_t function, uint64_t line)
{
	size_t mark = pb_begin(to, 4), inner;

	want_number(to, 1, id);
	inner = pb_begin(to, 4);
	want_number(to, 1, function);
	want_number(to, 2, line);
	pb_end(to, inner);
	pb_end(to, mark);
}

static void want_function(struct buf *to, uint64_t id, uint64_t name, uint64_t file, uint64_t start)
{
	size_t mark = pb_begin(to, 5);

	want_number(to, 1, id);
	want_number(to, 2, name);
	want_number(to, 4, file);
	want_number(to, 5, start);
	pb_end(to, mark);
}

static void want_strings(struct buf *to, const char *const *strings)
{
	for (; *strings; strings++)
		pb_put_str(to, 6, str_from(*strings));
}

static void want_comment(struct buf *to, uint64_t string)
{
	size_t mark = pb_begin(to, 13);

	pb_add_varint(to, string);
	pb_end(to, mark);
}

static void unpack(const struct buf *packed, struct buf *to)
{
	z_stream z = { 0 };

	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_true(buf_reserve(to, 100000));
	z.next_in = (unsigned char *)packed->ptr;
	z.avail_in = (unsigned)packed->len;
	z.next_out = (unsigned char *)to->ptr;
	z.avail_out = 100000;
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	to->len = z.total_out;
	inflateEnd(&z);
}

static void expect_profile(struct program *p, const struct sink_options *options, struct buf *want)
{
	struct buf packed, got;

	assert_false(want->failed);
	small_write(&sink_pprof, p->r, options, &packed);
	buf_init(&got, &p->s.mem);
	unpack(&packed, &got);
	assert_int_equal(got.len, want->len);
	assert_memory_equal(got.ptr, want->ptr, want->len);
	buf_release(&packed);
	buf_release(&got);
	buf_release(want);
}

static const char *const all_strings[] = { "",
					   "main:" LONG,
					   "/p/main.py",
					   "ops:xx",
					   "/p/lib/ops.py",
					   "graph node:",
					   "a/x",
					   "ops:yy",
					   "a/y",
					   "main:" LONG " (gradient)",
					   "ops:xx (gradient)",
					   "gradients/a/x_grad/mul",
					   "ops:yy (gradient)",
					   "gradients/a/y_grad/z",
					   "count",
					   "float_ops",
					   "Model float operations (Only available if defined).",
					   NULL };

static void whole(void **state)
{
	struct program p;
	struct buf want;

	(void)state;
	open_program(&p);
	show_all(&p);
	buf_init(&want, &p.s.mem);
	want_type(&want, 14, 14);
	want_type(&want, 15, 14);
	want_sample(&want, "21", 1000, 5, 6);
	want_sample(&want, "31", 500, 5, 8);
	want_sample(&want, "54", 3, 5, 11);
	want_sample(&want, "64", 7, 5, 13);
	want_location(&want, 1, 1, 10); /* by file, function, line */
	want_location(&want, 4, 4, 10);
	want_location(&want, 2, 2, 5);
	want_location(&want, 5, 5, 5);
	want_location(&want, 3, 3, 5);
	want_location(&want, 6, 6, 5);
	want_function(&want, 2, 3, 4, 70);
	want_function(&want, 5, 10, 4, 70);
	want_function(&want, 3, 7, 4, 0);
	want_function(&want, 6, 12, 4, 0);
	want_function(&want, 1, 1, 2, 3);
	want_function(&want, 4, 9, 2, 3);
	want_strings(&want, all_strings);
	want_comment(&want, 16);
	expect_profile(&p, &(struct sink_options){ 0 }, &want);
	small_starve(&sink_pprof, p.r, &(struct sink_options){ 0 });
	small_hang_up(&sink_pprof, p.r, &(struct sink_options){ 0 });
	close_program(&p);
}

/* Only the top frame is displayed: its hidden leaves are sampled without a stack. */
static void hidden_leaves(void **state)
{
	static const char *const strings[] = {
		"",
		"graph node:",
		"a/x",
		"a/y",
		"count",
		"micros",
		"microseconds",
		"Sum of accelerator execution time and cpu execution "
		"time.",
		NULL
	};
	struct program p;
	struct buf want;

	(void)state;
	open_program(&p);
	show(p.r, 0, 1);
	buf_init(&want, &p.s.mem);
	want_type(&want, 4, 4);
	want_type(&want, 5, 6);
	want_sample(&want, "", 0, 1, 2);
	want_sample(&want, "", 0, 1, 3);
	want_strings(&want, strings);
	want_comment(&want, 7);
	expect_profile(&p, &(struct sink_options){ .metric = "micros" }, &want);
	close_program(&p);
}

static void nothing_shown(void **state)
{
	static const char *const strings[] = { "", "count", "params", "Model parameters.", NULL };
	struct program p;
	struct buf want;

	(void)state;
	open_program(&p);
	p.r->tree->select = SELECT_PARAMS;
	buf_init(&want, &p.s.mem);
	want_type(&want, 1, 1);
	want_type(&want, 2, 1);
	want_strings(&want, strings);
	want_comment(&want, 3);
	expect_profile(&p, &(struct sink_options){ 0 }, &want);
	close_program(&p);
}

/* A key that is taken gets an @; stems of odd file names. */
static void odd_names(void **state)
{
	static const char *const strings[] = { "",
					       "main.tar:f",
					       "gs://bucket/dir/main.tar.gz",
					       "graph node:",
					       "op",
					       ":g", /* the host of a URI is no file */
					       "gs://a",
					       "h:i",
					       "no scheme://h",
					       "count",
					       "params",
					       "Model parameters.",
					       NULL };
	struct program p;
	struct buf want;
	uint32_t code, node, leaf;
	frame_id top, f, g, h;

	(void)state;
	small_open(&p.s);
	p.x = small_op(&p.s, "op", "T", NULL);
	top = frame(&p.s, "t", -1, "t", 0);
	f = frame(&p.s, "gs://bucket/dir/main.tar.gz", 1, "f", 0);
	g = frame(&p.s, "gs://a", 1, "g", 0);
	h = frame(&p.s, "no scheme://h", 1, "i", 0);
	small_freeze(&p.s);
	p.r = small_tree(&p.s, TREE_CODE, -1);
	p.r->tree->select = SELECT_PARAMS;
	code = small_code_node(p.r, 0, top, false);
	node = show(p.r, 0, code);
	leaf = small_code_node(p.r, code, f, false);
	attach(p.r, leaf, p.x, 0);
	show(p.r, node, leaf);
	leaf = small_code_node(p.r, code, g, false);
	attach(p.r, leaf, p.x, 1);
	show(p.r, node, leaf);
	leaf = small_code_node(p.r, code, h, false);
	show(p.r, node, leaf);
	buf_init(&want, &p.s.mem);
	want_type(&want, 9, 9);
	want_type(&want, 10, 9);
	want_sample(&want, "1", 0, 3, 4);
	want_sample(&want, "2", 0, 3, 4);
	want_location(&want, 1, 1, UINT64_MAX);
	want_location(&want, 2, 2, UINT64_MAX);
	want_location(&want, 3, 3, UINT64_MAX);
	want_function(&want, 2, 5, 6, 0);
	want_function(&want, 1, 1, 2, 0);
	want_function(&want, 3, 7, 8, 0);
	want_strings(&want, strings);
	want_comment(&want, 11);
	expect_profile(&p, &(struct sink_options){ 0 }, &want);
	close_program(&p);
}

static void refused(void **state)
{
	static char *unknown[] = { (char *)(uintptr_t) "colour" };
	struct program p;
	struct sink_options none = { 0 };

	(void)state;
	open_program(&p);
	p.r->tree->select = SELECT_MICROS | SELECT_BYTES;
	small_refuse(&sink_pprof, p.r, &none, OW_E_USAGE);
	p.r->tree->select = 0;
	small_refuse(&sink_pprof, p.r, &none, OW_E_USAGE);
	p.r->tree->unknown_select = unknown;
	p.r->tree->unknown_select_count = 1;
	small_refuse(&sink_pprof, p.r, &none, OW_E_USAGE);
	p.r->tree->unknown_select_count = 0;
	p.r->tree->select = SELECT_OCCURRENCE;
	small_refuse(&sink_pprof, p.r, &none, OW_E_USAGE);
	p.r->tree->kind = TREE_SCOPE;
	p.r->tree->select = SELECT_MICROS;
	small_refuse(&sink_pprof, p.r, &none, OW_E_USAGE);
	close_program(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole),	 cmocka_unit_test(hidden_leaves),
		cmocka_unit_test(nothing_shown), cmocka_unit_test(odd_names),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
