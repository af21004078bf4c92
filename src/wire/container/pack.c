/*
 * pack.c: compresses output as gzip or zstd; export, merge and the Arrow writer call it. A piece of gzip ends at a
 * byte (Z_SYNC_FLUSH) without a last block, so pieces packed by several threads can be joined; gzip_tail closes the
 * stream. It appends to a buffer and never writes files. Reading is in unpack.c. A build without zstd refuses .zst.
 */
#include "wire/container/pack.h"

#include "wire/container/unpack_int.h" /* for zlib's memory functions */

#include "opwatch_config.h"

#if OPWATCH_HAVE_ZSTD
#include <zstd.h>
#endif

#define MEMORY_LEVEL 8
#define RAW_WINDOW (-15) /* no zlib header, because opwatch writes the gzip header itself */
#define ROOM ((size_t)64 << 10)

ow_status pack_kind_of(const char *path, enum pack_kind *kind, struct ow_error *err)
{
	struct str name = str_from(path);

	*kind = PACK_NONE;
	if (str_ends(name, STR(".gz")) || str_ends(name, STR(".gzip")))
		*kind = PACK_GZIP;
	else if (str_ends(name, STR(".zst")) || str_ends(name, STR(".zstd")))
		*kind = PACK_ZSTD;
#if !OPWATCH_HAVE_ZSTD
	if (*kind == PACK_ZSTD)
		return error_set(err, OW_E_UNSUPPORTED,
				 "%s: this build cannot write zstd; use .gz or no ending", path);
#endif
	(void)err;
	return OW_OK;
}

void gzip_packer_init(struct gzip_packer *p, struct mem *mem)
{
	*p = (struct gzip_packer){ .mem = mem };
}

void gzip_packer_release(struct gzip_packer *p)
{
	if (p->ready)
		deflateEnd(&p->z);
	p->ready = false;
}

static ow_status start(struct gzip_packer *p, struct ow_error *err)
{
	if (p->ready)
		return deflateReset(&p->z) == Z_OK ? OW_OK : error_no_memory(err);
	p->z = (z_stream){ .zalloc = unpack_zlib_alloc,
			   .zfree = unpack_zlib_free,
			   .opaque = p->mem };
	if (deflateInit2(&p->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, RAW_WINDOW, MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return error_no_memory(err);
	p->ready = true;
	return OW_OK;
}

ow_status gzip_pack(struct gzip_packer *p, struct str bytes, struct buf *out, struct ow_error *err)
{
	OW_TRY(start(p, err));
	while (bytes.len || p->z.avail_out == 0) {
		size_t part = MIN(bytes.len, (size_t)1 << 30);
		int flush = part == bytes.len ? Z_SYNC_FLUSH : Z_NO_FLUSH;

		p->z.next_in = (unsigned char *)bytes.ptr;
		p->z.avail_in = (unsigned)part;
		if (!buf_reserve(out, ROOM))
			return error_no_memory(err);
		p->z.next_out = (unsigned char *)out->ptr + out->len;
		p->z.avail_out = (unsigned)MIN(out->cap - out->len, (size_t)1 << 30);
		deflate(&p->z, flush);
		out->len = (size_t)((char *)p->z.next_out - out->ptr);
		bytes = str_skip(bytes, part - p->z.avail_in);
	}
	return OW_OK;
}

void gzip_head(struct buf *out)
{
	static const unsigned char head[10] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3 };

	buf_add(out, head, sizeof(head));
}

void gzip_tail(struct buf *out, uint32_t crc, uint64_t size)
{
	unsigned char tail[10] = { 3, 0 }; /* an empty last block */

	for (unsigned i = 0; i < 4; i++) {
		tail[2 + i] = (unsigned char)(crc >> 8 * i);
		tail[6 + i] = (unsigned char)(size >> 8 * i);
	}
	buf_add(out, tail, sizeof(tail));
}

uint32_t gzip_crc(uint32_t crc, struct str bytes)
{
	return (uint32_t)crc32_z(crc, (const unsigned char *)bytes.ptr, bytes.len);
}

uint32_t gzip_crc_join(uint32_t first, uint32_t second, size_t len)
{
	return (uint32_t)crc32_combine(first, second, (z_off_t)len);
}

#if OPWATCH_HAVE_ZSTD

ow_status zstd_pack(struct zstd_packer *p, struct str bytes, bool last, struct buf *out,
		    struct ow_error *err)
{
	ZSTD_inBuffer from = { bytes.ptr, bytes.len, 0 };
	size_t left;

	if (!p->context) {
		p->context = ZSTD_createCCtx();
		if (!p->context ||
		    ZSTD_isError(ZSTD_CCtx_setParameter(p->context, ZSTD_c_checksumFlag, 1)))
			return error_no_memory(err);
	}
	do {
		ZSTD_outBuffer to;

		if (!buf_reserve(out, ROOM))
			return error_no_memory(err);
		to = (ZSTD_outBuffer){ out->ptr + out->len, out->cap - out->len, 0 };
		left = ZSTD_compressStream2(p->context, &to, &from,
					    last ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left))
			return error_set(err, OW_E_NO_MEMORY, "zstd: %s", ZSTD_getErrorName(left));
		out->len += to.pos;
	} while (from.pos < from.size || (last && left));
	return OW_OK;
}

void zstd_packer_release(struct zstd_packer *p)
{
	ZSTD_freeCCtx(p->context);
	p->context = NULL;
}

#else

ow_status zstd_pack(struct zstd_packer *p, struct str bytes, bool last, struct buf *out,
		    struct ow_error *err)
{
	(void)p, (void)bytes, (void)last, (void)out;
	return error_set(err, OW_E_UNSUPPORTED, "this build cannot write zstd");
}

void zstd_packer_release(struct zstd_packer *p)
{
	(void)p;
}

#endif
