/*
 * model_text.h: texts of a file as strings of the model: strings and numbers of a JSON document (wire/json/json_pull.h) for importers
 * of profiles that are one document, and texts that should be UTF-8 and are not. Importers count and report what they repair.
 */
#ifndef IMPORT_MODEL_TEXT_H
#define IMPORT_MODEL_TEXT_H

#include "model/builder.h"
#include "wire/json/json_pull.h"

/* Interns a text; each byte that is not part of a UTF-8 character becomes U+FFFD. */
static inline str_id utf8_repair(struct builder *b, struct str text)
{
	struct buf fixed;
	str_id id = { 0 };

	buf_init(&fixed, b->m->mem);
	while (text.len) {
		size_t good = utf8_valid_prefix(text);

		buf_add(&fixed, text.ptr, good);
		text = str_skip(text, good);
		if (text.len)
			buf_puts(&fixed, "\xef\xbf\xbd");
		text = str_skip(text, 1);
	}
	if (fixed.failed)
		builder_no_memory(b);
	else
		id = builder_str(b, buf_str(&fixed));
	buf_release(&fixed);
	return id;
}

/* Interns the raw text of a JSON string. */
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

/* Reads the value of the last key, times 10^scale. False, without a change of *value, if it is not a number. */
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

/* Reads the value of the last key; nil if it is not a string. */
static inline str_id json_text_value(struct json_pull *p, struct builder *b, struct buf *scratch)
{
	enum json_token token = json_pull_next(p);

	if (token == TOKEN_OBJECT || token == TOKEN_ARRAY)
		(void)json_pull_skip(p);
	return token == TOKEN_STRING ? json_text_id(b, p->text, scratch) : (str_id){ 0 };
}

#endif
