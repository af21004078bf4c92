/*
 * json.h: reading pieces of JSON text that lie in memory: decoding strings and numbers, and stepping
 * through the members of an object or the elements of an array. For event arguments and other small
 * values; files are read with json_scan.h. No recursion, so nesting depth does not matter.
 */
#ifndef WIRE_JSON_H
#define WIRE_JSON_H

#include "base/buf.h"
#include "wire/json/json_scan.h"

/* A reader of the members of an object, or elements of an array, given as text with its
 * brackets. */
struct json_reader {
	const char *at, *end;
};

static inline struct json_reader json_over(struct str text)
{
	if (!text.len)
		return (struct json_reader){ text.ptr, text.ptr };
	return (struct json_reader){ text.ptr + 1, text.ptr + text.len };
}
static inline struct str json_text(struct json_value value)
{
	return str_make(value.at, value.len);
}

/* Returns the next member; false at the end and at damage. The key is raw, as in the text. */
bool json_next_member(struct json_reader *r, struct str *key, struct json_value *value);
bool json_next_element(struct json_reader *r, struct json_value *value);
/* Returns the value of a key of the object; kind JSON_NONE if it is missing. The last one
 * counts. */
struct json_value json_find(struct str object, const char *key);

/* Returns whether the raw text of a string, decoded, equals `plain`. */
bool json_key_is(struct str raw, const char *plain);

/* Appends the decoded text: escapes and surrogate pairs resolved, invalid UTF-8 and lone
 * surrogates replaced by U+FFFD. Returns the number of replacements. */
size_t json_decode(struct str raw, struct buf *out);
/* Decodes up to `max` bytes; returns the number of bytes, or more than max. Only for comparing with short words: an
 * invalid text does not match. */
size_t json_decode_short(struct str raw, char *to, size_t max);
/* Returns whether decoding would change nothing. */
bool json_is_plain(struct str raw);

enum json_exactness {
	JSON_EXACT,
	JSON_ROUNDED, /* more digits than wanted: rounded half away from zero */
	JSON_CLAMPED, /* out of range: the nearest limit is used */
	JSON_NOT_A_NUMBER
};

/* Converts decimal text times 10^scale to an integer: scale 3 turns microseconds into
 * nanoseconds. */
enum json_exactness json_decimal(struct str text, int scale, int64_t *value);
/* Converts as json_decimal does, faster, for text in a scanner's window, where bytes after it
 * may be read. */
enum json_exactness json_decimal_padded(struct str text, int scale, int64_t *value);
bool json_double(struct str text, double *value);

#endif
