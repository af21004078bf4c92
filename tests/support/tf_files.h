/*
 * tf_files.h: for tests of the TensorFlow importers: loads messages written as text, one after the other, into one
 * model, and reads the results. It also has the two loops that every importer has to pass: each truncation, and each
 * failing allocation.
 */
#ifndef SUPPORT_TF_FILES_H
#define SUPPORT_TF_FILES_H

#include "import/importer.h"
#include "wire/protobuf/pb_write.h"
#include "wire/protobuf/pbtxt.h"
#include "wire/tensorflow/tf_schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

struct tf_files {
	struct mem mem;
	struct ow_error err;
	struct import_options options;
	struct import_ctx last; /* context of the last load */
	struct model *m;
	struct builder b;
};

static inline void tf_open(struct tf_files *t)
{
	*t = (struct tf_files){ .options = { .step = INT64_MIN } };
	mem_init(&t->mem, 0);
	t->m = model_new(&t->mem, &t->err);
	assert_non_null(t->m);
	builder_init(&t->b, t->m, &t->err);
}

static inline void tf_close(struct tf_files *t)
{
	model_free(t->m);
	assert_int_equal(atomic_load(&t->mem.used), 0);
}

static inline struct buf tf_binary(struct mem *mem, const struct pb_message *type, const char *text)
{
	struct ow_error err = { 0 };
	struct buf out;

	buf_init(&out, mem);
	if (pbtxt_to_buf(str_from(text), type, &out, &err) != OW_OK)
		fail_msg("%s", err.text);
	return out;
}

/* Loads bytes and takes them over. The copy that is read ends where the message ends. */
static inline ow_status tf_load_bytes(struct tf_files *t, const char *importer, struct buf *bytes)
{
	char *exact = mem_alloc(&t->mem, bytes->len);
	size_t len = bytes->len;
	struct input in;

	memcpy(exact, buf_str(bytes).ptr, len);
	buf_release(bytes);
	error_clear(&t->err);
	assert_int_equal(input_adopt_memory(&in, &t->mem, "test", exact, len, len, &t->err), OW_OK);
	return import_input(&t->b, &in, importer ? importer_find(str_from(importer)) : NULL,
			    &t->options, &t->last, &t->err);
}

static inline ow_status tf_load(struct tf_files *t, const char *importer,
				const struct pb_message *type, const char *text)
{
	struct buf bytes = tf_binary(&t->mem, type, text);

	return tf_load_bytes(t, importer, &bytes);
}

static inline ow_status tf_load_graph(struct tf_files *t, const char *text)
{
	return tf_load(t, "graphdef", &tf_graph_def, text);
}

static inline ow_status tf_load_run(struct tf_files *t, const char *text)
{
	return tf_load(t, "runmeta", &tf_run_metadata, text);
}

static inline void tf_freeze(struct tf_files *t)
{
	assert_int_equal(model_freeze(&t->b), OW_OK);
}

/* Makes the deferred rows. */
static inline void tf_require_rows(struct tf_files *t)
{
	assert_int_equal(model_require_rows(t->m, TABLES_ALL, &t->err), OW_OK);
}

static inline uint32_t tf_op(const struct tf_files *t, const char *name)
{
	return model_find_op(t->m, str_from(name)).v;
}

static inline const char *tf_str(const struct tf_files *t, str_id id)
{
	return model_str(t->m, id).ptr;
}

/* The op's set of types as "a|b". */
static inline const char *tf_types(const struct tf_files *t, const char *name)
{
	static char text[512];
	uint32_t count;
	const str_id *items = model_strset(t->m, t->m->op.types[tf_op(t, name)], &count);

	text[0] = '\0';
	for (uint32_t i = 0; i < count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? "|" : "",
			 tf_str(t, items[i]));
	return text;
}

/* A shape as text: "2x3", "-" for none, "?" for an unknown rank, "scalar". */
static inline const char *tf_dims(const struct tf_files *t, shape_id shape)
{
	static char text[256];
	int32_t rank;
	const int64_t *dims = model_dims(t->m, shape, &rank);

	snprintf(text, sizeof(text), "%s", !shape.v ? "-" : rank < 0 ? "?" : rank ? "" : "scalar");
	for (int32_t i = 0; i < rank; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%" PRId64,
			 i ? "x" : "", dims[i]);
	return text;
}

/* The op's row in op_step for a step, 0 for none; for frozen models only. */
static inline uint32_t tf_row(const struct tf_files *t, const char *name, int64_t step)
{
	uint32_t op = tf_op(t, name), first = t->m->op.step_first[op];

	for (uint32_t i = first; i < first + t->m->op.step_count[op]; i++)
		if (t->m->step.number[t->m->op_step.step[i].v] == step)
			return i;
	return 0;
}

/* How often a note was made; 0 = never. */
static inline uint64_t tf_noted(const struct tf_files *t, const char *part)
{
	for (uint32_t i = 1; i < t->m->note.count; i++)
		if (str_has(model_str(t->m, t->m->note.text[i]), str_from(part)))
			return t->m->note.times[i];
	return 0;
}

/* A fact of the last source: an integer or boolean on the outermost level, -1 when missing. */
static inline int64_t tf_fact(const struct tf_files *t, const char *key)
{
	for (uint32_t i = t->m->fact.count; i-- > 1;)
		if (!t->m->fact.parent[i].v && strcmp(tf_str(t, t->m->fact.key[i]), key) == 0)
			return t->m->fact.number[i];
	return -1;
}

#define TF_LOOP_MEMORY ((size_t)64 << 20)

static inline void tf_every_truncation(const char *importer, struct str bytes)
{
	for (size_t len = 0; len < bytes.len; len++) {
		char *copy = malloc(len ? len : 1);

		assert_non_null(copy);
		memcpy(copy, bytes.ptr, len);
		assert_int_not_equal(import_memory(importer, copy, len, TF_LOOP_MEMORY),
				     OW_E_INTERNAL);
		free(copy);
	}
}

/* Some allocations only affect speed, so one success does not mean that no allocation failed: this many in a row are
 * needed. */
#define TF_LOOP_SUCCESSES 8

/* Lets each allocation fail; `limit`: memory limit, 0 for none. */
static inline void tf_every_failure_within(const char *importer, struct str bytes, size_t limit)
{
	for (int sticky = 0; sticky < 2; sticky++) {
		uint64_t n = 0;
		int successes = 0;

		while (successes < TF_LOOP_SUCCESSES) {
			ow_status status;

			assert_true(n < 100000);
			mem_fail_after(++n, sticky);
			status = import_memory(importer, bytes.ptr, bytes.len, limit);
			mem_fail_after(0, false);
			assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
			successes = status == OW_OK ? successes + 1 : 0;
		}
	}
}

static inline void tf_every_failure(const char *importer, struct str bytes)
{
	tf_every_failure_within(importer, bytes, TF_LOOP_MEMORY);
}

/* Runs both loops for the binary form of a text. */
static inline void tf_every_ending(const char *importer, const struct pb_message *type,
				   const char *text)
{
	struct mem mem;
	struct buf bytes;

	mem_init(&mem, 0);
	bytes = tf_binary(&mem, type, text);
	tf_every_truncation(importer, buf_str(&bytes));
	tf_every_failure(importer, buf_str(&bytes));
	buf_release(&bytes);
}

#endif
