/*
 * phases.c: divides the time of steps by what it went to; phases.h explains the result and who uses it. Four passes over a
 * model: which tracks have classified
 * work, the spans of each class, the launches, and the partition of each step. Memory grows with the number of joined spans, time
 * with the number of events (times its logarithm where tracks interleave). Sums over steps are in view_phases.c.
 */
#include "analyze/steps/phases.h"

#include "analyze/steps/processors.h"
#include "base/parallel.h"
#include "model/model.h"

/* Classes of the host have one list per input ([source][class]), classes of a device one per
 * lane; the last list of a lane is all of its work. */
#define HOST_LISTS CLASS_IDLE

#define LANE_LISTS CLASS_COUNT

struct input_work {
	bool classified, has_device;
	int64_t first_ns, last_ns; /* span of all slices; first > last = none */
	step_id step;		   /* step of the input's first slice */
	uint32_t marker_first, marker_count;
	/* number of device slices between the first and the last marker, and of those with a
	 * launch */
	uint64_t slices, launched;
	int64_t launched_from_ns; /* begin of the first device slice whose launch is in the file */
	/* end of device work that was launched before the recording, or TIME_UNKNOWN */
	int64_t backlog_ns;
	uint32_t lane_first, lane_count;
	uint32_t window_first;
};

struct analysis {
	const struct model *m;
	const struct event_filter *filter;
	struct phases *out;
	struct mem *mem;
	struct ow_error *err;
	struct arena scratch;
	bool windows_only;	   /* rows are not measured */
	uint8_t *work;		   /* enum track_work of each track */
	uint8_t *class;		   /* enum phase_class of each event */
	uint8_t *has_work;	   /* for each device track: 1 if it has classified slices */
	uint8_t *has_calls;	   /* for each host track: 1 if it has classified slices */
	uint32_t *lane_of;	   /* lane of each such track */
	struct input_work *inputs; /* work of each source */
	uint32_t input_count;
	struct phase_marker *markers;
	struct span_list *host, *lanes;
	size_t host_lists, lane_lists;
	struct processor_use *processors; /* processor use of each source */
	/* for each lane: launch time of the work that starts its n-th busy span */
	int64_t **launched_ns;
};

static inline bool is_device(const struct analysis *a, uint32_t event)
{
	return a->work[a->m->event.track[event].v] == WORK_DEVICE;
}

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
	[PHASE_ALLOCATION] = CLASS_ALLOCATION,
	[PHASE_INITIALISATION] = CLASS_INITIALISATION,
};

/* Returns the class of an event on a track. Of a data loader only waits count, because its work
 * runs ahead. */
static enum phase_class class_on(const struct model *m, uint32_t event, enum track_work work,
				 bool has_device)
{
	uint8_t phase = m->event.phase[event];
	enum phase_class class = CLASS_COUNT;

	if (phase < ARRAY_COUNT(class_of_phase))
		class = class_of_phase[phase];
	if (class == CLASS_COUNT || work == WORK_NONE || !event_is_slice(m, event))
		return CLASS_COUNT;
	if (m->track.kind[m->event.track[event].v] == TRACK_LOADER && class != CLASS_INPUT)
		return CLASS_COUNT;
	/* if a device computes, operators on the host only feed it */
	if (class == CLASS_COMPUTE && work == WORK_HOST && has_device)
		return CLASS_HOST;
	return class;
}

enum phase_class phase_class_of(const struct model *m, uint32_t event, bool has_device)
{
	if (!m->event.phase)
		return CLASS_COUNT;
	return class_on(m, event, track_work(m, m->event.track[event]), has_device);
}

static enum phase_class class_of(const struct analysis *a, uint32_t event)
{
	return (enum phase_class)a->class[event];
}

static ow_status find_tracks(struct analysis *a)
{
	const struct model *m = a->m;
	size_t tracks = m->track.count;

	a->work = ARENA_ARRAY(&a->scratch, uint8_t, tracks);
	a->has_work = ARENA_ARRAY(&a->scratch, uint8_t, tracks);
	a->has_calls = ARENA_ARRAY(&a->scratch, uint8_t, tracks);
	a->lane_of = ARENA_ARRAY(&a->scratch, uint32_t, tracks);
	a->input_count = m->source.count ? m->source.count : 1;
	a->inputs = ARENA_ARRAY(&a->scratch, struct input_work, a->input_count);
	a->class = ARENA_ARRAY(&a->scratch, uint8_t, m->event.count);
	if (!a->work || !a->has_work || !a->has_calls || !a->lane_of || !a->inputs || !a->class)
		return error_no_memory(a->err);
	for (uint32_t i = 1; i < tracks; i++)
		if (filter_track(a->filter, m, (track_id){ i }))
			a->work[i] = (uint8_t)track_work(m, (track_id){ i });
	for (uint32_t i = 0; i < a->input_count; i++)
		a->inputs[i] = (struct input_work){ .first_ns = INT64_MAX,
						    .last_ns = INT64_MIN,
						    .launched_from_ns = INT64_MAX,
						    .backlog_ns = TIME_UNKNOWN };
	return OW_OK;
}

/* Determines what each input contains, and its begin and end. */
static void survey(struct analysis *a)
{
	const struct model *m = a->m;

	memset(a->class, CLASS_COUNT, m->event.count);

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
		a->class[i] = (uint8_t)class_on(m, i, (enum track_work)a->work[track], false);
		if (a->class[i] == CLASS_COUNT)
			continue;
		in->classified = true;
		a->has_calls[track] = a->work[track] == WORK_HOST;
		if (a->work[track] != WORK_DEVICE)
			continue;
		in->has_device = true;
		a->has_work[track] = 1;
	}
	/* which inputs have a device is known only now */
	for (uint32_t i = 1; i < m->event.count; i++) {
		uint32_t track = m->event.track[i].v;

		if (a->class[i] == CLASS_COMPUTE && a->work[track] == WORK_HOST &&
		    a->inputs[m->track.source[track].v].has_device)
			a->class[i] = CLASS_HOST;
	}
}

/* Extends the span of a recording with calls to the time in which its thread was observed, because a
 * program may open files once and then compute. */
static void include_processors(struct analysis *a)
{
	for (uint32_t i = 0; i < a->input_count; i++) {
		const struct processor_use *use = &a->processors[i];
		struct input_work *in = &a->inputs[i];

		if (!use->count || in->first_ns > in->last_ns)
			continue;
		a->out->processors = true;
		in->first_ns = MIN(in->first_ns, use->items[0].end);
		in->last_ns = MAX(in->last_ns, use->items[use->count - 1].end);
	}
}

/* Stores the recorded span of each input, within the filter, for readers of the result. */
static ow_status keep_spans(struct analysis *a)
{
	struct phases *p = a->out;

	p->inputs = ARENA_ARRAY(&p->arena, struct phase_input, a->input_count);
	if (!p->inputs)
		return error_no_memory(a->err);
	p->input_count = a->input_count;
	for (uint32_t i = 0; i < a->input_count; i++) {
		struct phase_input *to = &p->inputs[i];

		*to = (struct phase_input){ a->inputs[i].first_ns, a->inputs[i].last_ns };
		if (to->first_ns <= to->last_ns &&
		    !filter_clip(a->filter, &to->first_ns, &to->last_ns))
			*to = (struct phase_input){ INT64_MAX, INT64_MIN };
	}
	return OW_OK;
}

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

/* Makes one lane per input and device, in that order, and one without device for inputs without
 * device work. */
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

/* Returns whether the source names this step; otherwise it is the whole recording. */
static bool is_known(const struct model *m, step_id step)
{
	return step.v && !COLUMN_GET(m->step.whole, step.v);
}

static void place_markers(struct analysis *a)
{
	const struct model *m = a->m;
	uint32_t first = 0;

	for (uint32_t i = 0; i < a->input_count; i++) {
		struct input_work *in = &a->inputs[i];

		in->marker_first = first;
		first += in->marker_count ? in->marker_count : in->classified;
		/* without markers the whole input is one step */
		if (in->classified && !in->marker_count) {
			step_id step = m->source.count ? m->source.step[i] : (step_id){ 0 };

			a->markers[in->marker_first] =
				(struct phase_marker){ in->first_ns, in->last_ns, TIME_UNKNOWN,
						       step.v ? step : in->step,
						       is_known(m, step.v ? step : in->step) };
		}
		in->marker_count = 0;
	}
	for (uint32_t i = 1; i < m->window.count; i++) {
		struct input_work *in = &a->inputs[m->window.source[i].v];

		if (usable_window(a, i))
			a->markers[in->marker_first + in->marker_count++] =
				(struct phase_marker){ m->window.start_ns[i], m->window.end_ns[i],
						       TIME_UNKNOWN, m->window.step[i], true };
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

/* Returns whether a time lies between the first marker's begin and the last marker's end. */
static bool is_among_markers(const struct analysis *a, const struct input_work *in, int64_t t)
{
	const struct phase_marker *markers = a->markers + in->marker_first;

	return in->marker_count && t >= markers[0].begin_ns &&
	       t < markers[in->marker_count - 1].end_ns;
}

/* Returns the step of an input that contains t, or NULL. */
static struct phase_window *step_at(const struct analysis *a, const struct input_work *in,
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

struct launch {
	uint32_t call, work; /* the two events of a launch */
};

/* Returns the marker of an input that contains t, or NULL. */
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

/* Returns whether a link joins a call to classified device work that it launched. */
static bool is_launch(const struct analysis *a, uint32_t link, struct launch *out)
{
	const struct model *m = a->m;
	uint32_t call = m->link.src[link].v, work = m->link.dst[link].v;

	if (m->link.kind[link] != LINK_LAUNCH || !call || !work)
		return false;
	*out = (struct launch){ call, work };
	return is_device(a, work) && class_of(a, work) != CLASS_COUNT;
}

/* Sets the end of each marker's device work, and counts launched work per input. Work with several links
 * counts once. */
static ow_status follow_launches(struct analysis *a)
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
		in->launched_from_ns = MIN(in->launched_from_ns, m->event.ts_ns[l.work]);
		in->launched += is_among_markers(a, in, m->event.ts_ns[l.work]);
		marker = marker_at(a, in, m->event.ts_ns[l.call]);
		if (marker)
			marker->work_end_ns = MAX(marker->work_end_ns, event_end(m, l.work));
	}
	return OW_OK;
}

/* Fills launched_ns. */
static ow_status time_launches(struct analysis *a)
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

/* Measures idle time of the device before each busy span of the window, and whether the host
 * launched too late. */
static void measure_gaps(const struct analysis *a, const struct phase_window *w,
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

/* Measures how long work waited between its launch and its start. */
static void measure_queues(struct analysis *a)
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
		w = step_at(a, in, m->event.ts_ns[l.work]);
		if (!w || !w->row_count)
			continue;
		row = &a->out->rows[w->row_first + a->lane_of[track] - in->lane_first];
		row->queue_delay_ns =
			span_add(row->queue_delay_ns,
				 span_length(event_end(m, l.call), m->event.ts_ns[l.work]));
		row->queued++;
	}
}

/* Counts a device slice. Work that was launched before the recording belongs to steps that are
 * not in it. */
static void count_slice(const struct analysis *a, struct input_work *in, int64_t begin, int64_t end)
{
	if (begin < in->launched_from_ns)
		in->backlog_ns = MAX(in->backlog_ns, end);
	else
		in->slices += is_among_markers(a, in, begin);
}

/* Returns whether a track has Python frames of a thread that runs operators or marks steps. */
static bool shows_python(const struct analysis *a, uint32_t track)
{
	const struct track_table *t = &a->m->track;

	if (t->kind[track] != TRACK_FRAMES || !filter_track(a->filter, a->m, (track_id){ track }))
		return false;
	for (uint32_t i = 1; i < t->count; i++)
		if (a->has_calls[i] && t->source[i].v == t->source[track].v &&
		    t->pid[i] == t->pid[track] && t->tid[i] == t->tid[track])
			return true;
	return false;
}

/* Detects frames in which Python itself waits. */
static bool is_waiting_frame(struct str name)
{
	static const char *const parts[] = { " sleep>",	       "method acquire of",
					     "method poll of", "method select of",
					     "method wait of", "function select>",
					     "method recv of", "time.sleep" };

	if (!str_has(name, STR("built-in")) && !str_has(name, STR("time.sleep")))
		return false;
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
		if (str_has(name, str_from(parts[i])))
			return true;
	return false;
}

enum phase_class phase_class_of_frame(const struct model *m, uint32_t event)
{
	return is_waiting_frame(model_str(m, COLUMN_GET(m->event.name, event)))
		       ? CLASS_SYNCHRONISATION
		       : CLASS_HOST;
}

/* Where frames are recorded, what runs between operators is Python: code of the host, or a wait. Only outer frames are added: the inner
 * ones lie in them. Events of a track follow each other, the longest first. */
static bool collect_python(struct analysis *a, uint32_t track, uint32_t *event)
{
	const struct model *m = a->m;
	struct span_list *lists = a->host + (size_t)m->track.source[track].v * HOST_LISTS;
	int64_t covered = INT64_MIN;
	bool ok = true;
	uint32_t i;

	for (i = *event; ok && i < m->event.count && m->event.track[i].v == track; i++) {
		int64_t begin = m->event.ts_ns[i], end = event_end(m, i);

		if (!event_is_slice(m, i))
			continue;
		if (end > covered)
			ok = spans_add(&lists[CLASS_HOST], a->mem, MAX(begin, covered), end);
		covered = MAX(covered, end);
		if (phase_class_of_frame(m, i) == CLASS_SYNCHRONISATION)
			ok = ok && spans_add(&lists[CLASS_SYNCHRONISATION], a->mem, begin, end);
	}
	*event = i;
	return ok;
}

static ow_status add_python(struct analysis *a)
{
	const struct model *m = a->m;

	for (uint32_t i = 1; i < m->event.count;) {
		uint32_t track = m->event.track[i].v;

		if (m->track.kind[track] != TRACK_FRAMES || !shows_python(a, track)) {
			for (i++; i < m->event.count && m->event.track[i].v == track;)
				i++;
			continue;
		}
		if (!collect_python(a, track, &i))
			return error_no_memory(a->err);
	}
	return OW_OK;
}

/* Which steps there are follows from markers and launches; the spans of classes say besides whether the first of a few steps is cold. */
static bool needs_spans(const struct analysis *a)
{
	if (!a->windows_only)
		return true;
	for (uint32_t i = 0; i < a->input_count; i++)
		if (a->inputs[i].classified && a->inputs[i].marker_count > 2 &&
		    a->inputs[i].marker_count <= STEADY_FEW)
			return true;
	return false;
}

static void count_device_slices(struct analysis *a)
{
	const struct model *m = a->m;

	for (uint32_t i = 1; i < m->event.count; i++)
		if (is_device(a, i) && class_of(a, i) != CLASS_COUNT)
			count_slice(a, &a->inputs[m->track.source[m->event.track[i].v].v],
				    m->event.ts_ns[i], event_end(m, i));
}

static ow_status collect(struct analysis *a)
{
	const struct model *m = a->m;
	bool ok = true;

	for (uint32_t i = 1; ok && i < m->event.count; i++) {
		enum phase_class class = class_of(a, i);
		uint32_t track = m->event.track[i].v, source = m->track.source[track].v;
		int64_t begin = m->event.ts_ns[i], end = event_end(m, i);
		struct span_list *lists = a->host + (size_t)source * HOST_LISTS;

		if (class == CLASS_COUNT)
			continue;
		if (a->work[track] == WORK_DEVICE) {
			lists = a->lanes + (size_t)a->lane_of[track] * LANE_LISTS;
			ok = spans_add(&lists[CLASS_IDLE], a->mem, begin, end);
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
	count_device_slices(a);
	if (!needs_spans(a))
		return OW_OK;
	OW_TRY(collect(a));
	OW_TRY(add_python(a));
	return finish_lists(a);
}

static void count_slices(struct analysis *a)
{
	const struct model *m = a->m;

	for (uint32_t i = 1; i < m->event.count; i++) {
		struct phase_window *w;

		if (!is_device(a, i) || class_of(a, i) == CLASS_COUNT)
			continue;
		w = step_at(a, &a->inputs[m->track.source[m->event.track[i].v].v],
			    m->event.ts_ns[i]);
		if (w)
			w->device_slices++;
	}
}

/* Measures which class each moment of a window belongs to, on one lane. */
static void measure_window(struct analysis *a, const struct phase_window *w, uint32_t lane_row,
			   struct phase_sums *out)
{
	const struct span_list *host = a->host + (size_t)w->source.v * HOST_LISTS;
	const struct span_list *lane = a->lanes + (size_t)lane_row * LANE_LISTS;
	const struct span_list *lists[CLASS_COUNT];

	for (unsigned c = 0; c < CLASS_COUNT; c++)
		lists[c] = lane[c].count || c == CLASS_IDLE ? &lane[c] : &host[c];
	phases_measure(lists, w->start_ns, w->end_ns, out);
}

/* Finds a cold first step among few steps; the first of many is left out anyway. */
static void find_cold_step(struct analysis *a, struct phase_window *const *windows, uint32_t count)
{
	int64_t shares[STEADY_FEW * CLASS_COUNT];
	struct phase_sums sums;

	if (count <= 2 || count > STEADY_FEW)
		return;
	for (uint32_t i = 0; i < count; i++) {
		measure_window(a, windows[i], a->inputs[windows[i]->source.v].lane_first, &sums);
		memcpy(shares + (size_t)i * CLASS_COUNT, sums.share, sizeof(sums.share));
	}
	if (steady_first_is_cold(windows, shares, count))
		windows[0]->use = STEP_WARM_UP;
}

static ow_status choose_steps(struct analysis *a)
{
	struct phases *p = a->out;
	struct phase_window **list =
		ARENA_ARRAY(&a->scratch, struct phase_window *, (size_t)p->window_count + 1);

	if (!list)
		return error_no_memory(a->err);
	for (uint32_t i = 0; i < p->window_count; i++)
		list[i] = &p->windows[i];
	for (uint32_t i = 0; i < a->input_count; i++) {
		uint32_t count = MAX(a->inputs[i].marker_count, 1u);

		if (!a->inputs[i].classified)
			continue;
		steady_choose(list + a->inputs[i].window_first, count);
		find_cold_step(a, list + a->inputs[i].window_first, count);
	}
	return OW_OK;
}

/* Returns the end of work from before the recording. Work without a launch counts as such only if launches
 * are recorded; in TensorFlow 1 copies have none. */
static int64_t backlog_of(const struct input_work *in)
{
	return in->launched * 10 >= in->slices * 9 ? in->backlog_ns : TIME_UNKNOWN;
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
		/* without slices among the markers, all launched work runs after them */
		bool extended = in->marker_count && in->launched_from_ns != INT64_MAX &&
				in->launched * 2 >= in->slices;

		if (!in->classified)
			continue;
		in->window_first = p->window_count;
		steady_windows_make(a->markers + in->marker_first, markers, extended,
				    backlog_of(in), p->windows + p->window_count);
		for (uint32_t k = 0; k < markers; k++)
			p->windows[p->window_count++].source = (source_id){ i };
		p->extended |= extended;
	}
	count_slices(a);
	return choose_steps(a);
}

/* Cuts windows to the filtered time; windows outside of it lose their rows. */
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

static void measure_row(struct analysis *a, const struct phase_window *w, struct phase_row *row)
{
	measure_window(a, w, row->lane, &row->sums);
	processors_apply(&a->processors[w->source.v], w->start_ns, w->end_ns,
			 a->out->lanes[row->lane].has_device, &row->sums);
	measure_gaps(a, w, row);
}

#define WINDOWS_AT_ONCE 16

/* Windows that several threads measure together; each thread takes some of them. */
struct measuring {
	struct analysis *a;
	atomic_uint next;
};

static void measure_windows(void *arg, unsigned thread)
{
	struct measuring *work = arg;
	struct analysis *a = work->a;
	struct phases *p = a->out;

	(void)thread;
	for (;;) {
		uint32_t first = atomic_fetch_add(&work->next, WINDOWS_AT_ONCE);

		if (first >= p->window_count)
			return;
		for (uint32_t i = first; i < MIN(first + WINDOWS_AT_ONCE, p->window_count); i++) {
			const struct phase_window *w = &p->windows[i];

			for (uint32_t k = 0; k < w->row_count; k++) {
				struct phase_row *row = &p->rows[w->row_first + k];

				row->window = i;
				row->lane = a->inputs[w->source.v].lane_first + k;
				measure_row(a, w, row);
			}
		}
	}
}

static ow_status make_rows(struct analysis *a)
{
	struct phases *p = a->out;

	OW_TRY(time_launches(a));
	p->rows = ARENA_ARRAY(&p->arena, struct phase_row, p->row_count);
	if (!p->rows)
		return error_no_memory(a->err);
	parallel_run(MIN(parallel_threads(), p->window_count / WINDOWS_AT_ONCE + 1),
		     measure_windows, &(struct measuring){ .a = a });
	measure_queues(a);
	return OW_OK;
}

static void drop_empty_windows(struct phases *p)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < p->window_count; i++) {
		struct phase_window *w = &p->windows[i];

		if (!w->row_count)
			continue;
		for (uint32_t k = 0; p->rows && k < w->row_count; k++)
			p->rows[w->row_first + k].window = kept;
		p->windows[kept++] = *w;
	}
	p->window_count = kept;
}

static ow_status analyse(struct analysis *a)
{
	OW_TRY(find_tracks(a));
	OW_TRY(processors_find(a->m, &a->scratch, &a->processors, a->err));
	survey(a);
	include_processors(a);
	OW_TRY(keep_spans(a));
	OW_TRY(make_lanes(a));
	OW_TRY(make_markers(a));
	OW_TRY(follow_launches(a));
	OW_TRY(make_lists(a));
	OW_TRY(make_windows(a));
	clip_windows(a);
	if (a->windows_only)
		a->out->row_count = 0;
	else
		OW_TRY(make_rows(a));
	drop_empty_windows(a->out);
	return OW_OK;
}

static ow_status run(const struct model *m, const struct event_filter *filter, bool windows_only,
		     struct phases *out, struct ow_error *err)
{
	struct analysis a = { .m = m,
			      .filter = filter,
			      .out = out,
			      .mem = m->mem,
			      .err = err,
			      .windows_only = windows_only };
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

ow_status phases_analyse(const struct model *m, const struct event_filter *filter,
			 struct phases *out, struct ow_error *err)
{
	return run(m, filter, false, out, err);
}

ow_status phases_find_windows(const struct model *m, const struct event_filter *filter,
			      struct phases *out, struct ow_error *err)
{
	return run(m, filter, true, out, err);
}

void phases_release(struct phases *p)
{
	arena_release(&p->arena);
}
