/*
 * remote_batch_read.h: many small pieces of another process's memory, read with one system call. The caller says
 * what it wants, reads all, then asks for the pieces. Adjacent pieces are read as one: the kernel copies such a
 * piece within about a hundred nanoseconds, while going from piece to piece takes ten times as long. Each piece
 * may be read twice in a row: bytes that are equal in both did not change in between.
 *
 * cpu_colocate moves this thread to the processor that a thread of another process runs on. The kernel then gives
 * us our turn as it does any program; meanwhile the other thread waits, and what is read of it is of one moment.
 * Real-time threads are left alone: we would wait for ever.
 */
#ifndef LIVE_REMOTE_BATCH_READ_H
#define LIVE_REMOTE_BATCH_READ_H

#include "base/base.h"
#include "base/mem.h"
#include "live/proc/proc.h"

#include <sched.h>
#include <sys/types.h>

#define REMOTE_BATCH_BYTES ((size_t)128 << 10)

struct remote_batch {
	unsigned char *room; /* REMOTE_BATCH_BYTES bytes, and as many for the second reading */
	size_t used;
	struct remote_part pieces[REMOTE_PARTS / 2];
	size_t count; /* number of wanted pieces; after the reading, of pieces that were read */
	size_t once;  /* number of first pieces that are read only once */
	size_t hint;
	bool disturbed; /* the reading took far longer than usual, so it was interrupted */
	int64_t usual_ns;
};

bool remote_batch_init(struct remote_batch *s, struct mem *mem) OW_MUST_CHECK;
void remote_batch_release(struct remote_batch *s, struct mem *mem);

void remote_batch_begin(struct remote_batch *s);
/* Adds a piece. Without room it is left out and read later on demand. */
void remote_batch_want(struct remote_batch *s, uint64_t at, size_t len);
/* Marks the pieces added so far to be read once; later pieces are read twice in a row, for
 * remote_batch_again. */
void remote_batch_once(struct remote_batch *s);
void remote_batch_read(struct remote_batch *s, struct remote *r);
/* The bytes of a piece from the batch, or else read into `own` now; NULL when they cannot be read. *piece is the
 * number of the piece, from 1; 0 if it was read now. */
const unsigned char *remote_batch_get(struct remote_batch *s, struct remote *r, uint64_t at,
				      size_t len, unsigned char *own, uint32_t *piece);

/* Returns the bytes of the second reading; NULL for bytes that are not from the batch. */
const unsigned char *remote_batch_again(const struct remote_batch *s, const unsigned char *bytes);

struct cpu_colocate {
	cpu_set_t home; /* processors on which this thread may run normally */
	bool knows_home, away;
};

/* Moves this thread to the processor of another one. Returns false, without a move, if that is
 * impossible or useless. The caller moves back. */
bool cpu_colocate_enter(struct cpu_colocate *b, pid_t pid, pid_t tid);
void cpu_colocate_leave(struct cpu_colocate *b);

#endif
