/*
 * xspace_tally.h: what the facts of an XSpace tell of the events of a line; kept by xspace_line.c, which has one for
 * the line and, where it is fast, another for some events at a time.
 */
#ifndef IMPORT_XSPACE_TALLY_H
#define IMPORT_XSPACE_TALLY_H

#include "import/xspace_int.h"

struct tally {
	uint64_t events, stats;
	int64_t sum_ps;
	int64_t min_start_ps,
		max_end_ps; /* from the start of the line; INT64_MAX and INT64_MIN when none */
};

static inline void tally_init(struct tally *t)
{
	*t = (struct tally){ .min_start_ps = INT64_MAX, .max_end_ps = INT64_MIN };
}

OW_ALWAYS_INLINE void tally_event(struct tally *t, struct xevent_entry *entry, int64_t start_ps,
				  int64_t end_ps, int64_t duration_ps, bool aggregated)
{
	t->events++;
	t->sum_ps = wrap_add(t->sum_ps, duration_ps);
	entry->sum_ps = wrap_add(entry->sum_ps, duration_ps);
	entry->runs++;
	if (aggregated)
		return;
	t->min_start_ps = MIN(t->min_start_ps, start_ps);
	t->max_end_ps = MAX(t->max_end_ps, end_ps);
}

/* To that of the line. */
static inline void tally_add(struct tally *to, const struct tally *t)
{
	to->events += t->events;
	to->stats += t->stats;
	to->sum_ps = wrap_add(to->sum_ps, t->sum_ps);
	to->min_start_ps = MIN(to->min_start_ps, t->min_start_ps);
	to->max_end_ps = MAX(to->max_end_ps, t->max_end_ps);
}

#endif
