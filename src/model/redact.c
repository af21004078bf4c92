/*
 * redact.c: replaces the user's names in a frozen model with pseudonyms; api/profile.c calls it once, before the
 * model is used. The test walks the schema, so a new string column fails it until that column is handled here.
 * Strings without a remaining reference are blanked. The input files are not changed, and numbers (times, sizes,
 * counts) stay as they are.
 */
#include "model/redact.h"

#include "model/builder.h"
#include "base/pseudonym.h"

enum { KEEP_TYPE = 1, KEEP_DEVICE = 2 };

struct redaction {
	struct model *m;
	struct builder b; /* adds strings; the number of rows does not change */
	struct pseudonyms words;
	struct buf text;
	uint32_t old_count; /* number of strings before redaction */
	uint8_t *keep;	    /* for each old string: KEEP_… */
	uint32_t *named;    /* for each old string: the name that replaces it */
};

typedef void (*translate_fn)(struct pseudonyms *p, struct str text, struct buf *out);

static str_id translate(struct redaction *r, str_id id, translate_fn how)
{
	struct str text = model_str(r->m, id);

	if (!id.v)
		return id;
	buf_clear(&r->text);
	how(&r->words, text, &r->text);
	if (r->text.failed || r->words.failed)
		builder_fail(&r->b, OW_E_NO_MEMORY);
	return builder_str(&r->b, buf_str(&r->text));
}

/* The new name of a string, with a cache, because names are repeated as inputs of other ops. */
static str_id name_id(struct redaction *r, str_id id)
{
	if (id.v >= r->old_count)
		return id;
	if (!r->named[id.v])
		r->named[id.v] = translate(r, id, pseudonym_name).v;
	return (str_id){ r->named[id.v] };
}

static void each(struct redaction *r, str_id *column, uint32_t count, translate_fn how)
{
	for (uint32_t i = 1; column && i < count; i++)
		column[i] = translate(r, column[i], how);
}

static void each_name(struct redaction *r, str_id *column, uint32_t count)
{
	for (uint32_t i = 1; column && i < count; i++)
		column[i] = name_id(r, column[i]);
}

/* Whether an id of a trace event is a text. */
static bool is_text_id(const struct redaction *r, uint64_t id)
{
	return id & MODEL_TEXT_ID && (id & ~MODEL_TEXT_ID) < r->m->strings.count;
}

static void each_id(struct redaction *r, uint64_t *column, uint32_t count)
{
	for (uint32_t i = 1; column && i < count; i++)
		if (is_text_id(r, column[i]))
			column[i] = MODEL_TEXT_ID |
				    translate(r, (str_id){ (uint32_t)column[i] }, pseudonym_word).v;
}

/* Whether a text is CamelCase, maybe after underscores, like registered op types. The user's functions, which may
 * also be ops, mostly are not. */
static bool looks_like_type(struct str s)
{
	size_t i = 0;

	while (i < s.len && i < 2 && s.ptr[i] == '_')
		i++;
	if (i == s.len || s.ptr[i] < 'A' || s.ptr[i] > 'Z')
		return false;
	for (; i < s.len; i++)
		if (!((s.ptr[i] | 0x20) >= 'a' && (s.ptr[i] | 0x20) <= 'z') &&
		    !(s.ptr[i] >= '0' && s.ptr[i] <= '9'))
			return false;
	return true;
}

/* Whether a text is a device: every component of /job:x/replica:0/task:0/device:GPU:0 has a colon; paths have none. */
static bool looks_like_device(struct str s)
{
	struct str rest = str_skip(s, 1), component;

	if (!s.len || s.ptr[0] != '/')
		return false;
	while (str_split(&rest, '/', &component))
		if (!str_has(component, STR(":")) && !str_eq(component, STR("memcpy")))
			return false;
	return true;
}

/* Whether an op has a type; an op known only from run-time records has its name as its type. */
static bool has_real_type(const struct model *m, uint32_t op)
{
	return !(m->op.flags[op] & OP_FROM_RUN) || m->op.type[op].v != m->op.name[op].v;
}

static void find_kept(struct redaction *r)
{
	struct model *m = r->m;

	for (uint32_t i = 1; i < m->device.count; i++)
		r->keep[m->device.name[i].v] |= KEEP_DEVICE;
	for (uint32_t op = 1; op < m->op.count; op++) {
		uint32_t type = m->op.type[op].v;

		r->keep[m->op.device[op].v] |= KEEP_DEVICE;
		r->keep[COLUMN_GET(m->op.host_device, op).v] |= KEEP_DEVICE;
		if (r->keep[type] & KEEP_TYPE || !has_real_type(m, op) ||
		    !looks_like_type(model_str(m, (str_id){ type })))
			continue;
		r->keep[type] |= KEEP_TYPE;
		pseudonym_keep(&r->words, model_str(m, (str_id){ type }));
	}
}

static bool is_kept(const struct redaction *r, str_id id)
{
	return id.v < r->old_count && r->keep[id.v];
}

static int by_text(const void *a, const void *b, void *arg)
{
	const struct model *m = arg;

	return str_cmp(model_str(m, *(const str_id *)a), model_str(m, *(const str_id *)b));
}

/* Redacts sets; their members must be sorted in byte order again. */
static void redact_sets(struct redaction *r)
{
	struct model *m = r->m;

	for (uint32_t i = 1; i < m->strset_item.count; i++)
		if (!is_kept(r, m->strset_item.text[i]))
			m->strset_item.text[i] = name_id(r, m->strset_item.text[i]);
	for (uint32_t i = 1; i < m->strset.count; i++)
		qsort_r(m->strset_item.text + m->strset.item_first[i], m->strset.item_count[i],
			sizeof(str_id), by_text, m);
}

static void redact_ops(struct redaction *r)
{
	struct model *m = r->m;

	for (uint32_t op = 1; op < m->op.count; op++)
		if (!(r->keep[m->op.type[op].v] & KEEP_TYPE))
			m->op.type[op] = name_id(r, m->op.type[op]);
	each_name(r, m->op.name, m->op.count);
	each_name(r, m->op_input.name, m->op_input.count);
	each_name(r, m->tensor.name, m->tensor.count);
	each_name(r, m->event.name, m->event.count);
	each_name(r, m->flow.name, m->flow.count);
	each(r, m->event.category, m->event.count, pseudonym_word);
	each(r, m->flow.category, m->flow.count, pseudonym_word);
	each_id(r, m->event_key.id, m->event_key.count);
	each_id(r, m->flow.id, m->flow.count);
	each(r, m->event_key.scope, m->event_key.count, pseudonym_word);
}

/* Redacts tracks; tracks of devices have the name of the device. */
static void redact_tracks(struct redaction *r)
{
	struct model *m = r->m;

	for (uint32_t i = 1; i < m->track.count; i++) {
		if (!is_kept(r, m->track.name[i]))
			m->track.name[i] = translate(r, m->track.name[i], pseudonym_word);
		if (!is_kept(r, m->track.process[i]))
			m->track.process[i] = translate(r, m->track.process[i], pseudonym_word);
	}
	each(r, m->track.labels, m->track.count, pseudonym_word);
	each(r, m->step.name, m->step.count, pseudonym_word);
	each(r, m->counter.name, m->counter.count, pseudonym_word);
	each(r, m->counter.series, m->counter.count, pseudonym_word);
	each(r, m->counter.instance, m->counter.count, pseudonym_word);
}

/* Whether a metric is one that profilers count; any other may be the user's own probe. */
static bool is_common_metric(struct str name)
{
	static const char *const names[] = {
		"cycles",
		"instructions",
		"cpu-clock",
		"task-clock",
		"cache-misses",
		"branches",
		"branch-misses",
		"page-faults",
		"cpu",
		"wall",
		"samples",
		"time",
		"contentions",
		"delay",
		"alloc_objects",
		"alloc_space",
		"inuse_objects",
		"inuse_space",
		"objects",
		"space",
		"nanoseconds",
		"microseconds",
		"bytes",
		"count",
		"context-switches",
		"cache-references",
	};

	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (str_eq(name, str_from(names[i])))
			return true;
	return false;
}

static void redact_samples(struct redaction *r)
{
	struct model *m = r->m;

	for (uint32_t i = 1; i < m->metric.count; i++)
		if (!is_common_metric(model_str(m, m->metric.name[i])))
			m->metric.name[i] = translate(r, m->metric.name[i], pseudonym_word);
	each(r, m->sample.label, m->sample.count, pseudonym_word);
}

static void redact_frames(struct redaction *r)
{
	struct model *m = r->m;

	each(r, m->frame.file, m->frame.count, pseudonym_path);
	each(r, m->frame.function, m->frame.count, pseudonym_word);
	each(r, m->frame.text, m->frame.count, pseudonym_word);
	each(r, m->frame.module, m->frame.count, pseudonym_path);
}

/* Redacts both parts of container!member. */
static void source_path(struct pseudonyms *p, struct str path, struct buf *out)
{
	struct str rest = path, part;
	bool first = true;

	while (str_split(&rest, '!', &part)) {
		if (!first)
			buf_add_char(out, '!');
		first = false;
		pseudonym_file(p, part, out);
	}
}

/* Whether a text is a known program that writes its name and version where any text is allowed: py-spy@0.3.14,
 * Firefox 102. */
static bool is_common_program(struct str name)
{
	static const char *const names[] = {
		"speedscope", "py-spy",	      "rbspy",	       "stackprof",	   "samply",
		"austin",     "pyinstrument", "Firefox",       "Firefox Profiler", "Thunderbird",
		"Linux Perf", "Chrome Trace", "Google Chrome", "simpleperf",
	};

	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		struct str rest = str_skip(name, strlen(names[i]));

		if (!str_starts(name, str_from(names[i])))
			continue;
		while (rest.len && strchr("0123456789.@ v", rest.ptr[0]))
			rest = str_skip(rest, 1);
		if (!rest.len)
			return true;
	}
	return false;
}

static void redact_sources(struct redaction *r)
{
	struct model *m = r->m;

	each(r, m->source.path, m->source.count, source_path);
	for (uint32_t i = 1; i < m->source.count; i++) {
		struct str format = model_str(m, m->source.format[i]);
		str_id *producer = &m->source.producer[i];

		if ((str_eq(format, STR("speedscope")) || str_eq(format, STR("firefox"))) &&
		    !is_common_program(model_str(m, *producer)))
			*producer = name_id(r, *producer);
	}
}

static bool is_identifier(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!(s.ptr[i] >= 'a' && s.ptr[i] <= 'z') &&
		    !(s.ptr[i] >= '0' && s.ptr[i] <= '9') && s.ptr[i] != '_')
			return false;
	return true;
}

/* The redacted key of a fact. Keys are our own words, except in objects with one member per device or type. */
static str_id fact_key(struct redaction *r, str_id id)
{
	struct str key = model_str(r->m, id);

	if (is_kept(r, id) || is_identifier(key) || looks_like_device(key))
		return id;
	return name_id(r, id);
}

static bool is_harmless_fact(struct str key)
{
	static const char *const keys[] = { "kind",	 "tf_version", "format",
					    "container", "version",    "tf_git_version" };

	for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
		if (str_eq(key, str_from(keys[i])))
			return true;
	return false;
}

static void redact_facts(struct redaction *r)
{
	struct model *m = r->m;

	for (uint32_t i = 1; i < m->fact.count; i++) {
		str_id text = m->fact.text[i];

		if (!is_harmless_fact(model_str(m, m->fact.key[i])) && !is_kept(r, text) &&
		    !looks_like_device(model_str(m, text)))
			m->fact.text[i] = name_id(r, text);
		m->fact.key[i] = fact_key(r, m->fact.key[i]);
	}
}

static bool is_mark(char c)
{
	return c == '\'' || c == '"' || c == '(' || c == ')' || c == ',' || c == ';' || c == ':' ||
	       c == '.' || c == '!' || c == '?';
}

/* Whether a word is plain English as in our own texts: lower-case letters, or a number. */
static bool is_plain(struct str word)
{
	bool letters = true, digits = true;

	for (size_t i = 0; i < word.len; i++) {
		char c = word.ptr[i];

		letters = letters && ((c >= 'a' && c <= 'z') || c == '-' || c == '\'');
		digits = digits && c >= '0' && c <= '9';
	}
	return letters || digits;
}

static bool is_technical(struct str word)
{
	static const char *const words[] = {
		"GraphDef",   "MetaGraphDef", "SavedModel", "RunMetadata",   "StepStats",
		"OpLogProto", "ProfileProto", "NodeDef",    "NodeExecStats", "Event",
		"UTF-8",      "CRC",	      "GPU",	    "CPU",	     "V1",
		"V2",	      "TensorFlow",   "JSON",	    "gzip",	     "zstd",
		"snappy",     "I/O",
	};

	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		if (str_eq(word, str_from(words[i])))
			return true;
	return false;
}

static void note_word(struct redaction *r, struct str word, struct buf *out)
{
	str_id id = model_find_str(r->m, word);

	/* a name of one or two letters reveals nothing, and would match half of English */
	if (is_technical(word) || (id.v && is_kept(r, id)) ||
	    (is_plain(word) && (word.len < 3 || !pseudonym_known(&r->words, word))))
		buf_add_str(out, word);
	else
		pseudonym_name(&r->words, word, out);
}

/* Redacts a note word by word: words that could be names are replaced; quotes and other marks around them stay. */
static void note_words(struct redaction *r, struct str text, struct buf *out)
{
	struct str rest = text, piece;
	bool first = true;

	while (str_split(&rest, ' ', &piece)) {
		size_t begin = 0, end = piece.len;

		if (!first)
			buf_add_char(out, ' ');
		first = false;
		while (begin < end && is_mark(piece.ptr[begin]))
			begin++;
		while (end > begin && is_mark(piece.ptr[end - 1]))
			end--;
		buf_add(out, piece.ptr, begin);
		note_word(r, str_make(piece.ptr + begin, end - begin), out);
		buf_add(out, piece.ptr + end, piece.len - end);
	}
}

/* Texts in which others wrote what follows: every word may be a name, also one in lower-case letters. */
static const struct {
	const char *phrase;
	bool to_end; /* or one word only */
} foreign[] = {
	{ "the profiler says: ", true },
	{ "step marker ", false },
	{ "asks to run ", false },
};

static void foreign_words(struct redaction *r, struct str text, bool to_end, struct buf *out)
{
	struct str rest = text, piece;
	bool first = true;

	while ((first || to_end) && str_split(&rest, ' ', &piece)) {
		buf_add_str(out, first ? STR("") : STR(" "));
		if (piece.len)
			pseudonym_name(&r->words, piece, out);
		first = false;
	}
	if (rest.len) {
		buf_add_char(out, ' ');
		note_words(r, rest, out);
	}
}

/* Replaces the names in a text of ours, and all words of a text that it quotes. */
static void note_sentence(struct redaction *r, struct str text, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_COUNT(foreign); i++) {
		size_t at = str_find(text, str_from(foreign[i].phrase)), end;

		if (at == STR_NONE)
			continue;
		end = at + strlen(foreign[i].phrase);
		note_words(r, str_first(text, end), out);
		foreign_words(r, str_skip(text, end), foreign[i].to_end, out);
		return;
	}
	note_words(r, text, out);
}

/* "not used: PATH: why; it starts with …": the path may have blanks, and bytes of the file are not
 * for others. */
static void note_text(struct redaction *r, struct str text, struct buf *out)
{
	struct str unused = STR("not used: ");
	size_t end;

	if (str_starts(text, unused)) {
		buf_add_str(out, unused);
		text = str_skip(text, unused.len);
		end = str_find(text, STR(": "));
		source_path(&r->words, str_first(text, MIN(end, text.len)), out);
		text = str_skip(text, MIN(end, text.len));
	}
	end = str_find(text, STR("; it starts with"));
	note_sentence(r, str_first(text, MIN(end, text.len)), out);
}

/* Runs after everything else: all names are known then. */
static void redact_notes(struct redaction *r)
{
	struct model *m = r->m;

	for (uint32_t i = 1; i < m->note.count; i++) {
		struct str text = model_str(m, m->note.text[i]);

		buf_clear(&r->text);
		note_text(r, text, &r->text);
		if (r->text.failed || r->words.failed)
			builder_fail(&r->b, OW_E_NO_MEMORY);
		m->note.text[i] = builder_str(&r->b, buf_str(&r->text));
	}
}

static void forget_records(struct model *m)
{
	for (uint32_t i = 0; m->event.args_size && i < m->event.count; i++)
		m->event.args_size[i] = 0;
	for (uint32_t i = 0; m->event.shared_size && i < m->event.count; i++)
		m->event.shared_size[i] = 0;
	for (uint32_t i = 0; m->event_args.args_size && i < m->event_args.count; i++)
		m->event_args.args_size[i] = 0;
	for (uint32_t i = 0; m->op.record_size && i < m->op.count; i++)
		m->op.record_size[i] = 0;
	for (uint32_t i = 0; m->op.code_size && i < m->op.count; i++)
		m->op.code_size[i] = 0;
	buf_release(&m->code);
	deferred_forget(m, DEFERRED_traces);
	buf_init(&m->code, m->mem);
	for (size_t i = 0; i < m->input_cap; i++) {
		if (!m->inputs[i])
			continue;
		input_close(m->inputs[i]);
		mem_free(m->mem, m->inputs[i], sizeof(struct input));
		m->inputs[i] = NULL;
	}
}

static ow_status rebuild_lookups(struct model *m, struct ow_error *err)
{
	struct map *stale[] = { &m->strset_map, &m->frame_map, &m->track_map, &m->metric_map };

	for (size_t i = 0; i < ARRAY_COUNT(stale); i++) {
		map_release(stale[i]);
		map_init(stale[i], m->mem);
	}
	id_map_release(&m->op_by_name);
	for (uint32_t op = 1; op < m->op.count; op++)
		if (!id_map_add(&m->op_by_name, m->op.name[op].v, op))
			return error_no_memory(err);
	deferred_forget(m, DEFERRED_name_order);
	return OW_OK;
}

/* Marks the strings that a table still names. */
static void mark_used(const struct model *m, const struct table_info *info, uint8_t *used)
{
	const char *table = (const char *)m + info->offset;
	uint32_t count = *(const uint32_t *)(const void *)table;

	for (uint32_t c = 0; c < info->column_count; c++) {
		const str_id *column =
			*(str_id *const *)(const void *)(table + info->columns[c].offset);

		if (strcmp(info->columns[c].type, "str_id") != 0)
			continue;
		for (uint32_t i = 0; column && i < count; i++)
			used[column[i].v] = 1;
	}
}

static void mark_text_ids(const struct redaction *r, const uint64_t *column, uint32_t count,
			  uint8_t *used)
{
	for (uint32_t i = 1; column && i < count; i++)
		if (is_text_id(r, column[i]))
			used[(uint32_t)column[i]] = 1;
}

static ow_status blank_unused(struct redaction *r, struct ow_error *err)
{
	struct model *m = r->m;
	uint32_t count = m->strings.count;
	uint8_t *used = mem_zalloc(m->mem, count);

	if (!used)
		return error_no_memory(err);
	for (int t = 0; t < TABLE_COUNT; t++)
		mark_used(m, &model_tables[t], used);
	mark_text_ids(r, m->event_key.id, m->event_key.count, used);
	mark_text_ids(r, m->flow.id, m->flow.count, used);
	for (uint32_t i = 1; i < count; i++) {
		struct str *text = &m->strings.text[i];

		if (used[i])
			continue;
		memset((char *)(uintptr_t)text->ptr, 0, text->len);
		text->len = 0;
	}
	mem_free(m->mem, used, count);
	return OW_OK;
}

static ow_status redact_all(struct redaction *r, struct ow_error *err)
{
	struct model *m = r->m;

	find_kept(r);
	redact_sets(r);
	redact_ops(r);
	redact_tracks(r);
	redact_frames(r);
	redact_samples(r);
	redact_sources(r);
	redact_facts(r);
	redact_notes(r);
	if (r->words.failed || r->b.status != OW_OK)
		return error_no_memory(err);
	forget_records(m);
	OW_TRY(rebuild_lookups(m, err));
	return blank_unused(r, err);
}

ow_status model_redact(struct model *m, bool alike, struct ow_error *err)
{
	struct redaction r = { .m = m, .old_count = m->strings.count };
	ow_status status;

	OW_TRY(model_require_stacks(m, err));
	r.old_count = m->strings.count;
	builder_init(&r.b, m, err);
	buf_init(&r.text, m->mem);
	status = pseudonyms_init(&r.words, m->mem, err);
	if (status == OW_OK && alike)
		status = pseudonyms_share(&r.words, err);
	r.keep = mem_zalloc(m->mem, r.old_count);
	r.named = mem_zalloc(m->mem, (size_t)r.old_count * sizeof(*r.named));
	if (status == OW_OK)
		status = r.keep && r.named ? redact_all(&r, err) : error_no_memory(err);
	mem_free(m->mem, r.keep, r.keep ? r.old_count : 0);
	mem_free(m->mem, r.named, r.named ? (size_t)r.old_count * sizeof(*r.named) : 0);
	pseudonyms_release(&r.words);
	buf_release(&r.text);
	return status;
}
