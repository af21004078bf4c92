/*
 * trace_args.c: args.name and args.op of events, for trace_list.h: read from the input in the order of the file, when a
 * query needs them. Ops of TensorFlow's timelines are named after args.name already, and are not read for it.
 */
#include "relation/args.h"
#include "relation/trace/trace_list.h"
#include "wire/json/json.h"

#define AT_ONCE 4096

/* The op name of a tf.data label: Iterator::Model::Map in the file is the op Iterator/Model/Map. */
static struct str path_of(struct str label, struct buf *path)
{
	buf_clear(path);
	for (size_t i = 0; i < label.len; i++) {
		bool separator =
			label.ptr[i] == ':' && i + 1 < label.len && label.ptr[i + 1] == ':';

		buf_add_char(path, separator ? '/' : label.ptr[i]);
		i += separator;
	}
	return buf_str(path);
}

static bool is_path(const struct model *m, uint32_t op)
{
	return str_starts(model_str(m, m->op.name[op]), STR("Iterator/"));
}

/* The number of strings that come from the files: they are first in the string table, if there is one file. */
static uint32_t file_strings(const struct model *m)
{
	uint32_t strings = 0;

	for (size_t i = 0; i < m->listing_cap; i++)
		if (m->listings[i].plain)
			strings = MAX(strings, m->listings[i].strings);
	return strings;
}

/* Finds labels of ops whose name is not a string of the file: the string from which the name was made. */
static bool find_path_labels(struct trace_list *list)
{
	const struct model *m = list->m;
	uint32_t strings = file_strings(m);
	struct buf path;
	bool ok = true;

	buf_init(&path, list->mem);
	for (uint32_t i = 1; i < strings && ok; i++) {
		struct str text = model_str(m, (str_id){ i });
		uint32_t op;

		if (!str_starts(text, STR("Iterator::")))
			continue;
		op = model_find_op(m, path_of(text, &path)).v;
		ok = !path.failed;
		if (!op || m->op.name[op].v < strings)
			continue;
		/* If a second string matches, the label is ambiguous and is not used. */
		list->labels[op] = list->labels[op] == TRACE_NO_LABEL ? i : 0;
	}
	buf_release(&path);
	return ok;
}

bool trace_list_find_labels(struct trace_list *list)
{
	const struct model *m = list->m;
	bool any = false, ok = true;

	list->labels = mem_alloc(list->mem, m->op.count * sizeof(*list->labels));
	if (!list->labels)
		return false;
	list->labels[0] = TRACE_NO_LABEL;
	for (uint32_t op = 1; op < m->op.count; op++) {
		bool path = is_path(m, op);

		list->labels[op] = path ? TRACE_NO_LABEL : m->op.name[op].v;
		any |= path;
	}
	if (any)
		ok = find_path_labels(list);
	for (uint32_t op = 1; op < m->op.count && any; op++)
		if (!list->labels[op])
			list->labels[op] = TRACE_NO_LABEL;
	return ok;
}

static ow_status intern_value(struct trace_texts *texts, struct json_value value,
			      struct buf *scratch, uint32_t *code, struct ow_error *err)
{
	struct str text = json_text(value);

	*code = 0;
	if (value.kind == JSON_NONE || (value.kind == JSON_LITERAL && str_eq(text, STR("null"))))
		return OW_OK;
	if (value.kind == JSON_STRING && !json_is_plain(text)) {
		buf_clear(scratch);
		json_decode(text, scratch);
		text = buf_str(scratch);
	}
	if (scratch->failed || !trace_texts_intern(texts, text, code))
		return error_no_memory(err);
	return OW_OK;
}

/* State while one key of the events' arguments is read, for one span. */
struct reading {
	struct trace_list *list;
	const struct trace_span *span;
	const char *key;
	struct trace_texts *texts;
	bool labels; /* values that equal the name of the op are taken from there */
	uint32_t *codes;
	struct arena arena;
	struct buf scratch;
};

/* Sets the value if it is known without reading; true if it is. */
static bool take_known(const struct reading *r, uint32_t ref, uint32_t *code)
{
	const struct model *m = r->list->m;

	*code = 0;
	if (trace_ref_kind(ref) != REF_EVENT || !COLUMN_GET(m->event.args_size, ref))
		return true;
	if (!r->labels || !trace_list_is_label(r->list, ref))
		return false;
	if (!trace_is_object(m, ref))
		*code = r->list->labels[m->event.op[ref].v];
	return true;
}

static ow_status read_some(struct reading *r, uint64_t first, uint32_t n, struct ow_error *err)
{
	uint32_t *rows = ARENA_ARRAY(&r->arena, uint32_t, n);
	struct str *texts = ARENA_ARRAY(&r->arena, struct str, n);
	bool any = false;

	if (!rows || !texts)
		return error_no_memory(err);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t ref = r->span->refs[first + i];

		rows[i] = take_known(r, ref, &r->codes[first + i]) ? 0 : ref;
		any |= rows[i] != 0;
	}
	if (!any)
		return OW_OK;
	OW_TRY(args_read(r->list->m, rows, n, texts, &r->arena, err));
	for (uint32_t i = 0; i < n; i++)
		if (rows[i] && texts[i].ptr)
			OW_TRY(intern_value(r->texts, json_find(texts[i], r->key), &r->scratch,
					    &r->codes[first + i], err));
	return OW_OK;
}

static ow_status read_span(struct reading *r, struct ow_error *err)
{
	ow_status status = OW_OK;

	arena_init(&r->arena, r->list->mem);
	buf_init(&r->scratch, r->list->mem);
	for (uint64_t at = 0; at < r->span->count && status == OW_OK; at += AT_ONCE) {
		status = read_some(r, at, (uint32_t)MIN(r->span->count - at, (uint64_t)AT_ONCE),
				   err);
		arena_clear(&r->arena);
	}
	buf_release(&r->scratch);
	arena_release(&r->arena);
	return status;
}

static bool needs_reading(const struct trace_span *span, enum trace_key key)
{
	return span->refs && span->is_trace && span->count &&
	       !(key == KEY_NAME && span->labels == LABELS_ALL);
}

static ow_status read_spans(struct trace_list *list, enum trace_key key, struct ow_error *err)
{
	for (uint32_t i = 0; i < list->span_count; i++) {
		struct trace_span *span = &list->spans[i];
		uint32_t **codes = key == KEY_NAME ? &span->arg_name : &span->arg_op;
		struct reading r = { .list = list,
				     .span = span,
				     .key = key == KEY_NAME ? "name" : "op",
				     .texts = &list->args[key],
				     .labels = key == KEY_NAME && span->labels != LABELS_NONE };

		if (!needs_reading(span, key))
			continue;
		if (!*codes) /* unless an earlier attempt, which failed, has allocated it */
			*codes = mem_alloc(list->mem, span->count * sizeof(**codes));
		if (!*codes)
			return error_no_memory(err);
		r.codes = *codes;
		OW_TRY(read_span(&r, err));
	}
	return OW_OK;
}

ow_status trace_list_read_args(struct trace_list *list, enum trace_key key, struct table_dict *dict,
			       struct ow_error *err)
{
	struct trace_texts *texts = &list->args[key];
	ow_status status = OW_OK;
	bool needed = false;

	for (uint32_t i = 0; i < list->span_count; i++)
		needed |= needs_reading(&list->spans[i], key);
	if (needed && !list->args_read[key]) {
		if (!trace_texts_init(texts, list->mem, list->m, &list->elements.texts))
			status = error_no_memory(err);
		if (status == OW_OK)
			status = read_spans(list, key, err);
		if (status != OW_OK) {
			trace_texts_release(texts);
			*texts = (struct trace_texts){ 0 };
			return status;
		}
		list->args_read[key] = true;
	}
	*dict = trace_texts_dict(needed ? texts : &list->elements.texts);
	return OW_OK;
}
