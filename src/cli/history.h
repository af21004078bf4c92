/*
 * history.h: lines of earlier sessions, in the user's state directory. Each line is added to the file when it was typed, so
 * that shells that run at the same time keep each other's lines. Only lineedit.c, and only with libedit.
 */
#ifndef CLI_HISTORY_H
#define CLI_HISTORY_H

#include <stdbool.h>

struct history; /* libedit's */

struct line_history {
	struct history *lines;
	char *path; /* NULL when there is nowhere to keep them */
};

/* Loads what there is; false when out of memory. */
bool history_open(struct line_history *h);
/* Adds a line, unless it is the last one again. */
void history_add(struct line_history *h, const char *line);
void history_close(struct line_history *h);

#endif
