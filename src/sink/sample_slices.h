/*
 * sample_slices.h: samples that have times as slices: what consecutive samples of a thread have in common, from the root on, is one
 * slice. For event_trace.c, which writes them.
 */
#ifndef SINK_SAMPLE_SLICES_H
#define SINK_SAMPLE_SLICES_H

#include "model/event_filter.h"

typedef void (*sample_slice_fn)(void *arg, uint32_t track, struct str name, int64_t ts_ns,
				int64_t dur_ns);

/* Whether there is a sample with a time. */
bool sample_slices_any(const struct model *m);

/* Calls `emit` for the slices of tracks that `skip` does not mark, of the metrics that `wanted` does; a slice comes after those inside
 * it. False without memory. */
bool sample_slices(const struct model *m, const struct event_filter *filter, const uint8_t *wanted,
		   const uint8_t *skip, sample_slice_fn emit, void *arg);

#endif
