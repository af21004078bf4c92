/*
 * stream.c: files that are written sequentially and compressed on the way; the formats of export use it. It does not
 * choose names or folders: place.c does.
 */
#include "export/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define MUCH ((size_t)1 << 20)

ow_status stream_open(struct stream *s, struct mem *mem, const char *path, enum pack_kind kind,
		      struct ow_error *err)
{
	*s = (struct stream){ .path = path, .kind = kind };
	s->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (s->fd < 0)
		return error_errno(err, errno, "%s", path);
	buf_init(&s->in, mem);
	buf_init(&s->out, mem);
	gzip_packer_init(&s->gzip, mem);
	if (kind == PACK_GZIP)
		gzip_head(&s->out);
	return OW_OK;
}

static ow_status write_out(struct stream *s, struct buf *from, struct ow_error *err)
{
	for (size_t done = 0; done < from->len;) {
		ssize_t n = write(s->fd, from->ptr + done, from->len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_errno(err, errno, "%s", s->path);
		done += (size_t)n;
	}
	s->written += from->len;
	buf_clear(from);
	return OW_OK;
}

static ow_status pack(struct stream *s, bool last, struct ow_error *err)
{
	struct str bytes = buf_str(&s->in);

	if (s->kind == PACK_GZIP) {
		s->crc = gzip_crc(s->crc, bytes);
		if (bytes.len)
			OW_TRY(gzip_pack(&s->gzip, bytes, &s->out, err));
		if (last)
			gzip_tail(&s->out, s->crc, s->taken + bytes.len);
	} else {
		OW_TRY(zstd_pack(&s->zstd, bytes, last, &s->out, err));
	}
	return s->out.failed ? error_no_memory(err) : OW_OK;
}

static ow_status flush(struct stream *s, bool last, struct ow_error *err)
{
	size_t len = s->in.len;

	if (s->in.failed)
		return error_no_memory(err);
	if (s->kind == PACK_NONE) {
		OW_TRY(write_out(s, &s->in, err));
	} else {
		OW_TRY(pack(s, last, err));
		OW_TRY(write_out(s, &s->out, err));
	}
	s->taken += len;
	buf_clear(&s->in);
	return OW_OK;
}

ow_status stream_flush(struct stream *s, struct ow_error *err)
{
	return s->in.len >= MUCH || s->in.failed ? flush(s, false, err) : OW_OK;
}

ow_status stream_close(struct stream *s, ow_status status, struct ow_error *err)
{
	if (status == OW_OK)
		status = flush(s, true, err);
	if (close(s->fd) < 0 && status == OW_OK)
		status = error_errno(err, errno, "%s", s->path);
	s->fd = -1;
	buf_release(&s->in);
	buf_release(&s->out);
	gzip_packer_release(&s->gzip);
	zstd_packer_release(&s->zstd);
	return status;
}
