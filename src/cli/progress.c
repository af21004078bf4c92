/* progress.c: see progress.h. */
#include "cli/progress.h"

#include <stdarg.h>
#include <stdio.h>

#define CLEAR "\r\033[K"

static double seconds_since(const struct timespec *then)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - then->tv_sec) + (double)(now.tv_nsec - then->tv_nsec) / 1e9;
}

void progress_begin(struct progress_line *line, bool terminal)
{
	*line = (struct progress_line){ .terminal = terminal };
	clock_gettime(CLOCK_MONOTONIC, &line->start);
}

bool progress_due(struct progress_line *line)
{
	if (!line->terminal || seconds_since(&line->start) < 0.5 ||
	    seconds_since(&line->last) < 0.1)
		return false;
	clock_gettime(CLOCK_MONOTONIC, &line->last);
	return true;
}

double progress_seconds(const struct progress_line *line)
{
	return seconds_since(&line->start);
}

void progress_show(struct progress_line *line, const char *format, ...)
{
	va_list args;

	line->shown = true;
	fputs(CLEAR, stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fflush(stderr);
}

void progress_clear(struct progress_line *line)
{
	if (line->shown)
		fputs(CLEAR, stderr);
	line->shown = false;
}
