/*
 * json_escape.c: strings of JSON, for all writers. It looks at each byte only once, because names in traces can be long
 * and binary. It does not know where its output goes.
 */
#include "base/json_escape.h"

#define REPLACEMENT 0xfffdu

/* Returns how many bytes at the start need no escape. */
static size_t plain_prefix(struct str s, enum json_style style)
{
	const char *end = s.ptr + s.len, *p = s.ptr;

	while (style == JSON_ASCII) {
		if (p == end || *p < ' ' || *p > '~' || *p == '"' || *p == '\\')
			return (size_t)(p - s.ptr);
		p++;
	}
	for (;;) {
		uint32_t code;
		size_t used;

		p = json_plain_end(p, end);
		if (style != JSON_UTF8 || p == end || (unsigned char)*p < 0x80)
			return (size_t)(p - s.ptr);
		used = utf8_decode(str_make(p, (size_t)(end - p)), &code);
		if (used == 1)
			return (size_t)(p - s.ptr);
		p += used;
	}
}

/* jsoncpp's decoder: the first byte alone decides the length, a continuation byte leads a sequence of
 * two, and only cut, overlong and surrogate sequences are refused. Four bytes are decoded correctly
 * here and not with its misplaced first three bits. */
static size_t jsoncpp_decode(struct str s, uint32_t *code)
{
	const unsigned char *p = (const unsigned char *)s.ptr;
	size_t used = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf8 ? 4 : 1;
	uint32_t c = p[0];

	if (p[0] >= 0xf8 || s.len < used) {
		*code = REPLACEMENT;
		return 1;
	}
	if (used == 2) {
		c = (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
		c = c < 0x80 ? REPLACEMENT : c;
	} else if (used == 3) {
		c = (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
		c = c < 0x800 || (c >= 0xd800 && c < 0xe000) ? REPLACEMENT : c;
	} else if (used == 4) {
		c = (p[0] & 0x07u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 |
		    (p[3] & 0x3fu);
		c = c < 0x10000 || c > 0x10ffff ? REPLACEMENT : c;
	}
	*code = c;
	return used;
}

/* Writes the escape of a quote, a backslash, a control character or, in ASCII mode, a byte
 * beyond ASCII. */
static size_t put_escape(char escape[JSON_ESCAPE_MAX], uint32_t code)
{
	static const char letters[] = { ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r',
					['\t'] = 't', ['"'] = '"',  ['\\'] = '\\' };

	if (code < sizeof(letters) && letters[code]) {
		escape[0] = '\\';
		escape[1] = letters[code];
		return 2;
	}
	if (code < 0x10000)
		return (size_t)snprintf(escape, JSON_ESCAPE_MAX, "\\u%04x", code);
	code -= 0x10000;
	return (size_t)snprintf(escape, JSON_ESCAPE_MAX, "\\u%04x\\u%04x",
				0xd800 + (code >> 10 & 0x3ff), 0xdc00 + (code & 0x3ff));
}

struct str json_escape_next(struct str *rest, enum json_style style, char escape[JSON_ESCAPE_MAX])
{
	struct str s = *rest;
	size_t plain = plain_prefix(s, style);
	uint32_t code;

	if (plain) {
		*rest = str_skip(s, plain);
		return str_first(s, plain);
	}
	*rest = str_skip(s,
			 style == JSON_JSONCPP ? jsoncpp_decode(s, &code) : utf8_decode(s, &code));
	if (style == JSON_UTF8 && code == REPLACEMENT)
		return STR("\xef\xbf\xbd");
	return str_make(escape, put_escape(escape, code));
}

void json_escape(struct buf *to, struct str text)
{
	char escape[JSON_ESCAPE_MAX];

	while (text.len && !to->failed)
		buf_add_str(to, json_escape_next(&text, JSON_UTF8, escape));
}

void json_quote(struct buf *to, struct str text)
{
	buf_add_char(to, '"');
	json_escape(to, text);
	buf_add_char(to, '"');
}
