/*
 * import_graphdef_test.c: what a GraphDef becomes: duplicate names, shapes, ports, control inputs, the
 * place of each record; damage and large nodes; truncations and failing allocations.
 */
#include "support/tf_files.h"

/* clang-format off */
static const char *const all_rules =
	"node { name: 'x' op: 'Placeholder' attr { key: 'shape' value { shape { dim { size: -1 } dim { size: 4 } } } } }"
	"node { name: 's' op: 'VariableV2' attr { key: 'shape' value { shape { } } }"
	"  attr { key: '_output_shapes' value { list { shape { } shape { unknown_rank: true } shape { dim { size: 7 } } } } } }"
	"node { name: 'u' op: 'Placeholder' attr { key: 'shape' value { shape { unknown_rank: true } } } }"
	"node { name: 'l' op: 'Op' attr { key: 'shape' value { list { shape { dim { size: 3 } } } } } }"
	"node { name: 'conv' op: 'Conv2D' input: 's' input: 's:1' input: '^s' input: 'later:2' input: 'gone'"
	"  attr { key: 'data_format' value { s: 'NHWC' } } attr { key: 'T' value { type: DT_FLOAT } } }"
	"node { name: 'later' op: 'Split' device: '/device:GPU:0' }"
	"node { name: 'x' op: 'Other' input: 's' }"
	"library { function { signature { name: 'f' } } }"
	"versions { producer: 24 min_consumer: 12 }";
/* clang-format on */

static void ops_and_shapes(void **state)
{
	struct tf_files t;
	uint32_t s;

	(void)state;
	tf_open(&t);
	assert_int_equal(tf_load_graph(&t, all_rules), OW_OK);
	tf_freeze(&t);
	assert_int_equal(t.m->op.count - 1, 6);
	assert_string_equal(tf_str(&t, t.m->op.type[tf_op(&t, "x")]), "Placeholder");
	assert_string_equal(tf_types(&t, "conv"), "Conv2D");
	assert_int_equal(tf_noted(&t, "another node has the same name"), 1);

	assert_string_equal(tf_dims(&t, t.m->op.shape[tf_op(&t, "x")]), "-1x4");
	assert_string_equal(tf_dims(&t, t.m->op.shape[tf_op(&t, "s")]), "1");
	assert_string_equal(tf_dims(&t, t.m->op.shape[tf_op(&t, "u")]), "-");
	assert_string_equal(tf_dims(&t, t.m->op.shape[tf_op(&t, "l")]), "-");
	s = t.m->op.output_first[tf_op(&t, "s")];
	assert_int_equal(t.m->op.output_count[tf_op(&t, "s")], 3);
	assert_string_equal(tf_dims(&t, t.m->op_output.shape[s]), "1");
	assert_string_equal(tf_dims(&t, t.m->op_output.shape[s + 1]), "-");
	assert_string_equal(tf_dims(&t, t.m->op_output.shape[s + 2]), "7");
	assert_string_equal(tf_str(&t, t.m->op.data_format[tf_op(&t, "conv")]), "NHWC");
	tf_close(&t);
}

/* A meta graph and the text of its graph, opened together: not damage. A node of another type is. */
static void the_same_graph_twice(void **state)
{
	struct tf_files t;

	(void)state;
	tf_open(&t);
	assert_int_equal(tf_load_graph(&t, "node { name: 'a' op: 'A' } node { name: 'b' op: 'B' }"),
			 OW_OK);
	assert_int_equal(tf_load_graph(&t, "node { name: 'a' op: 'A' } node { name: 'b' op: 'C' }"),
			 OW_OK);
	tf_freeze(&t);
	assert_int_equal(t.m->op.count - 1, 2);
	assert_int_equal(tf_noted(&t, "in an earlier input, too"), 1);
	assert_int_equal(tf_noted(&t, "another node has the same name"), 1);
	tf_close(&t);
}

/* One port per producer is shown, that of the last input that names it; control inputs are inputs. */
static void inputs_and_ports(void **state)
{
	struct tf_files t;
	uint32_t i;

	(void)state;
	tf_open(&t);
	assert_int_equal(tf_load_graph(&t, all_rules), OW_OK);
	tf_freeze(&t);
	i = t.m->op.input_first[tf_op(&t, "conv")];
	assert_int_equal(t.m->op.input_count[tf_op(&t, "conv")], 5);
	for (uint32_t k = 0; k < 3; k++) {
		assert_int_equal(t.m->op_input.src[i + k].v, tf_op(&t, "s"));
		assert_int_equal(t.m->op_input.index[i + k], k);
		assert_int_equal(t.m->op_input.shown_port[i + k], 0);
	}
	assert_int_equal(t.m->op_input.port[i + 1], 1);
	assert_int_equal(t.m->op_input.port[i + 2], -1);
	assert_int_equal(t.m->op_input.src[i + 3].v, tf_op(&t, "later"));
	assert_int_equal(t.m->op_input.shown_port[i + 3], 2);
	assert_int_equal(t.m->op_input.src[i + 4].v, 0);
	assert_string_equal(tf_str(&t, t.m->op_input.name[i + 4]), "gone");
	tf_close(&t);
}

static void many_inputs_share_ports(void **state)
{
	struct buf text;
	struct tf_files t;
	uint32_t first;

	(void)state;
	tf_open(&t);
	buf_init(&text, &t.mem);
	buf_puts(&text, "node { name: 'a' op: 'A' } node { name: 'n' op: 'N' ");
	for (int i = 0; i < 60; i++)
		buf_printf(&text, "input: '%s:%d' ", i % 3 ? "a" : "b", i);
	buf_puts(&text, "}");
	assert_int_equal(tf_load_graph(&t, buf_cstr(&text)), OW_OK);
	buf_release(&text);
	first = t.m->op.input_first[tf_op(&t, "n")];
	for (uint32_t i = 0; i < 60; i++)
		assert_int_equal(t.m->op_input.shown_port[first + i], i % 3 ? 59 : 57);
	tf_close(&t);
}

static void bad_ports_are_noted(void **state)
{
	struct tf_files t;
	uint32_t i;

	(void)state;
	tf_open(&t);
	assert_int_equal(tf_load_graph(&t, "node { name: 'a' op: 'X' input: 'b:1:2' input: 'b:z' }"
					   "node { name: 'b' op: 'Y' }"),
			 OW_OK);
	tf_freeze(&t);
	i = t.m->op.input_first[tf_op(&t, "a")];
	assert_int_equal(t.m->op_input.src[i].v, tf_op(&t, "b"));
	assert_int_equal(t.m->op_input.src[i + 1].v, tf_op(&t, "b"));
	assert_int_equal(tf_noted(&t, "port that is not a number"), 2);
	tf_close(&t);
}

static void facts(void **state)
{
	struct tf_files t;

	(void)state;
	tf_open(&t);
	assert_int_equal(tf_load_graph(&t, all_rules), OW_OK);
	assert_int_equal(tf_fact(&t, "nodes"), 7);
	assert_int_equal(tf_fact(&t, "distinct_ops"), 6);
	assert_int_equal(tf_fact(&t, "inputs"), 6);
	assert_int_equal(tf_fact(&t, "control_inputs"), 1);
	assert_int_equal(tf_fact(&t, "library_functions"), 1);
	assert_int_equal(tf_fact(&t, "producer"), 24);
	assert_int_equal(tf_fact(&t, "text_format"), false);
	tf_close(&t);
}

/* The definition can be read again: for texts in the binary form that took their place. */
static void records_can_be_found(void **state)
{
	struct tf_files t;
	unsigned char bytes[64];
	struct buf text;
	uint32_t op;

	(void)state;
	tf_open(&t);
	buf_init(&text, &t.mem);
	buf_puts(&text, "node {\n  name: \"a\"\n  op: \"Const\"\n}\nnode {\n  name: \"b\"\n  op: "
			"\"Add\"\n}\n");
	assert_int_equal(tf_load_bytes(&t, NULL, &text), OW_OK);
	assert_int_equal(tf_fact(&t, "text_format"), true);
	op = tf_op(&t, "b");
	assert_int_equal(t.m->op.record_size[op], 8);
	assert_int_equal(input_read_at(t.m->inputs[t.m->op.source[op].v], t.m->op.record_offset[op],
				       bytes, 8, &t.err),
			 OW_OK);
	assert_memory_equal(bytes,
			    "\x0a\x01"
			    "b"
			    "\x12\x03"
			    "Add",
			    8);
	tf_close(&t);
}

/* A Const of megabytes is walked past, with the fields around its data read. */
static void large_nodes(void **state)
{
	struct tf_files t;
	struct buf out;
	size_t node, attr, value, tensor;

	(void)state;
	tf_open(&t);
	buf_init(&out, &t.mem);
	node = pb_begin(&out, 1);
	pb_put_str(&out, 1, STR("big"));
	pb_put_str(&out, 2, STR("Const"));
	attr = pb_begin(&out, 5);
	pb_put_str(&out, 1, STR("value"));
	value = pb_begin(&out, 2);
	tensor = pb_begin(&out, 8);
	pb_put_varint(&out, 1, 1);
	pb_add_varint(&out, PB_TAG(4, PB_BYTES));
	pb_add_varint(&out, 3 << 20);
	buf_add_repeat(&out, '\xff', 3 << 20);
	pb_end(&out, tensor);
	pb_end(&out, value);
	pb_end(&out, attr);
	attr = pb_begin(&out, 5);
	pb_put_str(&out, 1, STR("data_format"));
	value = pb_begin(&out, 2);
	pb_put_str(&out, 2, STR("NCHW"));
	pb_end(&out, value);
	pb_end(&out, attr);
	pb_put_str(&out, 3, STR("small"));
	pb_end(&out, node);
	node = pb_begin(&out, 1);
	pb_put_str(&out, 1, STR("small"));
	pb_put_str(&out, 2, STR("Op"));
	pb_end(&out, node);
	assert_int_equal(tf_load_bytes(&t, NULL, &out), OW_OK);
	tf_freeze(&t);
	assert_int_equal(t.m->op.count - 1, 2);
	assert_string_equal(tf_str(&t, t.m->op.data_format[1]), "NCHW");
	assert_int_equal(t.m->op_input.src[t.m->op.input_first[1]].v, tf_op(&t, "small"));
	tf_close(&t);
}

static void damage(void **state)
{
	struct tf_files t;
	struct buf bytes;

	(void)state;
	for (int strict = 0; strict < 2; strict++) {
		tf_open(&t);
		t.options.strict_proto = strict;
		bytes = tf_binary(&t.mem, &tf_graph_def, all_rules);
		bytes.len -= 31;
		assert_int_equal(tf_load_bytes(&t, "graphdef", &bytes),
				 strict ? OW_E_CORRUPT : OW_OK);
		assert_int_equal(tf_noted(&t, "is used") > 0, !strict);
		tf_close(&t);
	}
	/* A record with damage inside is left out, the next is read. */
	tf_open(&t);
	buf_init(&bytes, &t.mem);
	pb_put_bytes(&bytes, 1,
		     "\x0a\x01"
		     "a"
		     "\x12\x05"
		     "Op",
		     7);
	pb_put_bytes(&bytes, 1,
		     "\x0a\x01"
		     "b"
		     "\x12\x02"
		     "Op",
		     7);
	assert_int_equal(tf_load_bytes(&t, "graphdef", &bytes), OW_OK);
	assert_int_equal(t.m->op.count - 1, 1);
	assert_int_not_equal(tf_op(&t, "b"), 0);
	assert_int_equal(tf_noted(&t, "damaged records"), 1);
	tf_close(&t);
}

/* A known number with another wire type is an unknown field, also where names are looked up ahead. */
static void fields_of_other_kinds(void **state)
{
	struct tf_files t;
	struct buf bytes;

	(void)state;
	tf_open(&t);
	buf_init(&bytes, &t.mem);
	for (int i = 0; i < 20; i++) {
		size_t node = pb_begin(&bytes, 1);

		pb_put_fixed32(&bytes, 2, 0xffffffff);
		pb_put_varint(&bytes, 1, 0xffffffff);
		pb_put_str(&bytes, 2, STR("Op"));
		pb_put_fixed64(&bytes, 3, UINT64_MAX);
		pb_end(&bytes, node);
	}
	assert_int_equal(tf_load_bytes(&t, "graphdef", &bytes), OW_OK);
	assert_int_equal(t.m->op.count - 1, 1);
	assert_string_equal(tf_str(&t, t.m->op.type[1]), "Op");
	tf_close(&t);
}

static void texts_are_utf8(void **state)
{
	struct tf_files t;
	struct buf bytes;

	(void)state;
	for (int strict = 0; strict < 2; strict++) {
		tf_open(&t);
		t.options.strict_proto = strict;
		buf_init(&bytes, &t.mem);
		pb_put_bytes(&bytes, 1,
			     "\x0a\x03"
			     "a\xff"
			     "b"
			     "\x12\x02"
			     "Op",
			     9);
		assert_int_equal(tf_load_bytes(&t, "graphdef", &bytes),
				 strict ? OW_E_CORRUPT : OW_OK);
		if (!strict)
			assert_int_not_equal(tf_op(&t, "a\xef\xbf\xbd"
						       "b"),
					     0);
		tf_close(&t);
	}
}

/* An empty file is a valid message for tfprof, and nothing usable for everybody else. */
static void nothing_in_it(void **state)
{
	struct tf_files t;

	(void)state;
	for (int strict = 0; strict < 2; strict++) {
		tf_open(&t);
		t.options.strict_proto = strict;
		assert_int_equal(tf_load_graph(&t, ""), strict ? OW_OK : OW_E_FORMAT);
		tf_close(&t);
	}
}

static void truncations_and_failures(void **state)
{
	(void)state;
	tf_every_ending("graphdef", &tf_graph_def, all_rules);
	tf_every_truncation("graphdef", str_from(all_rules));
	tf_every_failure("graphdef", str_from(all_rules));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ops_and_shapes),
		cmocka_unit_test(the_same_graph_twice),
		cmocka_unit_test(inputs_and_ports),
		cmocka_unit_test(many_inputs_share_ports),
		cmocka_unit_test(bad_ports_are_noted),
		cmocka_unit_test(facts),
		cmocka_unit_test(records_can_be_found),
		cmocka_unit_test(large_nodes),
		cmocka_unit_test(damage),
		cmocka_unit_test(texts_are_utf8),
		cmocka_unit_test(nothing_in_it),
		cmocka_unit_test(fields_of_other_kinds),
		cmocka_unit_test(truncations_and_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
