/*
 * busy.h: for how long something ran, with overlapping events counted once. Shared by the views of
 * devices and tracks. Knows groups of tracks only, not what they mean.
 */
#ifndef ANALYZE_BUSY_H
#define ANALYZE_BUSY_H

#include "analyze/spans.h"
#include "model/event_filter.h"

struct busy {
	int64_t busy_ns; /* union of the events' spans */
	uint64_t events; /* with or without a duration */
};

/* group[track] says to which of `count` groups a track's events belong; UINT32_MAX = to none. `out`
 * has `count` zeroed items. */
ow_status busy_measure(const struct model *m, const struct event_filter *filter,
		       const uint32_t *group, uint32_t count, struct busy *out, struct error *err);

#endif
