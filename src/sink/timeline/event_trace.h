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
	struct event_filter filter; /* events that reach into it are written whole */
	bool show_dataflow;
	const uint8_t *metrics; /* which samples are drawn, per metric; NULL: of the default ones */
	const struct table
		*path; /* the pieces of a critical path, as the command path has them; NULL: none */
};

ow_status event_trace_write(struct model *m, const struct event_trace_options *options,
			    const struct out *out, struct ow_error *err);

#endif
