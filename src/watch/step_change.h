/*
 * step_change.h: detects that a series of durations has become longer for good: it compares the median of the last few
 * with the median of those before, in units of the random variation of such medians. Single long steps, even regular
 * ones (a checkpoint every N steps), do not change a median. Steps that vary randomly are not reported, and a job that
 * is slow for a while again and again is reported once. anomaly.c feeds it.
 */
#ifndef WATCH_STEP_CHANGE_H
#define WATCH_STEP_CHANGE_H

#include "base/base.h"

#define STEP_CHANGE_LAST 9u /* most of this many last steps must be longer */
/* the last steps are compared with at most this many earlier steps */
#define STEP_CHANGE_BEFORE 128u
/* the last steps are compared with at least this many earlier steps */
#define STEP_CHANGE_LEAST 20u
/* number of blocks of STEP_CHANGE_LAST steps of which one length each is remembered */
#define STEP_CHANGE_PAST 128u

struct step_change {
	double limit; /* smallest change to report; 0.2: a fifth longer */
	uint64_t count;
	int64_t values[STEP_CHANGE_BEFORE +
		       STEP_CHANGE_LAST]; /* the last durations; number n is at index n % size */
	int64_t block[STEP_CHANGE_LAST];  /* the current block, which is not full yet */
	uint64_t added;			  /* number of steps in total */
	/* past: a short duration of each block, number n at index n % size; kept across changes */
	int64_t past[STEP_CHANGE_PAST];
};

struct step_change_found {
	int64_t before_ns, after_ns; /* medians before and after the change */
	double by;		     /* the change; 0.2: a fifth longer */
	uint32_t steps_ago; /* steps_ago: distance from the first longer step to the last step */
};

void step_change_init(struct step_change *c, double limit);
/* Adds the next step. True when steps have become longer; then it starts over with these last ones. */
bool step_change_add(struct step_change *c, int64_t value_ns, struct step_change_found *found);

#endif
