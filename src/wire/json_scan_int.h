/*
 * json_scan_int.h: between json_scan.c (the window and the list), json_walk.c (one event),
 * json_recover.c (going on after damage) and json_document.c (what is around them); nobody else
 * includes it.
 */
#ifndef WIRE_JSON_SCAN_INT_H
#define WIRE_JSON_SCAN_INT_H

#include "wire/json_scan.h"

#define SCAN_WINDOW ((size_t)512 << 10) /* with its marks it fits the second-level cache */
#define SCAN_PADDING ((size_t)64)	/* zero bytes after the window */

/* Fills the window with up to `want` bytes from `offset`, going on from `carry` (NULL: outside
 * strings). False on failure, with scan->status set. */
bool scan_load(struct json_scan *scan, uint64_t offset, size_t want, struct json_carry *carry);

/* The same without its marks. */
bool scan_read(struct json_scan *scan, uint64_t offset, size_t want);

/* Whether the window ends with the input. */
static inline bool scan_at_end(const struct json_scan *scan)
{
	return scan->base + scan->len >= scan->in->size;
}

static inline bool scan_is_comment(const struct json_scan *scan, size_t p)
{
	return scan->buf[p] == '/' && (scan->buf[p + 1] == '/' || scan->buf[p + 1] == '*');
}

/* Position of the first byte at or after p that is no blank, no comma (if `commas`) and in no comment;
 * scan->len when the window ends before, the start of a comment that the window cuts. */
size_t scan_skip_gap(const struct json_scan *scan, size_t p, bool commas);

/* Position of the next unescaped quote; scan->len or more when there is none. */
OW_ALWAYS_INLINE size_t scan_next_quote(const struct json_scan *scan, size_t p)
{
	size_t block = p / JSON_BLOCK;
	uint64_t bits = scan->blocks[block].quote >> p % JSON_BLOCK;

	if (OW_LIKELY(bits))
		return p + (size_t)__builtin_ctzll(bits);
	do /* a block of ones stands after the last */
		bits = scan->blocks[++block].quote;
	while (!bits);
	return block * JSON_BLOCK + (size_t)__builtin_ctzll(bits);
}

/* Position of the bracket that closes those open at p; scan->len when it is not in the window, and
 * then *depth tells how many are still open. */
size_t scan_close(const struct json_scan *scan, size_t p, uint64_t *depth);

/* Position after a number or word at p. */
size_t scan_word_end(const struct json_scan *scan, size_t p);
enum json_kind scan_word_kind(unsigned char first);

enum walk_result { WALK_OK, WALK_CUT, WALK_DAMAGE };
/* Reads the object at p, the position of its {. *end: after its }, or where it is damaged. */
enum walk_result scan_walk(const struct json_scan *scan, size_t p, struct json_event *ev,
			   size_t *end);

/* Goes on behind the damage at `at`, in the element that begins at `start`. */
enum json_scan_result scan_pass_damage(struct json_scan *scan, size_t start, size_t at,
				       struct json_event *ev);

#endif
