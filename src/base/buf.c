/*
 * buf.c: appends bytes and formatted text to a buffer that grows. Writers of text, JSON and binary formats call it.
 * A failed append sets `failed` and later ones do nothing, so callers check once at the end. It does not write to
 * files (sink/writer.c does) and does not escape (json_escape.c does).
 */
#include "base/buf.h"
#include "base/vec.h"

#include <stdarg.h>

void buf_init(struct buf *buf, struct mem *mem)
{
	*buf = (struct buf){ .mem = mem };
}

void buf_release(struct buf *buf)
{
	mem_free(buf->mem, buf->ptr, buf->cap);
	buf->ptr = NULL;
	buf->len = buf->cap = 0;
}

bool buf_reserve(struct buf *buf, size_t more)
{
	if (buf->failed)
		return false;
	if (OW_LIKELY(more <= buf->cap - buf->len))
		return true;
	if (more > PTRDIFF_MAX - buf->len ||
	    !vec_reserve(buf->mem, buf->ptr, buf->cap, buf->len + more)) {
		buf->failed = true;
		return false;
	}
	return true;
}

void buf_add(struct buf *buf, const void *bytes, size_t len)
{
	if (!len || !buf_reserve(buf, len))
		return;
	memcpy(buf->ptr + buf->len, bytes, len);
	buf->len += len;
}

void buf_add_char(struct buf *buf, char c)
{
	if (buf_reserve(buf, 1))
		buf->ptr[buf->len++] = c;
}

void buf_add_repeat(struct buf *buf, char c, size_t count)
{
	if (!count || !buf_reserve(buf, count))
		return;
	memset(buf->ptr + buf->len, c, count);
	buf->len += count;
}

void buf_printf(struct buf *buf, const char *format, ...)
{
	char small[256];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(small, sizeof(small), format, args);
	va_end(args);
	if (len < (int)sizeof(small)) {
		buf_add(buf, small, (size_t)MAX(len, 0));
		return;
	}
	if (!buf_reserve(buf, (size_t)len + 1))
		return;
	va_start(args, format);
	vsnprintf(buf->ptr + buf->len, (size_t)len + 1, format, args);
	va_end(args);
	buf->len += (size_t)len;
}

const char *buf_cstr(struct buf *buf)
{
	if (!buf_reserve(buf, 1))
		return NULL;
	buf->ptr[buf->len] = '\0';
	return buf->ptr;
}
