/*
 * verdict_int.h: what the files of the verdict share. Called by verdict.c, verdict_words.c and verdict_idle.c.
 */
#ifndef ANALYZE_VERDICT_INT_H
#define ANALYZE_VERDICT_INT_H

#include "analyze/verdict/verdict.h"

#define VERDICT_OTHER_HIGH 15.0 /* limit in percent of a step for classes without their own limit */

/* verdict_words.c: the share of a step from which on a class is mentioned, and its words. */
struct verdict_limit {
	double moderate, high;	/* limits in percent */
	const char *what;	/* words after "82 % of a step" */
	const char *short_what; /* words after "…; 8 %" */
	const char *alone;	/* words in place of `what` if the profile has no device */
};

extern const struct verdict_limit verdict_limits[CLASS_COUNT];

/* verdict_idle.c: names, from sampled stacks, the code that runs while nothing is recorded: "; 98 % of
 * that is in train.py:38 main"; or says how to find out. */
ow_status verdict_idle(struct model *m, const struct event_filter *filter, const struct phases *p,
		       struct arena *scratch, struct buf *text, struct ow_error *err);

#endif
