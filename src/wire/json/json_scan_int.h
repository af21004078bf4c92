/*
 * json_scan_int.h: what json_document.c calls in json_scan.c: the window and positions in it. Others include json_scan.h.
 */
#ifndef WIRE_JSON_SCAN_INT_H
#define WIRE_JSON_SCAN_INT_H

#include "wire/json/json_scan.h"

/* number of bytes of a window; with its marks it fits the second-level cache */
#define SCAN_WINDOW ((size_t)512 << 10)

enum walk_result { WALK_OK, WALK_CUT, WALK_DAMAGE };

/* Fills the window with up to `want` bytes from `offset`, with the state `carry` (NULL: outside
 * strings). False on failure, with scan->status set. */
bool json_scan_load(struct json_scan *scan, uint64_t offset, size_t want, struct json_carry *carry);
/* Returns the position of the next unescaped quote; scan->len or more if there is none. */
size_t json_scan_quote(const struct json_scan *scan, size_t p);
/* Position of the first byte at or after p that is neither blank nor in a comment, nor (if `commas`) a comma;
 * scan->len when the window ends before, the start of a comment that the window cuts. */
size_t json_scan_skip_gap(const struct json_scan *scan, size_t p, bool commas);
/* Position of the bracket that closes those open at p; scan->len when it is not in the window, and
 * then *depth says how many are still open. */
size_t json_scan_close(const struct json_scan *scan, size_t p, uint64_t *depth);
/* Returns the position after a number or word at p. */
size_t json_scan_word_end(const struct json_scan *scan, size_t p);
enum json_kind json_scan_word_kind(unsigned char first);
/* Reads the object at p, the position of its {. *end becomes the position after its }, or of the
 * damage. */
enum walk_result json_scan_walk(const struct json_scan *scan, size_t p, struct json_event *ev,
				size_t *end);

#endif
