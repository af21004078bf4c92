/*
 * gzip_out.h: a stream that packs its input and passes it on to another stream. Used by the pprof sink and api/write.c. The bytes are those of
 * zlib at its default level with memory level 9 and without a time in the header.
 */
#ifndef SINK_GZIP_OUT_H
#define SINK_GZIP_OUT_H

#include "sink/sink.h"

#define ZLIB_CONST
#include <zlib.h>

struct gzip_out {
	const struct out *to;
	struct mem *mem;
	z_stream z;
	unsigned char *chunk;
};

/* On failure nothing needs to be released. */
ow_status gzip_out_init(struct gzip_out *gz, struct mem *mem, const struct out *to,
			struct ow_error *err);
/* The stream that the caller writes to; its arg is gz. */
struct out gzip_out_stream(struct gzip_out *gz);
/* Writes the remaining bytes, unless `status` is a failure, and releases everything; returns `status` or the new
 * failure. */
ow_status gzip_out_finish(struct gzip_out *gz, ow_status status, struct ow_error *err);

#endif
