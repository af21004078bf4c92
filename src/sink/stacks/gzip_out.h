/*
 * gzip_out.h: a stream that packs what it gets and hands it on to another one. Used by the pprof sink;
 * the bytes are those of zlib at its default level with memory level 9 and no time in the header.
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

/* On failure nothing is left to release. */
ow_status gzip_out_init(struct gzip_out *gz, struct mem *mem, const struct out *to,
			struct error *err);
/* The stream to write to; its arg is gz. */
struct out gzip_out_stream(struct gzip_out *gz);
/* Writes what is left, unless status says that writing failed before, and releases all. */
ow_status gzip_out_finish(struct gzip_out *gz, ow_status status, struct error *err);

#endif
