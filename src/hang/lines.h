/* lines.h: reads an input of any size line by line, for the readers of logs and of stacks (log.c, pyspy.c). */
#ifndef HANG_LINES_H
#define HANG_LINES_H

#include "base/input.h"

#define LINE_MAX_BYTES ((size_t)64 << 10) /* longer lines are cut */

struct lines {
	struct window window;
	uint64_t at;
};

static inline void lines_init(struct lines *l, const struct input *in, struct ow_error *err)
{
	window_init(&l->window, in, err);
	l->at = 0;
}

static inline void lines_release(struct lines *l)
{
	window_release(&l->window);
}

/* The next line without its line end, valid until the next call; false after the last line, and when reading fails. */
static inline bool lines_next(struct lines *l, struct str *line)
{
	uint64_t size = l->window.in->size;
	struct str bytes;
	const char *end;

	if (l->at >= size)
		return false;
	bytes = window_peek(&l->window, l->at, (size_t)MIN(size - l->at, (uint64_t)LINE_MAX_BYTES));
	if (!bytes.len)
		return false;
	end = memchr(bytes.ptr, '\n', bytes.len);
	*line = end ? str_first(bytes, (size_t)(end - bytes.ptr))
		    : str_first(bytes, MIN(bytes.len, LINE_MAX_BYTES));
	l->at += line->len + (end != NULL);
	if (line->len && line->ptr[line->len - 1] == '\r')
		line->len--;
	return true;
}

#endif
