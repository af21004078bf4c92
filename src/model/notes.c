/* notes.c: adds facts about a source and notes on damage in it; a part of builder.h. */
#include "model/builder.h"

#include <stdarg.h>

static fact_id add_fact(struct builder *b, fact_id parent, const char *key, struct fact_row row)
{
	row.source = b->source;
	row.parent = parent;
	row.key = key ? builder_cstr(b, key) : (str_id){ 0 };
	return builder_add_fact(b, &row);
}

fact_id fact_object(struct builder *b, fact_id parent, const char *key)
{
	return add_fact(b, parent, key, (struct fact_row){ .kind = FACT_OBJECT });
}

fact_id fact_list(struct builder *b, fact_id parent, const char *key)
{
	return add_fact(b, parent, key, (struct fact_row){ .kind = FACT_LIST });
}

void fact_int(struct builder *b, fact_id parent, const char *key, int64_t value)
{
	add_fact(b, parent, key, (struct fact_row){ .kind = FACT_INT, .number = value });
}

void fact_real(struct builder *b, fact_id parent, const char *key, double value)
{
	add_fact(b, parent, key, (struct fact_row){ .kind = FACT_REAL, .real = value });
}

void fact_text(struct builder *b, fact_id parent, const char *key, struct str value)
{
	add_fact(b, parent, key,
		 (struct fact_row){ .kind = FACT_TEXT, .text = builder_str(b, value) });
}

void fact_bool(struct builder *b, fact_id parent, const char *key, bool value)
{
	add_fact(b, parent, key, (struct fact_row){ .kind = FACT_BOOL, .number = value });
}

void fact_micros(struct builder *b, fact_id parent, const char *key, int64_t ns)
{
	if (ns == TIME_UNKNOWN)
		add_fact(b, parent, key, (struct fact_row){ .kind = FACT_NULL });
	else
		add_fact(b, parent, key, (struct fact_row){ .kind = FACT_MICROS, .number = ns });
}

static void add_note(struct builder *b, enum note_kind kind, uint64_t offset, uint64_t count,
		     const char *text)
{
	struct model *m = b->m;
	str_id id = builder_cstr(b, text);

	if (kind >= NOTE_REPAIRED)
		m->damaged = true;
	/* Notes are few; a repeated one is likely among the last. */
	for (uint32_t i = m->note.count; i-- > 1 && i + 64 > m->note.count;)
		if (m->note.text[i].v == id.v && m->note.kind[i] == kind &&
		    m->note.source[i].v == b->source.v) {
			m->note.times[i] += count;
			return;
		}
	builder_add_note(b, &(struct note_row){ .kind = (uint8_t)kind,
						.source = b->source,
						.offset = offset,
						.times = count,
						.text = id });
}

void builder_note(struct builder *b, enum note_kind kind, uint64_t offset, const char *format, ...)
{
	char text[OW_ERROR_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	add_note(b, kind, offset, 1, text);
}

void builder_note_many(struct builder *b, enum note_kind kind, uint64_t offset, uint64_t count,
		       const char *format, ...)
{
	char text[OW_ERROR_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	add_note(b, kind, offset, count, text);
}
