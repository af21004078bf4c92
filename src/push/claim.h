/*
 * claim.h: which push writes a run now, and which pushes are published: rows of the tables opwatch_claim and opwatch_publish
 * on the first node, the home. Two pushes of one run at a time would undo each other's batches, so the later one is
 * refused. A push that was killed is detected by its silence or, on the same machine, by its missing process.
 */
#ifndef PUSH_CLAIM_H
#define PUSH_CLAIM_H

#include "push/plan.h"

#include <stdatomic.h>

#define CLAIM_BEAT_MS 5000   /* between signs of life */
#define CLAIM_LOST_MS 120000 /* after which one does not go on without looking */
#define CLAIM_EXPIRES_S 180  /* after this time others may take over the claim */
#define CLAIM_CHECKS 5	     /* at others who came at the same moment */

enum claim_state { CLAIM_ASKED, CLAIM_HELD, CLAIM_ENDED };

struct claim {
	struct click *home; /* for the caller's thread */
	struct click *beat; /* renews the claim, for one thread at a time; never waits long */
	const char *run;    /* quoted */
	uint64_t push;
	char owner[40];		      /* unlike all others */
	char host[128];		      /* quoted */
	atomic_uint_fast64_t last_ms; /* sign of life that arrived */
	atomic_uint_fast64_t next_ms; /* when the next one is due */
	atomic_bool busy;
};

/* Fails if another push holds the claim. */
ow_status claim_take(struct claim *claim, struct click *home, struct click *beat,
		     struct arena *arena, const char *run, uint64_t push, struct ow_error *err);
/* Renews the claim; call it often, from any thread. False if it was not renewed for so long that another push may have
 * taken over. */
bool claim_beat(struct claim *claim);
/* Lets go of it; when the push is done, nothing of the claim stays. */
void claim_end(struct claim *claim, bool done);

/* Older pushes of the run whose rows are of no use any more, `published` not among them; at most `cap`. */
ow_status claim_abandoned(struct claim *claim, uint64_t published, uint64_t *pushes, size_t cap,
			  size_t *count, struct ow_error *err);
/* Removes the claims of other pushes. Call it after their rows are removed. */
ow_status claim_forget(struct claim *claim, uint64_t push, struct ow_error *err);

/* The published version of the run; push is 0 when there is none. */
struct published {
	uint64_t push;
	char content[64];
};
ow_status published_find(const struct claim *claim, struct published *published,
			 struct ow_error *err);
/* Makes it visible on a node, in place of what was; push 0 makes the run invisible. */
ow_status published_set(const struct claim *claim, struct click *node, uint64_t push,
			const char *content, uint64_t rows, struct ow_error *err);

#endif
