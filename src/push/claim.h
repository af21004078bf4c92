/*
 * claim.h: which push writes a run now, and which pushes are published: rows of the tables opwatch_claim and opwatch_publish
 * on the first node, the home. Two pushes of one run at a time would undo each other's batches, so the later one is
 * refused. A push that was killed is detected by its silence or, on the same machine, by its missing process.
 */
#ifndef PUSH_CLAIM_H
#define PUSH_CLAIM_H

#include "push/plan.h"

#include <stdatomic.h>

#define CLAIM_BEAT_MS 5000 /* interval between renewals of the claim */
/* after this time without renewal the push checks its claim before it continues */
#define CLAIM_LOST_MS 120000
#define CLAIM_EXPIRES_S 180 /* after this time other pushes may take over the claim */
#define CLAIM_CHECKS 5	    /* how often pushes that asked at the same moment are checked for */

enum claim_state { CLAIM_ASKED, CLAIM_HELD, CLAIM_ENDED };

struct claim {
	struct click *home; /* connection of the caller's thread */
	/* connection that renews the claim, used by one thread at a time; never waits long */
	struct click *beat;
	const char *run; /* name of the run, quoted for SQL */
	uint64_t push;
	char owner[40];		      /* text that no other push has */
	char host[128];		      /* host name, quoted for SQL */
	atomic_uint_fast64_t last_ms; /* time of the last renewal that arrived */
	atomic_uint_fast64_t next_ms; /* time at which the next renewal is due */
	atomic_bool busy;
};

/* Claims a run; fails if another push holds the claim. */
ow_status claim_take(struct claim *claim, struct click *home, struct click *beat,
		     struct arena *arena, const char *run, uint64_t push, struct ow_error *err);
/* Renews the claim; call it often, from any thread. False if it was not renewed for so long that another push may have
 * taken over. */
bool claim_beat(struct claim *claim);
/* Releases the claim; if the push is done, all rows of the claim are deleted. */
void claim_end(struct claim *claim, bool done);

/* Lists older pushes of the run whose rows are not needed any more, without `published`; at most `cap`. */
ow_status claim_abandoned(struct claim *claim, uint64_t published, uint64_t *pushes, size_t cap,
			  size_t *count, struct ow_error *err);
/* Removes the claims of another push, after its rows were removed. */
ow_status claim_forget(struct claim *claim, uint64_t push, struct ow_error *err);

/* The published version of the run; `push` is 0 when there is none. */
struct published {
	uint64_t push;
	char content[64];
};
ow_status published_find(const struct claim *claim, struct published *published,
			 struct ow_error *err);
/* Makes a push visible on a node, in place of the previous one; push 0 makes the run invisible. */
ow_status published_set(const struct claim *claim, struct click *node, uint64_t push,
			const char *content, uint64_t rows, struct ow_error *err);

#endif
