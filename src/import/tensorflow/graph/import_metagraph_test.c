/*
 * import_metagraph_test.c: MetaGraphDef and SavedModel: the graph inside, trainable variables, several
 * meta graphs; truncations and failing allocations.
 */
#include "support/tf_files.h"

/* clang-format off */
#define META(more)                                                                                 \
	"meta_info_def { meta_graph_version: '1' tags: 'serve' tags: 'gpu' tensorflow_version: '1.15.0'" \
	"  stripped_op_list { op { name: 'Add' } } }"                                              \
	" collection_def { key: 'trainable_variables' value { bytes_list { value: '\\n\\003w:0\\022\\001x' value: '\\n\\006gone:0' } } }" \
	" collection_def { key: 'losses' value { node_list { value: 'y:0' } } }"                   \
	" signature_def { key: 's' value { method_name: 'predict' } }"                             \
	" graph_def { node { name: 'w' op: 'VariableV2' } node { name: 'y' op: 'Add' input: 'w' } " more " versions { producer: 24 } }"
/* clang-format on */

static void trainable_variables(void **state)
{
	struct tf_files t;

	(void)state;
	for (int infer = 0; infer < 2; infer++) {
		tf_open(&t);
		t.options.infer = infer;
		assert_int_equal(tf_load(&t, NULL, &tf_meta_graph_def, META("")), OW_OK);
		assert_int_equal(t.m->op.count - 1, 2);
		assert_true(t.m->op.flags[tf_op(&t, "w")] & OP_TRAINABLE);
		assert_false(t.m->op.flags[tf_op(&t, "y")] & OP_TRAINABLE);
		assert_string_equal(tf_types(&t, "w"),
				    infer ? "VariableV2|_trainable_variables" : "VariableV2");
		assert_int_equal(tf_noted(&t, "not in the graph"), 1);
		assert_int_equal(tf_fact(&t, "collections"), 2);
		assert_int_equal(tf_fact(&t, "signatures"), 1);
		tf_close(&t);
	}
}

static void texts(void **state)
{
	struct tf_files t;
	struct buf text;

	(void)state;
	tf_open(&t);
	buf_init(&text, &t.mem);
	buf_puts(&text, META(""));
	assert_int_equal(tf_load_bytes(&t, NULL, &text), OW_OK);
	assert_string_equal(tf_str(&t, t.m->source.format[1]), "metagraph");
	assert_true(t.m->op.flags[tf_op(&t, "w")] & OP_TRAINABLE);
	tf_close(&t);
}

static void saved_models(void **state)
{
	struct tf_files t;

	(void)state;
	tf_open(&t);
	assert_int_equal(
		tf_load(&t, NULL, &tf_saved_model,
			"saved_model_schema_version: 1 meta_graphs { " META(
				"") " }"
				    "meta_graphs { " META("node { name: 'extra' op: 'Op' }") " }"),
		OW_OK);
	assert_string_equal(tf_str(&t, t.m->source.format[1]), "savedmodel");
	assert_int_equal(t.m->op.count - 1, 2);
	assert_int_equal(tf_fact(&t, "schema_version"), 1);
	assert_int_equal(tf_noted(&t, "nodes are only in later meta graphs"), 1);
	tf_close(&t);
}

static void truncations_and_failures(void **state)
{
	(void)state;
	tf_every_ending("metagraph", &tf_meta_graph_def, META(""));
	tf_every_ending("savedmodel", &tf_saved_model,
			"saved_model_schema_version: 1 meta_graphs { " META(
				"") " } meta_graphs { " META("") " }");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trainable_variables),
		cmocka_unit_test(texts),
		cmocka_unit_test(saved_models),
		cmocka_unit_test(truncations_and_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
