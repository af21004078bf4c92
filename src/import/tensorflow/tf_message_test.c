/*
 * tf_sniff_test.c: every TensorFlow message is recognised as what it is and as nothing else, cut or
 * damaged anywhere, in binary and in text; foreign bytes are recognised by nobody. With OPWATCH_CORPUS real
 * files, too: those of other folders must not be taken for TensorFlow's.
 */
#include "support/tf_files.h"

#include <dirent.h>

/* clang-format off */
static const struct sample {
	const char *importer;
	const struct pb_message *type;
	const char *text;
} samples[] = {
	{ "graphdef", &tf_graph_def,
	  "node { name: 'a/b' op: 'MatMul' input: 'x' device: '/device:GPU:0' attr { key: 'T' value { type: DT_FLOAT } } }"
	  "node { name: 'x' op: 'Const' } versions { producer: 24 }" },
	{ "graphdef", &tf_graph_def, "node { op: 'NoOp' }" },
	{ "metagraph", &tf_meta_graph_def,
	  "meta_info_def { stripped_op_list { op { name: 'Add' input_arg { name: 'x' } } } tensorflow_version: '1.2' }"
	  "graph_def { node { name: 'a' op: 'Add' } }" },
	{ "metagraph", &tf_meta_graph_def, "graph_def { node { name: 'a' op: 'Add' } } collection_def { key: 'v' value { } }" },
	{ "savedmodel", &tf_saved_model,
	  "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'serve' } graph_def { node { name: 'a' op: 'Add' } } }" },
	{ "runmeta", &tf_run_metadata,
	  "step_stats { dev_stats { device: '/job:w/cpu:0' node_stats { node_name: 'a' all_start_micros: 100 } } }" },
	{ "runmeta", &tf_step_stats, "dev_stats { device: '/job:w/cpu:0' node_stats { node_name: 'a' all_start_micros: 100 } }" },
	{ "oplog", &tf_op_log, "log_entries { name: 'a' float_ops: 5 types: 'x' code_def { traces { lineno: 1 file_id: 2 } } }"
			       "id_to_string { key: 1 value: 'f' }" },
	{ "profile", &tf_profile, "nodes { key: 1 value { name: 'a' op: 'Add' op_types: 'Add' id: 1 } } has_trace: true"
				  " id_to_string { key: 1 value: 'f' }" },
};
/* clang-format on */

static const char *recognised(struct str bytes)
{
	const struct importer *importer;
	struct ow_error err = { 0 };
	struct input in;
	struct mem mem;

	mem_init(&mem, 0);
	assert_int_equal(input_from_memory(&in, &mem, "x", bytes.ptr, bytes.len, &err), OW_OK);
	importer = importer_recognise(&in, &err);
	input_close(&in);
	return importer ? importer->name : "nothing";
}

static void binary_and_text(void **state)
{
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	for (size_t i = 0; i < ARRAY_COUNT(samples); i++) {
		struct buf bytes = tf_binary(&mem, samples[i].type, samples[i].text);

		assert_string_equal(recognised(buf_str(&bytes)), samples[i].importer);
		assert_string_equal(recognised(str_from(samples[i].text)), samples[i].importer);
		buf_release(&bytes);
	}
}

/* Cut short a message may be too little to tell, but never looks like another one. */
static void cut_anywhere(void **state)
{
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	for (size_t i = 0; i < ARRAY_COUNT(samples); i++) {
		struct buf bytes = tf_binary(&mem, samples[i].type, samples[i].text);

		for (size_t len = 16; len < bytes.len; len++) {
			const char *name = recognised(str_make(bytes.ptr, len));

			if (strcmp(name, "nothing") != 0)
				assert_string_equal(name, samples[i].importer);
		}
		buf_release(&bytes);
	}
}

/* A byte that changed, anywhere but in the first two, does not make a file unknown, let alone another
 * one. Ten times the same message: damage to one leaves enough to be recognised by. */
static void damaged_anywhere(void **state)
{
	/* clang-format off */
	static const struct sample files[] = {
		{ "graphdef", &tf_graph_def,
		  "node { name: 'a/n' op: 'MatMul' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }" },
		{ "runmeta", &tf_run_metadata,
		  "step_stats { dev_stats { device: '/job:w/cpu:0' node_stats { node_name: 'a' all_start_micros: 100 } } }" },
		{ "oplog", &tf_op_log, "log_entries { name: 'node' float_ops: 5 types: 'x' }" },
		{ "profile", &tf_profile,
		  "nodes { key: 1 value { name: 'node' op: 'Add' op_types: 'Add' id: 1 } }" },
	};
	/* clang-format on */
	static const char changes[] = { 0x01, 0x40, 0x7f };
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
		struct buf one = tf_binary(&mem, files[i].type, files[i].text), bytes;
		size_t lost = 0;

		buf_init(&bytes, &mem);
		for (int times = 0; times < 10; times++)
			buf_add_str(&bytes, buf_str(&one));
		for (size_t k = 2 * ARRAY_COUNT(changes); k < bytes.len * ARRAY_COUNT(changes);
		     k++) {
			char *byte = &bytes.ptr[k / ARRAY_COUNT(changes)];
			const char *name;

			*byte ^= changes[k % ARRAY_COUNT(changes)];
			name = recognised(buf_str(&bytes));
			*byte ^= changes[k % ARRAY_COUNT(changes)];
			if (strcmp(name, "nothing") == 0)
				lost++;
			else
				assert_string_equal(name, files[i].importer);
		}
		print_message("%s: %zu of %zu are lost\n", files[i].importer, lost,
			      bytes.len * ARRAY_COUNT(changes));
		assert_true(lost * 20 < bytes.len * ARRAY_COUNT(changes));
		buf_release(&bytes);
		buf_release(&one);
	}
}

static bool is_ours(const char *name)
{
	for (size_t i = 0; i < ARRAY_COUNT(samples); i++)
		if (strcmp(name, samples[i].importer) == 0)
			return true;
	return false;
}

static void foreign_bytes(void **state)
{
	static const struct str foreign[] = {
		STR("hello, world\n"),
		STR("{\"traceEvents\": []}"),
		STR("\x7f"
		    "ELF\x02\x01\x01"),
		STR("SQLite format 3\0"),
		STR("\x08\x01\x12\x03"
		    "abc"),						 /* ONNX-like */
		STR("\x0a\x0b\x08\x01\x12\x07/host:C"),			 /* a plane of an XSpace */
		STR("\x0a\x04\x08\x01\x10\x02\x12\x04\x0a\x02\x01\x02"), /* a pprof profile */
		STR("\x0a\x05\x0a\x03"
		    "abc\x12\x03\x0a\x01"
		    "a"),
		STR("\n\n\n\n\n"),
		STR("\x0a"),
		STR("\x0a\x09\x0a\x03tag\x15\x00\x00\x80\x3f"), /* a summary value */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(foreign); i++)
		assert_false(is_ours(recognised(foreign[i])));
}

static void try_file(const char *path, bool expected)
{
	struct ow_error err = { 0 };
	struct prepared prepared;
	struct input in;
	struct mem mem;

	mem_init(&mem, 0);
	assert_int_equal(input_open(&in, &mem, path, &err), OW_OK);
	if (import_prepare(&in, NULL, &prepared, &err) != OW_OK) {
		assert_false(expected);
		return;
	}
	if (is_ours(prepared.importer->name) != expected)
		fail_msg("%s is recognised as %s", path, prepared.importer->name);
	import_discard(&prepared);
}

static void try_folder(const char *corpus, const char *folder)
{
	bool graphs = strcmp(folder, "tf-graph") == 0 || strcmp(folder, "tf1-profile") == 0;
	struct dirent *entry;
	char path[1024];
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s", corpus, folder);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		bool expected = graphs;

		if (entry->d_name[0] == '.')
			continue;
		if (strcmp(folder, "tf1-tfprof") == 0)
			expected = strncmp(entry->d_name, "ckpt.", 5) != 0 ||
				   strcmp(entry->d_name, "ckpt.meta") == 0;
		snprintf(path, sizeof(path), "%s/%s/%s", corpus, folder, entry->d_name);
		try_file(path, expected);
	}
	if (dir)
		closedir(dir);
}

static void real_files(void **state)
{
	const char *corpus = getenv("OPWATCH_CORPUS");
	struct dirent *entry;
	DIR *dir;

	(void)state;
	if (!corpus) {
		print_message("OPWATCH_CORPUS is not set: real files are not tried\n");
		skip();
	}
	dir = opendir(corpus);
	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			try_folder(corpus, entry->d_name);
	closedir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(binary_and_text),  cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(damaged_anywhere), cmocka_unit_test(foreign_bytes),
		cmocka_unit_test(real_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
