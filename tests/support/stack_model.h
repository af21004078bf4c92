/*
 * stack_model.h: loads sampled stacks from bytes and writes them as text: one line "name|pid|tid|time|metric
 * weight|frame;frame" per sample. A frame is the function, else the address in hex, and after an @ the module, if there
 * is one. For unit tests of importers.
 */
#ifndef SUPPORT_STACK_MODEL_H
#define SUPPORT_STACK_MODEL_H

#include "import/importer.h"

#include "support/small_model.h"

static inline ow_status stack_load(struct small_model *s, const char *importer, const void *data,
				   size_t len)
{
	const struct importer *how = importer_find(str_from(importer));
	const struct import_options options = { .step = INT64_MIN };
	struct import_ctx out;
	struct input in;

	assert_non_null(how);
	if (input_from_memory(&in, &s->mem, "test", data, len, &s->err) != OW_OK)
		return s->err.status;
	return import_input(&s->b, &in, how, &options, &out, &s->err);
}

static inline void stack_open(struct small_model *s, const char *importer, const void *data,
			      size_t len)
{
	small_open(s);
	assert_int_equal(stack_load(s, importer, data, len), OW_OK);
	assert_int_equal(model_freeze(&s->b), OW_OK);
}

static inline void stack_frame_text(const struct model *m, uint32_t frame, struct buf *to)
{
	struct str name = model_str(m, m->frame.function[frame]);
	struct str module = model_str(m, COLUMN_GET(m->frame.module, frame));

	if (name.len)
		buf_add_str(to, name);
	else
		buf_printf(to, "%" PRIx64, COLUMN_GET(m->frame.address, frame));
	if (m->frame.line[frame])
		buf_printf(to, ":%d", (int)m->frame.line[frame]);
	if (module.len) {
		buf_add_char(to, '@');
		buf_add_str(to, module);
	}
}

static inline void stack_text(const struct model *m, stack_id stack, struct buf *to)
{
	uint32_t path[256], depth = 0;

	for (; stack.v && depth < ARRAY_COUNT(path); stack = m->stack.parent[stack.v])
		path[depth++] = stack.v;
	while (depth--) {
		stack_frame_text(m, m->stack.frame[path[depth]].v, to);
		buf_puts(to, depth ? ";" : "");
	}
}

static inline void stack_expect(struct small_model *s, const char *want)
{
	const struct model *m = s->m;
	struct buf text;

	buf_init(&text, &s->mem);
	for (uint32_t i = 1; i < m->sample.count; i++) {
		uint32_t track = m->sample.track[i].v;

		buf_add_str(&text, model_str(m, m->track.name[track]));
		buf_printf(&text, "|%" PRId64 "|%" PRId64 "|", m->track.pid[track],
			   m->track.tid[track]);
		if (m->sample.ts_ns[i] == TIME_UNKNOWN)
			buf_add_char(&text, '-');
		else
			buf_printf(&text, "%" PRId64, m->sample.ts_ns[i]);
		buf_add_char(&text, '|');
		buf_add_str(&text, model_str(m, m->metric.name[m->sample.metric[i].v]));
		buf_printf(&text, " %" PRId64 "|", m->sample.weight[i]);
		stack_text(m, m->sample.stack[i], &text);
		buf_add_char(&text, '\n');
	}
	buf_add_char(&text, '\0');
	assert_string_equal(text.ptr, want);
	buf_release(&text);
}

static inline bool stack_noted(const struct small_model *s, const char *words)
{
	for (uint32_t i = 1; i < s->m->note.count; i++)
		if (str_has(model_str(s->m, s->m->note.text[i]), str_from(words)))
			return true;
	return false;
}

/* Checks that every truncation and every failing allocation ends in a status. */
static inline void stack_survives(const char *importer, const void *data, size_t len)
{
	struct small_model s;

	for (size_t cut = 0; cut < len; cut += 1 + len / 400) {
		small_open(&s);
		(void)stack_load(&s, importer, data, cut);
		small_close(&s);
	}
	for (uint64_t n = 1;; n++) {
		ow_status status;

		small_open(&s);
		mem_fail_after(n, true);
		status = stack_load(&s, importer, data, len);
		if (status == OW_OK)
			status = model_freeze(&s.b);
		mem_fail_after(0, false);
		small_close(&s);
		if (status == OW_OK)
			break;
		assert_int_equal(status, OW_E_NO_MEMORY);
	}
}

#endif
