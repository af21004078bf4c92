/*
 * op_stats.h: times of ops as XProf counts them ("TensorFlow stats", "framework op stats"), in picoseconds. view_opstats.c computes them;
 * the views opstats, pipeline, roofline and steps use them.
 *
 * Only what XProf takes for an op counts (OP_FRAMEWORK). Everything else is transparent: the self time of an op is its duration minus
 * the durations of the ops directly inside it, whatever annotations lie between. If no event of a model is known to be such an op, as in
 * PyTorch's traces, everything counts that is neither a wrapper nor a wait.
 */
#ifndef ANALYZE_OP_STATS_H
#define ANALYZE_OP_STATS_H

#include "analyze/view.h"

struct op_stat {
	int64_t runs, total_ps, self_ps;
	/* number of complete runs; fewer than `runs` for an instruction with several kernels */
	int64_t turns;
};

struct op_stats {
	struct op_stat *host, *device; /* sums of each op */
	/* Idle time: the span from the first to the last op of each thread or device, minus all
	 * self times. */
	int64_t host_idle_ps, device_idle_ps;
	int64_t host_self_ps, device_self_ps;
	uint32_t host_tracks, devices; /* number of tracks and devices that ran an op */
	bool all;		       /* no event is known to be an op of a framework */
};

/* Converts to picoseconds, limited to 64 bits. */
int64_t ps_of(int64_t ns, int64_t rest);
/* Returns the exact duration of an event. */
int64_t event_dur_ps(const struct model *m, uint32_t event);

ow_status op_stats_make(const struct model *m, const struct event_filter *filter,
			struct arena *arena, struct op_stats *out, struct ow_error *err);

#endif
