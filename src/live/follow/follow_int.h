/*
 * follow_int.h: shared by follow.c (files, segments, parts) and follow_state.c (what segments say). Others include follow.h.
 */
#ifndef LIVE_FOLLOW_INT_H
#define LIVE_FOLLOW_INT_H

#include "live/follow/follow.h"

/* Reads a segment, of which the file and the place are set, into a buffer. False without memory; what cannot be read any
 * more is empty. */
bool follow_read(const struct follow *f, const struct follow_segment *segment, struct buf *to);

/* Keeps what a segment says, and the segment, whose place in the file is set. False without memory. */
bool follow_take(struct follow *f, struct follow_segment *segment,
		 const struct str blocks[LIVE_BLOCKS]);
/* Forgets what is too long ago. */
void follow_trim(struct follow *f);
/* Forgets all. */
void follow_forget(struct follow *f);
/* Closes the first files, which are no longer needed. */
void follow_close_files(struct follow *f, size_t count);

/* NULL when it is not known. */
struct follow_process *follow_process(const struct follow *f, uint32_t number);
/* What samples of a segment are made of; NULL when there is nothing. */
const struct follow_stacks *follow_stacks_of(const struct follow *f, size_t segment);
/* Whether the record describes an interval, and when that ended. */
bool follow_slice_end(const struct ring_record *r, int64_t *end_ns);
/* Number of records that a ring had dropped before a segment. */
struct follow_drop follow_dropped_before(const struct follow *f, uint32_t process, uint32_t ring,
					 uint64_t segment);

#endif
