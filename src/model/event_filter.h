/*
 * event_filter.h: the part of a model that a report covers: a span of time, a rank, a step. Views make one from their
 * options (analyze/view.h) and pass it to everything that reads events. Also says which tracks count as work of the
 * host or of a device, so all readers agree.
 */
#ifndef MODEL_EVENT_FILTER_H
#define MODEL_EVENT_FILTER_H

#include "model/model.h"

struct event_filter {
	int64_t from_ns, to_ns; /* range of time; INT64_MIN, INT64_MAX: all */
	int32_t rank;		/* rank of the source; -1 = all */
	uint32_t step;		/* row of the step; 0 = all */
	uint32_t run;		/* run of the source; 0 = all */
};

#define EVENT_FILTER_ALL ((struct event_filter){ INT64_MIN, INT64_MAX, -1, 0, 0 })

enum track_work { WORK_NONE, WORK_HOST, WORK_DEVICE };

/* Returns the kind of work on a track. Repetitions, bookkeeping, frames and requests do not
 * count as work. */
enum track_work track_work(const struct model *m, track_id track);

static inline bool filter_has_time(const struct event_filter *f)
{
	return f->from_ns != INT64_MIN || f->to_ns != INT64_MAX;
}

/* Returns whether the filter excludes nothing. */
static inline bool filter_is_all(const struct event_filter *f)
{
	return !filter_has_time(f) && f->rank < 0 && !f->step && !f->run;
}

static inline bool filter_source(const struct event_filter *f, const struct model *m,
				 source_id source)
{
	return (f->rank < 0 || (source.v && m->source.rank[source.v] == f->rank)) &&
	       (!f->run || (source.v && m->source.run[source.v] == f->run));
}

static inline bool filter_track(const struct event_filter *f, const struct model *m, track_id track)
{
	return filter_source(f, m, m->track.source[track.v]);
}

static inline bool filter_step(const struct event_filter *f, step_id step)
{
	return !f->step || f->step == step.v;
}

/* Clips an event to the filter; false if no part lies inside. Points count at their time. */
bool filter_clip(const struct event_filter *f, int64_t *begin, int64_t *end);

/* Returns whether an event is a slice with a begin and an end, not an instant or a sample. */
static inline bool event_is_slice(const struct model *m, uint32_t event)
{
	uint8_t ph = COLUMN_GET(m->event.ph, event);

	return m->event.dur_ns[event] != TIME_UNKNOWN && (!ph || ph == 'X' || ph == 'B');
}

/* Returns the end of an event, limited to the range of times. */
static inline int64_t event_end(const struct model *m, uint32_t event)
{
	int64_t begin = m->event.ts_ns[event], dur = m->event.dur_ns[event], end;

	if (dur == TIME_UNKNOWN || dur <= 0)
		return begin;
	return __builtin_add_overflow(begin, dur, &end) ? INT64_MAX : end;
}

/* Returns the time of the earliest event or sample, the zero of relative times. TIME_UNKNOWN if
 * there is none. */
int64_t model_trace_start(const struct model *m);

#endif
