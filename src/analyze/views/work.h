/*
 * work.h: what the verdict has in common with the view `work`: which time of an op is not typical, and which type of op takes most. The sentence
 * and the list of the overview then name the same op with the same share. view_work.c computes both.
 */
#ifndef ANALYZE_WORK_H
#define ANALYZE_WORK_H

#include "analyze/view.h"

/* Outliers and one-off runs are shown separately if they are at least this part of the time; the overview
 * uses the same limit. */
#define WORK_OUTLIERS_APART 0.05

/* `values` are the times of an op in the steps in which it ran, `ran` of `steps`; they get sorted. The part that typical steps do not have. */
int64_t work_outliers(int64_t *values, uint32_t ran, uint32_t steps);

struct work_top {
	uint32_t type, op;		/* string of the costliest type, and its costliest op */
	int64_t type_ns, op_ns, all_ns; /* times over all steps */
	bool apart;			/* the times exclude outliers and one-off runs */
	uint32_t equal, other;		/* how many more types take as long, and one of them */
};

/* Finds the costliest work within the filter; type_ns is 0 if nothing was timed. */
ow_status work_top_find(struct model *m, const struct event_filter *filter, struct arena *scratch,
			struct work_top *out, struct ow_error *err);

#endif
