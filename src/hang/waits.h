/*
 * waits.h: who waits for whom, made of the rows of a struct hang_job: which process is which rank, the collectives and
 * messages that are not complete, and the ranks that have not come to them. answer.c concludes from it.
 */
#ifndef HANG_WAITS_H
#define HANG_WAITS_H

#include "hang/hang.h"

enum missing_kind {
	NOT_ENTERED, /* its dump shows that it did not enter */
	NOT_STARTED, /* it has scheduled it, but its device has not begun */
	NO_DUMP,     /* nothing is known of it */
	UNKNOWN	     /* its dump does not reach so far */
};

/* A rank that a meeting waits for. */
struct missing {
	int32_t rank;
	enum missing_kind kind;
	int64_t order; /* NOT_STARTED: of its operation, among those of its process */
};

/* A collective or a message that at least one rank has entered and not completed. */
struct hang_meeting {
	uint32_t group;
	int64_t sequence;
	bool message;
	int32_t from, to;
	struct str name, stack;
	size_t waiters;			     /* ranks that have entered and not completed it */
	size_t first_missing, missing_count; /* in waits.missing */
	size_t first_odd, odd_count; /* in waits.odd: ranks whose operation is another one */
	bool tie;		     /* there is no majority */
	char difference[160];	     /* "rank 2 called broadcast, the others all_reduce" */
	int64_t first_ns, last_ns, timeout_ns; /* when the first and the last waiter came */
	bool timed_out, waits_known;
};

struct wait_rank {
	uint32_t dump;	/* its process with operations; UINT32_MAX */
	uint32_t about; /* its process with a stack, or that ended; UINT32_MAX */
	size_t first_pending, pending_count; /* in waits.pending: meetings it waits in, by order */
	size_t first_own, own_count;	     /* in waits.own: what it did in each group */
	size_t first_op, end_op;	     /* in waits.by_place */
	int64_t first_order;		     /* of its oldest record */
};

/* What a rank did in a group. */
struct own_group {
	uint32_t group;
	int64_t entered, completed; /* highest sequence; -1: none */
	bool known;		    /* `entered` is all, not just what was kept */
	int64_t pending;	    /* lowest that is not complete; HANG_NO_SEQUENCE */
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
	size_t *by_place; /* operations of dumps that are used, by process, group and sequence */
	size_t used_count;
	int64_t *last_order; /* per process */
	struct own_group *own;
	size_t own_count, own_cap;
	struct hang_meeting *meetings;
	size_t meeting_count, meeting_cap, collectives; /* these come first */
	struct missing *missing;
	size_t missing_count, missing_cap;
	int32_t *odd;
	size_t odd_count, odd_cap;
	struct pending *pending;
	size_t pending_count, pending_cap;
	size_t dumps, without_dump, torn;
	int64_t last_ns; /* the last time in any dump */
	bool timed_out;	 /* a program gave up waiting */
};

ow_status waits_make(struct waits *w, struct hang_job *job, struct ow_error *err);
void waits_release(struct waits *w);

/* What the rank did in the group; NULL: nothing is known. */
const struct own_group *waits_own(const struct waits *w, int32_t rank, uint32_t group);
/* Whether something keeps the meeting from ending that the dumps show. */
static inline bool meeting_is_blocked(const struct hang_meeting *m)
{
	return m && (m->missing_count || m->odd_count);
}

#endif
