/*
 * text_lines.h: an input as lines of UTF-8 text. Reads files with a byte order mark, UTF-16, CRLF, and without a last line feed. Used
 * by import_folded.c, import_perf_script.c and the text forms of pprof.
 */
#ifndef IMPORT_TEXT_LINES_H
#define IMPORT_TEXT_LINES_H

#include "base/buf.h"
#include "base/input.h"

#define TEXT_LINE_MAX ((size_t)1 << 20) /* longest line; longer ones are cut */

struct text_lines {
	struct window window;
	struct input converted; /* the text in UTF-8, if the file is UTF-16 */
	struct buf utf8;
	bool utf16, crlf, cut;
	bool last_open;	   /* the last line has no line feed */
	uint64_t at, size; /* offset of the next line, and size of the text */
	uint64_t offset;   /* offset of the last line */
	uint64_t too_long; /* number of lines that were cut */
};

/* Opens a reader of lines. The caller calls text_lines_release in any case. */
ow_status text_lines_init(struct text_lines *t, const struct input *in, struct ow_error *err);
/* Continues at an offset, for example behind a binary part. Not for UTF-16. */
void text_lines_seek(struct text_lines *t, uint64_t offset);
/* The next line without its end, valid until the next call. False at the end of the input, or when it cannot be read: then
 * text_lines_status returns why. */
bool text_lines_next(struct text_lines *t, struct str *line);
ow_status text_lines_status(const struct text_lines *t);
void text_lines_release(struct text_lines *t);

/* Returns the beginning of a file as UTF-8, for sniffers. Converted text is put into `to`, up to `size`
 * bytes. */
struct str text_head(struct str head, char *to, size_t size);

#endif
