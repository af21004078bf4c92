/*
 * replay_text.h: values beside the rows of a result as numbers, for the commands path, what-if and advise.
 */
#ifndef CLI_REPLAY_TEXT_H
#define CLI_REPLAY_TEXT_H

#include <math.h>
#include <opwatch/opwatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns an extra value as a number; NaN if it is missing or null. */
static inline double extra_number(const ow_result *r, const char *name)
{
	const char *text = ow_result_extra(r, name);

	return text && strcmp(text, "null") != 0 ? strtod(text, NULL) : (double)NAN;
}

/* Prints an extra value of type text, whose JSON form is in quotes. */
static inline void print_extra(const ow_result *r, const char *name, const char *before, FILE *to)
{
	const char *text = ow_result_extra(r, name);
	size_t len = text ? strlen(text) : 0;

	if (len > 2 && text[0] == '"')
		fprintf(to, "%s%.*s\n", before, (int)(len - 2), text + 1);
	else
		fprintf(to, "%sunknown\n", before);
}

/* Prints "The replay uses the last 90 of 5454 steady steps." if it does not use all of them. */
static inline void print_replayed(const ow_result *r, FILE *to)
{
	double used = extra_number(r, "steps_replayed"), all = extra_number(r, "steps_steady");

	if (used < all)
		fprintf(to, "The replay uses %.0f of %.0f steady steps, the last ones.\n", used,
			all);
}

#endif
