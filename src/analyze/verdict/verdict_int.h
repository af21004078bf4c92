/*
 * verdict_int.h: what the files of the verdict share. Called by verdict.c, verdict_words.c and verdict_idle.c.
 */
#ifndef ANALYZE_VERDICT_INT_H
#define ANALYZE_VERDICT_INT_H

#include "analyze/verdict/verdict.h"

#define VERDICT_OTHER_HIGH 15.0 /* percent of a step: classes without a limit of their own */

/* verdict_words.c: from which part of a step on a class is worth a word, and the words. */
struct verdict_limit {
	double moderate, high;	/* percent */
	const char *what;	/* "82 % of a step …" */
	const char *short_what; /* "…; 8 % …" */
	const char *alone;	/* in place of `what` where no device is in the profile */
};

extern const struct verdict_limit verdict_limits[CLASS_COUNT];

/* verdict_idle.c: what runs where nothing was recorded, from sampled stacks: "; 98 % of that is in train.py:38 main"; or how to learn that. */
ow_status verdict_idle(struct model *m, const struct event_filter *filter, const struct phases *p,
		       struct arena *scratch, struct buf *text, struct ow_error *err);

#endif
