/*
 * pbtxt_lex.h: the characters, tokens and scalar values of the protobuf text format, for pbtxt.c alone. Owns the text
 * that is being read: its window, its place and its first failure. Knows nothing of messages.
 * All functions return false after a failure, which is then in the text.
 */
#ifndef WIRE_PBTXT_LEX_H
#define WIRE_PBTXT_LEX_H

#include "base/buf.h"
#include "base/input.h"
#include "wire/protobuf/pb_schema.h"

/* Bytes that are contiguous after text_blanks, unless the input ends before. No name or number may be as
 * long; strings may, and are read in pieces. */
#define TEXT_MARGIN ((size_t)4096)

struct text {
	struct window window;
	const unsigned char *at, *end; /* loaded bytes */
	uint64_t end_offset;	       /* offset of `end` in the input */
	bool last;		       /* `end` is the end of the input */
	ow_status status;
	uint64_t problem_offset;
	char problem[160];
};

enum number_kind { NUMBER_DECIMAL, NUMBER_OCTAL, NUMBER_HEX, NUMBER_FLOAT };

struct number {
	enum number_kind kind;
	struct str digits; /* digits as written, without sign */
};

static inline uint64_t text_offset(const struct text *t)
{
	return t->end_offset - (uint64_t)(t->end - t->at);
}

void text_init(struct text *t, const struct input *in, struct ow_error *err);
void text_release(struct text *t);

/* Sets a failure at the given offset, or at the current position. The first failure stays. */
bool text_fail_at(struct text *t, uint64_t offset, const char *format, ...) OW_PRINTF(3, 4);
bool text_fail(struct text *t, const char *format, ...) OW_PRINTF(2, 3);
/* Sets the failure "… expected, but found …" for the next token. */
bool text_expected(struct text *t, const char *what);

/* Skips blanks and comments; called by text_blanks. */
bool text_skip(struct text *t);

/* Skips blanks and comments. Afterwards at == end means the end of the input. */
OW_ALWAYS_INLINE bool text_blanks(struct text *t)
{
	if (OW_LIKELY((size_t)(t->end - t->at) > TEXT_MARGIN && *t->at > ' ' && *t->at != '#'))
		return true;
	return text_skip(t);
}

static inline int text_peek(const struct text *t)
{
	return t->at < t->end ? *t->at : -1;
}

bool text_is_name(int c);  /* the character may begin a name */
bool text_is_digit(int c); /* the character is a digit from 0 to 9 */
/* Reads a name (which may be empty), valid until the next call. */
bool text_name(struct text *t, struct str *name);
/* Reads a number; text_peek must be a digit or a point. */
bool text_number(struct text *t, struct number *number);
/* Converts integers; false, without a failure, beyond max. */
bool number_to_u64(const struct number *number, uint64_t max, uint64_t *value);
double number_to_double(const struct number *number);

/* The value of a scalar that is not a string: as it stands in a varint, or its fixed bits. Unknown
 * names of enums count up *unknown and give 0 if they are allowed. */
bool text_bits(struct text *t, const struct pb_field_desc *field, bool allow_unknown,
	       uint64_t *unknown, uint64_t *bits);

/* One quoted string is read in pieces: text_quote takes the opening quote; each text_string appends
 * some of the content to `out`, until it sets *done behind the closing quote. */
bool text_quote(struct text *t, int *quote, uint64_t *start);
bool text_string(struct text *t, int quote, uint64_t start, struct buf *out, bool *done);

/* Returns the bracket that closes `open`. */
static inline char text_closing(int open)
{
	return open == '{' ? '}' : open == '<' ? '>' : ']';
}
/* Skips the value of an unknown field, with its colon. `scratch` is unchanged afterwards. */
bool text_skip_value(struct text *t, struct buf *scratch);

#endif
