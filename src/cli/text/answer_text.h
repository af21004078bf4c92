/*
 * answer_text.h: the sentences above the table of an answer (ranks, hang): written whole, then broken between words at the width of the terminal. Values beside
 * the rows are JSON; texts among them are printed without their escapes.
 */
#ifndef CLI_ANSWER_TEXT_H
#define CLI_ANSWER_TEXT_H

#include <opwatch/opwatch.h>
#include <stdio.h>

struct answer_text {
	FILE *to; /* where the sentences are written */
	char *text;
	size_t len;
};

void answer_open(struct answer_text *a);
/* Prints the sentences to standard output, in lines of at most `width` columns where words allow it (0 = lines are not broken). */
void answer_close(struct answer_text *a, uint32_t width);

/* Writes a JSON string, given without its quotes, as text. */
void answer_json(FILE *to, const char *text, size_t len);
/* Writes a text beside the rows between `before` and `after`; returns false, and writes nothing, when there is none. */
bool answer_extra(FILE *to, const ow_result *r, const char *name, const char *before,
		  const char *after);

#endif
