/*
 * spool.c: collects bytes in memory and moves them to a temporary file when they become many. The unpackers
 * (unpack.c, archive.c) and the text format converter (pbtxt.c) write to it; spool_to_input makes the input that
 * importers read. Under a memory limit it keeps at most a quarter of the remaining memory. It does not read back
 * what it has written, and does not compress.
 */
#include "wire/container/spool.h"

#include "base/temp_file.h"

#include <errno.h>
#include <unistd.h>

void spool_init(struct spool *s, struct mem *mem, const char *name, size_t memory_max)
{
	size_t used = atomic_load(&mem->used);

	*s = (struct spool){ .fd = -1,
			     .memory_max = memory_max ? memory_max : SPOOL_MEMORY_MAX,
			     .name = name };
	buf_init(&s->buf, mem);
	if (mem->limit) /* leaves most of the memory to the readers of the content */
		s->memory_max = MIN(s->memory_max,
				    mem->limit > used ? (mem->limit - used) / 4 : SPOOL_PIECE);
}

void spool_release(struct spool *s)
{
	buf_release(&s->buf);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	s->in_file = 0;
}

ow_status spool_flush(struct spool *s, struct ow_error *err)
{
	struct mem *mem = s->buf.mem;

	ow_status status;

	if (s->fd < 0) {
		s->fd = temp_file_open(err);
		if (s->fd < 0)
			return error_wrap(err, OW_E_IO, "%s", s->name);
	}
	status = temp_file_write(s->fd, s->in_file, s->buf.ptr, s->buf.len, err);
	if (status != OW_OK)
		return error_wrap(err, status, "%s", s->name);
	s->in_file += s->buf.len;
	/* the buffer held the whole content; single pieces need less */
	if (s->buf.cap > 4 * SPOOL_PIECE) {
		buf_release(&s->buf);
		buf_init(&s->buf, mem);
	}
	buf_clear(&s->buf);
	return OW_OK;
}

ow_status spool_reserve(struct spool *s, size_t more, struct ow_error *err)
{
	bool fits = s->buf.len <= spool_piece(s) && more <= spool_piece(s) - s->buf.len;

	if (fits && buf_reserve(&s->buf, more))
		return OW_OK;
	s->buf.failed = false;
	if (s->buf.len)
		OW_TRY(spool_flush(s, err));
	return buf_reserve(&s->buf, more) ? OW_OK : error_no_memory(err);
}

ow_status spool_patch(struct spool *s, uint64_t offset, const void *bytes, size_t len,
		      struct ow_error *err)
{
	OW_ASSERT(offset + len <= s->in_file);
	return temp_file_write(s->fd, offset, bytes, len, err);
}

ow_status spool_truncate(struct spool *s, uint64_t offset, struct ow_error *err)
{
	if (offset >= s->in_file) {
		s->buf.len = MIN(s->buf.len, (size_t)(offset - s->in_file));
		return OW_OK;
	}
	buf_clear(&s->buf);
	s->in_file = offset;
	if (ftruncate(s->fd, (off_t)offset) < 0)
		return error_errno(err, errno, "cannot shorten a temporary file");
	return OW_OK;
}

/* Makes an input of content in memory, without its spare room. */
static ow_status memory_to_input(struct spool *s, const char *name, struct input *in,
				 struct ow_error *err)
{
	struct buf *buf = &s->buf;
	char *fitted;

	if (!buf_reserve(buf, 1)) /* an empty content needs a pointer, too */
		return error_no_memory(err);
	fitted = mem_realloc(buf->mem, buf->ptr, buf->cap, buf->len + 1);
	if (fitted) {
		buf->ptr = fitted;
		buf->cap = buf->len + 1;
	}
	OW_TRY(input_adopt_memory(in, buf->mem, name, buf->ptr, buf->len, buf->cap, err));
	buf_init(buf, buf->mem);
	return OW_OK;
}

ow_status spool_to_input(struct spool *s, const char *name, struct input *in, struct ow_error *err)
{
	if (s->buf.failed)
		return error_no_memory(err);
	if (s->fd < 0)
		return memory_to_input(s, name, in, err);
	OW_TRY(spool_flush(s, err));
	OW_TRY(input_adopt_fd(in, s->buf.mem, name, s->fd, err));
	s->fd = -1;
	s->in_file = 0;
	buf_release(&s->buf);
	return OW_OK;
}
