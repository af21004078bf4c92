/*
 * writer.c: buffers what sinks write, and the forms of strings and numbers that several sinks share: JSON, XML, UTF-8 with
 * replaced invalid bytes, microseconds. It does not open or name files.
 */
#include "base/writer.h"

#include "base/json_escape.h"

#include <stdarg.h>

#define WRITER_BYTES 65536
#define WRITER_PRINTF_MAX 512

void writer_init(struct writer *w, struct mem *mem, const struct out *out, struct ow_error *err)
{
	*w = (struct writer){ .out = out, .mem = mem, .err = err };
	w->ptr = mem_alloc(mem, WRITER_BYTES + WRITER_SLACK);
	if (!w->ptr)
		w->status = error_no_memory(err);
}

void writer_fail(struct writer *w, ow_status status)
{
	if (w->status == OW_OK)
		w->status = status;
}

static void write_out(struct writer *w, const void *bytes, size_t len)
{
	w->status = w->out->write(w->out->arg, bytes, len, w->err);
	w->written += len;
}

static void writer_flush(struct writer *w)
{
	if (w->status == OW_OK && w->len)
		write_out(w, w->ptr, w->len);
	w->len = 0;
}

ow_status writer_finish(struct writer *w)
{
	writer_flush(w);
	if (w->ptr)
		mem_free(w->mem, w->ptr, WRITER_BYTES + WRITER_SLACK);
	w->ptr = NULL;
	return w->status;
}

void writer_add(struct writer *w, const void *bytes, size_t len)
{
	if (w->status != OW_OK || !len)
		return;
	if (len > WRITER_BYTES - w->len)
		writer_flush(w);
	if (w->status != OW_OK)
		return;
	if (len > WRITER_BYTES) {
		write_out(w, bytes, len);
		return;
	}
	memcpy(w->ptr + w->len, bytes, len);
	w->len += len;
}

char *writer_room(struct writer *w, size_t len)
{
	char *room;

	if (w->status != OW_OK || len > WRITER_BYTES)
		return NULL;
	if (len > WRITER_BYTES - w->len)
		writer_flush(w);
	if (w->status != OW_OK)
		return NULL;
	room = w->ptr + w->len;
	w->len += len;
	return room;
}

void writer_char(struct writer *w, char c)
{
	writer_add(w, &c, 1);
}

void writer_repeat(struct writer *w, char c, size_t count)
{
	char chunk[64];

	memset(chunk, c, sizeof(chunk));
	for (; count > sizeof(chunk); count -= sizeof(chunk))
		writer_add(w, chunk, sizeof(chunk));
	writer_add(w, chunk, count);
}

void writer_printf(struct writer *w, const char *format, ...)
{
	char text[WRITER_PRINTF_MAX];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	OW_ASSERT(len >= 0 && (size_t)len < sizeof(text));
	if (len > 0)
		writer_add(w, text, MIN((size_t)len, sizeof(text) - 1));
}

void writer_int(struct writer *w, int64_t value)
{
	char text[24];
	size_t at = sizeof(text);
	uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;

	do {
		text[--at] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest);
	if (value < 0)
		text[--at] = '-';
	writer_add(w, text + at, sizeof(text) - at);
}

void writer_micros(struct writer *w, int64_t ns)
{
	int64_t rest = ns % 1000;

	if (!rest) {
		writer_int(w, ns / 1000);
		return;
	}
	if (ns < 0)
		writer_char(w, '-');
	writer_printf(w, "%" PRIu64 ".%03d", (ns < 0 ? -(uint64_t)ns : (uint64_t)ns) / 1000,
		      (int)(rest < 0 ? -rest : rest));
}

void writer_real(struct writer *w, double value)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	writer_puts(w, text);
}

/* Writes the longest valid prefix in one piece and returns its length. An invalid byte after it
 * is replaced. */
static size_t put_valid(struct writer *w, struct str s)
{
	size_t valid = utf8_valid_prefix(s);

	writer_add(w, s.ptr, valid);
	if (valid == s.len)
		return valid;
	writer_puts(w, "\xef\xbf\xbd");
	return valid + 1;
}

void writer_utf8(struct writer *w, struct str s)
{
	while (s.len)
		s = str_skip(s, put_valid(w, s));
}

void writer_json(struct writer *w, struct str s)
{
	char escape[JSON_ESCAPE_MAX];

	writer_char(w, '"');
	while (s.len)
		writer_str(w, json_escape_next(&s, JSON_UTF8, escape));
	writer_char(w, '"');
}

void writer_json_ascii(struct writer *w, struct str s)
{
	char escape[JSON_ESCAPE_MAX];

	while (s.len)
		writer_str(w, json_escape_next(&s, JSON_JSONCPP, escape));
}

static const char *xml_entity(unsigned char c)
{
	switch (c) {
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '&':
		return "&amp;";
	case '"':
		return "&quot;";
	/* an XML parser would read a plain carriage return as a blank (attribute) or a line feed
	 * (text) */
	case '\r':
		return "&#13;";
	default:
		return c < 0x20 && c != '\n' && c != '\t' ? "\xef\xbf\xbd" : NULL;
	}
}

/* Detects U+FFFE and U+FFFF, which are valid UTF-8 but not valid XML. */
static bool xml_noncharacter(struct str s)
{
	return s.len >= 3 && !memcmp(s.ptr, "\xef\xbf", 2) && (unsigned char)s.ptr[2] >= 0xbe;
}

void writer_xml(struct writer *w, struct str s)
{
	size_t run = 0;

	for (size_t i = 0; i < s.len; i++) {
		const char *entity = xml_entity((unsigned char)s.ptr[i]);
		size_t skip = 1;

		if (!entity && xml_noncharacter(str_skip(s, i))) {
			entity = "\xef\xbf\xbd";
			skip = 3;
		}
		if (!entity)
			continue;
		writer_utf8(w, str_make(s.ptr + run, i - run));
		writer_puts(w, entity);
		run = i + skip;
		i = run - 1;
	}
	writer_utf8(w, str_skip(s, run));
}
