/*
 * words.h: numbers, names and paragraphs for people, in the spelling of the text tables (97.9ms, 61.4kB).
 * Used by what the program writes itself; tables are written by the library.
 */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

#include "base/human.h"

#define WORDS_NUMBER HUMAN_SIZE

/* Each function writes three significant digits to `to` and returns it. */
const char *words_time(char to[WORDS_NUMBER], double us);
const char *words_bytes(char to[WORDS_NUMBER], double bytes);
const char *words_count(char to[WORDS_NUMBER], double count);

/* Returns "s", or "" for one. */
const char *words_plural(uint64_t count);

/* Writes text, line by line, indented and broken between words at `width` columns (0 = never). `mark`
 * stands in the indentation of the first line. What could drive a terminal becomes U+FFFD. */
void words_wrap(FILE *to, const char *mark, const char *text, uint32_t indent, uint32_t width);

/* Writes at most `room` columns of a name in the same way, the last ones of a path; returns the columns taken. */
size_t words_name(FILE *to, struct str name, size_t room);

/* Write a text as a JSON string with its quotes, and as a CSV field (RFC 4180). */
void words_json(FILE *to, const char *text);
void words_csv(FILE *to, const char *text);

#endif
