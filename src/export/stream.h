/*
 * stream.h: a file that is written from front to back, and optionally packed on the way. Callers append to `in` and
 * call stream_flush now and then.
 */
#ifndef EXPORT_STREAM_H
#define EXPORT_STREAM_H

#include "wire/container/pack.h"

struct stream {
	const char *path;
	int fd; /* -1: not open */
	enum pack_kind kind;
	struct buf in;	/* not packed yet */
	struct buf out; /* packed, not written yet */
	struct gzip_packer gzip;
	struct zstd_packer zstd;
	uint32_t crc;
	uint64_t taken;	  /* bytes that went through `in` */
	uint64_t written; /* bytes of the file */
};

/* Creates the file; path is kept. On failure nothing is left to release. */
ow_status stream_open(struct stream *s, struct mem *mem, const char *path, enum pack_kind kind,
		      struct ow_error *err);
/* Packs and writes the bytes in `in` when there are many. */
ow_status stream_flush(struct stream *s, struct ow_error *err);
/* The current place in the file, counted in unpacked bytes. */
static inline uint64_t stream_tell(const struct stream *s)
{
	return s->taken + s->in.len;
}
/* Writes the rest and closes, unless status says that something failed before. */
ow_status stream_close(struct stream *s, ow_status status, struct ow_error *err);

#endif
