/*
 * pack.h: compressing output piece by piece. A gzip file consists of pieces that several threads may pack at the same
 * time and that are then joined: together they are one stream of one member, which every reader accepts. A zstd file is
 * one frame, made in order.
 */
#ifndef WIRE_PACK_H
#define WIRE_PACK_H

#include "base/buf.h"
#include "base/error.h"

#include <zlib.h>

enum pack_kind { PACK_NONE, PACK_GZIP, PACK_ZSTD };

/* Chooses the compression by the ending of the file name: .gz, .gzip, .zst, .zstd. OW_E_UNSUPPORTED if
 * this build cannot write it. */
ow_status pack_kind_of(const char *path, enum pack_kind *kind, struct ow_error *err);

/* gzip compression; each thread has its own packer. */

struct gzip_packer {
	struct mem *mem;
	z_stream z;
	bool ready;
};

void gzip_packer_init(struct gzip_packer *p, struct mem *mem);
void gzip_packer_release(struct gzip_packer *p);
/* Appends the compressed bytes. They end at a byte boundary, and the stream continues in the
 * next piece. */
ow_status gzip_pack(struct gzip_packer *p, struct str bytes, struct buf *out, struct ow_error *err);

/* Write the header and the end around the pieces. crc and size cover all uncompressed bytes; see
 * gzip_crc. */
void gzip_head(struct buf *out);
void gzip_tail(struct buf *out, uint32_t crc, uint64_t size);
/* Returns the checksum after `bytes` more. */
uint32_t gzip_crc(uint32_t crc, struct str bytes);
/* Returns the checksum of two consecutive pieces from their checksums; `len` is the length of
 * the second. */
uint32_t gzip_crc_join(uint32_t first, uint32_t second, size_t len);

/* zstd compression. */

struct zstd_packer {
	void *context; /* context of the library; NULL until used */
};

/* Appends the compressed form of these bytes, as far as the library returns it; all of it if they are the
 * last. */
ow_status zstd_pack(struct zstd_packer *p, struct str bytes, bool last, struct buf *out,
		    struct ow_error *err);
void zstd_packer_release(struct zstd_packer *p);

#endif
