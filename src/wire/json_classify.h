/*
 * json_classify.h: where the quotes and brackets of JSON text are, 64 bytes at a time. The lowest layer
 * under json_scan.h; nobody else needs it.
 *
 * One bit per byte: unescaped quotes, and opening and closing brackets that are outside strings. With
 * them a string or a whole nested value is passed over by counting bits. Comments (// and slash-star)
 * are no JSON but are met in traces: their content gets no bits. AVX2 is used when the machine has it;
 * the portable way gives the same bits.
 */
#ifndef WIRE_JSON_CLASSIFY_H
#define WIRE_JSON_CLASSIFY_H

#include "base/base.h"

#define JSON_BLOCK 64

struct json_block {
	uint64_t quote; /* unescaped " */
	uint64_t open;	/* { [ outside strings */
	uint64_t close; /* } ] outside strings */
};

/* What the bytes before say about the next ones; all zero at a place outside strings. */
struct json_carry {
	uint64_t in_string; /* all ones or zero */
	uint64_t escaped;   /* 1: the next byte follows a backslash */
	uint32_t comment;   /* enum json_comment, for the slow way only */
};

enum json_path { JSON_BEST, JSON_PORTABLE };

/* Classifies len bytes, of which the last block may be partial. `bytes` need no padding. Returns the
 * number of blocks written: (len + 63) / 64. */
size_t json_classify(enum json_path path, const unsigned char *bytes, size_t len,
		     struct json_block *blocks, struct json_carry *carry);

/* JSON_PORTABLE when the environment has OPWATCH_PORTABLE set (for tests), or no AVX2. */
enum json_path json_best_path(void);

#endif
