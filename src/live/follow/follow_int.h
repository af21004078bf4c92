/*
 * follow_int.h: shared by follow.c (files, segments, parts) and follow_state.c (what segments say). Others include follow.h.
 */
#ifndef LIVE_FOLLOW_INT_H
#define LIVE_FOLLOW_INT_H

#include "live/follow/follow.h"

/* Reads a segment, of which the file and the offset are set, into a buffer; the buffer is empty if the segment
 * cannot be read any more. False if memory runs out. */
bool follow_read(const struct follow *f, const struct follow_segment *segment, struct buf *to);

/* Stores the information of a segment, and the segment, whose place in the file is set. False if memory runs out. */
bool follow_take(struct follow *f, struct follow_segment *segment,
		 const struct str blocks[LIVE_BLOCKS]);
/* Forgets data that is older than keep_ns. */
void follow_trim(struct follow *f);
/* Forgets all data. */
void follow_forget(struct follow *f);
/* Closes the first files, which are no longer needed. */
void follow_close_files(struct follow *f, size_t count);

/* Returns a process; NULL if it is not known. */
struct follow_process *follow_process(const struct follow *f, uint32_t number);
/* Returns the stacks that a segment's samples refer to; NULL if there are none. */
const struct follow_stacks *follow_stacks_of(const struct follow *f, size_t segment);
/* Returns whether the record describes an interval, and its end. */
bool follow_slice_end(const struct ring_record *r, int64_t *end_ns);
/* Returns the number of records that a ring had dropped before a segment. */
struct follow_drop follow_dropped_before(const struct follow *f, uint32_t process, uint32_t ring,
					 uint64_t segment);

#endif
