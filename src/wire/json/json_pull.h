/*
 * json_pull.h: a JSON document of any size as a run of tokens, one pass, without building anything. For formats
 * that are one deep document (speedscope, V8 profiles); events of traces are read by json_scan.h, which is faster
 * and knows how to go on behind damage. Here damage ends the run: what came before it is the caller's to use.
 *
 * Lenient about commas, strict about brackets. Nothing is decoded: json_decode and json_decimal of json.h do that.
 */
#ifndef WIRE_JSON_PULL_H
#define WIRE_JSON_PULL_H

#include "base/input.h"
#include "wire/json/json.h"

#define JSON_DEPTH_MAX 65536
#define JSON_PULL_TEXT_MAX ((size_t)4 << 20) /* longest string in bytes */

enum json_token {
	TOKEN_END, /* end of the input; truncated if depth is not 0 */
	TOKEN_OBJECT,
	TOKEN_ARRAY,
	TOKEN_CLOSE, /* end of an object or array */
	TOKEN_KEY,
	TOKEN_STRING,
	TOKEN_NUMBER,
	TOKEN_WORD,  /* a word: true, false, null, NaN, … */
	TOKEN_DAMAGE /* damage at `offset`; or the input cannot be read: window.status */
};

struct json_pull {
	struct window window;
	const unsigned char *at, *end; /* loaded bytes */
	uint64_t end_offset;	       /* offset of `end` in the input */
	uint64_t offset;	       /* offset of the last token */
	/* text of a key, string (still escaped), number or word; valid until the next call */
	struct str text;
	uint32_t depth; /* number of open brackets */
	bool after_key, colon_due;
	uint64_t objects[JSON_DEPTH_MAX / 64]; /* one bit per level: 1 for an object */
};

void json_pull_init(struct json_pull *p, const struct input *in, struct ow_error *err);
void json_pull_release(struct json_pull *p);
enum json_token json_pull_next(struct json_pull *p) OW_MUST_CHECK;
/* Passes over the value that the last key is of, or over the rest of the value whose opening bracket was the last
 * token. False at damage and at the end of the input. */
bool json_pull_skip(struct json_pull *p);
/* Continues at an offset where a value begins. */
void json_pull_seek(struct json_pull *p, uint64_t offset);

#endif
