/*
 * spool.h: bytes that are produced piece by piece and end as a struct input: in memory while they are
 * few, else in an unlinked temporary file, written in pieces of bounded size. Used by the unpackers
 * and the text format converter.
 *
 * Producers write at buf.ptr + buf.len after spool_reserve, or append with the buf_ and pb_ calls and
 * call spool_flush when buf has grown beyond spool_piece.
 */
#ifndef WIRE_SPOOL_H
#define WIRE_SPOOL_H

#include "base/buf.h"
#include "base/input.h"

#define SPOOL_MEMORY_MAX ((size_t)64 << 20)
#define SPOOL_PIECE ((size_t)1 << 20)

struct spool {
	struct buf buf;	   /* bytes that are not yet in the file */
	int fd;		   /* descriptor of the file; -1: no file yet */
	uint64_t in_file;  /* number of bytes written to fd */
	size_t memory_max; /* content beyond this size goes to a file */
	const char *name;  /* name of the file that the content came from, for messages */
};

/* Prepares a spool; memory_max 0 means SPOOL_MEMORY_MAX. */
void spool_init(struct spool *s, struct mem *mem, const char *name, size_t memory_max);
void spool_release(struct spool *s);

static inline uint64_t spool_size(const struct spool *s)
{
	return s->in_file + s->buf.len;
}

/* Returns how large buf may become before it is flushed. */
static inline size_t spool_piece(const struct spool *s)
{
	return s->fd < 0 ? s->memory_max : SPOOL_PIECE;
}

/* Makes room for `more` bytes in buf. Flushes buf first if it would become too large, or if memory is short. */
ow_status spool_reserve(struct spool *s, size_t more, struct ow_error *err) OW_MUST_CHECK;

/* Writes buf to the file (created on the first call) and empties it. */
ow_status spool_flush(struct spool *s, struct ow_error *err) OW_MUST_CHECK;

/* Overwrites bytes that are already in the file. */
ow_status spool_patch(struct spool *s, uint64_t offset, const void *bytes, size_t len,
		      struct ow_error *err) OW_MUST_CHECK;

/* Removes everything from `offset` on. */
ow_status spool_truncate(struct spool *s, uint64_t offset, struct ow_error *err) OW_MUST_CHECK;

/* Turns the content into an input, and leaves the spool empty. */
ow_status spool_to_input(struct spool *s, const char *name, struct input *in,
			 struct ow_error *err) OW_MUST_CHECK;

#endif
