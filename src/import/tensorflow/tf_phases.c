/*
 * tf_phases.c: assigns phases to TensorFlow's ops (tf_phases.h). If the streams of an accelerator were traced, its
 * executor only launches work; otherwise its ops are the compute. Host ops that find, read, decode or dequeue data are
 * input, and so are host ops that only work on the results of these. If the first run of an op takes far longer than
 * all others, it loads libraries: initialisation.
 */
#include "import/tensorflow/tf_phases.h"

#include "base/vec.h"
#include "import/interpret/call_lengths.h"
#include "import/interpret/interpret_names.h"
#include "model/event_filter.h"

struct survey {
	bool has_device; /* streams of an accelerator were traced */
	/* the streams are summed in one track: tracks of single streams, and of copies, repeat a part of it */
	bool all_streams;
	bool many_tasks;
};

/* The task in a device's name, "/job:worker/replica:0/task:1"; empty when it names no task. */
static struct str task_of(struct str device)
{
	size_t at = str_find(device, STR("/task:")), end;

	if (at == STR_NONE)
		return STR("");
	for (end = at + 6; end < device.len && device.ptr[end] != '/';)
		end++;
	return str_first(device, end);
}

static struct survey look_at_tracks(const struct model *m, uint32_t first_event)
{
	struct survey s = { 0 };
	struct str task = STR("");
	track_id last = { 0 };

	for (uint32_t i = first_event; i < m->event.count; i++) {
		track_id track = m->event.track[i];
		struct str one;

		if (track.v == last.v)
			continue;
		last = track;
		s.has_device |= track_work(m, track) == WORK_DEVICE;
		s.all_streams |= m->track.kind[track.v] == TRACK_ACCELERATOR;
		one = task_of(model_str(m, m->device.name[m->track.device[track.v].v]));
		if (one.len && task.len && !str_eq(one, task))
			s.many_tasks = true;
		task = one.len ? one : task;
	}
	return s;
}

/* The type of an event's op. Records of copies do not belong to an op of the graph; their type is the end of the
 * name: edge_1_a:MEMCPYHtoD. */
static struct str type_of(const struct model *m, uint32_t event)
{
	op_id op = m->event.op[event];
	struct str name;
	size_t colon;

	if (op.v)
		return model_str(m, m->op.type[op.v].v ? m->op.type[op.v] : m->op.name[op.v]);
	name = model_str(m, COLUMN_GET(m->event.name, event));
	colon = str_rfind_char(name, ':');
	return colon == STR_NONE ? name : str_skip(name, colon + 1);
}

static enum event_phase host_phase(struct str type, bool has_device)
{
	switch ((enum host_name)classify_name(type).host) {
	case HOST_INPUT:
		return PHASE_INPUT;
	case HOST_COMMUNICATION:
	case HOST_ENQUEUE:
		return PHASE_COMMUNICATION;
	case HOST_SYNC:
		return PHASE_SYNCHRONISATION;
	case HOST_PIPELINE:
	case HOST_MARKER:
		return PHASE_UNKNOWN;
	default:
		return has_device ? PHASE_HOST : PHASE_COMPUTE;
	}
}

static bool is_on_host(const struct model *m, op_id op)
{
	struct str device = model_str(m, m->op.device[op.v]);

	return str_find(device, STR("cpu:")) != STR_NONE;
}

/* The phase of a copy. It has the name of its edge, "edge_1_conv": it moves the result of that op from the device
 * where the op ran. */
static enum event_phase copy_phase(const struct model *m, op_id op)
{
	struct str name = model_str(m, m->op.name[op.v]), number;

	if (!m->op.device[op.v].v && str_starts(name, STR("edge_"))) {
		name = str_skip(name, 5);
		if (!str_split(&name, '_', &number))
			return PHASE_UNKNOWN;
		op = model_find_op(m, name);
	}
	if (!op.v || !m->op.device[op.v].v)
		return PHASE_UNKNOWN;
	return is_on_host(m, op) ? PHASE_HOST_TO_DEVICE : PHASE_DEVICE_TO_HOST;
}

static bool is_copy(const struct model *m, uint32_t event)
{
	op_id op = m->event.op[event];

	return op.v && (m->track.kind[m->event.track[event].v] == TRACK_COPY ||
			(!m->op.device[op.v].v &&
			 str_starts(model_str(m, m->op.name[op.v]), STR("edge_"))));
}

static enum event_phase phase_of(const struct model *m, uint32_t event, const struct survey *s)
{
	uint32_t track = m->event.track[event].v;
	enum track_work work = track_work(m, (track_id){ track });
	struct str type;

	if (work == WORK_NONE ||
	    (work == WORK_DEVICE && s->all_streams && m->track.kind[track] != TRACK_ACCELERATOR))
		return PHASE_UNKNOWN;
	type = type_of(m, event);
	if (work == WORK_DEVICE && is_copy(m, event))
		return copy_phase(m, m->event.op[event]);
	if (work == WORK_DEVICE)
		return device_name_phases[classify_name(type).device];
	if (m->device.kind[m->track.device[track].v] >= DEVICE_GPU)
		return s->has_device ? PHASE_LAUNCH : PHASE_COMPUTE;
	return host_phase(type, s->has_device);
}

enum origin { ORIGIN_UNKNOWN, ORIGIN_OPEN, ORIGIN_INPUT, ORIGIN_CONSTANT, ORIGIN_OTHER };

struct origins {
	struct builder *b;
	uint8_t *of; /* for each op: enum origin */
	op_id *open; /* ops whose inputs are being examined, the innermost last */
	size_t count, cap;
};

static op_id producer_of(const struct origins *o, uint32_t input)
{
	const struct op_input_table *t = &o->b->m->op_input;

	return t->src[input].v || !t->name[input].v ? t->src[input]
						    : builder_find_op(o->b, t->name[input]);
}

/* The origin of an op by itself; ORIGIN_OPEN when its inputs decide. */
static enum origin own_origin(const struct model *m, op_id op)
{
	struct str type = model_str(m, m->op.type[op.v]);

	if (classify_name(type).host == HOST_INPUT)
		return ORIGIN_INPUT;
	if (str_eq(type, STR("Const")))
		return ORIGIN_CONSTANT;
	return m->op.input_count[op.v] && is_on_host(m, op) ? ORIGIN_OPEN : ORIGIN_OTHER;
}

/* Decides the origin of the innermost open op, or opens an input that has to be known first. Loops in the graph end
 * at an open op. */
static bool follow_inputs(struct origins *o)
{
	const struct model *m = o->b->m;
	op_id op = o->open[o->count - 1];
	uint32_t first = m->op.input_first[op.v], end = first + m->op.input_count[op.v];
	bool from_input = false, other = false;

	for (uint32_t i = first; i < end && !other; i++) {
		op_id from = producer_of(o, i);

		if (m->op_input.port[i] < 0 && from.v && o->of[from.v] != ORIGIN_INPUT)
			continue; /* a control edge orders ops and carries no data */
		if (from.v && o->of[from.v] == ORIGIN_UNKNOWN) {
			o->of[from.v] = (uint8_t)own_origin(m, from);
			if (o->of[from.v] == ORIGIN_OPEN)
				return vec_push(m->mem, o->open, o->count, o->cap, from);
		}
		from_input |= from.v && o->of[from.v] == ORIGIN_INPUT;
		other |= !from.v || o->of[from.v] == ORIGIN_OTHER || o->of[from.v] == ORIGIN_OPEN;
	}
	o->of[op.v] = from_input && !other ? ORIGIN_INPUT : ORIGIN_OTHER;
	o->count--;
	return true;
}

static bool is_input(struct origins *o, op_id op)
{
	if (o->of[op.v] == ORIGIN_UNKNOWN) {
		o->of[op.v] = (uint8_t)own_origin(o->b->m, op);
		if (o->of[op.v] == ORIGIN_OPEN &&
		    !vec_push(o->b->m->mem, o->open, o->count, o->cap, op))
			builder_no_memory(o->b);
	}
	while (o->count && o->b->status == OW_OK)
		if (!follow_inputs(o))
			builder_no_memory(o->b);
	return o->of[op.v] == ORIGIN_INPUT;
}

/* Fills the phases. Events of one node are adjacent in a profile, so the phase of the last event is often that of
 * the next. */
static void fill(struct builder *b, uint32_t first_event, const struct survey *s, struct origins *o)
{
	const struct model *m = b->m;
	op_id last_op = { 0 };
	track_id last_track = { 0 };
	uint8_t last = PHASE_UNKNOWN;

	for (uint32_t i = first_event; i < m->event.count && b->status == OW_OK; i++) {
		op_id op = m->event.op[i];
		track_id track = m->event.track[i];

		if (!op.v || op.v != last_op.v || track.v != last_track.v) {
			last = (uint8_t)phase_of(m, i, s);
			if (last == PHASE_HOST && op.v && is_input(o, op))
				last = PHASE_INPUT;
		}
		m->event.phase[i] = last;
		last_op = op;
		last_track = track;
	}
}

static void find_initialisation(struct model *m, uint32_t first_event)
{
	struct call_lengths all = { 0 };

	for (uint32_t i = first_event; i < m->event.count; i++)
		if (m->event.phase[i] == PHASE_LAUNCH && m->event.dur_ns[i] > 0)
			call_lengths_add(&all, m->event.dur_ns[i]);
	for (uint32_t i = first_event; i < m->event.count; i++)
		if (m->event.phase[i] == PHASE_LAUNCH && m->event.dur_ns[i] >= SINGLE_CALL_NS &&
		    call_is_single(&all, m->event.dur_ns[i]))
			m->event.phase[i] = PHASE_INITIALISATION;
}

void tf_phases(struct builder *b, uint32_t first_event)
{
	struct survey s = look_at_tracks(b->m, first_event);
	struct origins o = { .b = b };
	size_t ops = b->m->op.count;

	if (b->status != OW_OK || first_event >= b->m->event.count || s.many_tasks ||
	    !builder_need_column(b, TABLE_event, offsetof(struct event_table, phase)))
		return;
	o.of = mem_zalloc(b->m->mem, ops);
	if (!o.of) {
		builder_no_memory(b);
		return;
	}
	fill(b, first_event, &s, &o);
	find_initialisation(b->m, first_event);
	mem_free(b->m->mem, o.of, ops);
	mem_free(b->m->mem, o.open, o.cap * sizeof(*o.open));
}

static int by_start(const void *a, const void *b)
{
	const struct window_row *x = a, *y = b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Lists the steps of the events in order of time. Returns 0 when they overlap or lack times. */
static uint32_t list_steps(const struct model *m, uint32_t first_event, struct window_row *steps)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < m->step.count; i++)
		steps[i] = (struct window_row){ .start_ns = INT64_MAX, .end_ns = INT64_MIN };
	for (uint32_t i = first_event; i < m->event.count; i++) {
		struct window_row *step = &steps[m->event.step[i].v];

		if (!m->event.step[i].v || m->event.ts_ns[i] <= 0)
			return 0;
		step->step = m->event.step[i];
		step->source = m->track.source[m->event.track[i].v];
		step->start_ns = MIN(step->start_ns, m->event.ts_ns[i]);
		step->end_ns = MAX(step->end_ns, event_end(m, i));
	}
	for (uint32_t i = 0; i < m->step.count; i++)
		if (steps[i].step.v)
			steps[count++] = steps[i];
	qsort(steps, count, sizeof(*steps), by_start);
	for (uint32_t i = 1; i < count; i++)
		if (steps[i].start_ns < steps[i - 1].end_ns)
			return 0;
	return count;
}

void tf_phases_of_steps(struct builder *b, uint32_t first_event)
{
	struct model *m = b->m;
	size_t size = m->step.count * sizeof(struct window_row);
	struct window_row *steps;
	uint32_t count;

	if (b->status != OW_OK || first_event >= m->event.count)
		return;
	steps = mem_alloc(m->mem, size);
	if (!steps) {
		builder_no_memory(b);
		return;
	}
	count = list_steps(m, first_event, steps);
	if (count && !look_at_tracks(m, first_event).many_tasks) {
		for (uint32_t i = 0; i < count; i++)
			builder_add_window(b, &steps[i]);
		tf_phases(b, first_event);
	}
	mem_free(m->mem, steps, size);
}
