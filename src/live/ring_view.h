/*
 * ring_view.h: the reader's side of the memory that a recorded process shares (wire/ring.h). The process may be
 * anybody's and may write whatever it likes there at any time: what is used is copied first, sizes are those of
 * the file and not those that the memory tells, and memory that could be cut short is not accepted.
 */
#ifndef LIVE_RING_VIEW_H
#define LIVE_RING_VIEW_H

#include "base/error.h"
#include "base/str.h"
#include "wire/ring.h"

struct ring_view {
	struct ring *ring;
	size_t bytes;
	uint32_t capacity; /* records */
	uint32_t number;
	uint64_t next; /* the first record that was not read */
};

/* Maps a ring; the descriptor stays the caller's. */
ow_status ring_view_open(struct ring_view *v, int fd, struct error *err);
void ring_view_close(struct ring_view *v);
/* Nobody writes to it any more: its memory goes, although the job still has it mapped. */
void ring_view_empty(struct ring_view *v);
/* Records that wait; none when the ring claims to hold more than it can. */
uint32_t ring_view_pending(const struct ring_view *v);
/* Copies the first `count` that wait. */
void ring_view_copy(const struct ring_view *v, struct ring_record *to, uint32_t count);
/* They are safe: the job may write over them. */
void ring_view_commit(struct ring_view *v, uint32_t count);

struct process_view {
	struct ring_process *process;
	size_t bytes;
	uint32_t text_bytes;
};

/* OW_E_UNSUPPORTED for memory of another version; then only `state` may be set. */
ow_status process_view_open(struct process_view *v, int fd, struct error *err);
void process_view_close(struct process_view *v);
/* A copy of a text, in `to` of RING_TEXT_MAX bytes; empty when the number is none. */
struct str process_view_text(const struct process_view *v, uint32_t number, char *to);

#endif
