/*
 * producer_tf1.c: TensorFlow 1's timeline.Timeline, which ProfilerHook writes, too. Processes are called
 * "<device> Compute". A device with job and task is where ops are scheduled, by the host; its streams are
 * what the device did; "stream:all" and "memcpy" repeat that. Threads are lanes without meaning.
 */
#include "import/mean_int.h"

static bool is_tfprof(struct str process)
{
	return str_starts(process, STR("Scope:")) ||
	       str_starts(process, STR("Op execution threads: ")) ||
	       str_starts(process, STR("Op scheduling threads: ")) ||
	       str_starts(process, STR("mem usage on:"));
}

static bool recognise(const struct meaning *x)
{
	return x->categories & 1u << CATEGORY_TF_OP && !mean_has_process(x, is_tfprof);
}

/* ---- tracks ---- */

/* "/gpu:0/stream:7" → "/gpu:0", with what follows. */
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

void mean_tf_device(struct meaning *x, uint32_t track, struct str name, bool numbered)
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

/* The device that a process is named after. */
static bool device_of(struct str process, struct str *device)
{
	static const struct str compute = { " Compute", 8 };

	if (!str_ends(process, compute))
		return false;
	*device = str_first(process, process.len - compute.len);
	return true;
}

static ow_status tracks(struct meaning *x)
{
	bool numbered = false;
	struct str device;

	for (uint32_t t = x->first_track; t < x->last_track; t++)
		numbered |= device_of(mean_process(x, t), &device) &&
			    is_numbered(split_device(device).part);
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		if (device_of(mean_process(x, t), &device))
			mean_tf_device(x, t, device, numbered);
		else if (!(mean_track(x, t)->categories & 1u << CATEGORY_TF_OP))
			x->m->track.kind[t] = TRACK_OTHER; /* tensors, allocators */
	}
	return builder_status(x->b);
}

/* ---- launches ---- */

bool mean_tf_schedules(const struct meaning *x, uint32_t track)
{
	return x->m->device.kind[x->m->track.device[track].v] >= DEVICE_GPU;
}

static ow_status links(struct meaning *x)
{
	OW_TRY(mean_tf_inputs(x));
	return x->has_device ? mean_link_ops(x, mean_tf_schedules) : OW_OK;
}

enum event_phase mean_tf_phase(const struct meaning *x, uint32_t event)
{
	if (mean_tf_schedules(x, x->m->event.track[event].v))
		return x->has_device ? PHASE_LAUNCH : PHASE_COMPUTE;
	return str_starts(model_str(x->m, mean_op_name(x, event)), STR("Iterator/")) ? PHASE_UNKNOWN
										     : PHASE_IDLE;
}

/* ---- steps ---- */

/* Every run starts with the node _SOURCE on each device. */
struct start {
	int64_t ts;
	uint32_t process; /* a string */
	bool cpu;
};

struct starts {
	struct start *list;
	size_t count, cap;
};

static ow_status add_start(struct meaning *x, struct starts *s, uint32_t track, int64_t ts)
{
	device_id device = x->m->track.device[track];
	void *list = s->list;

	if (!mem_grow(x->mem, &list, &s->cap, s->count + 1, sizeof(*s->list)))
		return mean_no_memory(x);
	s->list = list;
	s->list[s->count++] = (struct start){ .ts = ts,
					      .process = x->m->track.process[track].v,
					      .cpu = x->m->device.kind[device.v] == DEVICE_CPU };
	return OW_OK;
}

static ow_status find_starts(struct meaning *x, struct starts *s)
{
	str_id source = model_find_str(x->m, STR("_SOURCE"));
	op_id op = source.v ? builder_find_op(x->b, source) : (op_id){ 0 };

	for (uint32_t t = x->first_track; t < x->last_track && op.v; t++) {
		const struct mean_track *track = mean_track(x, t);

		if (!mean_on_host(x, t))
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

/* The process that counts the runs: the first CPU that has any, else the first device. */
static uint32_t counting_process(const struct starts *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->list[i].cpu)
			return s->list[i].process;
	return s->count ? s->list[0].process : 0;
}

/* Where a run begins: devices may start a little before the process that counts, but not before the
 * middle between it and the run before. */
static int64_t begin_of(const struct starts *s, size_t at, int64_t before)
{
	int64_t ts = s->list[at].ts, begin = ts;
	int64_t middle = before == INT64_MIN ? INT64_MIN : before + (ts - before) / 2;

	for (size_t i = at; i-- > 0 && s->list[i].ts > middle && s->list[i].ts > before;)
		if (s->list[i].process != s->list[at].process)
			begin = s->list[i].ts;
	return begin;
}

/* Ends of runs: the last end of what starts in each. */
static void find_ends(struct meaning *x)
{
	struct mean_markers *m = &x->markers;

	for (size_t i = 0; i < m->count; i++)
		m->list[i].end = m->list[i].start;
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct mean_track *track = mean_track(x, t);
		size_t at = 0;

		if (!mean_on_host(x, t) && !mean_on_device(x, t))
			continue;
		for (uint32_t e = track->first; e < track->last; e++) {
			while (at < m->count && m->list[at].start <= x->m->event.ts_ns[e])
				at++;
			if (at && mean_is_slice(x, e))
				m->list[at - 1].end = MAX(m->list[at - 1].end, mean_end(x, e));
		}
	}
	for (size_t i = 0; i + 1 < m->count; i++)
		m->list[i].end = MIN(m->list[i].end, m->list[i + 1].start);
}

/* The number of markers that begin up to a moment: 0 = before all of them. */
static size_t run_at(const struct mean_markers *m, int64_t ts)
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

/* A run ends with all of its work: what is launched by none of its own calls, because these were lost
 * when files were glued together, was not launched by a run before either. */
static void drop_links_across(struct meaning *x)
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

/* Timelines of several runs, glued together, start more than once. */
static ow_status mark_runs(struct meaning *x, struct starts *s)
{
	uint32_t process;
	int64_t before = INT64_MIN;

	qsort(s->list, s->count, sizeof(*s->list), by_time);
	process = counting_process(s);
	for (size_t i = 0; i < s->count; i++) {
		if (s->list[i].process != process)
			continue;
		OW_TRY(mean_add_marker(x, &(struct mean_marker){ .start = begin_of(s, i, before),
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

static ow_status steps(struct meaning *x)
{
	struct starts s = { 0 };
	ow_status status = find_starts(x, &s);

	if (status == OW_OK && s.count > 1)
		status = mark_runs(x, &s);
	mem_free(x->mem, s.list, s.cap * sizeof(*s.list));
	return status;
}

const struct producer producer_tf1 = {
	.name = "tf1",
	.title = "TF1 Timeline",
	.recognise = recognise,
	.tracks = tracks,
	.links = links,
	.steps = steps,
	.host_phase = mean_tf_phase,
};
