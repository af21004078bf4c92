/*
 * tf_world.h: for tests of computations after all TensorFlow inputs are read: graphs written on one line (graph_text.h)
 * are loaded into a model, which is finished, and then asked for float operations and notes.
 */
#ifndef SUPPORT_TF_WORLD_H
#define SUPPORT_TF_WORLD_H

#include "import/importer.h"
#include "import/tensorflow/tf_finish.h"

#include "support/graph_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* A model being made from inputs in memory. */
struct world {
	struct mem mem;
	struct ow_error err;
	struct model *m;
	struct builder b;
	struct import_options options;
};

static inline void world_begin(struct world *w)
{
	memset(w, 0, sizeof(*w));
	mem_init(&w->mem, 0);
	w->options = (struct import_options){ .infer = true, .step = INT64_MIN };
	w->m = model_new(&w->mem, &w->err);
	if (w->m)
		builder_init(&w->b, w->m, &w->err);
}

static inline void world_end(struct world *w)
{
	model_free(w->m);
	assert_int_equal(atomic_load(&w->mem.used), 0);
}

/* Loads bytes and takes them over, also on failure. */
static inline ow_status add_bytes(struct world *w, const char *importer, struct buf *bytes)
{
	struct input in;
	ow_status status = OW_E_NO_MEMORY;

	if (!bytes->failed) {
		status = input_adopt_memory(&in, &w->mem, importer, bytes->ptr, bytes->len,
					    bytes->cap, &w->err);
	}
	if (status != OW_OK) {
		buf_release(bytes);
		return status;
	}
	return import_input(&w->b, &in, importer_find(str_from(importer)), &w->options, NULL,
			    &w->err);
}

static inline ow_status add_graph(struct world *w, const char *text)
{
	struct buf bytes;

	buf_init(&bytes, &w->mem);
	gt_graph(&bytes, text);
	return add_bytes(w, "graphdef", &bytes);
}

static inline ow_status finish(struct world *w)
{
	ow_status status = import_finish(&w->b, &w->options, &w->err);

	return status == OW_OK ? model_freeze(&w->b) : status;
}

static inline int64_t flops_of(const struct world *w, const char *name)
{
	op_id op = model_find_op(w->m, str_from(name));

	assert_true(op.v != 0);
	return w->m->op.float_ops[op.v];
}

static inline uint32_t flags_of(const struct world *w, const char *name)
{
	return w->m->op.flags[model_find_op(w->m, str_from(name)).v];
}

static inline int64_t total_flops(const struct world *w)
{
	int64_t total = 0;

	for (uint32_t op = 1; op < w->m->op.count; op++)
		total += w->m->op.float_ops[op];
	return total;
}

static inline bool has_note(const struct world *w, const char *part)
{
	for (uint32_t i = 1; i < w->m->note.count; i++)
		if (str_has(model_str(w->m, w->m->note.text[i]), str_from(part)))
			return true;
	return false;
}

static inline void assert_note(const struct world *w, const char *part)
{
	if (has_note(w, part))
		return;
	for (uint32_t i = 1; i < w->m->note.count; i++)
		print_message("note: %s\n", model_str(w->m, w->m->note.text[i]).ptr);
	fail_msg("no note says: %s", part);
}

#endif
