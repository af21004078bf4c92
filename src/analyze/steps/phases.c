/*
 * phases.c: see phases.h. Four passes: which tracks of which inputs have classified work, their spans
 * per class, the launches (phase_launches.c), and the partition of each step. Memory goes with the spans that are left
 * when overlapping ones are joined; time with the events, and their logarithm where tracks interleave.
 */
#include "analyze/phases_int.h"

/* ---- which events ---- */

static const uint8_t class_of_phase[] = {
	[PHASE_UNKNOWN] = CLASS_COUNT,
	[PHASE_INPUT] = CLASS_INPUT,
	[PHASE_HOST] = CLASS_HOST,
	[PHASE_LAUNCH] = CLASS_LAUNCH,
	[PHASE_HOST_TO_DEVICE] = CLASS_HOST_TO_DEVICE,
	[PHASE_COMPUTE] = CLASS_COMPUTE,
	[PHASE_DEVICE_TO_HOST] = CLASS_DEVICE_TO_HOST,
	[PHASE_COMMUNICATION] = CLASS_COMMUNICATION,
	[PHASE_SYNCHRONISATION] = CLASS_SYNCHRONISATION,
	[PHASE_IDLE] = CLASS_COUNT,
};

/* Of a loader only the waits count: its work runs ahead. */
enum phase_class phases_class_of(const struct analysis *a, uint32_t event)
{
	const struct model *m = a->m;
	uint8_t phase = m->event.phase[event];
	uint32_t track = m->event.track[event].v;
	enum phase_class class = CLASS_COUNT;

	if (phase < ARRAY_COUNT(class_of_phase))
		class = class_of_phase[phase];
	if (class == CLASS_COUNT || a->work[track] == WORK_NONE || !event_is_slice(m, event))
		return CLASS_COUNT;
	if (m->track.kind[track] == TRACK_LOADER && class != CLASS_INPUT)
		return CLASS_COUNT;
	/* where a device computes, the host's operators feed it */
	if (class == CLASS_COMPUTE && a->work[track] == WORK_HOST &&
	    a->inputs[m->track.source[track].v].has_device)
		return CLASS_HOST;
	return class;
}

static ow_status find_tracks(struct analysis *a)
{
	const struct model *m = a->m;
	size_t tracks = m->track.count;

	a->work = ARENA_ARRAY(&a->scratch, uint8_t, tracks);
	a->has_work = ARENA_ARRAY(&a->scratch, uint8_t, tracks);
	a->lane_of = ARENA_ARRAY(&a->scratch, uint32_t, tracks);
	a->input_count = m->source.count ? m->source.count : 1;
	a->inputs = ARENA_ARRAY(&a->scratch, struct input_work, a->input_count);
	if (!a->work || !a->has_work || !a->lane_of || !a->inputs)
		return error_no_memory(a->err);
	for (uint32_t i = 1; i < tracks; i++)
		if (filter_track(a->filter, m, (track_id){ i }))
			a->work[i] = (uint8_t)track_work(m, (track_id){ i });
	for (uint32_t i = 0; i < a->input_count; i++)
		a->inputs[i] = (struct input_work){ .first_ns = INT64_MAX, .last_ns = INT64_MIN };
	return OW_OK;
}

/* What each input has, and from when to when. */
static void survey(struct analysis *a)
{
	const struct model *m = a->m;

	for (uint32_t i = 1; i < m->event.count; i++) {
		uint32_t track = m->event.track[i].v;
		struct input_work *in = &a->inputs[m->track.source[track].v];

		if (a->work[track] == WORK_NONE || !event_is_slice(m, i))
			continue;
		if (m->event.ts_ns[i] < in->first_ns) {
			in->first_ns = m->event.ts_ns[i];
			in->step = m->event.step[i];
		}
		in->last_ns = MAX(in->last_ns, event_end(m, i));
		if (phases_class_of(a, i) == CLASS_COUNT)
			continue;
		in->classified = true;
		if (a->work[track] != WORK_DEVICE)
			continue;
		in->has_device = true;
		a->has_work[track] = 1;
	}
}

/* ---- lanes ---- */

static uint64_t lane_key(source_id source, device_id device)
{
	return (uint64_t)source.v << 32 | device.v;
}

static int by_key(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint32_t lane_find(const struct analysis *a, source_id source, device_id device)
{
	const struct phases *p = a->out;
	uint64_t key = lane_key(source, device);
	uint32_t low = 0, high = p->lane_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (lane_key(p->lanes[middle].source, p->lanes[middle].device) < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void index_lanes(struct analysis *a)
{
	const struct model *m = a->m;

	for (uint32_t i = 0; i < a->out->lane_count; i++) {
		struct input_work *in = &a->inputs[a->out->lanes[i].source.v];

		if (!in->lane_count++)
			in->lane_first = i;
	}
	for (uint32_t i = 1; i < m->track.count; i++)
		if (a->has_work[i])
			a->lane_of[i] = lane_find(a, m->track.source[i], m->track.device[i]);
}

/* One per input and device, in that order; one without device for inputs that have none. */
static ow_status make_lanes(struct analysis *a)
{
	const struct model *m = a->m;
	struct phases *p = a->out;
	uint64_t *keys =
		ARENA_ARRAY(&a->scratch, uint64_t, (size_t)m->track.count + a->input_count);
	uint32_t count = 0;

	if (!keys)
		return error_no_memory(a->err);
	for (uint32_t i = 1; i < m->track.count; i++)
		if (a->has_work[i])
			keys[count++] = lane_key(m->track.source[i], m->track.device[i]);
	for (uint32_t i = 0; i < a->input_count; i++)
		if (a->inputs[i].classified && !a->inputs[i].has_device)
			keys[count++] = lane_key((source_id){ i }, (device_id){ 0 });
	qsort(keys, count, sizeof(*keys), by_key);
	p->lanes = ARENA_ARRAY(&p->arena, struct phase_lane, count);
	if (!p->lanes)
		return error_no_memory(a->err);
	for (uint32_t i = 0; i < count; i++)
		if (!i || keys[i] != keys[i - 1])
			p->lanes[p->lane_count++] = (struct phase_lane){
				.source = { (uint32_t)(keys[i] >> 32) },
				.device = { (uint32_t)keys[i] },
				.has_device = a->inputs[keys[i] >> 32].has_device,
			};
	index_lanes(a);
	return OW_OK;
}

/* ---- markers ---- */

static bool usable_window(const struct analysis *a, uint32_t row)
{
	const struct model *m = a->m;

	return a->inputs[m->window.source[row].v].classified &&
	       m->window.start_ns[row] != TIME_UNKNOWN && m->window.end_ns[row] != TIME_UNKNOWN &&
	       m->window.start_ns[row] <= m->window.end_ns[row];
}

static int by_begin(const void *a, const void *b)
{
	const struct phase_marker *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return (x->step.v > y->step.v) - (x->step.v < y->step.v);
}

static void place_markers(struct analysis *a)
{
	const struct model *m = a->m;
	uint32_t first = 0;

	for (uint32_t i = 0; i < a->input_count; i++) {
		struct input_work *in = &a->inputs[i];

		in->marker_first = first;
		first += in->marker_count ? in->marker_count : in->classified;
		if (in->classified && !in->marker_count) { /* no marker: all of it is one step */
			step_id step = m->source.count ? m->source.step[i] : (step_id){ 0 };

			a->markers[in->marker_first] =
				(struct phase_marker){ in->first_ns, in->last_ns, TIME_UNKNOWN,
						       step.v ? step : in->step };
		}
		in->marker_count = 0;
	}
	for (uint32_t i = 1; i < m->window.count; i++) {
		struct input_work *in = &a->inputs[m->window.source[i].v];

		if (usable_window(a, i))
			a->markers[in->marker_first + in->marker_count++] =
				(struct phase_marker){ m->window.start_ns[i], m->window.end_ns[i],
						       TIME_UNKNOWN, m->window.step[i] };
	}
}

static ow_status make_markers(struct analysis *a)
{
	const struct model *m = a->m;

	a->markers = ARENA_ARRAY(&a->scratch, struct phase_marker,
				 (size_t)m->window.count + a->input_count);
	if (!a->markers)
		return error_no_memory(a->err);
	for (uint32_t i = 1; i < m->window.count; i++)
		if (usable_window(a, i))
			a->inputs[m->window.source[i].v].marker_count++;
	place_markers(a);
	for (uint32_t i = 0; i < a->input_count; i++) {
		struct input_work *in = &a->inputs[i];

		if (in->marker_count)
			qsort(a->markers + in->marker_first, in->marker_count, sizeof(*a->markers),
			      by_begin);
	}
	return OW_OK;
}

bool phases_among_markers(const struct analysis *a, const struct input_work *in, int64_t t)
{
	const struct phase_marker *markers = a->markers + in->marker_first;

	return in->marker_count && t >= markers[0].begin_ns &&
	       t < markers[in->marker_count - 1].end_ns;
}

/* ---- spans ---- */

static ow_status collect(struct analysis *a)
{
	const struct model *m = a->m;
	bool ok = true;

	for (uint32_t i = 1; ok && i < m->event.count; i++) {
		enum phase_class class = phases_class_of(a, i);
		uint32_t track = m->event.track[i].v, source = m->track.source[track].v;
		int64_t begin = m->event.ts_ns[i], end = event_end(m, i);
		struct span_list *lists = a->host + (size_t)source * HOST_LISTS;

		if (class == CLASS_COUNT)
			continue;
		if (a->work[track] == WORK_DEVICE) {
			lists = a->lanes + (size_t)a->lane_of[track] * LANE_LISTS;
			ok = spans_add(&lists[CLASS_IDLE], a->mem, begin, end);
			a->inputs[source].slices +=
				phases_among_markers(a, &a->inputs[source], begin);
		}
		ok = ok && spans_add(&lists[class], a->mem, begin, end);
	}
	return ok ? OW_OK : error_no_memory(a->err);
}

static ow_status finish_lists(struct analysis *a)
{
	bool ok = true;

	for (size_t i = 0; ok && i < a->host_lists; i++)
		ok = spans_finish(&a->host[i], a->mem);
	for (size_t i = 0; ok && i < a->lane_lists; i++)
		ok = spans_finish(&a->lanes[i], a->mem);
	for (uint32_t i = 0; ok && i < a->out->lane_count; i++) {
		const struct span_list *host =
			a->host + (size_t)a->out->lanes[i].source.v * HOST_LISTS;
		struct span_list *lane = a->lanes + (size_t)i * LANE_LISTS;

		for (unsigned c = 0; ok && c < HOST_LISTS; c++)
			if (host[c].count && lane[c].count)
				ok = spans_add_all(&lane[c], a->mem, &host[c]) &&
				     spans_finish(&lane[c], a->mem);
	}
	return ok ? OW_OK : error_no_memory(a->err);
}

static ow_status make_lists(struct analysis *a)
{
	a->host_lists = (size_t)a->input_count * HOST_LISTS;
	a->lane_lists = (size_t)a->out->lane_count * LANE_LISTS;
	a->host = ARENA_ARRAY(&a->scratch, struct span_list, a->host_lists);
	a->lanes = ARENA_ARRAY(&a->scratch, struct span_list, a->lane_lists);
	if (!a->host || !a->lanes) {
		a->host_lists = a->host ? a->host_lists : 0;
		a->lane_lists = 0;
		return error_no_memory(a->err);
	}
	OW_TRY(collect(a));
	return finish_lists(a);
}

/* ---- windows ---- */

struct phase_window *phases_step_at(const struct analysis *a, const struct input_work *in,
				    int64_t t)
{
	struct phase_window *windows = a->out->windows + in->window_first;
	uint32_t low = 0, high = MAX(in->marker_count, 1u);

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (windows[middle].start_ns <= t)
			low = middle + 1;
		else
			high = middle;
	}
	return low && t < windows[low - 1].end_ns ? &windows[low - 1] : NULL;
}

static void count_slices(struct analysis *a)
{
	const struct model *m = a->m;

	for (uint32_t i = 1; i < m->event.count; i++) {
		struct phase_window *w;

		if (!phases_is_device(a, i) || phases_class_of(a, i) == CLASS_COUNT)
			continue;
		w = phases_step_at(a, &a->inputs[m->track.source[m->event.track[i].v].v],
				   m->event.ts_ns[i]);
		if (w)
			w->device_slices++;
	}
}

static ow_status make_windows(struct analysis *a)
{
	struct phases *p = a->out;
	uint32_t count = 0;

	for (uint32_t i = 0; i < a->input_count; i++)
		if (a->inputs[i].classified)
			count += MAX(a->inputs[i].marker_count, 1u);
	p->windows = ARENA_ARRAY(&p->arena, struct phase_window, count);
	if (!p->windows)
		return error_no_memory(a->err);
	for (uint32_t i = 0; i < a->input_count; i++) {
		struct input_work *in = &a->inputs[i];
		uint32_t markers = MAX(in->marker_count, 1u);
		bool extended = in->marker_count && in->slices && in->launched * 2 >= in->slices;

		if (!in->classified)
			continue;
		in->window_first = p->window_count;
		phase_windows_make(a->markers + in->marker_first, markers, extended,
				   p->windows + p->window_count);
		for (uint32_t k = 0; k < markers; k++)
			p->windows[p->window_count++].source = (source_id){ i };
		p->extended |= extended;
	}
	count_slices(a);
	for (uint32_t i = 0; i < a->input_count; i++)
		if (a->inputs[i].classified)
			phase_windows_choose(p->windows + a->inputs[i].window_first,
					     MAX(a->inputs[i].marker_count, 1u));
	return OW_OK;
}

/* Of what the filter lets pass; the others lose their rows. */
static void clip_windows(struct analysis *a)
{
	struct phases *p = a->out;

	for (uint32_t i = 0; i < p->window_count; i++) {
		struct phase_window *w = &p->windows[i];
		const struct input_work *in = &a->inputs[w->source.v];

		if (!filter_step(a->filter, w->step) ||
		    !filter_clip(a->filter, &w->start_ns, &w->end_ns))
			continue;
		w->row_first = p->row_count;
		w->row_count = in->lane_count;
		p->row_count += in->lane_count;
	}
}

/* ---- rows ---- */

static void measure_row(struct analysis *a, const struct phase_window *w, struct phase_row *row)
{
	const struct span_list *host = a->host + (size_t)w->source.v * HOST_LISTS;
	const struct span_list *lane = a->lanes + (size_t)row->lane * LANE_LISTS;
	const struct span_list *lists[CLASS_COUNT];

	for (unsigned c = 0; c < CLASS_COUNT; c++)
		lists[c] = lane[c].count || c == CLASS_IDLE ? &lane[c] : &host[c];
	phases_measure(lists, w->start_ns, w->end_ns, &row->sums);
	phases_measure_gaps(a, w, row);
}

static ow_status make_rows(struct analysis *a)
{
	struct phases *p = a->out;

	clip_windows(a);
	OW_TRY(phases_time_launches(a));
	p->rows = ARENA_ARRAY(&p->arena, struct phase_row, p->row_count);
	if (!p->rows)
		return error_no_memory(a->err);
	for (uint32_t i = 0; i < p->window_count; i++) {
		const struct phase_window *w = &p->windows[i];

		for (uint32_t k = 0; k < w->row_count; k++) {
			struct phase_row *row = &p->rows[w->row_first + k];

			row->window = i;
			row->lane = a->inputs[w->source.v].lane_first + k;
			measure_row(a, w, row);
		}
	}
	phases_measure_queues(a);
	return OW_OK;
}

/* ---- all of it ---- */

static void drop_empty_windows(struct phases *p)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < p->window_count; i++) {
		struct phase_window *w = &p->windows[i];

		if (!w->row_count)
			continue;
		for (uint32_t k = 0; k < w->row_count; k++)
			p->rows[w->row_first + k].window = kept;
		p->windows[kept++] = *w;
	}
	p->window_count = kept;
}

static ow_status analyse(struct analysis *a)
{
	OW_TRY(find_tracks(a));
	survey(a);
	OW_TRY(make_lanes(a));
	OW_TRY(make_markers(a));
	OW_TRY(make_lists(a));
	OW_TRY(phases_follow_launches(a));
	OW_TRY(make_windows(a));
	OW_TRY(make_rows(a));
	drop_empty_windows(a->out);
	return OW_OK;
}

ow_status phases_analyse(const struct model *m, const struct event_filter *filter,
			 struct phases *out, struct error *err)
{
	struct analysis a = { .m = m, .filter = filter, .out = out, .mem = m->mem, .err = err };
	ow_status status;

	*out = (struct phases){ 0 };
	arena_init(&out->arena, m->mem);
	if (!m->event.phase)
		return OW_OK;
	arena_init(&a.scratch, m->mem);
	status = analyse(&a);
	for (size_t i = 0; i < a.host_lists; i++)
		spans_release(&a.host[i], a.mem);
	for (size_t i = 0; i < a.lane_lists; i++)
		spans_release(&a.lanes[i], a.mem);
	arena_release(&a.scratch);
	return status;
}

void phases_release(struct phases *p)
{
	arena_release(&p->arena);
}
