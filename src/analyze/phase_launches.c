/*
 * phase_launches.c: what the links from launching calls to device work tell phases.c: which step work belongs
 * to, whether the device waited for the host, and how long work was queued.
 */
#include "analyze/phases_int.h"

struct launch {
	uint32_t call, work; /* events */
};

/* The marker of an input around t, or NULL. */
static struct phase_marker *marker_at(const struct analysis *a, const struct input_work *in,
				      int64_t t)
{
	struct phase_marker *markers = a->markers + in->marker_first;
	uint32_t low = 0, high = in->marker_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (markers[middle].begin_ns <= t)
			low = middle + 1;
		else
			high = middle;
	}
	return low && t < markers[low - 1].end_ns ? &markers[low - 1] : NULL;
}

/* Whether a link says which call launched classified device work. */
static bool is_launch(const struct analysis *a, uint32_t link, struct launch *out)
{
	const struct model *m = a->m;
	uint32_t call = m->link.src[link].v, work = m->link.dst[link].v;

	if (m->link.kind[link] != LINK_LAUNCH || !call || !work)
		return false;
	*out = (struct launch){ call, work };
	return phases_is_device(a, work) && phases_class_of(a, work) != CLASS_COUNT;
}

ow_status phases_follow_launches(struct analysis *a)
{
	const struct model *m = a->m;
	uint64_t *seen = ARENA_ARRAY(&a->scratch, uint64_t, (size_t)m->event.count / 64 + 1);
	struct launch l;

	if (!seen)
		return error_no_memory(a->err);
	for (uint32_t i = 1; i < m->link.count; i++) {
		struct phase_marker *marker;
		struct input_work *in;

		if (!is_launch(a, i, &l) || seen[l.work / 64] >> l.work % 64 & 1)
			continue;
		seen[l.work / 64] |= (uint64_t)1 << l.work % 64;
		in = &a->inputs[m->track.source[m->event.track[l.work].v].v];
		in->launched += phases_among_markers(a, in, m->event.ts_ns[l.work]);
		marker = marker_at(a, in, m->event.ts_ns[l.call]);
		if (marker)
			marker->work_end_ns = MAX(marker->work_end_ns, event_end(m, l.work));
	}
	return OW_OK;
}

ow_status phases_time_launches(struct analysis *a)
{
	const struct model *m = a->m;
	struct phases *p = a->out;

	a->launched_ns = ARENA_ARRAY(&a->scratch, int64_t *, p->lane_count);
	if (!a->launched_ns)
		return error_no_memory(a->err);
	for (uint32_t i = 0; i < p->lane_count; i++) {
		size_t count = a->lanes[(size_t)i * LANE_LISTS + CLASS_IDLE].count;

		a->launched_ns[i] = ARENA_ARRAY(&a->scratch, int64_t, count);
		if (!a->launched_ns[i])
			return error_no_memory(a->err);
		for (size_t k = 0; k < count; k++)
			a->launched_ns[i][k] = INT64_MAX;
	}
	for (uint32_t i = 1; i < m->link.count; i++) {
		const struct span_list *busy;
		int64_t start, call;
		uint32_t lane;
		struct launch l;
		size_t at;

		if (!is_launch(a, i, &l))
			continue;
		lane = a->lane_of[m->event.track[l.work].v];
		busy = &a->lanes[(size_t)lane * LANE_LISTS + CLASS_IDLE];
		start = m->event.ts_ns[l.work];
		call = m->event.ts_ns[l.call];
		at = spans_after(busy, start);
		if (at < busy->count && busy->items[at].begin == start)
			a->launched_ns[lane][at] = MIN(a->launched_ns[lane][at], call);
	}
	return OW_OK;
}

void phases_measure_gaps(const struct analysis *a, const struct phase_window *w,
			 struct phase_row *row)
{
	const struct span_list *busy = &a->lanes[(size_t)row->lane * LANE_LISTS + CLASS_IDLE];

	for (size_t i = MAX(spans_after(busy, w->start_ns), (size_t)1); i < busy->count; i++) {
		int64_t before = busy->items[i - 1].end, launched = a->launched_ns[row->lane][i];
		int64_t gap;

		if (before >= w->end_ns)
			return;
		gap = span_length(MAX(before, w->start_ns), MIN(busy->items[i].begin, w->end_ns));
		if (launched == INT64_MAX)
			continue;
		if (launched >= before)
			row->launch_gap_ns = span_add(row->launch_gap_ns, gap);
		else
			row->dependency_gap_ns = span_add(row->dependency_gap_ns, gap);
	}
}

void phases_measure_queues(struct analysis *a)
{
	const struct model *m = a->m;
	struct launch l;

	for (uint32_t i = 1; i < m->link.count; i++) {
		const struct input_work *in;
		struct phase_window *w;
		struct phase_row *row;
		uint32_t track;

		if (!is_launch(a, i, &l))
			continue;
		track = m->event.track[l.work].v;
		in = &a->inputs[m->track.source[track].v];
		w = phases_step_at(a, in, m->event.ts_ns[l.work]);
		if (!w || !w->row_count)
			continue;
		row = &a->out->rows[w->row_first + a->lane_of[track] - in->lane_first];
		row->queue_delay_ns =
			span_add(row->queue_delay_ns,
				 span_length(event_end(m, l.call), m->event.ts_ns[l.work]));
		row->queued++;
	}
}
