/*
 * unpack_int.h: one job of unpacking, for unpack.c and for archive.c, which unpacks members the same way; pack.c takes
 * zlib's memory from here. A codec reads job->in from its start, writes to job->out, and ends with OW_OK also for
 * damaged data, which it reports with unpack_damage.
 */
#ifndef WIRE_UNPACK_INT_H
#define WIRE_UNPACK_INT_H

#include "wire/container/spool.h"
#include "wire/container/unpack.h"

struct unpack_job {
	const struct input *in;
	struct spool out;
	const struct unpack_options *options;
	struct unpack_result *result;
};

/* Makes room for at least one piece of output, within the limit. */
ow_status unpack_room(struct unpack_job *job, unsigned char **to, size_t *room,
		      struct ow_error *err) OW_MUST_CHECK;
/* Counts `made` bytes of output. */
static inline void unpack_made(struct unpack_job *job, size_t made)
{
	job->out.buf.len += made;
}

void unpack_damage(struct unpack_job *job, uint64_t offset, const char *format, ...)
	OW_PRINTF(3, 4);

/* Allocates memory for zlib from the struct mem in `opaque`. */
void *unpack_zlib_alloc(void *opaque, unsigned items, unsigned size);
void unpack_zlib_free(void *opaque, void *address);

/* Returns true if only zero bytes follow: padding of tapes and block devices. */
ow_status unpack_only_zeros(struct window *w, uint64_t offset, bool *zeros) OW_MUST_CHECK;

#endif
