/*
 * text_lines.h: an input as lines of UTF-8 text, for the formats that people write and mail: a byte order
 * mark, UTF-16, CRLF and a missing last line feed are all read. Used by import_folded.c, import_perf_script.c
 * and the text forms of pprof.
 */
#ifndef IMPORT_TEXT_LINES_H
#define IMPORT_TEXT_LINES_H

#include "base/buf.h"
#include "base/input.h"

#define TEXT_LINE_MAX ((size_t)1 << 20) /* longer lines are cut */

struct text_lines {
	struct window window;
	struct input converted; /* UTF-8 of what was UTF-16 */
	struct buf utf8;
	bool utf16, crlf, cut;
	bool last_open;	   /* the last line has no line feed */
	uint64_t at, size; /* of the next line */
	uint64_t offset;   /* of the line that was given last */
	uint64_t too_long; /* lines that were cut */
};

/* text_lines_release is due in any case. */
ow_status text_lines_init(struct text_lines *t, const struct input *in, struct error *err);
/* Starts somewhere else: behind a binary part, for instance. Not for UTF-16. */
void text_lines_seek(struct text_lines *t, uint64_t offset);
/* The next line without its end, valid until the next call. False at the end, or when the input cannot be
 * read: see text_lines_status. */
bool text_lines_next(struct text_lines *t, struct str *line);
ow_status text_lines_status(const struct text_lines *t);
void text_lines_release(struct text_lines *t);

/* The beginning of a file as UTF-8, for sniffers: up to `size` bytes of it in `to`. */
struct str text_head(struct str head, char *to, size_t size);

#endif
