/*
 * unpack_int.h: between unpack.c and the codecs (unpack_gzip.c, unpack_zstd.c); nobody else includes
 * it. A codec reads job->in from its start, writes to job->out, and ends with OW_OK also for damaged
 * data, which it reports with unpack_damage.
 */
#ifndef WIRE_UNPACK_INT_H
#define WIRE_UNPACK_INT_H

#include "wire/spool.h"
#include "wire/unpack.h"

struct unpack_job {
	const struct input *in;
	struct spool out;
	const struct unpack_options *options;
	struct unpack_result *result;
};

struct unpack_codec {
	const char *name;
	bool (*match)(struct str head);
	ow_status (*run)(struct unpack_job *job, struct error *err);
};

extern const struct unpack_codec unpack_gzip, unpack_zstd;

/* Room for at least a piece of output, checked against the cap. */
ow_status unpack_room(struct unpack_job *job, unsigned char **to, size_t *room,
		      struct error *err) OW_MUST_CHECK;
/* Counts `made` bytes written there. */
static inline void unpack_made(struct unpack_job *job, size_t made)
{
	job->out.buf.len += made;
}

void unpack_damage(struct unpack_job *job, uint64_t offset, const char *format, ...)
	OW_PRINTF(3, 4);

/* zlib's memory through ours, with the struct mem as `opaque`. */
void *unpack_zlib_alloc(void *opaque, unsigned items, unsigned size);
void unpack_zlib_free(void *opaque, void *address);

/* True when only zero bytes follow: padding, as tapes and block devices leave it. */
ow_status unpack_only_zeros(struct window *w, uint64_t offset, bool *zeros) OW_MUST_CHECK;

#endif
