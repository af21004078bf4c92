/*
 * checkpoint_test.c: checkpoints of both kinds, written by tests/support/ckpt_writer.h, are read back
 * equal; messages are TensorFlow's; truncated and changed files and failing allocations end in a
 * status. OPWATCH_CORPUS may point to real ones.
 */
#include "wire/tensorflow/checkpoint.h"

#include "wire/tensorflow/checkpoint_slice.h"

#include "../../tests/support/ckpt_writer.h"
#include "../../tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <ftw.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static struct mem mem;
static char dir[64];
static char path_space[4][256];

/* A path in the test's directory; four may be in use at a time. */
static const char *at(const char *name)
{
	static int next;
	char *path = path_space[next++ % 4];

	snprintf(path, sizeof(path_space[0]), "%s/%s", dir, name);
	return path;
}

static const float floats[6] = { 1.5f, -2.25f, 3.0f, 1234567.0f, 0.001f, 6.125f };
static const double doubles[2] = { 1e300, -0.5 };
static const int32_t ints[3] = { -1, 0, INT32_MAX };
static const int64_t longs[2] = { INT64_MIN, 42 };
static const int16_t shorts[2] = { -2, 513 };
static const float complexes[4] = { 1, 2, 3, 4 };
static const char *const texts[3] = { "alpha", "", "it's a longer text" };
static const int64_t two_by_three[2] = { 2, 3 }, vector2[1] = { 2 }, vector3[1] = { 3 },
		     empty[2] = { 2, 0 };

#define BYTES(array) str_make(array, sizeof(array))
#define MANY 40

static void write_bundle(const char *prefix, int shards, bool big, size_t block_bytes, bool snappy)
{
	static const struct cw_extent rows[] = { { 0, 1 }, { 0, -1 }, { 1, 1 }, { 0, -1 } };
	static const struct cw_extent cells[] = { { 0, 2 }, { 0, 1 }, { 0, 2 }, { 1, 2 } };
	static const struct cw_extent whole[] = { { 0, -1 }, { 0, -1 } };
	struct cw_bundle b;
	char name[32];

	cw_bundle_init(&b, &mem, shards, big);
	cw_bundle_add(&b, STR("a/float"), TF_FLOAT, two_by_three, 2, 0, 4, BYTES(floats));
	cw_bundle_add(&b, STR("a/scalar"), TF_FLOAT, NULL, 0, shards - 1, 4, str_make(floats, 4));
	cw_bundle_add(&b, STR("b/double"), TF_DOUBLE, vector2, 1, 0, 8, BYTES(doubles));
	cw_bundle_add(&b, STR("b/int32"), TF_INT32, vector3, 1, shards - 1, 4, BYTES(ints));
	cw_bundle_add(&b, STR("b/int64"), TF_INT64, vector2, 1, 0, 8, BYTES(longs));
	cw_bundle_add(&b, STR("b/int16"), TF_INT16, vector2, 1, 0, 2, BYTES(shorts));
	cw_bundle_add(&b, STR("c/complex"), TF_COMPLEX64, vector2, 1, 0, 4, BYTES(complexes));
	cw_bundle_add(&b, STR("c/empty"), TF_FLOAT, empty, 2, 0, 4, STR(""));
	cw_bundle_strings(&b, "c/text", vector3, 1, shards - 1, texts, 3);
	cw_bundle_sliced(&b, "part/rows", two_by_three, 2, floats, rows, 2);
	cw_bundle_sliced(&b, "part/cells", two_by_three, 2, floats, cells, 2);
	cw_bundle_sliced(&b, "part/one", two_by_three, 2, floats, whole, 0);
	for (int i = 0; i < MANY; i++) {
		float value = (float)i;

		snprintf(name, sizeof(name), "many/v%02d", i);
		cw_bundle_add(&b, str_from(name), TF_FLOAT, NULL, 0, i % shards, 4,
			      str_make(&value, 4));
	}
	cw_bundle_write(&b, prefix, block_bytes, snappy);
	cw_bundle_release(&b);
}
#define BUNDLE_VARS (12 + MANY)

static void check_value(const struct checkpoint *c, const char *name, int dtype, struct str bytes)
{
	const struct checkpoint_var *var = checkpoint_find(c, str_from(name));
	struct checkpoint_tensor t;
	struct ow_error err = { 0 };

	assert_non_null(var);
	assert_int_equal(var->dtype, dtype);
	assert_int_equal(checkpoint_read(c, str_from(name), &t, &err), OW_OK);
	assert_int_equal(t.dtype, dtype);
	assert_int_equal(t.data_size, bytes.len);
	assert_memory_equal(t.data, bytes.ptr, bytes.len);
	checkpoint_tensor_release(&t);
}

static void check_texts(const struct checkpoint *c, const char *name)
{
	struct checkpoint_tensor t;
	struct ow_error err = { 0 };

	assert_int_equal(checkpoint_read(c, str_from(name), &t, &err), OW_OK);
	assert_int_equal(t.elements, 3);
	for (int i = 0; i < 3; i++)
		assert_true(str_eq(t.strings[i], str_from(texts[i])));
	checkpoint_tensor_release(&t);
}

static void check_bundle(const struct checkpoint *c)
{
	char name[32];

	assert_int_equal(c->version, 2);
	assert_int_equal(c->var_count, BUNDLE_VARS);
	assert_int_equal(c->damaged, 0);
	for (size_t i = 1; i < c->var_count; i++)
		assert_true(str_cmp(c->vars[i - 1].name, c->vars[i].name) < 0);
	check_value(c, "a/float", TF_FLOAT, BYTES(floats));
	check_value(c, "a/scalar", TF_FLOAT, str_make(floats, 4));
	check_value(c, "b/double", TF_DOUBLE, BYTES(doubles));
	check_value(c, "b/int32", TF_INT32, BYTES(ints));
	check_value(c, "b/int64", TF_INT64, BYTES(longs));
	check_value(c, "b/int16", TF_INT16, BYTES(shorts));
	check_value(c, "c/complex", TF_COMPLEX64, BYTES(complexes));
	check_value(c, "c/empty", TF_FLOAT, STR(""));
	check_value(c, "part/rows", TF_FLOAT, BYTES(floats));
	check_value(c, "part/cells", TF_FLOAT, BYTES(floats));
	check_texts(c, "c/text");
	assert_int_equal(checkpoint_find(c, STR("part/rows"))->bytes, sizeof(floats));
	assert_int_equal(checkpoint_find(c, STR("part/rows"))->slice_count, 2);
	assert_int_equal(checkpoint_find(c, STR("a/float"))->rank, 2);
	assert_int_equal(checkpoint_find(c, STR("a/float"))->dims[1], 3);
	assert_int_equal(checkpoint_find(c, STR("a/scalar"))->rank, 0);
	for (int i = 0; i < MANY; i++) {
		float value = (float)i;

		snprintf(name, sizeof(name), "many/v%02d", i);
		check_value(c, name, TF_FLOAT, str_make(&value, 4));
	}
}

static void reads_bundles(void **state)
{
	struct checkpoint c;
	struct ow_error err = { 0 };

	(void)state;
	for (int form = 0; form < 16; form++) {
		write_bundle(at("model"), form & 1 ? 3 : 1, form & 2, form & 4 ? 200 : 1 << 18,
			     form & 8);
		assert_int_equal(checkpoint_open(&c, &mem, at("model"), &err), OW_OK);
		check_bundle(&c);
		checkpoint_close(&c);
		/* the index itself */
		assert_int_equal(checkpoint_open(&c, &mem, at("model.index"), &err), OW_OK);
		check_bundle(&c);
		checkpoint_close(&c);
	}
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void reads_bundles_from_inputs(void **state)
{
	struct checkpoint c;
	struct ow_error err = { 0 };
	struct input in;

	(void)state;
	write_bundle(at("model"), 2, false, 300, true);
	assert_int_equal(input_open(&in, &mem, at("model.index"), &err), OW_OK);
	assert_int_equal(checkpoint_open_input(&c, &mem, &in, &err), OW_OK);
	check_bundle(&c);
	checkpoint_close(&c);
	input_close(&in);
}

/* ---- V1 ------------------------------------------------------------------------------------- */

static void packed_floats(struct buf *out, const float *values, int count)
{
	struct buf packed;

	buf_init(&packed, &mem);
	for (int i = 0; i < count; i++) {
		uint32_t bits;

		memcpy(&bits, &values[i], 4);
		tw_u32(&packed, bits);
	}
	tw_pb_message(out, 5, &packed);
	buf_release(&packed);
}

static void write_saved(const char *first, const char *second, size_t block_bytes, bool snappy)
{
	static const struct cw_extent whole[] = { { 0, -1 }, { 0, -1 } };
	static const struct cw_extent explicit[] = { { 0, 2 }, { 0, 3 } };
	static const struct cw_extent rows[] = { { 0, 1 }, { 0, -1 }, { 1, 1 }, { 0, -1 } };
	struct cw_saved s;
	struct buf v;

	buf_init(&v, &mem);
	cw_saved_init(&s, &mem);
	cw_saved_meta(&s, "w", TF_FLOAT, two_by_three, 2, whole, 1);
	packed_floats(&v, floats, 6);
	cw_saved_value(&s, "w", whole, 2, &v);
	cw_saved_meta(&s, "explicit", TF_FLOAT, two_by_three, 2, explicit, 1);
	packed_floats(&v, floats, 6);
	cw_saved_value(&s, "explicit", explicit, 2, &v);
	cw_saved_meta(&s, "scalar", TF_DOUBLE, NULL, 0, whole, 1);
	tw_pb_double(&v, 6, doubles[0]); /* not packed */
	cw_saved_value(&s, "scalar", whole, 0, &v);
	cw_saved_meta(&s, "i32", TF_INT32, vector3, 1, whole, 1);
	for (int i = 0; i < 3; i++)
		tw_pb_int(&v, 7, ints[i]);
	cw_saved_value(&s, "i32", whole, 1, &v);
	cw_saved_meta(&s, "i16", TF_INT16, vector2, 1, whole, 1);
	for (int i = 0; i < 2; i++)
		tw_pb_int(&v, 7, shorts[i]);
	cw_saved_value(&s, "i16", whole, 1, &v);
	cw_saved_meta(&s, "i64", TF_INT64, vector2, 1, whole, 1);
	for (int i = 0; i < 2; i++)
		tw_pb_int(&v, 10, longs[i]);
	cw_saved_value(&s, "i64", whole, 1, &v);
	cw_saved_meta(&s, "text", TF_STRING, vector3, 1, whole, 1);
	for (int i = 0; i < 3; i++)
		tw_pb_bytes(&v, 8, str_from(texts[i]));
	cw_saved_value(&s, "text", whole, 1, &v);
	cw_saved_meta(&s, "half", 19, vector2, 1, whole, 1);
	cw_saved_meta(&s, "short of values", TF_FLOAT, two_by_three, 2, whole, 1);
	packed_floats(&v, floats, 5);
	cw_saved_value(&s, "short of values", whole, 2, &v);
	cw_saved_meta(&s, "lost", TF_FLOAT, two_by_three, 2, whole, 1);
	cw_saved_meta(&s, "rows", TF_FLOAT, two_by_three, 2, rows, 1);
	packed_floats(&v, floats, 3);
	cw_saved_value(&s, "rows", rows, 2, &v);
	cw_saved_write(&s, first, block_bytes, snappy);
	cw_saved_release(&s);

	cw_saved_init(&s, &mem);
	cw_saved_meta(&s, "rows", TF_FLOAT, two_by_three, 2, rows + 2, 1);
	packed_floats(&v, floats + 3, 3);
	cw_saved_value(&s, "rows", rows + 2, 2, &v);
	cw_saved_meta(&s, "elsewhere", TF_FLOAT, NULL, 0, whole, 1);
	packed_floats(&v, floats, 1);
	cw_saved_value(&s, "elsewhere", whole, 0, &v);
	cw_saved_write(&s, second, block_bytes, snappy);
	cw_saved_release(&s);
	buf_release(&v);
}

static void check_failure(const struct checkpoint *c, const char *name, const char *code,
			  const char *text)
{
	struct checkpoint_tensor t;
	struct ow_error err = { 0 };

	assert_int_not_equal(checkpoint_read(c, str_from(name), &t, &err), OW_OK);
	assert_string_equal(err.text, text);
	assert_string_equal(t.code, code);
}

static void check_saved(const struct checkpoint *c)
{
	assert_int_equal(c->version, 1);
	check_value(c, "w", TF_FLOAT, BYTES(floats));
	check_value(c, "explicit", TF_FLOAT, BYTES(floats));
	check_value(c, "scalar", TF_DOUBLE, str_make(doubles, 8));
	check_value(c, "i32", TF_INT32, BYTES(ints));
	check_value(c, "i16", TF_INT16, BYTES(shorts));
	check_value(c, "i64", TF_INT64, BYTES(longs));
	check_texts(c, "text");
	check_failure(c, "half", "Unimplemented", "Data type not supported");
	check_failure(c, "lost", "Not found", "lost not found in checkpoint file");
	check_failure(c, "nobody", "Not found", "nobody not found in checkpoint file");
	check_failure(c, "short of values", "Data loss",
		      "the record of short of values in the checkpoint file does not hold the 6 "
		      "values of its shape");
}

static void reads_saved(void **state)
{
	struct checkpoint c;
	struct ow_error err = { 0 };
	struct input in;

	(void)state;
	for (int form = 0; form < 4; form++) {
		write_saved(at("old-0"), at("old-1"), form & 1 ? 100 : 1 << 18, form & 2);
		assert_int_equal(checkpoint_open(&c, &mem, at("old-?"), &err), OW_OK);
		assert_int_equal(c.var_count, 12);
		check_saved(&c);
		check_value(&c, "elsewhere", TF_FLOAT, str_make(floats, 4));
		check_failure(&c, "rows", "Unimplemented", "Sliced checkpoints are not supported");
		checkpoint_close(&c);
		assert_int_equal(checkpoint_open(&c, &mem, at("old-0"), &err), OW_OK);
		assert_int_equal(c.var_count, 11);
		check_saved(&c);
		checkpoint_close(&c);
		assert_int_equal(input_open(&in, &mem, at("old-0"), &err), OW_OK);
		assert_int_equal(checkpoint_open_input(&c, &mem, &in, &err), OW_OK);
		assert_int_equal(c.var_count, 11);
		check_saved(&c);
		checkpoint_close(&c);
		input_close(&in);
	}
	assert_int_equal(atomic_load(&mem.used), 0);
}

/* ---- messages ------------------------------------------------------------------------------- */

/* '@' in the text stands for the path. */
static void check_open(const char *path, const char *code, const char *text)
{
	struct checkpoint c;
	struct ow_error err = { 0 };
	char full[256];
	struct buf want;

	snprintf(full, sizeof(full), "%s", path);
	buf_init(&want, &mem);
	for (; *text; text++) {
		if (*text == '@')
			buf_puts(&want, full);
		else
			buf_add_char(&want, *text);
	}
	assert_int_not_equal(checkpoint_open(&c, &mem, full, &err), OW_OK);
	assert_string_equal(err.text, buf_cstr(&want));
	assert_string_equal(c.code, code);
	buf_release(&want);
}

#define OTHER                                                                                      \
	": perhaps your file is in a different file format and you need to use a different "       \
	"restore "                                                                                 \
	"operator?"

static void messages_of_opening(void **state)
{
	struct table_writer w;

	(void)state;
	check_open(at("nothing"), "Not found",
		   "Unsuccessful TensorSliceReader constructor: Failed to find any matching files "
		   "for @");
	cw_write_file(at("text"),
		      STR("this is not a table at all, but it is longer than 48 bytes"));
	check_open(
		at("text"), "Data loss",
		"Unable to open table file @: Data loss: not an sstable (bad magic number)" OTHER);
	cw_write_file(at("short"), STR(""));
	check_open(at("short"), "Data loss",
		   "Unable to open table file @: Data loss: file is too short to be an "
		   "sstable" OTHER);
	mkdir(at("folder"), 0700);
	check_open(at("folder"), "Data loss",
		   "Unable to open table file @: Failed precondition: @; Is a directory" OTHER);
	if (geteuid() != 0) {
		cw_write_file(at("secret"), STR("x"));
		chmod(at("secret"), 0);
		check_open(at("secret"), "Data loss",
			   "Unable to open table file @: Permission denied: @; Permission "
			   "denied");
	}
	cw_write_file(at("two.index"), STR(""));
	check_open(at("two"), "Data loss", "file is too short to be an sstable");
	check_open(at("tw?"), "Not found", "@.index; No such file or directory");

	table_writer_init(&w, &mem, 100, false);
	table_writer_finish(&w);
	cw_write_file(at("none"), buf_str(&w.out));
	check_open(at("none"), "Internal",
		   "Failed to find the saved tensor slices at the beginning of the checkpoint "
		   "file: @");
	cw_write_file(at("none.index"), buf_str(&w.out));
	check_open(
		at("none"), "Internal",
		"Unable to read file (@.index). Perhaps the file is corrupt or was produced by a "
		"newer version of TensorFlow with format changes (failed to seek to header entry)");
	table_writer_release(&w);
	table_writer_init(&w, &mem, 100, false);
	table_writer_add(&w, STR(""), STR("\x08"));
	table_writer_finish(&w);
	cw_write_file(at("none.index"), buf_str(&w.out));
	check_open(
		at("none"), "Data loss",
		"Unable to read file (@.index). Perhaps the file is corrupt or was produced by a "
		"newer version of TensorFlow with format changes (unable to parse header): Entry "
		"for key  not parseable.");
	w.out.ptr[1] ^= 1;
	cw_write_file(at("none.index"), buf_str(&w.out));
	check_open(
		at("none"), "Data loss",
		"Unable to read file (@.index). Perhaps the file is corrupt or was produced by a "
		"newer version of TensorFlow with format changes (failed to seek to header entry): "
		"block checksum mismatch");
	table_writer_release(&w);
}

static void check_versions(int producer, int min_consumer, int bad_consumer, const char *text)
{
	struct buf header;
	struct table_writer w;

	buf_init(&header, &mem);
	tw_pb_int(&header, 1, 1);
	cw_versions(&header, 3, producer, min_consumer, bad_consumer);
	table_writer_init(&w, &mem, 100, false);
	table_writer_add(&w, STR(""), buf_str(&header));
	table_writer_finish(&w);
	cw_write_file(at("versions.index"), buf_str(&w.out));
	check_open(at("versions"), "Invalid argument", text);
	table_writer_release(&w);
	buf_release(&header);
}

static void messages_of_versions(void **state)
{
	(void)state;
	check_versions(1, 2, 0,
		       "Checkpoint min consumer version 2 above current version 1 for TensorFlow "
		       "1.15.0.  Please upgrade TensorFlow.");
	check_versions(
		-1, 0, 0,
		"Checkpoint producer version -1 below min producer 0 supported by TensorFlow "
		"1.15.0.  Please regenerate your checkpoint.");
	check_versions(1, 0, 1,
		       "Checkpoint disallows consumer version 1.  Please upgrade TensorFlow: this "
		       "version is likely buggy.");
}

static void messages_of_values(void **state)
{
	static const struct cw_extent first[] = { { 0, 1 }, { 0, -1 } };
	static const struct cw_extent twice[] = { { 0, 1 }, { 0, -1 }, { 0, 2 }, { 0, -1 } };
	static const struct cw_extent beyond[] = { { 1, 2 }, { 0, -1 } };
	const int64_t negative[2] = { -1, 0 };
	char text[512];
	struct cw_bundle b;
	struct checkpoint c;
	struct ow_error err = { 0 };
	uint32_t crc = tw_crc(0, floats, 4);

	(void)state;
	cw_bundle_init(&b, &mem, 2, false);
	cw_bundle_add(&b, STR("long"), TF_FLOAT, vector2, 1, 0, 4, str_make(floats, 4));
	cw_bundle_add(&b, STR("good"), TF_FLOAT, NULL, 0, 0, 4, str_make(floats, 4));
	cw_bundle_add(&b, STR("neg"), TF_FLOAT, negative, 2, 0, 4, str_make(floats, 4));
	cw_bundle_sliced(&b, "uncovered", two_by_three, 2, floats, first, 1);
	cw_bundle_sliced(&b, "twice", two_by_three, 2, floats, twice, 2);
	cw_bundle_add(&b, STR("far"), TF_FLOAT, NULL, 0, 1, 4, str_make(floats, 4));
	cw_bundle_add(&b, STR("variant"), 21, NULL, 0, 0, 1, str_make(floats, 4));
	tw_pb_int(&b.pairs[b.count - 2].value, 4, 1000); /* the last one wins */
	cw_slice(&cw_bundle_add(&b, STR("beyond"), TF_FLOAT, two_by_three, 2, 0, 4, BYTES(floats))
			  ->value,
		 7, beyond, 2);
	cw_bundle_strings(&b, "few", two_by_three, 2, 0, texts, 1);
	cw_bundle_write(&b, at("bad"), 200, false);
	assert_int_equal(checkpoint_open(&c, &mem, at("bad"), &err), OW_OK);
	check_failure(&c, "nobody", "Not found", "Key nobody not found in checkpoint");
	check_failure(&c, "long", "Data loss",
		      "Invalid size in bundle entry: key long; stored size 4; expected size 8");
	check_failure(&c, "neg", "Data loss", "Invalid tensor shape: neg dim { size: -1 } dim { }");
	check_failure(
		&c, "uncovered", "Invalid argument",
		"Does not have sufficient slices for partitioned tensor uncovered to restore in "
		"slice_spec: -:-");
	check_failure(&c, "twice", "Internal", "Overlapping slices: tensor = twice, slice = 0,2:-");
	check_failure(&c, "beyond", "Internal",
		      "Extent out of bounds: tensor = beyond, slice = 1,2:-");
	check_failure(&c, "far", "Out of range", "Read less bytes than requested");
	snprintf(text, sizeof(text), "String lengths longer than expected offset %zu",
		 b.data[0].len);
	check_failure(&c, "few", "Data loss", text);
	check_value(&c, "good", TF_FLOAT, str_make(floats, 4));
	b.data[0].ptr[4] ^= 1;
	cw_bundle_write(&b, at("bad"), 200, false);
	snprintf(text, sizeof(text),
		 "Checksum does not match: stored %08u vs. calculated on the restored bytes %u",
		 crc, tw_crc(0, b.data[0].ptr + 4, 4));
	check_failure(&c, "good", "Data loss", text);
	unlink(at("bad.data-00000-of-00002"));
	snprintf(text, sizeof(text), "%s/bad.data-00000-of-00002; No such file or directory", dir);
	check_failure(&c, "good", "Not found", text);
	checkpoint_close(&c);
	cw_bundle_release(&b);
	assert_int_equal(atomic_load(&mem.used), 0);
}

/* ---- damage --------------------------------------------------------------------------------- */

static void read_everything(const char *path)
{
	struct checkpoint c;
	struct ow_error err = { 0 };

	if (checkpoint_open(&c, &mem, path, &err) != OW_OK) {
		assert_true(err.text[0]);
		return;
	}
	for (size_t i = 0; i < c.var_count; i++) {
		struct checkpoint_tensor t;
		struct buf text;

		if (checkpoint_read(&c, c.vars[i].name, &t, &err) != OW_OK)
			continue;
		buf_init(&text, &mem);
		checkpoint_tensor_text(&t, &text);
		buf_release(&text);
		checkpoint_tensor_release(&t);
	}
	checkpoint_close(&c);
}

static struct buf load_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct buf out;
	int c;

	assert_non_null(file);
	buf_init(&out, &mem);
	while ((c = getc(file)) != EOF)
		buf_add_char(&out, (char)c);
	fclose(file);
	return out;
}

/* Every truncation and changes of every byte of one file of a checkpoint. */
static void damage_file(const char *file, const char *path, int changes)
{
	struct buf content = load_file(file);

	for (size_t len = 0; len < content.len; len++) {
		cw_write_file(file, str_make(content.ptr, len));
		read_everything(path);
	}
	for (size_t i = 0; i < content.len; i++) {
		char old = content.ptr[i];

		for (int change = 1; change <= changes; change++) {
			content.ptr[i] = (char)(old ^ change * 37);
			cw_write_file(file, buf_str(&content));
			read_everything(path);
		}
		content.ptr[i] = old;
	}
	cw_write_file(file, buf_str(&content));
	buf_release(&content);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void damaged_files(void **state)
{
	static const struct cw_extent rows[] = { { 0, 1 }, { 0, -1 }, { 1, 1 }, { 0, -1 } };
	struct cw_bundle b;

	(void)state;
	cw_bundle_init(&b, &mem, 1, false);
	cw_bundle_add(&b, STR("float"), TF_FLOAT, two_by_three, 2, 0, 4, BYTES(floats));
	cw_bundle_strings(&b, "text", vector3, 1, 0, texts, 3);
	cw_bundle_sliced(&b, "part", two_by_three, 2, floats, rows, 2);
	cw_bundle_write(&b, at("small"), 1 << 18, false);
	cw_bundle_release(&b);
	damage_file(at("small.index"), at("small"), 2);
	damage_file(at("small.data-00000-of-00001"), at("small"), 1);
	write_saved(at("old-0"), at("old-1"), 1 << 18, true);
	damage_file(at("old-1"), at("old-?"), 2);
}

/* The same behind right checksums. */
static void hostile_files(void **state)
{
	static const struct cw_extent rows[] = { { 0, 1 }, { 0, -1 }, { 1, 1 }, { 0, -1 } };
	struct table_writer w;
	struct cw_bundle b;

	(void)state;
	cw_bundle_init(&b, &mem, 1, false);
	cw_bundle_strings(&b, "text", vector3, 1, 0, texts, 3);
	cw_bundle_sliced(&b, "part", two_by_three, 2, floats, rows, 2);
	cw_bundle_write(&b, at("hostile"), 1 << 18, false);
	table_writer_init(&w, &mem, 1 << 18, false);
	for (int i = 0; i < b.count; i++)
		table_writer_add(&w, buf_str(&b.pairs[i].key), buf_str(&b.pairs[i].value));
	table_writer_finish(&w);
	for (size_t i = w.blocks[0].from; i < w.blocks[0].to; i++) {
		char old = w.out.ptr[i];

		for (int change = 1; change < 256; change += 6) {
			w.out.ptr[i] = (char)(old ^ change);
			table_writer_reseal(&w, 0);
			cw_write_file(at("hostile.index"), buf_str(&w.out));
			read_everything(at("hostile"));
		}
		w.out.ptr[i] = old;
	}
	table_writer_release(&w);
	cw_bundle_release(&b);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void partly_damaged_index(void **state)
{
	struct checkpoint c;
	struct buf content;
	struct ow_error err = { 0 };

	(void)state;
	write_bundle(at("model"), 1, false, 200, false);
	content = load_file(at("model.index"));
	content.ptr[1200] ^= 1;
	cw_write_file(at("model.index"), buf_str(&content));
	buf_release(&content);
	assert_int_equal(checkpoint_open(&c, &mem, at("model"), &err), OW_OK);
	assert_int_equal(c.damaged, 1);
	assert_in_range(c.damaged_offset, 900, 1200);
	assert_in_range(c.var_count, BUNDLE_VARS - 10, BUNDLE_VARS - 1);
	checkpoint_close(&c);
}

/* One name of 8000 bytes that a thousand entries share. */
static void long_names_are_limited(void **state)
{
	struct table_writer w;
	struct checkpoint c;
	struct ow_error err = { 0 };
	struct buf name;
	size_t peak;

	(void)state;
	table_writer_init(&w, &mem, 1 << 24, true);
	w.data.interval = 1 << 30;
	table_writer_add(&w, STR(""), STR("\x08\x01"));
	buf_init(&name, &mem);
	for (int i = 0; i < 1000; i++) {
		buf_clear(&name);
		buf_add_repeat(&name, 'n', 15000);
		buf_printf(&name, "%04d", i);
		table_writer_add(&w, buf_str(&name), STR("\x08\x01"));
	}
	buf_release(&name);
	table_writer_finish(&w);
	cw_write_file(at("names.index"), buf_str(&w.out));
	table_writer_release(&w);
	atomic_store(&mem.peak, 0);
	assert_int_equal(checkpoint_open(&c, &mem, at("names"), &err), OW_E_LIMIT);
	peak = atomic_load(&mem.peak);
	assert_true(peak < (size_t)8 << 20);
}

static void failing_allocations(void **state)
{
	ow_status status = OW_E_NO_MEMORY;

	(void)state;
	write_bundle(at("model"), 2, true, 200, true);
	write_saved(at("old-0"), at("old-1"), 100, true);
	for (int kind = 0; kind < 2; kind++) {
		status = OW_E_NO_MEMORY;
		for (uint64_t n = 1; status != OW_OK; n++) {
			struct checkpoint c;
			struct ow_error err = { 0 };

			assert_in_range(n, 1, 5000);
			mem_fail_after(n, true);
			status = checkpoint_open(&c, &mem, kind ? at("old-?") : at("model"), &err);
			mem_fail_after(0, false);
			assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
			if (status == OW_OK)
				checkpoint_close(&c);
			assert_int_equal(atomic_load(&mem.used), 0);
		}
	}
}

static void failing_allocations_of_values(void **state)
{
	static const char *const names[] = {
		"a/float", "c/text", "part/cells", "w", "text", "i64"
	};
	struct checkpoint bundle, saved;
	struct ow_error err = { 0 };

	(void)state;
	write_bundle(at("model"), 2, true, 200, true);
	write_saved(at("old-0"), at("old-1"), 100, true);
	assert_int_equal(checkpoint_open(&bundle, &mem, at("model"), &err), OW_OK);
	assert_int_equal(checkpoint_open(&saved, &mem, at("old-?"), &err), OW_OK);
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		const struct checkpoint *c = i < 3 ? &bundle : &saved;
		ow_status status = OW_E_NO_MEMORY;
		size_t before = atomic_load(&mem.used);

		for (uint64_t n = 1; status != OW_OK; n++) {
			struct checkpoint_tensor t;

			assert_in_range(n, 1, 1000);
			mem_fail_after(n, true);
			status = checkpoint_read(c, str_from(names[i]), &t, &err);
			mem_fail_after(0, false);
			assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
			if (status == OW_OK)
				checkpoint_tensor_release(&t);
			assert_int_equal(atomic_load(&mem.used), before);
		}
	}
	checkpoint_close(&bundle);
	checkpoint_close(&saved);
	assert_int_equal(atomic_load(&mem.used), 0);
}

/* ---- text ----------------------------------------------------------------------------------- */

static void check_text(int dtype, const int64_t *dims, int rank, const void *data, int64_t elements,
		       const char *want)
{
	struct checkpoint_tensor t = { .mem = &mem,
				       .dtype = dtype,
				       .rank = rank,
				       .dims = dims,
				       .elements = elements,
				       .data = (unsigned char *)data };
	struct buf text;

	buf_init(&text, &mem);
	assert_int_equal(checkpoint_tensor_text(&t, &text), TENSOR_TEXT_OK);
	assert_string_equal(buf_cstr(&text), want);
	buf_release(&text);
}

static void text_of_values(void **state)
{
	static const int64_t two[] = { 2, 2 }, none[] = { 0 }, rows_of_none[] = { 2, 0 },
			     cube[] = { 1, 2, 1 };
	static const float odd[] = { NAN, INFINITY };
	struct str strings[] = { STR("one"), STR("it's") };
	struct checkpoint_tensor t = { .mem = &mem,
				       .dtype = TF_STRING,
				       .rank = 1,
				       .dims = vector2,
				       .elements = 2,
				       .strings = strings };
	struct buf text;

	(void)state;
	check_text(TF_FLOAT, NULL, 0, floats, 1, "[1.50 ],\n");
	check_text(TF_FLOAT, two, 2, floats, 4, "[[1.50 -2.25 ],\n[3.00 1234570.00 ],\n],\n");
	check_text(TF_FLOAT, cube, 3, floats, 2, "[[[1.50 ],\n[-2.25 ],\n],\n],\n");
	check_text(TF_FLOAT, none, 1, floats, 0, "[],\n");
	check_text(TF_FLOAT, rows_of_none, 2, floats, 0, "[[],\n[],\n],\n");
	check_text(TF_FLOAT, vector2, 1, odd, 2, "[nan inf ],\n");
	check_text(TF_INT32, vector3, 1, ints, 3, "[-1 0 2147483647 ],\n");
	check_text(TF_INT64, vector2, 1, longs, 2, "[-9223372036854775808 42 ],\n");
	buf_init(&text, &mem);
	assert_int_equal(checkpoint_tensor_text(&t, &text), TENSOR_TEXT_OK);
	assert_string_equal(buf_cstr(&text), "['one' 'it's' ],\n");
	buf_clear(&text);
	t.dtype = TF_UINT8;
	assert_int_equal(checkpoint_tensor_text(&t, &text), TENSOR_TEXT_UNSUPPORTED);
	assert_int_equal(text.len, 0);
	buf_release(&text);
}

/* What the original does, step by step, for a matrix of one-digit integers. */
static void naive_text(struct buf *out, int64_t rows, int64_t columns)
{
	buf_add_char(out, '[');
	for (int64_t i = 0; i < rows; i++) {
		buf_add_char(out, '[');
		for (int64_t j = 0; j < columns; j++)
			buf_puts(out, "7 ");
		if (out->len > 10000)
			out->len = 10000;
		buf_puts(out, "],\n");
	}
	if (out->len > 10000)
		out->len = 10000;
	buf_puts(out, "],\n");
	if (out->len >= 10000)
		buf_puts(out, "...omitted from display\n\n");
}

static void text_is_cut(void **state)
{
	static const int64_t shapes[][2] = { { 1, 4997 }, { 1, 4998 }, { 1, 4999 }, { 1, 5000 },
					     { 2, 2496 }, { 2, 2495 }, { 2500, 0 }, { 2499, 0 },
					     { 5000, 0 }, { 100, 48 }, { 7, 9000 }, { 4999, 1 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(shapes); i++) {
		int64_t elements = shapes[i][0] * shapes[i][1];
		int32_t *data = malloc((size_t)elements * 4 + 4);
		struct checkpoint_tensor t = { .mem = &mem,
					       .dtype = TF_INT32,
					       .rank = 2,
					       .dims = shapes[i],
					       .elements = elements,
					       .data = (unsigned char *)data };
		struct buf want, text;

		for (int64_t e = 0; e < elements; e++)
			data[e] = 7;
		buf_init(&want, &mem);
		buf_init(&text, &mem);
		naive_text(&want, shapes[i][0], shapes[i][1]);
		assert_int_equal(checkpoint_tensor_text(&t, &text), TENSOR_TEXT_OK);
		assert_true(str_eq(buf_str(&text), buf_str(&want)));
		buf_release(&want);
		buf_release(&text);
		free(data);
	}
}

static void huge_tensors_are_told(void **state)
{
	int64_t dims[1] = { 100001 };
	struct checkpoint_tensor t = {
		.mem = &mem, .dtype = TF_INT32, .rank = 1, .dims = dims, .elements = dims[0]
	};
	struct buf text;

	(void)state;
	t.data = calloc(100001, 4);
	buf_init(&text, &mem);
	assert_int_equal(checkpoint_tensor_text(&t, &text), TENSOR_TEXT_HUGE);
	t.elements = dims[0] = 100000;
	assert_int_equal(checkpoint_tensor_text(&t, &text), TENSOR_TEXT_OK);
	buf_release(&text);
	free(t.data);
}

/* ---- keys and real files -------------------------------------------------------------------- */

static void check_signed(int64_t value, struct str want)
{
	struct buf mine, other;

	buf_init(&mine, &mem);
	buf_init(&other, &mem);
	ordered_code_signed(&mine, value);
	cw_ordered_signed(&other, value);
	assert_true(str_eq(buf_str(&mine), buf_str(&other)));
	if (want.ptr)
		assert_true(str_eq(buf_str(&mine), want));
	buf_release(&mine);
	buf_release(&other);
}

static void ordered_codes(void **state)
{
	struct buf out;

	(void)state;
	check_signed(0, STR("\x80"));
	check_signed(-1, STR("\x7f"));
	check_signed(63, STR("\xbf"));
	check_signed(64, STR("\xc0\x40"));
	check_signed(-64, STR("\x40"));
	check_signed(-65, STR("\x3f\xbf"));
	for (int shift = 0; shift < 63; shift++)
		for (int64_t near = -2; near <= 2; near++) {
			check_signed(((int64_t)1 << shift) + near, (struct str){ 0 });
			check_signed(-((int64_t)1 << shift) + near, (struct str){ 0 });
		}
	check_signed(INT64_MAX, (struct str){ 0 });
	check_signed(INT64_MIN, (struct str){ 0 });
	buf_init(&out, &mem);
	ordered_code_number(&out, 0);
	ordered_code_number(&out, 255);
	ordered_code_number(&out, 256);
	ordered_code_number(&out, UINT64_MAX);
	ordered_code_string(&out, STR("a\0b\xff"));
	assert_true(str_eq(buf_str(&out), STR("\0\1\xff\2\1\0\x08\xff\xff\xff\xff\xff\xff\xff\xff"
					      "a\0\xff"
					      "b\xff\0\0\1")));
	buf_release(&out);
}

static void corpus(void **state)
{
	static const struct {
		const char *path, *name, *text;
		size_t vars;
	} real[] = {
		{ "tf-checkpoint/half_plus_two-variables", "a", "[0.50 ],\n", 3 },
		{ "tf-checkpoint/half_plus_two-variables", "c", "[3.00 ],\n", 3 },
		{ "tf1-tfprof/ckpt", "DW", NULL, 3 },
	};
	const char *root = getenv("OPWATCH_CORPUS");

	(void)state;
	if (!root) {
		print_message("OPWATCH_CORPUS is not set: real checkpoints are not tried\n");
		skip();
	}
	for (size_t i = 0; i < ARRAY_COUNT(real); i++) {
		struct checkpoint_tensor t;
		struct checkpoint c;
		struct ow_error err = { 0 };
		char path[1024];
		struct buf text;

		snprintf(path, sizeof(path), "%s/%s", root, real[i].path);
		assert_int_equal(checkpoint_open(&c, &mem, path, &err), OW_OK);
		assert_int_equal(c.var_count, real[i].vars);
		assert_int_equal(checkpoint_read(&c, str_from(real[i].name), &t, &err), OW_OK);
		buf_init(&text, &mem);
		checkpoint_tensor_text(&t, &text);
		if (real[i].text)
			assert_string_equal(buf_cstr(&text), real[i].text);
		buf_release(&text);
		checkpoint_tensor_release(&t);
		checkpoint_close(&c);
	}
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordered_codes),
		cmocka_unit_test(reads_bundles),
		cmocka_unit_test(reads_bundles_from_inputs),
		cmocka_unit_test(reads_saved),
		cmocka_unit_test(messages_of_opening),
		cmocka_unit_test(messages_of_versions),
		cmocka_unit_test(messages_of_values),
		cmocka_unit_test(text_of_values),
		cmocka_unit_test(text_is_cut),
		cmocka_unit_test(huge_tensors_are_told),
		cmocka_unit_test(partly_damaged_index),
		cmocka_unit_test(long_names_are_limited),
		cmocka_unit_test(failing_allocations),
		cmocka_unit_test(failing_allocations_of_values),
		cmocka_unit_test(damaged_files),
		cmocka_unit_test(hostile_files),
		cmocka_unit_test(corpus),
	};
	int failed;

	mem_init(&mem, 0);
	if (!scratch_make(dir, sizeof(dir), "ckpt"))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	return failed;
}
