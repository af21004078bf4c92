/*
 * waits.h: which rank waits for which, made from the rows of a struct hang_job: the rank of each process, incomplete
 * collectives and messages, and the ranks that have not come to them. answer.c draws conclusions from it.
 */
#ifndef HANG_WAITS_H
#define HANG_WAITS_H

#include "hang/hang.h"

enum missing_kind {
	NOT_ENTERED, /* the rank's dump shows that it did not enter */
	NOT_STARTED, /* the rank has scheduled the operation, but its device has not begun */
	NO_DUMP,     /* nothing is known about the rank */
	UNKNOWN	     /* the rank's dump ends too early */
};

/* A rank that a meeting waits for. */
struct missing {
	int32_t rank;
	enum missing_kind kind;
	int64_t order; /* for NOT_STARTED: index of the operation among those of its process */
};

/* A collective or a message that at least one rank has entered and not completed. */
struct hang_meeting {
	uint32_t group;
	int64_t sequence;
	bool message;
	int32_t from, to;
	struct str name, stack;
	/* number of ranks that have entered and not completed it */
	size_t waiters;
	size_t first_missing, missing_count; /* range in waits.missing */
	/* range in waits.odd: ranks that called a different operation */
	size_t first_odd, odd_count;
	bool tie; /* there is no majority for one operation */
	/* description of the difference: "rank 2 called broadcast, the others all_reduce" */
	char difference[160];
	/* times at which the first and the last waiting rank came */
	int64_t first_ns, last_ns, timeout_ns;
	bool timed_out, waits_known;
};

struct wait_rank {
	uint32_t dump; /* index of the rank's process that has operations; UINT32_MAX: none */
	/* index of the rank's process that has a stack, or that ended; UINT32_MAX: none */
	uint32_t about;
	/* range in waits.pending: meetings that the rank waits in, by order */
	size_t first_pending, pending_count;
	/* range in waits.own: the rank's progress in each group */
	size_t first_own, own_count;
	size_t first_op, end_op; /* range in waits.by_place */
	int64_t first_order;	 /* index of the oldest operation in the rank's dump */
};

/* Progress of a rank in a group. */
struct own_group {
	uint32_t group;
	int64_t entered, completed; /* highest sequence number; -1: none */
	/* `entered` counts all operations, not only those in the dump */
	bool known;
	int64_t pending; /* lowest incomplete sequence number; HANG_NO_SEQUENCE: none */
	size_t pending_op;
};

struct pending {
	size_t meeting;
	int64_t order;
	size_t op;
};

struct waits {
	struct hang_job *job;
	struct mem *mem;
	struct arena arena;
	int32_t world; /* ranks are 0 to world - 1 */
	bool world_known;
	struct wait_rank *ranks;
	/* operations of the dumps that are used, sorted by process, group and sequence */
	size_t *by_place;
	size_t used_count;
	int64_t *last_order; /* for each process: its last operation */
	struct own_group *own;
	size_t own_count, own_cap;
	struct hang_meeting *meetings;
	/* collectives: number of meetings that are collectives; they come first */
	size_t meeting_count, meeting_cap, collectives;
	struct missing *missing;
	size_t missing_count, missing_cap;
	int32_t *odd;
	size_t odd_count, odd_cap;
	struct pending *pending;
	size_t pending_count, pending_cap;
	size_t dumps, without_dump, torn;
	int64_t last_ns; /* the latest time in any dump */
	bool timed_out;	 /* a program gave up waiting */
};

ow_status waits_make(struct waits *w, struct hang_job *job, struct ow_error *err);
void waits_release(struct waits *w);

/* The progress of a rank in a group; NULL: nothing is known. */
const struct own_group *waits_own(const struct waits *w, int32_t rank, uint32_t group);
/* Whether the dumps show that something keeps the meeting from ending. */
static inline bool meeting_is_blocked(const struct hang_meeting *m)
{
	return m && (m->missing_count || m->odd_count);
}

#endif
