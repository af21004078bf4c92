/*
 * stream.h: a file that is written sequentially, and optionally compressed on the way. Callers append to `in` and call
 * stream_flush now and then.
 */
#ifndef EXPORT_STREAM_H
#define EXPORT_STREAM_H

#include "wire/container/pack.h"

struct stream {
	const char *path;
	int fd; /* -1: not open */
	enum pack_kind kind;
	struct buf in;	/* bytes that are not compressed yet */
	struct buf out; /* compressed bytes that are not written yet */
	struct gzip_packer gzip;
	struct zstd_packer zstd;
	uint32_t crc;
	uint64_t taken;	  /* bytes that were appended to `in` */
	uint64_t written; /* bytes of the file */
};

/* Creates the file; `path` must stay valid. On failure nothing needs to be released. */
ow_status stream_open(struct stream *s, struct mem *mem, const char *path, enum pack_kind kind,
		      struct ow_error *err);
/* Compresses and writes the bytes in `in` if there are many. */
ow_status stream_flush(struct stream *s, struct ow_error *err);
/* The current offset in the file, counted in uncompressed bytes. */
static inline uint64_t stream_tell(const struct stream *s)
{
	return s->taken + s->in.len;
}
/* Writes the remaining bytes, unless `status` is a failure, and closes the file. */
ow_status stream_close(struct stream *s, ow_status status, struct ow_error *err);

#endif
