/*
 * json_escape.h: the text of a JSON string. One function writes into a struct buf; the other returns the output
 * piece by piece, for writers that have no struct buf (sink/writer.c, a FILE). All JSON that opwatch writes is
 * escaped here. Reading JSON is wire/json.
 */
#ifndef BASE_JSON_ESCAPE_H
#define BASE_JSON_ESCAPE_H

#include "base/buf.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum json_style {
	JSON_UTF8, /* UTF-8 stays unchanged; each invalid byte becomes U+FFFD */
	JSON_ASCII, /* everything but printable ASCII becomes \u escapes, as Python's json.dumps does it */
	/* ASCII, byte for byte as jsoncpp 1.8.4 writes it, also for text that is not UTF-8 */
	JSON_JSONCPP,
};

/* Adds the string in UTF-8, with or without its quotes. */
void json_quote(struct buf *to, struct str text);
void json_escape(struct buf *to, struct str text);

/* Takes some bytes off *rest, which is not empty, and returns their escaped form: a part of *rest itself, or up to
 * JSON_ESCAPE_MAX bytes in `escape`. Without quotes.
 *
 *	while (rest.len)
 *		writer_str(w, json_escape_next(&rest, JSON_UTF8, escape));
 */
#define JSON_ESCAPE_MAX 16
struct str json_escape_next(struct str *rest, enum json_style style, char escape[JSON_ESCAPE_MAX]);

/* Returns the first byte at or after p that is a quote, a backslash, a control character or not
 * ASCII. */
OW_ALWAYS_INLINE const char *json_plain_end(const char *p, const char *end)
{
#if defined(__SSE2__)
	while (end - p >= 16) {
		__m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i quote = _mm_cmpeq_epi8(x, _mm_set1_epi8('"'));
		__m128i escape = _mm_cmpeq_epi8(x, _mm_set1_epi8('\\'));
		/* the comparison is signed, so bytes above 127 are found like control characters */
		__m128i other = _mm_cmplt_epi8(x, _mm_set1_epi8(' '));
		unsigned bits = (unsigned)_mm_movemask_epi8(
			_mm_or_si128(_mm_or_si128(quote, escape), other));

		if (OW_LIKELY(bits))
			return p + __builtin_ctz(bits);
		p += 16;
	}
#endif
	while (p < end && (signed char)*p >= ' ' && *p != '"' && *p != '\\')
		p++;
	return p;
}

#endif
