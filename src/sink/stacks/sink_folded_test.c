/* sink_folded_test.c: relative names, what counts as a node's own, odd characters, deep chains. */
#include "sink/sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "support/small_tree.h"

static void scope(void **state)
{
	struct small_model s;
	struct table *r;
	op_id nil = { 0 };
	uint32_t net;

	(void)state;
	small_open(&s);
	small_freeze(&s);
	r = small_tree(&s, TREE_SCOPE, -1);
	net = small_node(r, 0, "net", nil, 0, 100);
	small_node(r, net, "net/a", nil, 60, 60);
	small_node(r, small_node(r, net, "net/b/c", nil, 30, 35), "net/b/cd", nil, 5, 5);
	small_node(r, 0, "x;y\nz", nil, 7, 7);
	small_node(r, 0, "", nil, 1, 1);
	small_node(r, 0, "idle", nil, 0, 0);
	small_node(r, 0, "negative", nil, -4, -4);
	small_expect(&sink_folded, r, &(struct sink_options){ 0 },
		     "net 5\n"
		     "net;a 60\n"
		     "net;b/c 30\n"
		     "net;b/c;net/b/cd 5\n"
		     "x:y z 7\n"
		     "(empty) 1\n");
	small_refuse(&sink_folded, r, &(struct sink_options){ .metric = "speed" }, OW_E_USAGE);
	small_expect(&sink_folded, r, &(struct sink_options){ .metric = "bytes" }, "");
	small_starve(&sink_folded, r, &(struct sink_options){ 0 });
	small_hang_up(&sink_folded, r, &(struct sink_options){ 0 });
	r->tree->kind = TREE_OP;
	small_refuse(&sink_folded, r, &(struct sink_options){ 0 }, OW_E_USAGE);
	table_free(r);
	small_close(&s);
}

static void other_metric(void **state)
{
	struct small_model s;
	struct table *r;
	uint32_t node;

	(void)state;
	small_open(&s);
	small_freeze(&s);
	r = small_tree(&s, TREE_CODE, 0);
	node = small_node(r, 0, "main.py:1:f", (op_id){ 0 }, 0, 0);
	tree_set(r->tree, node, METRIC_BYTES, 0, 4096);
	small_expect(&sink_folded, r, &(struct sink_options){ .metric = "bytes" },
		     "main.py:1:f 4096\n");
	tree_set(r->tree, node, METRIC_MICROS, 0, 1500);
	small_expect(&sink_folded, r, &(struct sink_options){ .metric = "micros" },
		     "main.py:1:f 1.500\n");
	table_free(r);
	small_close(&s);
}

/* Below 500 frames values go to the frame there, so that the sum stays. */
static void deep(void **state)
{
	struct small_model s;
	struct table *r;
	struct buf text, lines;
	struct sink_options options = { .message = small_line, .message_arg = &lines };
	int64_t sum = 0;
	uint32_t parent = 0;

	(void)state;
	small_open(&s);
	small_freeze(&s);
	r = small_tree(&s, TREE_GRAPH, 0);
	for (uint32_t i = 0; i < 600; i++)
		parent = small_node(r, parent, "n", (op_id){ 0 }, 1, 600 - i);
	buf_init(&lines, &s.mem);
	small_write(&sink_folded, r, &options, &text);
	for (const char *line = text.ptr; *line; line = strchr(line, '\n') + 1)
		sum += strtol(strchr(line, ' '), NULL, 10);
	assert_int_equal(sum, 600);
	assert_string_equal(buf_cstr(&lines),
			    "100 nodes deeper than 500 frames are added to their ancestor there\n");
	buf_release(&lines);
	buf_release(&text);
	table_free(r);
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scope),
		cmocka_unit_test(other_metric),
		cmocka_unit_test(deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
