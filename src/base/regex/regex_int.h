/*
 * regex_int.h: what the parts of the regular expressions share: the program that a pattern becomes
 * and sets of code points.
 *
 * A program is a row of instructions on bytes. Jumps are relative and a piece of program ends by
 * falling off its end, so pieces can be moved and copied as plain memory; that makes {n,m}, * and |
 * simple and needs no syntax tree, hence no recursion.
 */
#ifndef BASE_REGEX_INT_H
#define BASE_REGEX_INT_H

#include "base/regex/regex.h"

enum inst_op {
	INST_RANGE,  /* match one byte in [lo, hi], then run the next instruction */
	INST_SPLIT,  /* try the next instruction and the one at +jump */
	INST_JUMP,   /* continue with the instruction at +jump */
	INST_ASSERT, /* run the next instruction if the assertion `lo` holds here */
	INST_MATCH,
	INST_FAIL
};

enum assertion {
	ASSERT_BEGIN_TEXT,
	ASSERT_END_TEXT,
	ASSERT_BEGIN_LINE,
	ASSERT_END_LINE,
	ASSERT_WORD,
	ASSERT_NOT_WORD
};

struct inst {
	uint8_t op, lo, hi;
	int32_t jump;
};

struct program {
	struct mem *mem;
	struct inst *insts;
	size_t count, cap;
	size_t limit; /* largest number of instructions */
	bool too_large, no_memory;
};

void program_emit(struct program *p, struct inst inst);
/* Inserts one instruction at `at`. */
void program_insert(struct program *p, size_t at, struct inst inst);
/* Appends a copy of the instructions [from, from + count). */
void program_copy(struct program *p, size_t from, size_t count);
static inline bool program_failed(const struct program *p)
{
	return p->too_large || p->no_memory;
}

/* A range of code points. A set has its ranges in any order until ranges_normalize. */
struct range {
	uint32_t lo, hi;
};
struct ranges {
	struct mem *mem;
	struct range *items;
	size_t count, cap;
	bool failed;
};
#define RUNE_MAX 0x10ffffu

void ranges_add(struct ranges *r, uint32_t lo, uint32_t hi);
/* Adds a range and everything that differs from it only by case. */
void ranges_add_folded(struct ranges *r, uint32_t lo, uint32_t hi);
void ranges_normalize(struct ranges *r);
void ranges_negate(struct ranges *r); /* replaces the set by its complement; normalizes first */
/* Adds the ranges of another set, or of its complement. */
void ranges_add_set(struct ranges *r, const struct range *items, size_t count, bool negated,
		    bool fold);
/* Adds the class \d, \s or \w or its negation, by its letter; false for other letters. */
bool ranges_add_perl(struct ranges *r, char letter, bool fold);
/* Adds a POSIX class, such as "alpha" of [[:alpha:]]; false for other names. */
bool ranges_add_posix(struct ranges *r, struct str name, bool negated, bool fold);
/* Adds a class of \p{…}: "Greek", "L", "Lu", "Any"; false for unknown names. */
bool ranges_add_unicode(struct ranges *r, struct str name, bool negated, bool fold);
/* Emits a program that matches the bytes of one code point of the (normalized) set. */
void ranges_emit(const struct ranges *r, struct program *p);

static inline bool regex_is_word(int c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       c == '_';
}

/* Appends the program of a pattern. On a syntax error the program stays as it was and `why` gets
 * the reason. */
bool regex_parse(struct program *p, struct str pattern, char *why, size_t why_size);

#endif
