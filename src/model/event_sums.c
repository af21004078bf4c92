/*
 * event_sums.c: sums events into columns parallel to op_step for a part of a profile; analyze/view.c and the verdict
 * call it when a report is limited to a span of time or a rank. Which events count is decided as in op_step: for
 * traces by nest.c (own time on host threads, duration on devices), for TensorFlow's profiles by their importers
 * (tracks of the kinds TRACK_DEVICE and TRACK_ACCELERATOR). A profile that has sums but no events is refused.
 */
#include "model/event_sums.h"

/* The row of an op in a step; rows of an op are sorted by step number, nil first. */
uint32_t op_step_find(const struct model *m, uint32_t op, uint32_t step)
{
	uint32_t low = m->op.step_first[op], high = low + m->op.step_count[op];

	if (low < high && !m->op_step.step[low].v) {
		if (!step)
			return low;
		low++;
	}
	while (low < high) {
		uint32_t middle = low + (high - low) / 2, at = m->op_step.step[middle].v;

		if (at == step)
			return middle;
		if (m->step.number[at] < m->step.number[step])
			low = middle + 1;
		else
			high = middle;
	}
	return 0;
}

/* The length of a range, without overflow; 0 when negative. */
static int64_t length(int64_t begin, int64_t end)
{
	uint64_t len = (uint64_t)end - (uint64_t)begin;

	if (end <= begin)
		return 0;
	return len > INT64_MAX ? INT64_MAX : (int64_t)len;
}

/* Whether the events of a track are slices of a trace, in which host and device events belong to different ops. In
 * TensorFlow's profiles an op has an event on the host and one on the accelerator for the same run. */
static bool is_sliced(const struct model *m, track_id track)
{
	return (COLUMN_GET(m->track.flags, track.v) & TRACK_SLICES) != 0;
}

static enum event_sum sum_of(const struct model *m, track_id track)
{
	uint8_t kind = m->track.kind[track.v];

	if (is_sliced(m, track)) {
		if (kind == TRACK_HOST || kind == TRACK_LOADER)
			return SUM_CPU;
		return kind == TRACK_DEVICE || kind == TRACK_ACCELERATOR || kind == TRACK_STREAM ||
				       kind == TRACK_COPY || kind == TRACK_COMMUNICATION
			       ? SUM_ACCELERATOR
			       : SUM_NONE;
	}
	if (kind == TRACK_DEVICE)
		return SUM_CPU;
	return kind == TRACK_ACCELERATOR ? SUM_ACCELERATOR : SUM_NONE;
}

/* Self time within [from, to) of a slice that the range cuts: its part of the range less that of its children.
 * Children follow it on its track, sorted by start and deeper. */
static int64_t own_part(const struct model *m, uint32_t event, int64_t from, int64_t to)
{
	int64_t end = event_end(m, event), covered = from, own = 0;

	for (uint32_t i = event + 1; i < m->event.count; i++) {
		int64_t begin = m->event.ts_ns[i], child_end = MIN(event_end(m, i), to);

		if (m->event.track[i].v != m->event.track[event].v || begin >= MIN(end, to))
			break;
		if (m->event.depth[i] <= m->event.depth[event] || child_end <= covered)
			continue;
		own = sum_add(own, length(covered, begin));
		covered = MAX(covered, child_end);
	}
	return sum_add(own, length(covered, to));
}

static int64_t time_of(const struct model *m, uint32_t event, int64_t from, int64_t to, bool own)
{
	bool whole = from == m->event.ts_ns[event] && to == event_end(m, event);

	if (!own || !m->event.self_ns || !m->event.depth)
		return length(from, to);
	return whole ? m->event.self_ns[event] : own_part(m, event, from, to);
}

enum event_sum event_amount(const struct model *m, const struct event_filter *filter,
			    uint32_t event, int64_t *ns)
{
	track_id track = m->event.track[event];
	int64_t begin = m->event.ts_ns[event], end = event_end(m, event);
	enum event_sum sum = sum_of(m, track);

	if (!m->event.op[event].v || sum == SUM_NONE || m->event.dur_ns[event] == TIME_UNKNOWN ||
	    !filter_track(filter, m, track) || !filter_clip(filter, &begin, &end))
		return SUM_NONE;
	/* only the events of traces nest; events of TensorFlow's profiles may be in the same model */
	*ns = time_of(m, event, begin, end,
		      sum == SUM_CPU && COLUMN_GET(m->track.flags, track.v) & TRACK_SLICES);
	return sum;
}

static void add_event(const struct model *m, const struct event_filter *filter, uint32_t event,
		      struct event_sums *to)
{
	int64_t ns;
	enum event_sum sum = event_amount(m, filter, event, &ns);
	uint32_t row =
		sum == SUM_NONE ? 0 : op_step_find(m, m->event.op[event].v, m->event.step[event].v);

	if (!row)
		return;
	if (sum == SUM_CPU || is_sliced(m, m->event.track[event]))
		to->run_count[row] += event_runs(m, event);
	if (sum == SUM_CPU)
		to->cpu_ns[row] = sum_add(to->cpu_ns[row], ns);
	else
		to->accelerator_ns[row] = sum_add(to->accelerator_ns[row], ns);
}

ow_status event_sums_make(struct model *m, const struct event_filter *filter, struct arena *arena,
			  struct event_sums *out, struct ow_error *err)
{
	size_t rows = m->op_step.count;

	if (rows > 1 && m->event.count <= 1)
		return error_set(err, OW_E_UNSUPPORTED,
				 "this profile has only sums per step, so a time range or a rank "
				 "cannot be chosen");
	OW_TRY(model_require_nesting(m, err));
	out->run_count = ARENA_ARRAY(arena, int64_t, rows);
	out->accelerator_ns = ARENA_ARRAY(arena, int64_t, rows);
	out->cpu_ns = ARENA_ARRAY(arena, int64_t, rows);
	if (!out->run_count || !out->accelerator_ns || !out->cpu_ns)
		return error_no_memory(err);
	for (uint32_t i = 1; i < m->event.count; i++)
		add_event(m, filter, i, out);
	return OW_OK;
}
