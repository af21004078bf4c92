/*
 * change.h: notices that a series of times has become longer for good: the median of the last few against that of those
 * before, measured in what such medians differ by chance. Single long steps, also regular ones (a checkpoint every so many
 * steps), move no median and are no change; nor is what came before: a job whose steps take now this long and now that, by
 * chance, is not told of, and one that is slow for a while again and again is told of once. Knows numbers only; attention.c feeds it.
 */
#ifndef WATCH_CHANGE_H
#define WATCH_CHANGE_H

#include "base/base.h"

#define CHANGE_LAST 9u	   /* steps that must be longer, most of them */
#define CHANGE_BEFORE 128u /* steps that they are compared with, at most … */
#define CHANGE_LEAST 20u   /* … and at least */
#define CHANGE_PAST 128u   /* rows of CHANGE_LAST steps of which one length is remembered */

struct change {
	double limit; /* 0.2: a fifth longer */
	uint64_t count;
	int64_t values[CHANGE_BEFORE + CHANGE_LAST]; /* the last ones, number n at n % size */
	int64_t block[CHANGE_LAST];		     /* the row that is not whole yet */
	uint64_t added;				     /* in all */
	int64_t past
		[CHANGE_PAST]; /* short ones of rows, number n at n % size; also from before a change */
};

struct change_found {
	int64_t before_ns, after_ns; /* medians */
	double by;		     /* 0.2: a fifth longer */
	uint32_t steps_ago; /* the first of the longer ones was so many steps before the last one */
};

void change_init(struct change *c, double limit);
/* The next step. True when it shows that steps have become longer; then it begins anew, with these last ones. */
bool change_add(struct change *c, int64_t value_ns, struct change_found *found);

#endif
