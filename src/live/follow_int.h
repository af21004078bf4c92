/* follow_int.h: between follow.c (the file) and follow_take.c (what segments say). */
#ifndef LIVE_FOLLOW_INT_H
#define LIVE_FOLLOW_INT_H

#include "live/follow.h"

/* The blocks of a segment; empty when they are not there, or damaged. */
struct follow_blocks {
	struct str session, process, text, place, run, record, frame, stack, end;
};

/* Keeps what a segment says, and the segment, whose place in the file is set. False without memory. */
bool follow_take(struct follow *f, struct follow_segment *segment,
		 const struct follow_blocks *blocks);
/* Forgets what is too long ago. */
void follow_trim(struct follow *f);
/* The first files are no longer needed. */
void follow_close_files(struct follow *f, size_t count);

#endif
