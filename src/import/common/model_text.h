/*
 * json_text.h: strings and numbers of a JSON document (wire/json_pull.h) as the model has them. Used by the
 * importers of profiles that are one document.
 */
#ifndef IMPORT_JSON_TEXT_H
#define IMPORT_JSON_TEXT_H

#include "model/builder.h"
#include "wire/json_pull.h"

/* The raw text of a string as a string of the model. `scratch` is anybody's buffer. */
static inline str_id json_text_id(struct builder *b, struct str raw, struct buf *scratch)
{
	if (json_is_plain(raw))
		return builder_str(b, raw);
	buf_clear(scratch);
	json_decode(raw, scratch);
	if (scratch->failed) {
		builder_no_memory(b);
		return (str_id){ 0 };
	}
	return builder_str(b, buf_str(scratch));
}

/* A number times 10^scale; false, and *value as it was, when the value of the last key is none. */
static inline bool json_text_number(struct json_pull *p, int scale, int64_t *value)
{
	enum json_token token = json_pull_next(p);
	int64_t number;

	if (token == TOKEN_OBJECT || token == TOKEN_ARRAY)
		(void)json_pull_skip(p);
	if (token != TOKEN_NUMBER || json_decimal(p->text, scale, &number) == JSON_NOT_A_NUMBER)
		return false;
	*value = number;
	return true;
}

/* The string that is the value of the last key; nil when it is none. */
static inline str_id json_text_value(struct json_pull *p, struct builder *b, struct buf *scratch)
{
	enum json_token token = json_pull_next(p);

	if (token == TOKEN_OBJECT || token == TOKEN_ARRAY)
		(void)json_pull_skip(p);
	return token == TOKEN_STRING ? json_text_id(b, p->text, scratch) : (str_id){ 0 };
}

#endif
