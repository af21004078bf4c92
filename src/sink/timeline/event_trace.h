/*
 * event_trace.h: the events of any profile as a Chrome trace: slices, points, asynchronous spans, arrows,
 * counters, and the names of processes and threads. Arguments of traces are written as they are in the
 * source. Not a sink: it writes the model, not a result.
 */
#ifndef SINK_EVENT_TRACE_H
#define SINK_EVENT_TRACE_H

#include "model/event_filter.h"
#include "sink/sink.h"

struct event_trace_options {
	/* selects events; an event that overlaps the range is written whole */
	struct event_filter filter;
	bool show_dataflow;
	/* for each metric: whether its samples are drawn; NULL: the default metrics */
	const uint8_t *metrics;
	/* pieces of a critical path, the result of the command path; NULL: none */
	const struct table *path;
};

ow_status event_trace_write(struct model *m, const struct event_trace_options *options,
			    const struct out *out, struct ow_error *err);

#endif
