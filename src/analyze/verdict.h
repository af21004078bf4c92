/*
 * verdict.h: one sentence on what the time goes to, and the first thing to look at. Made from the phases
 * of the steps where a source tells them, else from the times of ops. Says what was measured; what to
 * do about it is said by advise/.
 */
#ifndef ANALYZE_VERDICT_H
#define ANALYZE_VERDICT_H

#include "base/buf.h"
#include "model/event_filter.h"

/* Appends a sentence with its full stop. Of samples those of the metric are looked at, or of the default for NULL. */
ow_status verdict_write(struct model *m, const struct event_filter *filter, const char *metric,
			struct buf *text, struct error *err);

/* The same for a profile of samples alone. */
ow_status verdict_samples(struct model *m, const struct event_filter *filter, const char *metric,
			  struct buf *text, struct error *err);

struct phases;
struct phase_groups;

/* What runs where nothing was recorded, from sampled stacks: "; 98 % of that is in train.py:38 main"; or how to learn that. */
ow_status verdict_idle(struct model *m, const struct event_filter *filter, const struct phases *p,
		       struct arena *scratch, struct buf *text, struct error *err);

/* One more sentence, when one rank makes the others wait: " Rank 3 is the slow one: …". */
ow_status verdict_ranks(const struct model *m, const struct phase_groups *groups,
			struct arena *scratch, struct buf *text, struct error *err);

#endif
