/*
 * stream.h: a file that is written from front to back, packed on the way when asked. Callers append to
 * `in` and call stream_flush now and then.
 */
#ifndef EXPORT_STREAM_H
#define EXPORT_STREAM_H

#include "wire/pack.h"

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
		      struct error *err);
/* Packs and writes what is in `in` when that is much. */
ow_status stream_flush(struct stream *s, struct error *err);
/* Bytes from the beginning of what will be in the file, packing aside. */
static inline uint64_t stream_tell(const struct stream *s)
{
	return s->taken + s->in.len;
}
/* Writes the rest and closes, unless status says that something failed before. */
ow_status stream_close(struct stream *s, ow_status status, struct error *err);

#endif
