/*
 * xprof_steps.c: see xprof_steps.h. Events of a step are those that belong to it in the model. A step of a device lasts from
 * its first to its last work on the device that takes longest, unless its marker on the host encloses that: then, and
 * without a device, it is the marker. All in picoseconds from the begin of the marker.
 */
#include "analyze/xprof_steps.h"

#include "analyze/op_stats.h"
#include "analyze/spans.h"

/* A begin or an end of something in a step. */
struct mark {
	int64_t at;
	uint8_t part;
	bool end;
};

struct making {
	const struct model *m;
	struct arena *arena;
	struct xprof_step *out;
	bool has_device;
	uint8_t *part_of;	  /* by string: of an event of the host that is called so; + 1 */
	uint32_t *first, *events; /* events by step: those of s are events[first[s]] … */
	struct mark *marks;
	size_t count, cap;
	int64_t base; /* nanosecond that marks count from */
};

/* ---- categories ---- */

static bool starts(struct str s, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (str_starts(s, str_from(list[i])))
			return true;
	return false;
}

/* XPROF_UNKNOWN: in no category. */
static enum xprof_part part_of_name(const struct making *k, struct str name)
{
	static const char *const wrappers[] = { "EagerExecute", "EagerLocalExecute",
						"EagerKernelExecute", "FunctionRun" };

	if (str_starts(name, STR("IteratorGetNext")))
		return XPROF_WAIT_INPUT;
	if (str_starts(name, STR("InfeedEnqueue")) || str_starts(name, STR("MemcpyHToD")))
		return XPROF_HOST_TO_DEVICE;
	if (k->has_device && str_starts(name, STR("ExecutorState::Process")))
		return XPROF_PREPARE;
	return starts(name, wrappers, ARRAY_COUNT(wrappers)) ? XPROF_UNKNOWN : XPROF_HOST_COMPUTE;
}

static str_id name_of(const struct model *m, uint32_t event)
{
	str_id own = COLUMN_GET(m->event.name, event);

	return own.v ? own : m->op.name[m->event.op[event].v];
}

static enum xprof_part host_part(const struct making *k, uint32_t event)
{
	uint8_t *part = &k->part_of[name_of(k->m, event).v];

	if (!*part)
		*part = (uint8_t)(part_of_name(k, model_str(k->m, name_of(k->m, event))) + 1);
	if (*part == XPROF_HOST_COMPUTE + 1 && k->has_device &&
	    COLUMN_GET(k->m->event.correlation, event))
		return XPROF_PREPARE;
	return (enum xprof_part)(*part - 1);
}

static enum xprof_part device_part(const struct model *m, uint32_t event)
{
	struct str name = model_str(m, name_of(m, event));

	switch ((enum event_phase)COLUMN_GET(m->event.phase, event)) {
	case PHASE_DEVICE_TO_HOST:
		return XPROF_OUTPUT;
	case PHASE_HOST_TO_DEVICE:
		return XPROF_HOST_TO_DEVICE;
	case PHASE_COMMUNICATION:
		return str_starts(name, STR("Memcpy")) ? XPROF_DEVICE_TO_DEVICE : XPROF_COLLECTIVES;
	case PHASE_COMPUTE:
		return str_has(name, STR("half")) || str_has(name, STR("fp16")) ? XPROF_COMPUTE_16
										: XPROF_COMPUTE;
	default:
		return XPROF_UNKNOWN;
	}
}

/* ---- the events of a step ---- */

static bool index_events(struct making *k)
{
	const struct model *m = k->m;
	uint32_t sum = 0;

	k->first = ARENA_ARRAY(k->arena, uint32_t, (size_t)m->step.count + 2);
	k->events = ARENA_ARRAY(k->arena, uint32_t, m->event.count);
	if (!k->first || !k->events)
		return false;
	for (uint32_t e = 1; e < m->event.count; e++)
		k->first[m->event.step[e].v + 1]++;
	for (uint32_t s = 0; s <= m->step.count; s++) {
		sum += k->first[s];
		k->first[s] = sum;
	}
	for (uint32_t e = 1; e < m->event.count; e++)
		k->events[k->first[m->event.step[e].v]++] = e;
	for (uint32_t s = m->step.count; s > 0; s--)
		k->first[s] = k->first[s - 1];
	k->first[0] = 0;
	return true;
}

static int64_t begin_of(const struct making *k, uint32_t event)
{
	int64_t ns = k->m->event.ts_ns[event], after = span_length(k->base, ns);

	return ps_of(after ? after : -span_length(ns, k->base),
		     COLUMN_GET(k->m->event.ts_rest, event));
}

static bool add_mark(struct making *k, int64_t begin, int64_t end, enum xprof_part part)
{
	void *marks = k->marks;

	if (!mem_grow(k->m->mem, &marks, &k->cap, k->count + 2, sizeof(*k->marks)))
		return false;
	k->marks = marks;
	k->marks[k->count++] = (struct mark){ begin, (uint8_t)part, false };
	k->marks[k->count++] = (struct mark){ end, (uint8_t)part, true };
	return true;
}

struct span_ps {
	int64_t begin, end;
};

/* All that counts becomes marks; tells the marker, and the span of the device that takes longest. */
static bool collect(struct making *k, uint32_t window, struct span_ps *marker,
		    struct span_ps *device, bool *host)
{
	const struct model *m = k->m;
	uint32_t step = m->window.step[window].v;
	struct span_ps *spans = ARENA_ARRAY(k->arena, struct span_ps, m->device.count + 1);

	if (!spans)
		return false;
	k->count = 0;
	for (uint32_t i = k->first[step]; i < k->first[step + 1]; i++) {
		uint32_t e = k->events[i];
		track_id track = m->event.track[e];
		enum track_work work = track_work(m, track);
		struct span_ps *span = &spans[m->track.device[track.v].v];
		int64_t begin = begin_of(k, e), end = span_add(begin, event_dur_ps(m, e));
		enum xprof_part part;

		if (work == WORK_NONE || !event_is_slice(m, e) ||
		    m->track.source[track.v].v != m->window.source[window].v)
			continue;
		if (work == WORK_HOST && m->event.ts_ns[e] == m->window.start_ns[window] &&
		    event_end(m, e) == m->window.end_ns[window] && end > marker->end) {
			*marker = (struct span_ps){ begin, end };
			continue;
		}
		part = work == WORK_DEVICE ? device_part(m, e) : host_part(k, e);
		if (part == XPROF_UNKNOWN)
			continue;
		if (work == WORK_DEVICE) {
			span->begin = span->end > span->begin ? MIN(span->begin, begin) : begin;
			span->end = MAX(span->end, end);
		}
		*host |= work == WORK_HOST;
		if (!add_mark(k, begin, end, part))
			return false;
	}
	for (uint32_t d = 0; d < m->device.count; d++)
		if (span_length(spans[d].begin, spans[d].end) >
		    span_length(device->begin, device->end))
			*device = spans[d];
	return true;
}

/* ---- sums ---- */

static int by_time(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

static enum xprof_part highest(const int64_t active[XPROF_PARTS])
{
	for (unsigned p = 0; p < XPROF_UNKNOWN; p++)
		if (active[p] > 0)
			return (enum xprof_part)p;
	return XPROF_UNKNOWN;
}

static void add_part(struct xprof_step *out, enum xprof_part part, int64_t begin, int64_t end)
{
	out->part_ps[part] = span_add(out->part_ps[part], span_length(begin, end));
}

static void sum_up(struct making *k, struct span_ps step, struct xprof_step *out)
{
	int64_t active[XPROF_PARTS] = { 0 }, at = step.begin;

	if (k->count)
		qsort(k->marks, k->count, sizeof(*k->marks), by_time);
	for (size_t i = 0; i < k->count; i++) {
		int64_t to = MIN(MAX(k->marks[i].at, step.begin), step.end);

		add_part(out, highest(active), at, to);
		at = to;
		active[k->marks[i].part] += k->marks[i].end ? -1 : 1;
	}
	add_part(out, XPROF_UNKNOWN, at, step.end);
	out->time_ps = span_length(step.begin, step.end);
	out->known = true;
}

static bool add_window(struct making *k, uint32_t window)
{
	struct span_ps marker = { 0 }, device = { 0 }, step;
	bool host = false;

	k->base = k->m->window.start_ns[window];
	if (!collect(k, window, &marker, &device, &host))
		return false;
	if (k->has_device ? device.end <= device.begin : !host || marker.end <= marker.begin)
		return true;
	step = device;
	if (!k->has_device || (marker.begin <= device.begin && marker.end >= device.end))
		step = marker;
	sum_up(k, step, &k->out[window]);
	return true;
}

static bool has_device(const struct model *m)
{
	for (uint32_t t = 1; t < m->track.count; t++)
		if (track_work(m, (track_id){ t }) == WORK_DEVICE)
			return true;
	return false;
}

static bool is_xprof(const struct model *m)
{
	for (uint32_t i = 1; i < m->op.count; i++)
		if (m->op.flags[i] & OP_FRAMEWORK)
			return m->window.count > 1;
	return false;
}

ow_status xprof_steps_make(const struct model *m, struct arena *arena, struct xprof_step **out,
			   struct error *err)
{
	struct making k = { .m = m, .arena = arena };
	bool ok;

	*out = NULL;
	if (!is_xprof(m))
		return OW_OK;
	k.has_device = has_device(m);
	k.out = ARENA_ARRAY(arena, struct xprof_step, m->window.count);
	k.part_of = ARENA_ARRAY(arena, uint8_t, m->strings.count);
	ok = k.out && k.part_of && index_events(&k);
	for (uint32_t w = 1; ok && w < m->window.count; w++)
		ok = add_window(&k, w);
	mem_free(m->mem, k.marks, k.cap * sizeof(*k.marks));
	*out = k.out;
	return ok ? OW_OK : error_no_memory(err);
}
