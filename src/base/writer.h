/*
 * writer.h: buffered output to a stream of bytes, for the sinks. The first failure is remembered and everything after it does nothing, so a sink
 * writes without checks and returns writer_finish. Loops over many rows test `status` now and then, to stop when the reader is gone. Also
 * the ways to write a string that several sinks share. Does not open or name files.
 */
#ifndef BASE_WRITER_H
#define BASE_WRITER_H

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

/* A stream of bytes. write returns OW_E_IO and fills err on failure; a closed pipe is OW_E_INTERRUPTED. */
struct out {
	ow_status (*write)(void *arg, const void *bytes, size_t len, struct ow_error *err);
	void *arg;
};

struct writer {
	const struct out *out;
	struct mem *mem;
	char *ptr;
	size_t len;
	uint64_t written; /* number of bytes that `out` has taken */
	ow_status status;
	struct ow_error *err;
};

void writer_init(struct writer *w, struct mem *mem, const struct out *out, struct ow_error *err);
/* Writes the rest of the buffer, frees it and returns the first failure, or OW_OK. */
ow_status writer_finish(struct writer *w) OW_MUST_CHECK;
/* Stores a failure of the caller; the first failure stays. */
void writer_fail(struct writer *w, ow_status status);

void writer_add(struct writer *w, const void *bytes, size_t len);
/* Room for `len` bytes that the caller fills at once; NULL when the buffer is smaller or something has failed. The caller may also write
 * WRITER_SLACK bytes behind it, which are not kept. */
#define WRITER_SLACK 32
char *writer_room(struct writer *w, size_t len);
void writer_char(struct writer *w, char c);
void writer_repeat(struct writer *w, char c, size_t count);
/* Writes formatted text of at most 512 bytes; meant for numbers, not for names. */
void writer_printf(struct writer *w, const char *format, ...) OW_PRINTF(2, 3);
void writer_int(struct writer *w, int64_t value);
/* Writes nanoseconds as microseconds: whole, or with three decimals if they are not. */
void writer_micros(struct writer *w, int64_t ns);
/* Writes the shortest decimal that reads back as the same number; not for infinities and NaN. */
void writer_real(struct writer *w, double value);

static inline void writer_str(struct writer *w, struct str s)
{
	writer_add(w, s.ptr, s.len);
}
static inline void writer_puts(struct writer *w, const char *text)
{
	writer_add(w, text, strlen(text));
}

/* Writes a string literal of JSON in quotes. UTF-8 stays unchanged; each invalid byte becomes
 * U+FFFD. */
void writer_json(struct writer *w, struct str s);
/* The same in ASCII, byte for byte as jsoncpp 1.8.4 does it, between quotes of the caller: everything
 * outside ASCII as \u escapes. It takes the bytes of a sequence without looking whether they are
 * continuation bytes, which shows in names cut within a character. */
void writer_json_ascii(struct writer *w, struct str s);
/* Writes a text or attribute value of XML. Characters that XML cannot hold become U+FFFD; line
 * feeds stay. */
void writer_xml(struct writer *w, struct str s);
/* Writes UTF-8 with U+FFFD for invalid bytes and no other change. */
void writer_utf8(struct writer *w, struct str s);

#endif
