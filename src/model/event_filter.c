/*
 * event_filter.c: which tracks count as work, and where events begin and end inside a span of time. Views, sinks and
 * event_sums.c call it for single events. It does not read options (analyze/view.c makes the filter) and does not
 * loop over events, except to find where a trace starts.
 */
#include "model/event_filter.h"

enum track_work track_work(const struct model *m, track_id track)
{
	uint8_t device = m->device.kind[m->track.device[track.v].v];

	switch (m->track.kind[track.v]) {
	case TRACK_HOST:
	case TRACK_DEVICE: /* an executor, which schedules work or computes on the host */
	case TRACK_LOADER:
		return WORK_HOST;
	case TRACK_ACCELERATOR:
	case TRACK_STREAM:
	case TRACK_COPY:
		return WORK_DEVICE;
	case TRACK_COMMUNICATION:
		return device == DEVICE_UNKNOWN || device == DEVICE_CPU ? WORK_HOST : WORK_DEVICE;
	default:
		return WORK_NONE;
	}
}

bool filter_clip(const struct event_filter *f, int64_t *begin, int64_t *end)
{
	if (*begin >= f->to_ns || (*end <= f->from_ns && *begin < f->from_ns))
		return false;
	*begin = MAX(*begin, f->from_ns);
	*end = MAX(MIN(*end, f->to_ns), *begin);
	return true;
}

/* A time of zero this far before all others is a missing time, not a beginning. */
#define FAR_NS ((int64_t)1000000000000)

static void widen_start(int64_t ts, int64_t *first, int64_t *after_zero)
{
	if (*first == TIME_UNKNOWN || ts < *first)
		*first = ts;
	if (ts > 0 && ts < *after_zero)
		*after_zero = ts;
}

int64_t model_trace_start(const struct model *m)
{
	int64_t first = TIME_UNKNOWN, after_zero = INT64_MAX;

	for (uint32_t i = 1; i < m->event.count; i++)
		if (m->track.kind[m->event.track[i].v] != TRACK_SPAN)
			widen_start(m->event.ts_ns[i], &first, &after_zero);
	for (uint32_t i = 1; i < m->sample.count; i++)
		if (m->sample.ts_ns[i] != TIME_UNKNOWN)
			widen_start(m->sample.ts_ns[i], &first, &after_zero);
	for (uint32_t i = 1; first == TIME_UNKNOWN && i < m->heap.count; i++)
		if (m->heap.ts_ns[i] != TIME_UNKNOWN && m->heap.ts_ns[i] > 0)
			after_zero = MIN(after_zero, m->heap.ts_ns[i]);
	if (first == TIME_UNKNOWN && after_zero != INT64_MAX)
		return after_zero; /* a snapshot of memory has nothing else */
	return first == 0 && after_zero != INT64_MAX && after_zero > FAR_NS ? after_zero : first;
}
