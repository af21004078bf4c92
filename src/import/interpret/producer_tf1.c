/*
 * producer_tf1.c: interprets timelines of TensorFlow 1 (timeline.Timeline, ProfilerHook) and of tfprof. Processes are
 * called "<device> Compute". In a device with job and task the host schedules ops; its streams are the work of the
 * device; "stream:all" and "memcpy" repeat that. Threads are lanes without meaning. The arguments of ops have the edges
 * of the graph (input0 …). tfprof's scope and code views are trees with one process per depth, whose times are
 * artificial.
 */
#include "import/interpret/interpret_int.h"

#include "base/vec.h"

#define INPUTS_MAX 100000

/* The number of a key: "input12" → 12, else -1. */
static int64_t input_index(struct str key)
{
	int64_t index;

	if (!str_starts(key, STR("input")) || !str_to_i64(str_skip(key, 5), &index))
		return -1;
	return index >= 0 && index < INPUTS_MAX ? index : -1;
}

/* Adds an edge: "^a" is a control edge, "a:1" the second output of a. */
static void add_input(struct interpret *x, int64_t index, struct json_value value)
{
	struct op_input_row row = { .index = (int32_t)index };
	struct str name = model_str(x->m, interpret_string(x, value));
	size_t colon = str_rfind_char(name, ':');
	int64_t port;

	if (name.len && name.ptr[0] == '^') {
		row.port = -1;
		name = str_skip(name, 1);
	} else if (colon != STR_NONE && str_to_i64(str_skip(name, colon + 1), &port) && port >= 0 &&
		   port <= INT32_MAX) {
		row.port = (int32_t)port;
		name = str_first(name, colon);
	}
	row.shown_port = row.port;
	row.name = builder_str(x->b, name);
	builder_add_op_input(x->b, &row);
}

static void take_inputs(struct interpret *x, uint32_t event, struct str args, void *arg)
{
	uint32_t op = x->m->event.op[event].v, first = x->m->op_input.count;
	struct json_reader r = json_over(args);
	struct json_value value;
	struct str key;

	(void)arg;
	while (json_next_member(&r, &key, &value)) {
		int64_t index = input_index(key);

		if (index >= 0 && value.kind == JSON_STRING)
			add_input(x, index, value);
	}
	if (x->m->op_input.count == first)
		return;
	x->m->op.input_first[op] = first;
	x->m->op.input_count[op] = x->m->op_input.count - first;
}

/* Reads the edges of the graph from the arguments of TensorFlow 1. */
static ow_status interpret_tf_inputs(struct interpret *x)
{
	uint8_t *seen = ARENA_ARRAY(&x->scratch, uint8_t, x->m->op.count);
	struct interpret_rows rows = { 0 };
	ow_status status = seen ? OW_OK : interpret_no_memory(x);

	for (uint32_t t = x->first_track; t < x->last_track && status == OW_OK; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		for (uint32_t e = track->first; interpret_on_host(x, t) && e < track->last; e++) {
			uint32_t op = x->m->event.op[e].v;

			if (!op || seen[op] || x->m->op.input_count[op])
				continue;
			seen[op] = 1;
			status = interpret_rows_add(x, &rows, e);
			if (status != OW_OK)
				break;
		}
	}
	if (status == OW_OK)
		status = interpret_read_args(x, &rows, take_inputs, NULL);
	interpret_rows_release(x, &rows);
	return status;
}

static bool is_tfprof(struct str process)
{
	return str_starts(process, STR("Scope:")) ||
	       str_starts(process, STR("Op execution threads: ")) ||
	       str_starts(process, STR("Op scheduling threads: ")) ||
	       str_starts(process, STR("mem usage on:"));
}

static bool recognise_tf1(const struct interpret *x)
{
	return x->categories & 1u << CATEGORY_TF_OP && !interpret_has_process(x, is_tfprof);
}

/* A device name in parts: "/gpu:0/stream:7" → "/gpu:0" and "stream:7". */
struct device_place {
	struct str device, part; /* part: "stream:7", "memcpy", or empty */
};

static struct device_place split_device(struct str name)
{
	size_t at = str_find(name, STR("/stream:"));

	if (at == STR_NONE && str_ends(name, STR("/memcpy")))
		at = name.len - strlen("/memcpy");
	if (at == STR_NONE)
		return (struct device_place){ name, STR("") };
	return (struct device_place){ str_first(name, at), str_skip(name, at + 1) };
}

static bool is_numbered(struct str part)
{
	return str_starts(part, STR("stream:")) && part.len > 7 && part.ptr[7] >= '0' &&
	       part.ptr[7] <= '9';
}

/* Sets device and kind of a track from a name like /device:GPU:0/stream:7; `numbered`: the trace has numbered
 * streams. */
static void interpret_tf_device(struct interpret *x, uint32_t track, struct str name, bool numbered)
{
	struct device_place place = split_device(name);
	uint8_t *kind = &x->m->track.kind[track];

	x->m->track.device[track] = builder_device(x->b, place.device);
	if (!place.part.len)
		*kind = TRACK_HOST;
	else if (is_numbered(place.part) || !numbered)
		*kind = str_eq(place.part, STR("memcpy")) ? TRACK_COPY : TRACK_STREAM;
	else
		*kind = TRACK_DERIVED;
}

/* The device in the name of a process. */
static bool device_of(struct str process, struct str *device)
{
	static const struct str compute = { " Compute", 8 };

	if (!str_ends(process, compute))
		return false;
	*device = str_first(process, process.len - compute.len);
	return true;
}

/* "step 12 · /gpu:0 Compute": opwatch merge puts the step of a file, its rank or its name before the names of its processes. */
static bool split_label(struct str process, struct str *label, struct str *rest)
{
	static const char dot[] = " · ";
	const char *at = memmem(process.ptr, process.len, dot, strlen(dot));

	if (!at || at == process.ptr)
		return false;
	*label = str_first(process, (size_t)(at - process.ptr));
	*rest = str_skip(process, label->len + strlen(dot));
	return true;
}

static bool is_step_label(struct str label, int64_t *number)
{
	struct str digits;

	if (!str_starts(label, STR("step ")))
		return false;
	digits = str_skip(label, strlen("step "));
	return digits.len && digits.ptr[0] >= '0' && digits.ptr[0] <= '9' &&
	       str_to_i64(digits, number);
}

/* The events of a track are added to the marker of its label. */
static ow_status add_labelled(struct interpret *x, uint32_t t, struct interpret_marker one)
{
	const struct interpret_track *track = interpret_track(x, t);

	for (uint32_t e = track->first; e < track->last; e++) {
		if (!interpret_is_slice(x, e))
			continue;
		one.start = MIN(one.start, x->m->event.ts_ns[e]);
		one.end = MAX(one.end, interpret_end(x, e));
	}
	if (one.start > one.end)
		return OW_OK;
	for (size_t i = 0; i < x->markers.count; i++) {
		struct interpret_marker *found = &x->markers.list[i];

		if (found->number != one.number || found->name.v != one.name.v)
			continue;
		found->start = MIN(found->start, one.start);
		found->end = MAX(found->end, one.end);
		return OW_OK;
	}
	return interpret_add_marker(x, &one);
}

/* A marker for each label; `steps`: only for labels that are numbers of steps. */
static ow_status mark_labels(struct interpret *x, bool steps)
{
	struct str label, rest;

	x->markers.count = 0;
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		struct interpret_marker one = { INT64_MAX, INT64_MIN, INT64_MIN, { 0 } };

		if (!split_label(interpret_process(x, t), &label, &rest) ||
		    (!is_step_label(label, &one.number) && steps))
			continue;
		if (!steps)
			one.name = builder_str(x->b, label);
		OW_TRY(add_labelled(x, t, one));
	}
	return builder_status(x->b);
}

static int by_start(const void *a, const void *b)
{
	const struct interpret_marker *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static bool markers_follow_each_other(struct interpret_markers *m)
{
	if (m->count > 1)
		qsort(m->list, m->count, sizeof(*m->list), by_start);
	for (size_t i = 1; i < m->count; i++)
		if (m->list[i].start < m->list[i - 1].end)
			return false;
	return m->count > 1;
}

/* Takes the labels of steps off, so that the devices of all steps are the same ones. */
static void drop_labels(struct interpret *x, bool steps)
{
	struct str label, rest;
	int64_t number;

	for (uint32_t t = x->first_track; t < x->last_track; t++)
		if (split_label(interpret_process(x, t), &label, &rest) &&
		    (!steps || is_step_label(label, &number)))
			x->m->track.process[t] = builder_str(x->b, rest);
}

/* A merged file: every file that it was made from is one step, by its number, or if these files follow each other. Files that overlap
 * are ranks, and stay apart. */
static ow_status read_labels(struct interpret *x)
{
	OW_TRY(mark_labels(x, true));
	if (x->markers.count) {
		drop_labels(x, true);
		return builder_status(x->b);
	}
	OW_TRY(mark_labels(x, false));
	if (!markers_follow_each_other(&x->markers)) {
		x->markers.count = 0;
		return OW_OK;
	}
	for (size_t i = 0; i < x->markers.count; i++)
		x->markers.list[i].name.v = 0;
	drop_labels(x, false);
	builder_note(x->b, NOTE_INFO, OW_NO_OFFSET,
		     "the file was merged from %zu recordings that follow each other: their runs "
		     "are its steps",
		     x->markers.count);
	return builder_status(x->b);
}

static ow_status tf1_tracks(struct interpret *x)
{
	bool numbered = false;
	struct str device;

	OW_TRY(read_labels(x));
	for (uint32_t t = x->first_track; t < x->last_track; t++)
		numbered |= device_of(interpret_process(x, t), &device) &&
			    is_numbered(split_device(device).part);
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		if (device_of(interpret_process(x, t), &device))
			interpret_tf_device(x, t, device, numbered);
		else if (!(interpret_track(x, t)->categories & 1u << CATEGORY_TF_OP))
			x->m->track.kind[t] = TRACK_OTHER; /* processes of tensors and allocators */
	}
	return builder_status(x->b);
}

/* Whether a track is where the host schedules ops of an accelerator. */
static bool interpret_tf_schedules(const struct interpret *x, uint32_t track)
{
	return x->m->device.kind[x->m->track.device[track].v] >= DEVICE_GPU;
}

static ow_status tf1_links(struct interpret *x)
{
	OW_TRY(interpret_tf_inputs(x));
	return x->has_device ? interpret_link_ops(x, interpret_tf_schedules) : OW_OK;
}

static enum event_phase interpret_tf_phase(const struct interpret *x, uint32_t event)
{
	if (interpret_tf_schedules(x, x->m->event.track[event].v))
		return x->has_device ? PHASE_LAUNCH : PHASE_COMPUTE;
	return str_starts(model_str(x->m, interpret_op_name(x, event)), STR("Iterator/"))
		       ? PHASE_UNKNOWN
		       : PHASE_IDLE;
}

/* The begin of a run on a device: the node _SOURCE. */
struct start {
	int64_t ts;
	uint32_t process; /* a string id */
	bool cpu;
};

struct starts {
	struct start *list;
	size_t count, cap;
};

static ow_status add_start(struct interpret *x, struct starts *s, uint32_t track, int64_t ts)
{
	device_id device = x->m->track.device[track];

	if (!vec_push(x->mem, s->list, s->count, s->cap,
		      (struct start){ .ts = ts,
				      .process = x->m->track.process[track].v,
				      .cpu = x->m->device.kind[device.v] == DEVICE_CPU }))
		return interpret_no_memory(x);
	return OW_OK;
}

static ow_status find_starts(struct interpret *x, struct starts *s)
{
	str_id source = model_find_str(x->m, STR("_SOURCE"));
	op_id op = source.v ? builder_find_op(x->b, source) : (op_id){ 0 };

	for (uint32_t t = x->first_track; t < x->last_track && op.v; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		if (!interpret_on_host(x, t))
			continue;
		for (uint32_t e = track->first; e < track->last; e++)
			if (x->m->event.op[e].v == op.v)
				OW_TRY(add_start(x, s, t, x->m->event.ts_ns[e]));
	}
	return OW_OK;
}

static int by_time(const void *a, const void *b)
{
	const struct start *x = a, *y = b;

	return (x->ts > y->ts) - (x->ts < y->ts);
}

/* The process by which runs are counted: the first CPU that has any, else the first device. */
static uint32_t counting_process(const struct starts *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->list[i].cpu)
			return s->list[i].process;
	return s->count ? s->list[0].process : 0;
}

/* The begin of a run: devices may start a little before the counting process, but not before the middle between this
 * run and the previous one. */
static int64_t begin_of(const struct starts *s, size_t at, int64_t before)
{
	int64_t ts = s->list[at].ts, begin = ts;
	int64_t middle = before == INT64_MIN ? INT64_MIN : before + (ts - before) / 2;

	for (size_t i = at; i-- > 0 && s->list[i].ts > middle && s->list[i].ts > before;)
		if (s->list[i].process != s->list[at].process)
			begin = s->list[i].ts;
	return begin;
}

/* Finds the ends of runs: the last end of the events that start in each. */
static void find_ends(struct interpret *x)
{
	struct interpret_markers *m = &x->markers;

	for (size_t i = 0; i < m->count; i++)
		m->list[i].end = m->list[i].start;
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);
		size_t at = 0;

		if (!interpret_on_host(x, t) && !interpret_on_device(x, t))
			continue;
		for (uint32_t e = track->first; e < track->last; e++) {
			while (at < m->count && m->list[at].start <= x->m->event.ts_ns[e])
				at++;
			if (at && interpret_is_slice(x, e))
				m->list[at - 1].end = MAX(m->list[at - 1].end, interpret_end(x, e));
		}
	}
	for (size_t i = 0; i + 1 < m->count; i++)
		m->list[i].end = MIN(m->list[i].end, m->list[i + 1].start);
}

/* The number of markers that begin up to a time: 0 = before all of them. */
static size_t run_at(const struct interpret_markers *m, int64_t ts)
{
	size_t low = 0, high = m->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->list[middle].start <= ts)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Removes launch links across runs. A run ends with all of its work: if a kernel's own launch was lost when files
 * were concatenated, an earlier run did not launch it either. */
static void drop_links_across(struct interpret *x)
{
	struct link_table *l = &x->m->link;
	uint32_t kept = x->first_link;

	for (uint32_t i = x->first_link; i < l->count; i++) {
		const int64_t *ts = x->m->event.ts_ns;

		if (l->kind[i] == LINK_LAUNCH &&
		    run_at(&x->markers, ts[l->src[i].v]) != run_at(&x->markers, ts[l->dst[i].v]))
			continue;
		l->src[kept] = l->src[i];
		l->dst[kept] = l->dst[i];
		l->kind[kept++] = l->kind[i];
	}
	l->count = kept;
}

/* Marks the runs of timelines that were concatenated: _SOURCE starts more than once. */
static ow_status mark_runs(struct interpret *x, struct starts *s)
{
	uint32_t process;
	int64_t before = INT64_MIN;

	qsort(s->list, s->count, sizeof(*s->list), by_time);
	process = counting_process(s);
	for (size_t i = 0; i < s->count; i++) {
		if (s->list[i].process != process)
			continue;
		OW_TRY(interpret_add_marker(
			x, &(struct interpret_marker){ .start = begin_of(s, i, before),
						       .number = INT64_MIN }));
		before = s->list[i].ts;
	}
	if (x->markers.count < 2) {
		x->markers.count = 0;
		return OW_OK;
	}
	find_ends(x);
	drop_links_across(x);
	return OW_OK;
}

static ow_status tf1_steps(struct interpret *x)
{
	struct interpret_markers labels = x->markers;
	struct starts s = { 0 };
	ow_status status;

	if (labels.count > 1 && labels.list[0].number != INT64_MIN)
		return OW_OK; /* the labels of a merged file mark the steps */
	x->markers = (struct interpret_markers){ 0 };
	status = find_starts(x, &s);
	if (status == OW_OK && s.count > 1)
		status = mark_runs(x, &s);
	if (labels.count > 1 && x->markers.count < labels.count) {
		struct interpret_markers fewer = x->markers;

		x->markers = labels;
		labels = fewer;
	}
	mem_free(x->mem, labels.list, labels.cap * sizeof(*labels.list));
	mem_free(x->mem, s.list, s.cap * sizeof(*s.list));
	return status;
}

const struct producer producer_tf1 = {
	.name = "tf1",
	.title = "TF1 Timeline",
	.recognise = recognise_tf1,
	.tracks = tf1_tracks,
	.links = tf1_links,
	.steps = tf1_steps,
	.file_is_step = true,
	.host_phase = interpret_tf_phase,
};

#define EXECUTION "Op execution threads: "
#define SCHEDULING "Op scheduling threads: "

static bool is_scope(struct str process)
{
	return str_starts(process, STR("Scope:"));
}

static bool is_graph(struct str process)
{
	return str_starts(process, STR(EXECUTION)) || str_starts(process, STR(SCHEDULING)) ||
	       str_starts(process, STR("mem usage on:"));
}

static bool recognise_tfprof(const struct interpret *x)
{
	return x->categories & 1u << CATEGORY_TF_OP &&
	       (interpret_has_process(x, is_scope) || interpret_has_process(x, is_graph));
}

/* Puts all depths on one track: a slice inside another one is below it in the tree. */
static void join_depths(struct interpret *x)
{
	uint32_t first = 0;

	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		if (!is_scope(interpret_process(x, t)))
			continue;
		first = first ? first : t;
		x->m->track.kind[t] = TRACK_HOST;
		for (uint32_t e = track->first; e < track->last; e++)
			x->m->event.track[e].v = first;
	}
	interpret_not_as_listed(x);
	x->no_phases = true;
}

static bool is_numbered_stream(struct str device)
{
	size_t at = str_find(device, STR("/stream:"));

	return at != STR_NONE && at + 8 < device.len && device.ptr[at + 8] >= '0' &&
	       device.ptr[at + 8] <= '9';
}

static ow_status tfprof_tracks(struct interpret *x)
{
	bool numbered = false;

	if (interpret_has_process(x, is_scope)) {
		join_depths(x);
		return OW_OK;
	}
	for (uint32_t t = x->first_track; t < x->last_track; t++)
		numbered |= str_starts(interpret_process(x, t), STR(EXECUTION)) &&
			    is_numbered_stream(interpret_process(x, t));
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		struct str process = interpret_process(x, t);

		if (str_starts(process, STR(EXECUTION)))
			interpret_tf_device(x, t, str_skip(process, strlen(EXECUTION)), numbered);
		else if (str_starts(process, STR(SCHEDULING)))
			interpret_tf_device(x, t, str_skip(process, strlen(SCHEDULING)), numbered);
		else if (str_starts(process, STR("mem usage on:")))
			x->m->track.kind[t] = TRACK_OTHER;
	}
	return builder_status(x->b);
}

static ow_status tfprof_links(struct interpret *x)
{
	return x->has_device ? interpret_link_ops(x, interpret_tf_schedules) : OW_OK;
}

const struct producer producer_tfprof = {
	.name = "tfprof",
	.title = "tfprof timeline",
	.recognise = recognise_tfprof,
	.file_is_step = true,
	.tracks = tfprof_tracks,
	.links = tfprof_links,
	.host_phase = interpret_tf_phase,
};
