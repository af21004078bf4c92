/*
 * phases_int.h: what phases.c and phase_launches.c share while steps are taken apart. Nobody else reads it.
 */
#ifndef ANALYZE_PHASES_INT_H
#define ANALYZE_PHASES_INT_H

#include "analyze/phases.h"

/* Classes of the host are per input: [source][class]; those of a device per lane, and its last list is
 * all of its work. */
#define HOST_LISTS CLASS_IDLE
#define LANE_LISTS CLASS_COUNT

struct input_work {
	bool classified, has_device;
	int64_t first_ns, last_ns; /* of all slices; first > last = none */
	step_id step;		   /* of its first slice */
	uint32_t marker_first, marker_count;
	uint64_t slices, launched; /* of devices, between its first and last marker */
	uint32_t lane_first, lane_count;
	uint32_t window_first;
};

struct analysis {
	const struct model *m;
	const struct event_filter *filter;
	struct phases *out;
	struct mem *mem;
	struct error *err;
	struct arena scratch;
	uint8_t *work;		   /* per track: enum track_work */
	uint8_t *has_work;	   /* per track of a device: classified slices */
	uint32_t *lane_of;	   /* per such track */
	struct input_work *inputs; /* per source */
	uint32_t input_count;
	struct phase_marker *markers;
	struct span_list *host, *lanes;
	size_t host_lists, lane_lists;
	int64_t **launched_ns; /* per lane: when what starts its n-th busy span was launched */
};

/* CLASS_COUNT when the event has none. */
enum phase_class phases_class_of(const struct analysis *a, uint32_t event);
/* The step of an input around t, or NULL. */
struct phase_window *phases_step_at(const struct analysis *a, const struct input_work *in,
				    int64_t t);
/* Between the first marker's begin and the last one's end. */
bool phases_among_markers(const struct analysis *a, const struct input_work *in, int64_t t);

static inline bool phases_is_device(const struct analysis *a, uint32_t event)
{
	return a->work[a->m->event.track[event].v] == WORK_DEVICE;
}

/* ---- phase_launches.c ---- */

/* Markers get the end of the work that was launched in them; inputs count what was. Work that several links
 * lead to counts once. */
ow_status phases_follow_launches(struct analysis *a);
/* Sets launched_ns. */
ow_status phases_time_launches(struct analysis *a);
/* Device idle before each busy span of the window: did the host launch too late? */
void phases_measure_gaps(const struct analysis *a, const struct phase_window *w,
			 struct phase_row *row);
/* How long work waited between its launch and its start. */
void phases_measure_queues(struct analysis *a);

#endif
