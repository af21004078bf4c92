/*
 * glimpse.h: many small pieces of another process's memory, read by one call of the system: what is wanted is said
 * first, then all is read, then asked for. Pieces that are close to each other are read as one: the kernel copies
 * such a piece within a hundred nanoseconds or so, while from piece to piece it takes ten times as long. Each may be
 * read twice in a row: what is the same in both did not change in between.
 */
#ifndef LIVE_GLIMPSE_H
#define LIVE_GLIMPSE_H

#include "base/mem.h"
#include "live/remote.h"

#define GLIMPSE_ROOM ((size_t)128 << 10)

struct glimpse {
	unsigned char *room; /* GLIMPSE_ROOM bytes, and as many for what is read again */
	size_t used;
	struct remote_part pieces[REMOTE_PARTS / 2];
	size_t count; /* wanted, and after the reading those that were read */
	size_t once;  /* how many of the first are read only once */
	size_t hint;
	bool disturbed; /* the reading took far longer than usual: we were interrupted */
	int64_t usual_ns;
};

bool glimpse_init(struct glimpse *s, struct mem *mem) OW_MUST_CHECK;
void glimpse_release(struct glimpse *s, struct mem *mem);

void glimpse_begin(struct glimpse *s);
/* Without room it is left out, and read later when it is asked for. */
void glimpse_want(struct glimpse *s, uint64_t at, size_t len);
/* What was wanted so far is read only once; the rest twice in a row, for glimpse_again. */
void glimpse_once(struct glimpse *s);
void glimpse_read(struct glimpse *s, struct remote *r);
/* The bytes, from the glimpse, or else read into `own` now; NULL when they cannot be read. *piece is the number of the
 * piece, from 1; 0 for what was read now. */
const unsigned char *glimpse_get(struct glimpse *s, struct remote *r, uint64_t at, size_t len,
				 unsigned char *own, uint32_t *piece);

/* The same bytes as they were read again; NULL for what is not from the glimpse. */
const unsigned char *glimpse_again(const struct glimpse *s, const unsigned char *bytes);

#endif
