/*
 * step_meter.h: how long steps take, told from slices as they pass by: steps end with the optimizer's, or else begin
 * with the wait for a batch, as import/producer_live.c finds them in a recording. The last steps are kept, no more.
 */
#ifndef LIVE_STEP_METER_H
#define LIVE_STEP_METER_H

#include "base/str.h"

#define STEP_METER_LAST 32

enum step_mark { STEP_MARK_NONE, STEP_MARK_OPTIMIZER, STEP_MARK_LOADER, STEP_MARKS };

struct step_marks {
	uint64_t count;	 /* marks */
	int64_t last_ns; /* time of the last one */
	int64_t durations[STEP_METER_LAST];
};

struct step_meter {
	struct step_marks marks[STEP_MARKS];
};

enum step_mark step_mark_of(struct str name);
/* An optimizer counts where it ends, a loader where it begins. */
void step_meter_see(struct step_meter *m, enum step_mark mark, int64_t start_ns, int64_t dur_ns);
/* Steps that are over. */
uint64_t step_meter_count(const struct step_meter *m);
/* Median of the last ones; 0 when there is none. */
int64_t step_meter_median(const struct step_meter *m);

#endif
