/*
 * buf.h: a growing byte buffer for building text and binary output. A failed append is remembered
 * (`failed`) and further appends do nothing, so callers check once at the end.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/mem.h"
#include "base/str.h"

struct buf {
	struct mem *mem;
	char *ptr;
	size_t len, cap;
	bool failed;
};

void buf_init(struct buf *buf, struct mem *mem);
void buf_release(struct buf *buf);
static inline void buf_clear(struct buf *buf)
{
	buf->len = 0;
}

/* Makes room for `more` bytes at ptr + len. Without memory returns false and sets `failed`. */
bool buf_reserve(struct buf *buf, size_t more);

void buf_add(struct buf *buf, const void *bytes, size_t len);
void buf_add_char(struct buf *buf, char c);
void buf_add_repeat(struct buf *buf, char c, size_t count);
void buf_printf(struct buf *buf, const char *format, ...) OW_PRINTF(2, 3);
static inline void buf_add_str(struct buf *buf, struct str s)
{
	buf_add(buf, s.ptr, s.len);
}
static inline void buf_puts(struct buf *buf, const char *text)
{
	buf_add(buf, text, strlen(text));
}
static inline struct str buf_str(const struct buf *buf)
{
	return (struct str){ buf->ptr ? buf->ptr : "", buf->len };
}
/* Returns the content with a NUL at its end; NULL if a write failed. */
const char *buf_cstr(struct buf *buf);

#endif
