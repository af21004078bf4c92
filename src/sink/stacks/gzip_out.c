/* gzip_out.c: packs a stream with zlib (gzip_out.h). Memory of zlib is counted by struct mem. */
#include "sink/stacks/gzip_out.h"

#define CHUNK 65536
#define MEMORY_LEVEL 9
#define GZIP_WINDOW (15 + 16) /* zlib's largest window; + 16 selects gzip's header */

/* zlib does not pass the size when it frees memory, so the size is stored in front of the memory. */
#define SIZE_ROOM 16

static void *z_alloc(void *mem, unsigned items, unsigned size)
{
	size_t bytes = (size_t)items * size + SIZE_ROOM;
	char *block = mem_alloc(mem, bytes);

	if (!block)
		return NULL;
	memcpy(block, &bytes, sizeof(bytes));
	return block + SIZE_ROOM;
}

static void z_free(void *mem, void *ptr)
{
	char *block = (char *)ptr - SIZE_ROOM;
	size_t bytes;

	memcpy(&bytes, block, sizeof(bytes));
	mem_free(mem, block, bytes);
}

ow_status gzip_out_init(struct gzip_out *gz, struct mem *mem, const struct out *to,
			struct ow_error *err)
{
	*gz = (struct gzip_out){ .to = to, .mem = mem };
	gz->z.zalloc = z_alloc;
	gz->z.zfree = z_free;
	gz->z.opaque = mem;
	gz->chunk = mem_alloc(mem, CHUNK);
	if (!gz->chunk)
		return error_no_memory(err);
	if (deflateInit2(&gz->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) == Z_OK)
		return OW_OK;
	mem_free(mem, gz->chunk, CHUNK);
	return error_no_memory(err);
}

static ow_status pack(struct gzip_out *gz, int flush, struct ow_error *err)
{
	do {
		gz->z.next_out = gz->chunk;
		gz->z.avail_out = CHUNK;
		if (deflate(&gz->z, flush) == Z_STREAM_ERROR)
			return error_set(err, OW_E_INTERNAL, "zlib reports an inconsistent state");
		if (gz->z.avail_out < CHUNK)
			OW_TRY(gz->to->write(gz->to->arg, gz->chunk, CHUNK - gz->z.avail_out, err));
	} while (!gz->z.avail_out);
	return OW_OK;
}

static ow_status gzip_write(void *arg, const void *bytes, size_t len, struct ow_error *err)
{
	struct gzip_out *gz = arg;
	const unsigned char *from = bytes;

	while (len) {
		unsigned part = (unsigned)MIN(len, (size_t)1 << 30);

		gz->z.next_in = from;
		gz->z.avail_in = part;
		OW_TRY(pack(gz, Z_NO_FLUSH, err));
		from += part;
		len -= part;
	}
	return OW_OK;
}

struct out gzip_out_stream(struct gzip_out *gz)
{
	return (struct out){ gzip_write, gz };
}

ow_status gzip_out_finish(struct gzip_out *gz, ow_status status, struct ow_error *err)
{
	gz->z.avail_in = 0;
	if (status == OW_OK)
		status = pack(gz, Z_FINISH, err);
	deflateEnd(&gz->z);
	mem_free(gz->mem, gz->chunk, CHUNK);
	return status;
}
