/*
 * tf_schema_test.c: the tables of TensorFlow's types are sound, its texts are recognised and told
 * apart, and real ones are read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/protobuf/pb.h"
#include "wire/protobuf/pbtxt.h"
#include "wire/tensorflow/tf_schema.h"

static struct mem mem;

static int set_up(void **state)
{
	(void)state;
	mem_init(&mem, 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return mem.used ? 1 : 0;
}

static void check_type(const struct pb_message *type)
{
	assert_true(type->count <= PB_SCHEMA_FIELDS);
	for (size_t i = 0; i < type->count; i++) {
		const struct pb_field_desc *field = &type->fields[i];

		assert_int_equal(field->name_len, strlen(field->name));
		assert_true(i == 0 || field->number > field[-1].number);
		assert_true(field->oneof <= PB_SCHEMA_ONEOFS);
		assert_true(!field->oneof || !(field->flags & PBF_REPEATED));
		assert_int_equal(field->type == PBT_MESSAGE, field->message != NULL);
		assert_int_equal(field->type == PBT_ENUM, field->values != NULL);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(field->name, type->fields[j].name);
	}
}

static const struct pb_message *const tf_types[] = {
	&tf_graph_def,	&tf_meta_graph_def, &tf_saved_model, &tf_run_metadata,
	&tf_step_stats, &tf_op_log,	    &tf_profile,
};

static void test_tables(void **state)
{
	const struct pb_message *seen[400];
	size_t count = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(tf_types); i++)
		seen[count++] = tf_types[i];
	for (size_t i = 0; i < count; i++) {
		check_type(seen[i]);
		for (size_t f = 0; f < seen[i]->count; f++) {
			const struct pb_message *sub = seen[i]->fields[f].message;
			bool known = !sub;

			for (size_t j = 0; j < count && !known; j++)
				known = seen[j] == sub;
			if (!known)
				seen[count++] = sub;
		}
	}
	assert_true(count > 100);
}

static void test_any(void **state)
{
	static const char text[] =
		"meta_info_def { any_info { [type.googleapis.com/some.Type] { a: 1 b <> } } }"
		"collection_def { key: 'c' value { any_list { value { type_url: 'u' value: 'v' } "
		"value { [x/y.Z]: { s: 'deep' } } } } }";
	struct buf out;
	struct ow_error err;

	(void)state;
	buf_init(&out, &mem);
	if (pbtxt_to_buf(str_from(text), &tf_meta_graph_def, &out, &err) != OW_OK)
		fail_msg("%s", err.text);
	assert_non_null(memmem(out.ptr, out.len, "type.googleapis.com/some.Type", 29));
	assert_non_null(memmem(out.ptr, out.len, "x/y.Z", 5));
	assert_null(memmem(out.ptr, out.len, "deep", 4));
	buf_release(&out);
}

static const char graph_text[] = "# a graph\nnode {\n  name: \"x\"\n  op: \"Const\"\n  attr {\n"
				 "    key: \"dtype\"\n    value { type: DT_FLOAT }\n  }\n}\n";

static void test_sniff(void **state)
{
	static const struct {
		const char *head;
		const struct pb_message *type;
	} heads[] = {
		{ graph_text, &tf_graph_def },
		{ "\xef\xbb\xbfversions { producer: 21 }", &tf_graph_def },
		{ "node: < name: 'a' >", &tf_graph_def },
		{ "node {\r\n  name: \"a", &tf_graph_def },
		{ "meta_info_def { tags: \"serve\" }", &tf_meta_graph_def },
		{ "graph_def { node { name: 'x' input: ['a', 'b'] } }", &tf_meta_graph_def },
		{ "saved_model_schema_version: 1 meta_graphs {", &tf_saved_model },
		{ "step_stats {\n  dev_stats {\n    device: \"/cpu:0\"\n", &tf_run_metadata },
		{ "partition_graphs { node { op: 'x' }", &tf_run_metadata },
		{ "dev_stats { node_stats { all_start_micros: 5", &tf_step_stats },
		{ "log_entries { name: 'x' float_ops: 5 }", &tf_op_log },
		{ "nodes { key: 1 value { name: 'x' } }", &tf_profile },
	};
	static const char *const others[] = {
		"",
		"   # only this",
		"{ \"node\": 1 }",
		"node: 5",
		"version: \"3\"",
		"node name",
		"item { id: 1 }",
		"model { ssd {} }",
		"node = {",
		"import node",
		"nodes:\n- a",
		"\x0a\x05node",
		"<node>",
		"node { nome: 1 }",
		"}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(heads); i++)
		for (size_t t = 0; t < ARRAY_COUNT(tf_types); t++) {
			int score = pbtxt_sniff(str_from(heads[i].head), tf_types[t]);

			if (tf_types[t] == heads[i].type)
				assert_in_range(score, 75, 100);
			else
				assert_in_range(score, 0, 40);
		}
	for (size_t i = 0; i < ARRAY_COUNT(others); i++)
		for (size_t t = 0; t < ARRAY_COUNT(tf_types); t++)
			assert_int_equal(pbtxt_sniff(str_from(others[i]), tf_types[t]), 0);
	for (size_t len = 0; len < sizeof(graph_text); len++) { /* any cut, in exact memory */
		char *copy = malloc(len ? len : 1);

		memcpy(copy, graph_text, len);
		pbtxt_sniff(str_make(copy, len), &tf_graph_def);
		free(copy);
	}
}

/* Real graphs, if somebody has them: as many nodes as the text has lines that begin one. */
static void test_corpus(void **state)
{
	const char *corpus = getenv("OPWATCH_CORPUS");
	char path[4096];
	struct buf out;
	struct ow_error err;
	struct input in;
	struct pb_field f;
	struct pb r;
	size_t nodes = 0, lines = 0;

	(void)state;
	if (!corpus) {
		print_message("OPWATCH_CORPUS is not set: no real files tried\n");
		skip();
	}
	snprintf(path, sizeof(path), "%s/tf-graph/lstm_layer_inference.pbtxt", corpus);
	if (input_open(&in, &mem, path, &err) != OW_OK)
		fail_msg("%s", err.text);
	buf_init(&out, &mem);
	if (pbtxt_to_buf(str_make(in.data, (size_t)in.size), &tf_graph_def, &out, &err) != OW_OK)
		fail_msg("%s", err.text);
	for (r = pb_over(out.ptr, out.len); pb_next(&r, &f);)
		nodes += f.tag == PB_TAG(1, PB_BYTES);
	for (size_t i = 0; i + 7 < in.size; i++)
		lines += memcmp(in.data + i, "node {\n", 7) == 0 && (!i || in.data[i - 1] == '\n');
	assert_int_equal(nodes, lines);
	assert_true(nodes > 50);
	input_close(&in);
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TABLE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TABLE_TEST(test_tables),
		TABLE_TEST(test_any),
		TABLE_TEST(test_sniff),
		TABLE_TEST(test_corpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
