/*
 * redact_text.h: redacts a Chrome trace while it is written: JSON goes in piece by piece, and comes out with pseudonyms
 * in place of texts that users chose. ow_merge calls it for --redact, because there is no model that model/redact.c
 * could change. Numbers, times, the structure and words of frameworks stay.
 */
#ifndef MERGE_REDACT_TEXT_H
#define MERGE_REDACT_TEXT_H

#include "base/pseudonym.h"

#define REDACT_DEPTH 256

/* How a text value is redacted; the rule of a key holds for everything inside its value. */
enum redact_rule {
	RULE_HIDE, /* the text is replaced as a whole, or component by component if it is a path */
	RULE_NAME, /* the text is replaced unless it is a name of a framework */
	RULE_KEEP,
	RULE_KEEP_TREE /* the text and everything inside is kept */
};

struct redact_text {
	struct pseudonyms names;
	struct buf out; /* redacted output; the caller clears it */
	struct buf text;
	bool in_text, escaped, value; /* value: the next text is a value, not a key */
	uint32_t depth,
		/* args_depth: nesting depth of an event's arguments; 0 = not inside them */
		args_depth;
	struct redact_level {
		bool object;
		uint8_t rule; /* rule of the last key */
	} levels[REDACT_DEPTH];
};

/* The caller calls redact_text_release, also after a failure. */
ow_status redact_text_init(struct redact_text *r, struct mem *mem, struct ow_error *err);
/* Redacts a piece of JSON; appends the result to r->out. */
ow_status redact_text_add(struct redact_text *r, struct str bytes, struct ow_error *err);
void redact_text_release(struct redact_text *r);

#endif
