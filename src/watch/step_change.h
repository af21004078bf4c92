/*
 * step_change.h: notices that a series of durations has become longer for good: it compares the median of the last
 * few with the median of those before, in units of how much such medians vary by chance. Single long steps, even
 * regular ones (a checkpoint every N steps), do not move a median. Steps that vary by chance are not reported, and
 * a job that is slow for a while again and again is reported once. anomaly.c feeds it.
 */
#ifndef WATCH_STEP_CHANGE_H
#define WATCH_STEP_CHANGE_H

#include "base/base.h"

#define STEP_CHANGE_LAST 9u	/* steps that must be longer, most of them */
#define STEP_CHANGE_BEFORE 128u /* steps that they are compared with, at most … */
#define STEP_CHANGE_LEAST 20u	/* … and at least */
#define STEP_CHANGE_PAST 128u /* rows of STEP_CHANGE_LAST steps of which one length is remembered */

struct step_change {
	double limit; /* 0.2: a fifth longer */
	uint64_t count;
	int64_t values[STEP_CHANGE_BEFORE +
		       STEP_CHANGE_LAST]; /* the last ones, number n at n % size */
	int64_t block[STEP_CHANGE_LAST];  /* the block that is not full yet */
	uint64_t added;			  /* in all */
	int64_t past
		[STEP_CHANGE_PAST]; /* short ones of rows, number n at n % size; also from before a change */
};

struct step_change_found {
	int64_t before_ns, after_ns; /* medians */
	double by;		     /* 0.2: a fifth longer */
	uint32_t
		steps_ago; /* the first of the longer ones was this many steps before the last one */
};

void step_change_init(struct step_change *c, double limit);
/* The next step. True when it shows that steps have become longer; then it starts over, with these last ones. */
bool step_change_add(struct step_change *c, int64_t value_ns, struct step_change_found *found);

#endif
