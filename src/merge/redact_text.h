/*
 * redact_text.h: a Chrome trace without the names that its users chose, while it is written: JSON goes in piece by piece, the same JSON
 * with pseudonyms in place of private texts comes out. ow_merge calls it for --redact, where there is no model that
 * model/redact.c could change. Numbers, times, the structure and words of frameworks stay.
 */
#ifndef MERGE_REDACT_TEXT_H
#define MERGE_REDACT_TEXT_H

#include "base/pseudonym.h"

#define REDACT_DEPTH 256

/* How texts are redacted: the values of a key and everything inside them. */
enum redact_rule {
	RULE_HIDE, /* replaced as a whole, or as a path */
	RULE_NAME, /* names of frameworks stay */
	RULE_KEEP,
	RULE_KEEP_TREE /* also what is inside */
};

struct redact_text {
	struct pseudonyms names;
	struct buf out; /* what is ready; the caller clears it */
	struct buf text;
	bool in_text, escaped, value; /* value: the next text is one, not a key */
	uint32_t depth,
		args_depth; /* args_depth: of the arguments of an event; 0 = not inside them */
	struct redact_level {
		bool object;
		uint8_t rule; /* of the last key */
	} levels[REDACT_DEPTH];
};

/* Paired with redact_text_release, also after a failure. */
ow_status redact_text_init(struct redact_text *r, struct mem *mem, struct ow_error *err);
/* Adds to r->out. */
ow_status redact_text_add(struct redact_text *r, struct str bytes, struct ow_error *err);
void redact_text_release(struct redact_text *r);

#endif
