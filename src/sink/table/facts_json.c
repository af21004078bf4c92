/*
 * facts_json.c: writes sources, facts and notes of a model as JSON; api/write.c calls it for `opwatch info --json`.
 * Facts are a forest of rows that name their parents: children are linked once and then walked without recursion, in
 * the order in which they were added. It is not a sink and never sees a result table.
 */
#include "sink/table/facts_json.h"

#include "model/names.h"
#include "base/writer.h"
#include "sink/sink.h"

#include <math.h>

#define INDENT 2

struct facts {
	struct model *m;
	struct writer w;
	struct arena scratch;
	/* for each fact: rows of its first and last child and next sibling, 0 = none */
	uint32_t *first_child, *last_child, *next;
	/* for each fact: a list that contains containers, written with one line for each item */
	uint8_t *broken;
	/* for each source: first and last fact without a parent */
	uint32_t *first_root, *last_root;
};

static void new_line(struct facts *f, uint32_t depth)
{
	writer_char(&f->w, '\n');
	writer_repeat(&f->w, ' ', (size_t)depth * INDENT);
}

/* Starts a member of an object, after a comma. */
static void member(struct facts *f, uint32_t depth, struct str key)
{
	writer_char(&f->w, ',');
	new_line(f, depth);
	writer_json(&f->w, key);
	writer_puts(&f->w, ": ");
}

static void append(uint32_t *first, uint32_t *last, uint32_t *next, uint32_t fact)
{
	if (*last)
		next[*last] = fact;
	else
		*first = fact;
	*last = fact;
}

static bool string_together(struct facts *f)
{
	const struct model *m = f->m;

	f->first_child = ARENA_ARRAY(&f->scratch, uint32_t, m->fact.count);
	f->last_child = ARENA_ARRAY(&f->scratch, uint32_t, m->fact.count);
	f->next = ARENA_ARRAY(&f->scratch, uint32_t, m->fact.count);
	f->broken = ARENA_ARRAY(&f->scratch, uint8_t, m->fact.count);
	f->first_root = ARENA_ARRAY(&f->scratch, uint32_t, m->source.count);
	f->last_root = ARENA_ARRAY(&f->scratch, uint32_t, m->source.count);
	if (!f->first_child || !f->last_child || !f->next || !f->broken || !f->first_root ||
	    !f->last_root)
		return false;
	for (uint32_t i = 1; i < m->fact.count; i++) {
		uint32_t parent = m->fact.parent[i].v, source = m->fact.source[i].v;

		if (parent)
			append(&f->first_child[parent], &f->last_child[parent], f->next, i);
		else
			append(&f->first_root[source], &f->last_root[source], f->next, i);
		/* the list that contains the parent is written on several lines */
		f->broken[m->fact.parent[parent].v] = 1;
	}
	return true;
}

static bool is_container(const struct model *m, uint32_t fact)
{
	return m->fact.kind[fact] == FACT_OBJECT || m->fact.kind[fact] == FACT_LIST;
}

/* Whether a list is written on one line: it has only plain values or empty containers. */
static bool is_inline(const struct facts *f, uint32_t list)
{
	return f->m->fact.kind[list] == FACT_LIST && !f->broken[list];
}

/* Writes nanoseconds as microseconds with decimals, without a double, which could not hold them exactly. */
static void write_micros(struct facts *f, int64_t ns)
{
	uint64_t abs = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	unsigned rest = (unsigned)(abs % 1000);
	char text[32];
	int len = snprintf(text, sizeof(text), "%s%" PRIu64 ".%03u", ns < 0 ? "-" : "", abs / 1000,
			   rest);

	while (text[len - 1] == '0')
		text[--len] = '\0';
	if (text[len - 1] == '.')
		text[--len] = '\0';
	writer_puts(&f->w, text);
}

static void write_value(struct facts *f, uint32_t fact)
{
	const struct model *m = f->m;

	switch ((enum fact_kind)m->fact.kind[fact]) {
	case FACT_INT:
		writer_int(&f->w, m->fact.number[fact]);
		return;
	case FACT_REAL:
		if (isfinite(m->fact.real[fact]))
			writer_real(&f->w, m->fact.real[fact]);
		else
			writer_puts(&f->w, "null");
		return;
	case FACT_TEXT:
		writer_json(&f->w, model_str(m, m->fact.text[fact]));
		return;
	case FACT_BOOL:
		writer_puts(&f->w, m->fact.number[fact] ? "true" : "false");
		return;
	case FACT_MICROS:
		write_micros(f, m->fact.number[fact]);
		return;
	case FACT_NULL:
		writer_puts(&f->w, "null");
		return;
	case FACT_OBJECT:
	case FACT_LIST:
		break;
	}
}

/* Writes what precedes a child of `parent`: comma, line break, indentation, key. */
static void write_lead(struct facts *f, uint32_t parent, uint32_t fact, uint32_t depth)
{
	const struct model *m = f->m;
	bool on_line = is_inline(f, parent);

	if (fact != f->first_child[parent])
		writer_puts(&f->w, on_line ? ", " : ",");
	if (!on_line)
		new_line(f, depth);
	if (m->fact.kind[parent] != FACT_OBJECT)
		return;
	writer_json(&f->w, model_str(m, m->fact.key[fact]));
	writer_puts(&f->w, ": ");
}

static void open_container(struct facts *f, uint32_t fact)
{
	writer_char(&f->w, f->m->fact.kind[fact] == FACT_OBJECT ? '{' : '[');
}

static void close_container(struct facts *f, uint32_t fact, uint32_t depth)
{
	if (f->first_child[fact] && !is_inline(f, fact))
		new_line(f, depth);
	writer_char(&f->w, f->m->fact.kind[fact] == FACT_OBJECT ? '}' : ']');
}

/* Writes one fact with all its members; the key is written already. `depth` is the depth of the members. */
static void write_fact(struct facts *f, uint32_t top, uint32_t depth)
{
	uint32_t at = top;

	for (;;) {
		if (is_container(f->m, at)) {
			open_container(f, at);
			if (f->first_child[at]) {
				uint32_t child = f->first_child[at];

				write_lead(f, at, child, depth++);
				at = child;
				continue;
			}
			close_container(f, at, depth);
		} else {
			write_value(f, at);
		}
		while (at != top && !f->next[at]) {
			at = f->m->fact.parent[at].v;
			depth--;
			close_container(f, at, depth - 1);
		}
		if (at == top || f->w.status != OW_OK)
			return;
		write_lead(f, f->m->fact.parent[at].v, f->next[at], depth - 1);
		at = f->next[at];
	}
}

static bool has_fact(const struct facts *f, uint32_t source, struct str key)
{
	for (uint32_t i = f->first_root[source]; i; i = f->next[i])
		if (str_eq(model_str(f->m, f->m->fact.key[i]), key))
			return true;
	return false;
}

/* Writes a column of the source as a member, unless a fact has the same name, which is more exact. */
static void text_member(struct facts *f, uint32_t source, uint32_t depth, const char *key,
			str_id text)
{
	if (has_fact(f, source, str_from(key)))
		return;
	member(f, depth, str_from(key));
	if (text.v)
		writer_json(&f->w, model_str(f->m, text));
	else
		writer_puts(&f->w, "null");
}

static void size_member(struct facts *f, uint32_t source, uint32_t depth, const char *key,
			uint64_t size)
{
	if (has_fact(f, source, str_from(key)))
		return;
	member(f, depth, str_from(key));
	writer_printf(&f->w, "%" PRIu64, size);
}

static bool is_taken(struct str key, bool top)
{
	static const char *const names[] = { "path", "notes", "sources", "model", "loss" };

	for (size_t i = 0; i < (top ? ARRAY_COUNT(names) : 2); i++)
		if (str_eq(key, str_from(names[i])))
			return true;
	return false;
}

/* Writes the members of a source at this depth, each after a comma. `top`: at the top level, where the names of our
 * own members are reserved. */
static void write_source_members(struct facts *f, uint32_t source, uint32_t depth, bool top)
{
	const struct model *m = f->m;

	text_member(f, source, depth, "format", m->source.format[source]);
	text_member(f, source, depth, "container", m->source.container[source]);
	size_member(f, source, depth, "bytes", m->source.size[source]);
	size_member(f, source, depth, "packed_bytes", m->source.packed_size[source]);
	text_member(f, source, depth, "producer", m->source.producer[source]);
	if (m->source.rank[source] >= 0)
		size_member(f, source, depth, "rank", (uint64_t)m->source.rank[source]);
	for (uint32_t i = f->first_root[source]; i; i = f->next[i]) {
		struct str key = model_str(m, m->fact.key[i]);

		if (is_taken(key, top))
			continue;
		member(f, depth, key);
		write_fact(f, i, depth + 1);
	}
}

static void write_note(struct facts *f, uint32_t note, bool first, bool with_source)
{
	const struct model *m = f->m;
	source_id source = m->note.source[note];

	writer_puts(&f->w, first ? "\n" : ",\n");
	writer_printf(&f->w, "%*s{\"kind\": \"%s\", ", with_source ? 4 : 8, "",
		      note_kind_name(m->note.kind[note]));
	if (with_source) {
		writer_puts(&f->w, "\"source\": ");
		if (source.v)
			writer_json(&f->w, model_str(m, m->source.path[source.v]));
		else
			writer_puts(&f->w, "null");
		writer_puts(&f->w, ", ");
	}
	if (m->note.offset[note] == OW_NO_OFFSET)
		writer_puts(&f->w, "\"offset\": null, ");
	else
		writer_printf(&f->w, "\"offset\": %" PRIu64 ", ", m->note.offset[note]);
	writer_printf(&f->w, "\"count\": %" PRIu64 ", \"text\": ", m->note.times[note]);
	writer_json(&f->w, model_str(m, m->note.text[note]));
	writer_char(&f->w, '}');
}

static void write_source(struct facts *f, uint32_t source)
{
	const struct model *m = f->m;
	bool first = true;

	writer_puts(&f->w,
		    source == 1 ? "\n    {\n      \"path\": " : ",\n    {\n      \"path\": ");
	writer_json(&f->w, model_str(m, m->source.path[source]));
	write_source_members(f, source, 3, false);
	member(f, 3, STR("notes"));
	writer_char(&f->w, '[');
	for (uint32_t i = 1; i < m->note.count; i++) {
		if (m->note.source[i].v != source)
			continue;
		write_note(f, i, first, false);
		first = false;
	}
	writer_puts(&f->w, first ? "]\n    }" : "\n      ]\n    }");
}

/* Writes the number of rows of each table, and the memory that the model uses. */
static void write_model(struct facts *f)
{
	const struct model *m = f->m;

	member(f, 1, STR("model"));
	writer_puts(&f->w, "{\n    \"rows\": {");
	for (int t = 0; t < TABLE_COUNT; t++) {
		const char *table = (const char *)m + model_tables[t].offset;
		uint32_t count = *(const uint32_t *)(const void *)table;

		writer_printf(&f->w, "%s\"%s\": %u", t ? ", " : "", model_tables[t].name,
			      count ? count - 1 : 0);
	}
	writer_printf(&f->w, "},\n    \"strings\": %u,\n", m->strings.count - 1);
	writer_printf(&f->w, "    \"memory_bytes\": %zu,\n    \"peak_memory_bytes\": %zu,\n",
		      atomic_load(&m->mem->used), atomic_load(&m->mem->peak));
	writer_printf(&f->w, "    \"time_unit_ns\": %" PRId64 ",\n", m->time_unit_ns);
	writer_printf(&f->w, "    \"has_code\": %s,\n    \"damaged\": %s\n  }",
		      m->has_code ? "true" : "false", m->damaged ? "true" : "false");
}

static void write_loss(struct facts *f)
{
	const struct model *m = f->m;
	bool first = true;

	member(f, 1, STR("loss"));
	writer_char(&f->w, '[');
	for (uint32_t i = 1; i < m->note.count; i++) {
		if (m->note.kind[i] == NOTE_INFO)
			continue;
		write_note(f, i, first, true);
		first = false;
	}
	writer_puts(&f->w, first ? "]" : "\n  ]");
}

static void write_all(struct facts *f)
{
	const struct model *m = f->m;

	writer_puts(&f->w, "{\n  \"schema_version\": 1,\n  \"sources\": [");
	for (uint32_t source = 1; source < m->source.count; source++)
		write_source(f, source);
	writer_puts(&f->w, m->source.count > 1 ? "\n  ]" : "]");
	write_model(f);
	write_loss(f);
	if (m->source.count == 2) {
		member(f, 1, STR("path"));
		writer_json(&f->w, model_str(m, m->source.path[1]));
		write_source_members(f, 1, 1, true);
	}
	writer_puts(&f->w, "\n}\n");
}

ow_status facts_write_json(struct model *m, const struct out *out, struct ow_error *err)
{
	struct facts f = { .m = m };
	ow_status status;

	arena_init(&f.scratch, m->mem);
	writer_init(&f.w, m->mem, out, err);
	if (string_together(&f))
		write_all(&f);
	else
		writer_fail(&f.w, error_no_memory(err));
	status = writer_finish(&f.w);
	arena_release(&f.scratch);
	return status;
}
