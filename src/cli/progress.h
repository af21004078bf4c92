/*
 * progress.h: the line on a terminal that tells how far long work has come. Callbacks of the library ask
 * whether it is time, write the line themselves, and whoever prints something else clears it first.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "base/base.h"

#include <time.h>

struct progress_line {
	struct timespec start, last;
	bool terminal, shown;
};

/* Begins to count; without a terminal the line is never due. */
void progress_begin(struct progress_line *line, bool terminal);
/* Whether the line is to be written now: not in the first half second, then ten times a second at most. */
bool progress_due(struct progress_line *line);
double progress_seconds(const struct progress_line *line);
/* Writes over what is shown; the text ends without a line feed. */
void progress_show(struct progress_line *line, const char *format, ...) OW_PRINTF(2, 3);
void progress_clear(struct progress_line *line);

#endif
