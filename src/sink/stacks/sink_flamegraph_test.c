/* sink_flamegraph_test.c: places and kinds of boxes, what is left out, odd names. Well-formedness is
 * checked with a real parser in tests/golden/outputs_test.py. */
#include "sink/sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "support/small_tree.h"

static void expect_has(const struct buf *text, const char *want)
{
	if (!strstr(text->ptr, want))
		fail_msg("no %s in %s", want, text->ptr);
}

static size_t count_boxes(const struct buf *text)
{
	size_t count = 0;

	for (const char *at = text->ptr; (at = strstr(at, "<g class=\"f")); at++)
		count++;
	return count;
}

static void scope(void **state)
{
	struct small_model s;
	struct table *r;
	struct buf text;
	op_id host, gpu, idle, nil = { 0 };
	uint32_t net;

	(void)state;
	small_open(&s);
	host = small_op(&s, "net/a", "Conv2D", CPU0);
	gpu = small_op(&s, "net/<b>", "MatMul", GPU0);
	idle = small_op(&s, "net/c", "Const", NULL);
	small_freeze(&s);
	r = small_tree(&s, TREE_SCOPE, 3);
	net = small_node(r, 0, "net", nil, 0, 100);
	small_node(r, net, "net/a", host, 60, 60);
	small_node(r, net, "net/<b>", gpu, 30, 30);
	small_node(r, net, "net/c", idle, 0, 1);
	small_node(r, 0, "rest", nil, 0, 300);
	small_write(&sink_flamegraph, r, &(struct sink_options){ 0 }, &text);
	assert_int_equal(count_boxes(&text), 6);
	expect_has(&text, ">scope view: time</text>");
	expect_has(&text, "time 400us · step 3 · 6 boxes</text>");
	/* the second of two levels, a quarter of the width */
	expect_has(&text, "x=\"0.00000%\" y=\"109\" width=\"25.00000%\"");
	expect_has(&text, "<g class=\"f\" data-cut=\"4\"><title>net/&lt;b&gt;\n30.0us (7.50%)\n"
			  "MatMul on " GPU0 "</title><rect class=\"k2");
	expect_has(&text, "x=\"15.00000%\" y=\"126\" width=\"7.50000%\"");
	expect_has(&text, "&lt;b&gt;</text>");
	expect_has(&text, "100us (25.00%), itself 9.00us");
	expect_has(&text, ">op on the host</text>");
	expect_has(&text, ">op on an accelerator</text>");
	expect_has(&text, ">op without a run</text>");
	expect_has(&text, ">name scope</text>");
	assert_null(strstr(text.ptr, "your code"));
	buf_release(&text);
	small_starve(&sink_flamegraph, r, &(struct sink_options){ 0 });
	small_hang_up(&sink_flamegraph, r, &(struct sink_options){ 0 });
	small_refuse(&sink_flamegraph, r, &(struct sink_options){ .metric = "x" }, OW_E_USAGE);
	table_free(r);
	small_close(&s);
}

/* Narrow boxes are left out and counted; children that add up to too much are squeezed. */
static void narrow(void **state)
{
	struct small_model s;
	struct table *r;
	struct buf text;
	op_id nil = { 0 };
	uint32_t big;

	(void)state;
	small_open(&s);
	small_freeze(&s);
	r = small_tree(&s, TREE_GRAPH, -1);
	big = small_node(r, 0, "big", nil, 0, 1000000);
	small_node(r, big, "twice", nil, 0, 1500000);
	small_node(r, big, "half", nil, 0, 500000);
	for (int i = 0; i < 100; i++)
		small_node(r, 0, "tiny", nil, 1, 1);
	small_node(r, 0, "negative", nil, 1, -1000000);
	tree_set(r->tree, 0, METRIC_MICROS, 0, 1000100000);
	small_write(&sink_flamegraph, r, &(struct sink_options){ .title = "a < b" }, &text);
	assert_int_equal(count_boxes(&text), 4);
	expect_has(&text, ">a &lt; b</text>");
	expect_has(&text, "average of all steps · 4 boxes, 100 narrower than 0.1 px left out");
	expect_has(&text, "x=\"74.99250%\" y=\"126\" width=\"24.99750%\"");
	buf_release(&text);
	table_free(r);
	small_close(&s);
}

static void code(void **state)
{
	struct small_model s;
	struct table *r;
	struct buf text;
	frame_id own, library;
	op_id nil = { 0 };
	uint32_t at;

	(void)state;
	small_open(&s);
	own = builder_frame(&s.b, &(struct frame_row){ .file = builder_cstr(&s.b, "/home/me/a.py"),
						       .line = 1 });
	library = builder_frame(
		&s.b, &(struct frame_row){
			      .file = builder_cstr(&s.b, "/usr/lib/python3/dist-packages/b.py"),
			      .line = 1 });
	small_freeze(&s);
	r = small_tree(&s, TREE_CODE, -1);
	at = small_node(r, 0, "a.py:1:f", nil, 0, 10);
	r->tree->nodes[at].code = small_code_node(r, 0, own, false);
	at = small_node(r, at, "b.py:1:g", nil, 10, 10);
	r->tree->nodes[at].code = small_code_node(r, 1, library, false);
	at = small_node(r, 0, "a.py:1:f (gradient)", nil, 5, 5);
	r->tree->nodes[at].code = small_code_node(r, 0, own, true);
	small_write(&sink_flamegraph, r, &(struct sink_options){ 0 }, &text);
	expect_has(&text, ">your code</text>");
	expect_has(&text, ">library code</text>");
	expect_has(&text, ">gradient</text>");
	buf_release(&text);
	table_free(r);
	small_close(&s);
}

static void nothing(void **state)
{
	struct small_model s;
	struct table *r;
	struct buf text;

	(void)state;
	small_open(&s);
	small_freeze(&s);
	r = small_tree(&s, TREE_SCOPE, -1);
	small_node(r, 0, "a", (op_id){ 0 }, 0, 0);
	small_write(&sink_flamegraph, r, &(struct sink_options){ .metric = "params" }, &text);
	assert_int_equal(count_boxes(&text), 0);
	expect_has(&text, "nothing to draw: no parameters in this profile");
	buf_release(&text);
	r->tree->kind = TREE_OP;
	small_refuse(&sink_flamegraph, r, &(struct sink_options){ 0 }, OW_E_USAGE);
	table_free(r);
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scope),
		cmocka_unit_test(narrow),
		cmocka_unit_test(code),
		cmocka_unit_test(nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
