/*
 * read.c: extracts the workers of one recording (ranks.h): their collectives, the pauses of their own work, their
 * steps. It makes one pass over the events, then sorts. Arguments are read for collectives only. The model may be freed
 * afterwards, because texts are copied. Own work is what keeps the worker busy apart from collectives: work of the
 * device if there is any, else of the host. A collective can start when the work that was launched before it is done;
 * if launches are recorded, that moment is known exactly (ready_ns).
 */
#include "ranks/read.h"

#include "base/vec.h"

#include <stdlib.h>

#define PAUSE_LEAST_NS 5000
#define ARGS_MOST ((uint32_t)1 << 20)
/* Times beyond this are damage: with it, differences of times never overflow. In ns since 1970 it is the year 2039. */
#define TIME_MOST INT64_C(2200000000000000000)
#define OPS_MOST 512

struct launched {
	/* at_ns: time of the launching call; end_ns: end of the work that the call launched */
	int64_t at_ns, end_ns;
};

struct record {
	uint32_t track, event;
	int64_t begin_ns, end_ns;
};

/* A worker while its model is read. */
struct reading_worker {
	uint32_t source;
	struct span_list busy;
	struct launched *launched;
	size_t launched_count, launched_cap;
	struct map op_map;
	bool many; /* the file holds several workers */
	bool task; /* the worker is a task of TensorFlow, one of several in its file */
};

struct reader {
	struct ranks_job *job;
	struct model *m;
	struct mem *mem;
	struct ow_error *err;
	struct arena scratch;
	struct phases phases;
	/* one for each worker, for job->workers from index `first` on */
	struct reading_worker *parts;
	size_t part_count, part_cap, first;
	uint32_t *worker_of; /* for each track: 1 + index of its worker in `parts`; 0 = none */
	bool *has_device;    /* for each source: whether it has events of a device */
	bool *has_tasks; /* for each source: whether it has several TensorFlow tasks, each with its own clock */
	/* for each event: the host call that launched it; NULL if the model has no links */
	uint32_t *launch;
	struct record *records; /* host calls that describe collectives, sorted by track and time */
	size_t record_count, record_cap;
	struct buf args;
};

static bool is_possible(int64_t begin_ns, int64_t end_ns)
{
	return begin_ns >= -TIME_MOST && end_ns <= TIME_MOST;
}

static struct str event_text(const struct model *m, uint32_t event)
{
	str_id own = COLUMN_GET(m->event.name, event);

	return model_str(m, own.v ? own : m->op.name[m->event.op[event].v]);
}

static ow_status new_worker(struct reader *r, uint32_t source, const struct worker_place *place,
			    bool many)
{
	const struct model *m = r->m;
	struct worker w = { .rank = many ? -1 : worker_rank(m, source),
			    .dp = place->dp,
			    .stage = place->stage,
			    .tp = place->tp,
			    .file = r->job->file_count + worker_file(m, source),
			    .source = source,
			    .pid = INT64_MIN,
			    .first_ns = INT64_MAX,
			    .last_ns = INT64_MIN,
			    .resolution_ns = 1000,
			    .has_device = r->has_device[source],
			    .many = many,
			    .slowdown_caused = __builtin_nan("") };
	int64_t world = worker_fact_number(m, source, "world_size");
	struct reading_worker part = { .source = source, .many = many };

	w.world = world > 0 && world < INT32_MAX ? (int32_t)world : -1;
	w.path = arena_str(&r->job->arena, model_str(m, m->source.path[source]));
	w.host = arena_str(&r->job->arena, worker_host(m, source));
	map_init(&part.op_map, r->mem);
	if (!w.path.ptr || !w.host.ptr ||
	    !vec_push(r->mem, r->parts, r->part_count, r->part_cap, part) ||
	    !vec_push(r->mem, r->job->workers, r->job->worker_count, r->job->worker_cap, w))
		return error_no_memory(r->err);
	return OW_OK;
}

static struct worker *worker_of_part(const struct reader *r, size_t part)
{
	return &r->job->workers[r->first + part];
}

static void find_task_sources(struct reader *r)
{
	const struct model *m = r->m;

	for (uint32_t t = 1; t < m->track.count; t++) {
		struct str task = task_of_device(track_device_name(m, t));

		for (uint32_t k = 1; k < t && task.len; k++) {
			struct str other = task_of_device(track_device_name(m, k));

			if (m->track.source[k].v == m->track.source[t].v && other.len &&
			    !str_eq(task, other))
				r->has_tasks[m->track.source[t].v] = true;
		}
	}
}

static ow_status place_task(struct reader *r, uint32_t track)
{
	static const struct worker_place nowhere = { -1, -1, -1 };
	uint32_t source = r->m->track.source[track].v;
	struct str task = task_of_track(r->m, track);
	struct worker *w;

	if (!task.len)
		return OW_OK;
	for (size_t p = 0; p < r->part_count; p++)
		if (r->parts[p].source == source && str_eq(worker_of_part(r, p)->task, task)) {
			r->worker_of[track] = (uint32_t)p + 1;
			return OW_OK;
		}
	OW_TRY(new_worker(r, source, &nowhere, false));
	w = worker_of_part(r, r->part_count - 1);
	w->task = arena_str(&r->job->arena, task);
	w->server = task_is_server(task);
	w->rank = -1;
	r->parts[r->part_count - 1].task = true;
	r->worker_of[track] = (uint32_t)r->part_count;
	return w->task.ptr ? OW_OK : error_no_memory(r->err);
}

static ow_status place_track(struct reader *r, uint32_t track)
{
	uint32_t source = r->m->track.source[track].v;
	struct worker_place place = worker_place_of(r->m, track);
	bool many = place.stage >= 0 && !r->has_device[source] && worker_rank(r->m, source) < 0;

	if (r->has_tasks[source])
		return place_task(r, track);
	if (!many && track_work(r->m, (track_id){ track }) == WORK_NONE)
		return OW_OK;
	if (!many)
		place = (struct worker_place){ -1, -1, -1 };
	for (size_t p = 0; p < r->part_count; p++) {
		const struct worker *w = worker_of_part(r, p);

		if (r->parts[p].source == source && r->parts[p].many == many &&
		    (!many ||
		     (w->dp == place.dp && w->stage == place.stage && w->tp == place.tp))) {
			r->worker_of[track] = (uint32_t)p + 1;
			return OW_OK;
		}
	}
	OW_TRY(new_worker(r, source, &place, many));
	r->worker_of[track] = (uint32_t)r->part_count;
	return OW_OK;
}

/* Finds the workers of the model. A file in which only some tracks name a pipeline stage counts as one worker. */
static ow_status find_workers(struct reader *r)
{
	const struct model *m = r->m;

	for (uint32_t i = 1; i < m->event.count; i++) {
		uint32_t track = m->event.track[i].v;

		if (track_work(m, (track_id){ track }) == WORK_DEVICE && event_is_slice(m, i))
			r->has_device[m->track.source[track].v] = true;
	}
	find_task_sources(r);
	for (uint32_t t = 1; t < m->track.count; t++)
		OW_TRY(place_track(r, t));
	return OW_OK;
}

/* The arguments of an event as JSON text, valid until the next call; empty if there are none. */
static struct str read_args(struct reader *r, uint32_t event)
{
	const struct model *m = r->m;
	uint32_t size = event ? COLUMN_GET(m->event.args_size, event) : 0;
	uint32_t source = m->track.source[m->event.track[event].v].v;
	uint64_t offset = COLUMN_GET(m->event.args_offset, event);
	const struct input *in = source < m->input_cap ? m->inputs[source] : NULL;
	struct ow_error ignored;

	buf_clear(&r->args);
	if (!size || size > ARGS_MOST || !in || offset > in->size || size > in->size - offset ||
	    !buf_reserve(&r->args, size))
		return STR("");
	if (in->data)
		return str_make((const char *)in->data + offset, size);
	if (input_read_at(in, offset, r->args.ptr, size, &ignored) != OW_OK)
		return STR("");
	return str_make(r->args.ptr, size);
}

static bool describes(struct str name)
{
	return str_eq(name, STR("record_param_comms")) || str_starts(name, STR("nccl:")) ||
	       str_starts(name, STR("c10d::"));
}

static int by_place(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->track != y->track)
		return x->track < y->track ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

static ow_status find_records(struct reader *r)
{
	const struct model *m = r->m;
	uint8_t *is = ARENA_ARRAY(&r->scratch, uint8_t, m->op.count);

	if (!is)
		return error_no_memory(r->err);
	for (uint32_t i = 1; i < m->op.count; i++)
		is[i] = describes(model_str(m, m->op.name[i]));
	for (uint32_t i = 1; i < m->event.count; i++) {
		uint32_t track = m->event.track[i].v;

		if (!is[m->event.op[i].v] || !event_is_slice(m, i) ||
		    track_work(m, (track_id){ track }) == WORK_DEVICE)
			continue;
		if (!vec_push(r->mem, r->records, r->record_count, r->record_cap,
			      (struct record){ track, i, m->event.ts_ns[i], event_end(m, i) }))
			return error_no_memory(r->err);
	}
	if (r->record_count)
		qsort(r->records, r->record_count, sizeof(*r->records), by_place);
	return OW_OK;
}

/* Calls `collective_args` with every host call that describes a collective and contains the launching call, the innermost
 * first. */
static void take_records(struct reader *r, struct worker *w, struct collective *c, uint32_t call)
{
	uint32_t track = r->m->event.track[call].v;
	int64_t at = r->m->event.ts_ns[call];
	size_t low = 0, high = r->record_count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct record *one = &r->records[middle];

		if (one->track < track || (one->track == track && one->begin_ns <= at))
			low = middle + 1;
		else
			high = middle;
	}
	for (unsigned n = 0; low > 0 && n < 8; n++) {
		const struct record *one = &r->records[--low];
		struct str name;

		if (one->track != track)
			break;
		if (one->end_ns < at)
			continue;
		name = event_text(r->m, one->event);
		if (c->kind == COLLECTIVE_SEND_RECV || c->kind == COLLECTIVE_OTHER) {
			enum collective_kind kind = collective_kind_of(name);

			if (kind != COLLECTIVE_OTHER)
				c->kind = (uint8_t)kind;
		}
		collective_args(r->job, w, c, read_args(r, one->event));
	}
}

static ow_status find_launches(struct reader *r)
{
	const struct model *m = r->m;

	if (m->link.count <= 1)
		return OW_OK;
	r->launch = ARENA_ARRAY(&r->scratch, uint32_t, m->event.count);
	if (!r->launch)
		return error_no_memory(r->err);
	for (uint32_t i = 1; i < m->link.count; i++)
		if (m->link.kind[i] == LINK_LAUNCH && m->link.dst[i].v < m->event.count &&
		    is_possible(m->event.ts_ns[m->link.src[i].v], m->event.ts_ns[m->link.src[i].v]))
			r->launch[m->link.dst[i].v] = m->link.src[i].v;
	return OW_OK;
}

static int by_launch(const void *a, const void *b)
{
	const struct launched *x = a, *y = b;

	return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

/* Sorts launches by the time of the call, and sets each end to the latest end so far. */
static void order_launches(struct reading_worker *part)
{
	if (!part->launched_count)
		return;
	qsort(part->launched, part->launched_count, sizeof(*part->launched), by_launch);
	for (size_t i = 1; i < part->launched_count; i++)
		part->launched[i].end_ns =
			MAX(part->launched[i].end_ns, part->launched[i - 1].end_ns);
}

/* The time at which the work that was launched before the call was done. */
static int64_t ready_time(const struct reading_worker *part, int64_t call_ns, int64_t start_ns)
{
	size_t low = 0, high = part->launched_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		/* <= because times of calls may be rounded */
		if (part->launched[middle].at_ns <= call_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return MIN(call_ns, start_ns);
	return MIN(start_ns, MAX(call_ns, part->launched[low - 1].end_ns));
}

static bool is_collective(const struct reader *r, uint32_t event, const struct reading_worker *part,
			  bool device)
{
	const struct model *m = r->m;
	struct str name;

	if (!part->many) {
		if (COLUMN_GET(m->event.phase, event) != PHASE_COMMUNICATION ||
		    device != r->has_device[part->source])
			return false;
		name = event_text(m, event);
		return !str_eq(name, STR("record_param_comms")) && !str_starts(name, STR("c10d::"));
	}
	name = event_text(m, event);
	if (collective_kind_of(name) != COLLECTIVE_OTHER)
		return true;
	return str_ends(model_str(m, m->track.name[m->event.track[event].v]), STR("-comm"));
}

static int64_t step_number(const struct model *m, uint32_t event)
{
	uint32_t step = m->event.step[event].v;

	return step && !COLUMN_GET(m->step.whole, step) ? m->step.number[step] : NO_STEP;
}

static ow_status add_collective(struct reader *r, struct worker *w, struct reading_worker *part,
				uint32_t event, bool device)
{
	const struct model *m = r->m;
	struct str name = event_text(m, event);
	struct collective c = { .start_ns = m->event.ts_ns[event],
				.end_ns = event_end(m, event),
				.seq = -1,
				.bytes = -1,
				.group_size = -1,
				.peer = -1,
				.step = step_number(m, event),
				.kind = (uint8_t)collective_kind_of(name),
				.name = str_hash(name) | 1 };
	uint32_t call = device && r->launch ? r->launch[event] : 0;

	c.ready_ns = c.start_ns;
	if (part->many) {
		c.forward = str_starts(name, STR("forward"))	? 1
			    : str_starts(name, STR("backward")) ? 2
								: 0;
	} else {
		collective_args(r->job, w, &c, read_args(r, event));
		if (call)
			take_records(r, w, &c, call);
		else if (!device)
			take_records(r, w, &c, event);
	}
	if (call) { /* ready_ns holds the time of the call until all launches are known */
		c.ready_ns = m->event.ts_ns[call];
		c.launched = true;
	}
	if (c.kind == COLLECTIVE_SEND_RECV && c.group_size > 2)
		c.kind = COLLECTIVE_ALL_TO_ALL;
	return vec_push(r->mem, w->collectives, w->collective_count, w->collective_cap, c)
		       ? OW_OK
		       : error_no_memory(r->err);
}

static ow_status count_op(struct reader *r, struct worker *w, struct reading_worker *part,
			  uint32_t event)
{
	const struct model *m = r->m;
	uint32_t op = m->event.op[event].v;
	uint64_t hash = map_hash_u64(op, 7);

	for (struct map_iter it = map_find(&part->op_map, hash); it.value;
	     it = map_next(&part->op_map, it))
		if (w->ops[it.value - 1].row == op) {
			w->ops[it.value - 1].ns =
				span_add(w->ops[it.value - 1].ns, m->event.dur_ns[event]);
			w->ops[it.value - 1].count++;
			return OW_OK;
		}
	if (w->op_count >= OPS_MOST)
		return OW_OK;
	if (!vec_push(r->mem, w->ops, w->op_count, w->op_cap,
		      (struct worker_op){ .name = str_hash(event_text(m, event)),
					  .ns = m->event.dur_ns[event],
					  .count = 1,
					  .row = op }) ||
	    !map_add(&part->op_map, hash, (uint32_t)w->op_count))
		return error_no_memory(r->err);
	return OW_OK;
}

static bool is_own_work(const struct reader *r, const struct reading_worker *part, uint32_t event,
			bool device)
{
	const struct model *m = r->m;
	enum phase_class class;

	if (part->many)
		return true;
	if (m->op.flags[m->event.op[event].v] & (OP_WRAPS | OP_WAITS | OP_STEP_MARK))
		return false;
	class = phase_class_of(m, event, r->has_device[part->source]);
	if (device != r->has_device[part->source])
		return false;
	return class != CLASS_COUNT && class != CLASS_COMMUNICATION &&
	       class != CLASS_SYNCHRONISATION;
}

static ow_status add_own(struct reader *r, struct worker *w, struct reading_worker *part,
			 uint32_t event, bool device)
{
	const struct model *m = r->m;
	int64_t begin = m->event.ts_ns[event], end = event_end(m, event);

	/* Work of zero length ends where other work ends, and would replace the name of that work. */
	if (!spans_add(&part->busy, r->mem, begin, end) ||
	    (part->many && end > begin &&
	     !vec_push(r->mem, w->timed, w->timed_count, w->timed_cap,
		       (struct timed_work){ end, str_hash(event_text(m, event)) })))
		return error_no_memory(r->err);
	if (device && r->launch && r->launch[event] &&
	    !vec_push(r->mem, part->launched, part->launched_count, part->launched_cap,
		      (struct launched){ m->event.ts_ns[r->launch[event]], end }))
		return error_no_memory(r->err);
	return count_op(r, w, part, event);
}

/* The step of a task that a record belongs to; it is added on first use. */
static struct worker_step *task_step(struct reader *r, struct worker *w, uint32_t event)
{
	const struct model *m = r->m;
	int64_t number = m->step.number[m->event.step[event].v];
	struct worker_step *step = worker_step_of(w, number);

	if (!step) {
		if (!vec_push(r->mem, w->steps, w->step_count, w->step_cap,
			      (struct worker_step){ .number = number,
						    .start_ns = INT64_MAX,
						    .end_ns = INT64_MIN,
						    .use = STEP_STEADY }))
			return NULL;
		step = &w->steps[w->step_count - 1];
	}
	step->start_ns = MIN(step->start_ns, m->event.ts_ns[event]);
	step->end_ns = MAX(step->end_ns, event_end(m, event));
	return step;
}

static ow_status read_task_event(struct reader *r, struct worker *w, struct reading_worker *part,
				 uint32_t event)
{
	const struct model *m = r->m;
	uint32_t track = m->event.track[event].v;
	struct task_event e =
		task_event_of(m, part->source, track_device_name(m, track), read_args(r, event));
	struct worker_step *step = task_step(r, w, event);
	struct collective c = { .start_ns = m->event.ts_ns[event],
				.end_ns = event_end(m, event),
				.ready_ns = m->event.ts_ns[event],
				.group = e.edge,
				.name = e.edge,
				.seq = -1,
				.bytes = e.bytes,
				.group_size = 2,
				.peer = -1,
				.kind = e.kind == TASK_SEND ? COLLECTIVE_SEND : COLLECTIVE_RECV,
				.transfer = e.transfer };

	if (!step)
		return error_no_memory(r->err);
	c.step = step->number;
	if (e.kind == TASK_WAIT)
		return OW_OK;
	if (e.kind != TASK_WORK)
		return vec_push(r->mem, w->collectives, w->collective_count, w->collective_cap, c)
			       ? OW_OK
			       : error_no_memory(r->err);
	step->slices++;
	step->class_ns[e.input ? CLASS_INPUT : CLASS_COMPUTE] = span_add(
		step->class_ns[e.input ? CLASS_INPUT : CLASS_COMPUTE], m->event.dur_ns[event]);
	return add_own(r, w, part, event, false);
}

static int by_message(const void *a, const void *b)
{
	const struct collective *x = a, *y = b;

	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->transfer - y->transfer;
}

/* Joins the two records of a receive: the operation, which begins when the task asks for the tensor, and the
 * transfer of the data, which ends when the tensor has arrived. */
static void join_receives(struct worker *w)
{
	size_t kept = 0;

	if (w->collective_count)
		qsort(w->collectives, w->collective_count, sizeof(*w->collectives), by_message);
	for (size_t i = 0; i < w->collective_count; i++) {
		const struct collective *c = &w->collectives[i];
		struct collective *before = kept ? &w->collectives[kept - 1] : NULL;

		if (before && before->kind == COLLECTIVE_RECV && c->kind == COLLECTIVE_RECV &&
		    before->step == c->step && before->group == c->group && !before->transfer &&
		    c->transfer) {
			before->start_ns = before->ready_ns = MIN(before->start_ns, c->start_ns);
			before->end_ns = c->end_ns;
			before->bytes = c->bytes;
			continue;
		}
		w->collectives[kept++] = *c;
	}
	w->collective_count = kept;
}

static ow_status read_event(struct reader *r, uint32_t event)
{
	const struct model *m = r->m;
	uint32_t track = m->event.track[event].v, number = r->worker_of[track];
	struct reading_worker *part;
	struct worker *w;
	bool device;

	if (!number || !event_is_slice(m, event) ||
	    !is_possible(m->event.ts_ns[event], event_end(m, event)))
		return OW_OK;
	part = &r->parts[number - 1];
	w = worker_of_part(r, number - 1);
	device = track_work(m, (track_id){ track }) == WORK_DEVICE;
	w->first_ns = MIN(w->first_ns, m->event.ts_ns[event]);
	w->last_ns = MAX(w->last_ns, event_end(m, event));
	w->hash += ((uint64_t)m->event.ts_ns[event] * 31 + (uint64_t)m->event.dur_ns[event]) *
		   0x9e3779b97f4a7c15u;
	w->events++;
	if (m->event.ts_ns[event] % 1000 || m->event.dur_ns[event] % 1000)
		w->resolution_ns = 1;
	if (!device && w->pid == INT64_MIN)
		w->pid = m->track.pid[track];
	if (part->task)
		return read_task_event(r, w, part, event);
	if (is_collective(r, event, part, device))
		return add_collective(r, w, part, event, device);
	return is_own_work(r, part, event, device) ? add_own(r, w, part, event, device) : OW_OK;
}

static int by_start(const void *a, const void *b)
{
	const struct collective *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static int by_end(const void *a, const void *b)
{
	const struct timed_work *x = a, *y = b;

	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

/* Finds the pauses of own work in which a collective ends. The time before the first and after the last work counts
 * as a pause, too. */
static ow_status find_pauses(struct reader *r, struct worker *w, struct reading_worker *part)
{
	int64_t *ends = ARENA_ARRAY(&r->scratch, int64_t, w->collective_count + 1);
	size_t next = 0;

	if (!ends || !spans_finish(&part->busy, r->mem))
		return error_no_memory(r->err);
	for (size_t i = 0; i < w->collective_count; i++)
		ends[i] = collective_done(&w->collectives[i]);
	ranks_median(ends, w->collective_count); /* called for its sorting */
	for (size_t i = 0; i <= part->busy.count; i++) {
		struct pause p = { i ? part->busy.items[i - 1].end : w->first_ns,
				   i < part->busy.count ? part->busy.items[i].begin : w->last_ns,
				   0 };

		while (next < w->collective_count && ends[next] <= p.begin_ns)
			next++;
		if (p.end_ns - p.begin_ns < PAUSE_LEAST_NS ||
		    (!part->many && (next == w->collective_count || ends[next] > p.end_ns)))
			continue;
		if (w->pause_count) {
			const struct pause *last = &w->pauses[w->pause_count - 1];

			p.before_ns = last->before_ns + (last->end_ns - last->begin_ns);
		}
		if (!vec_push(r->mem, w->pauses, w->pause_count, w->pause_cap, p))
			return error_no_memory(r->err);
	}
	return OW_OK;
}

static ow_status take_windows(struct reader *r, struct worker *w, uint32_t source)
{
	const struct phases *p = &r->phases;

	for (uint32_t i = 0; i < p->window_count; i++) {
		const struct phase_window *window = &p->windows[i];
		struct worker_step step = { .number = r->m->step.number[window->step.v],
					    .start_ns = window->start_ns,
					    .end_ns = window->end_ns,
					    .use = window->use,
					    .slices = window->device_slices };

		if (window->source.v != source || !window->known ||
		    !is_possible(window->start_ns, window->end_ns))
			continue;
		for (uint32_t k = 0; k < window->row_count; k++)
			for (unsigned c = 0; c < CLASS_COUNT; c++)
				step.class_ns[c] =
					span_add(step.class_ns[c],
						 p->rows[window->row_first + k].sums.share[c]);
		for (unsigned c = 0; c < CLASS_COUNT && window->row_count > 1; c++)
			step.class_ns[c] /= window->row_count;
		if (!vec_push(r->mem, w->steps, w->step_count, w->step_cap, step))
			return error_no_memory(r->err);
	}
	return OW_OK;
}

/* Makes the steps of a file with many workers: from the first to the last event of each step, the same for all
 * workers. */
static ow_status make_steps(struct reader *r, uint32_t source, struct phase_window **out,
			    uint32_t *count)
{
	const struct model *m = r->m;
	struct phase_window *all = ARENA_ARRAY(&r->scratch, struct phase_window, m->step.count);
	struct phase_window **list = ARENA_ARRAY(&r->scratch, struct phase_window *, m->step.count);

	if (!all || !list)
		return error_no_memory(r->err);
	*count = 0;
	for (uint32_t i = 1; i < m->step.count; i++)
		all[i] = (struct phase_window){
			.step = { i }, .start_ns = INT64_MAX, .end_ns = INT64_MIN, .known = true
		};
	for (uint32_t i = 1; i < m->event.count; i++) {
		uint32_t track = m->event.track[i].v;
		struct phase_window *w = &all[m->event.step[i].v];

		if (!m->event.step[i].v || m->track.source[track].v != source ||
		    !r->worker_of[track] || !event_is_slice(m, i) ||
		    !is_possible(m->event.ts_ns[i], event_end(m, i)) ||
		    COLUMN_GET(m->step.whole, m->event.step[i].v))
			continue;
		w->start_ns = MIN(w->start_ns, m->event.ts_ns[i]);
		w->end_ns = MAX(w->end_ns, event_end(m, i));
	}
	for (uint32_t i = 1; i < m->step.count; i++)
		if (all[i].start_ns < all[i].end_ns) {
			all[*count] = all[i];
			list[*count] = &all[*count];
			++*count;
		}
	if (*count)
		steady_choose(list, *count);
	*out = all;
	return OW_OK;
}

static ow_status take_many_steps(struct reader *r, struct worker *w, const struct phase_window *all,
				 uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!vec_push(r->mem, w->steps, w->step_count, w->step_cap,
			      (struct worker_step){ .number = r->m->step.number[all[i].step.v],
						    .start_ns = all[i].start_ns,
						    .end_ns = all[i].end_ns,
						    .use = all[i].use }))
			return error_no_memory(r->err);
	return OW_OK;
}

static int by_time(const void *a, const void *b)
{
	const struct worker_step *x = a, *y = b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Finds the steps of collectives that no event assigns to a step, by time; then numbers the collectives within each
 * step. */
static void number_collectives(struct worker *w)
{
	size_t s = 0;

	for (size_t i = 0; i < w->collective_count; i++) {
		struct collective *c = &w->collectives[i];

		while (s < w->step_count && w->steps[s].end_ns <= c->start_ns)
			s++;
		if (c->step == NO_STEP && s < w->step_count && w->steps[s].start_ns <= c->start_ns)
			c->step = w->steps[s].number;
	}
}

/* Whether a step overlaps the step before or after it. */
static bool shares_time(const struct worker *w, size_t step)
{
	const struct worker_step *s = &w->steps[step];
	int64_t slack = (s->end_ns - s->start_ns) / 20;

	return (step && w->steps[step - 1].end_ns > s->start_ns + slack) ||
	       (step + 1 < w->step_count && w->steps[step + 1].start_ns < s->end_ns - slack);
}

/* Marks collectives in steps that overlap (the clock was set back, or steps run concurrently) as doubtful: it is not
 * certain which step they belong to, so without a sequence number they cannot be paired by their step. */
static void doubt_collectives(struct worker *w)
{
	for (size_t s = 0; s < w->step_count; s++) {
		if (!shares_time(w, s))
			continue;
		w->steps[s].use = STEP_INCOMPLETE;
		for (size_t i = 0; i < w->collective_count; i++)
			w->collectives[i].doubtful |= w->collectives[i].step == w->steps[s].number;
	}
}

static ow_status copy_op_names(struct reader *r, struct worker *w)
{
	for (size_t i = 0; i < w->op_count; i++) {
		struct worker_op *op = &w->ops[i];
		uint32_t row = op->row;
		struct str type = model_str(r->m, r->m->op.type[row]);

		if (!(r->m->op.flags[row] & OP_SHORT_TYPE) || !type.len)
			type = model_str(r->m, r->m->op.name[row]);
		op->text = arena_str(&r->job->arena, str_first(type, 80));
		op->float_ops = (uint64_t)MAX(r->m->op.float_ops[row], 0);
		if (!op->text.ptr)
			return error_no_memory(r->err);
	}
	return OW_OK;
}

static ow_status finish_worker(struct reader *r, size_t number)
{
	struct worker *w = worker_of_part(r, number);
	struct reading_worker *part = &r->parts[number];

	if (!w->events)
		return OW_OK;
	order_launches(part);
	if (part->task)
		join_receives(w);
	for (size_t i = 0; i < w->collective_count; i++) {
		struct collective *c = &w->collectives[i];

		if (c->launched)
			c->ready_ns = ready_time(part, c->ready_ns, c->start_ns);
	}
	if (w->collective_count)
		qsort(w->collectives, w->collective_count, sizeof(*w->collectives), by_start);
	if (w->timed_count)
		qsort(w->timed, w->timed_count, sizeof(*w->timed), by_end);
	OW_TRY(find_pauses(r, w, part));
	if (part->many) {
		struct phase_window *all;
		uint32_t count;

		OW_TRY(make_steps(r, part->source, &all, &count));
		OW_TRY(take_many_steps(r, w, all, count));
	} else if (!part->task) {
		OW_TRY(take_windows(r, w, part->source));
	}
	if (w->step_count)
		qsort(w->steps, w->step_count, sizeof(*w->steps), by_time);
	if (part->task)
		return copy_op_names(r, w);
	number_collectives(w);
	if (!part->many)
		doubt_collectives(w);
	return copy_op_names(r, w);
}

/* Whether a counter is the clock frequency of the device's processors, not of its memory. Any unit is accepted,
 * because only ratios between ranks are used. */
static bool is_frequency(struct str name)
{
	static const char *const words[] = { "sm", "gpc", "graphics", "core", "gfx", "freq" };
	char plain[128];

	worker_plain_name(name, plain, sizeof(plain));
	if (!(strstr(plain, "clock") || strstr(plain, "freq")) || strstr(plain, "mem"))
		return false;
	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		if (strstr(plain, words[i]))
			return true;
	return false;
}

/* Computes the mean device frequency of each worker, if the trace has counters of it. */
static void read_frequencies(struct reader *r)
{
	const struct model *m = r->m;

	for (size_t p = 0; p < r->part_count; p++) {
		double sum = 0;
		uint64_t count = 0;

		if (r->parts[p].many || !r->has_device[r->parts[p].source])
			continue;
		for (uint32_t i = 1; i < m->counter.count; i++)
			if (m->track.source[m->counter.track[i].v].v == r->parts[p].source &&
			    m->counter.value[i] > 0 &&
			    (is_frequency(model_str(m, m->counter.name[i])) ||
			     is_frequency(model_str(m, m->counter.series[i])))) {
				sum += m->counter.value[i];
				count++;
			}
		worker_of_part(r, p)->frequency = count ? sum / (double)count : 0;
	}
}

/* Reads the time for each line of code of each worker, if the recording has call stacks. */
static ow_status read_lines(struct reader *r)
{
	uint32_t *worker_of = ARENA_ARRAY(&r->scratch, uint32_t, r->m->track.count + 1);
	struct line_reading in = { .job = r->job,
				   .m = r->m,
				   .phases = &r->phases,
				   .worker_of = worker_of,
				   .launch = r->launch,
				   .first = r->first,
				   .scratch = &r->scratch };

	if (!worker_of)
		return error_no_memory(r->err);
	/* Tracks of call frames are not work; they belong to the only worker of their file. */
	for (uint32_t t = 1; t < r->m->track.count; t++)
		for (size_t p = 0; p < r->part_count; p++)
			if (r->worker_of[t] == p + 1 ||
			    (!r->worker_of[t] && !r->parts[p].many &&
			     r->parts[p].source == r->m->track.source[t].v))
				worker_of[t] = (uint32_t)(r->first + p) + 1;
	return worker_lines_read(&in, r->err);
}

static ow_status read_model(struct reader *r)
{
	const struct model *m = r->m;

	r->has_device = ARENA_ARRAY(&r->scratch, bool, m->source.count + 1);
	r->has_tasks = ARENA_ARRAY(&r->scratch, bool, m->source.count + 1);
	r->worker_of = ARENA_ARRAY(&r->scratch, uint32_t, m->track.count + 1);
	if (!r->has_device || !r->has_tasks || !r->worker_of)
		return error_no_memory(r->err);
	OW_TRY(phases_analyse(m, &EVENT_FILTER_ALL, &r->phases, r->err));
	OW_TRY(find_workers(r));
	OW_TRY(find_launches(r));
	OW_TRY(find_records(r));
	for (uint32_t i = 1; i < m->event.count; i++)
		OW_TRY(read_event(r, i));
	for (size_t i = 0; i < r->part_count; i++)
		OW_TRY(finish_worker(r, i));
	read_frequencies(r);
	return read_lines(r);
}

/* Removes workers of sources without timed slices. */
static void drop_empty(struct reader *r)
{
	struct ranks_job *job = r->job;
	size_t kept = r->first;

	for (size_t i = r->first; i < job->worker_count; i++) {
		if (job->workers[i].events)
			job->workers[kept++] = job->workers[i];
		else
			ranks_worker_release(&job->workers[i], job->mem);
	}
	job->worker_count = kept;
}

ow_status ranks_add(struct ranks_job *job, struct model *m, struct str path, struct ow_error *err)
{
	struct reader r = {
		.job = job, .m = m, .mem = job->mem, .err = err, .first = job->worker_count
	};
	ow_status status;

	(void)path;
	arena_init(&r.scratch, job->mem);
	buf_init(&r.args, job->mem);
	status = read_model(&r);
	phases_release(&r.phases);
	for (size_t i = 0; i < r.part_count; i++) {
		spans_release(&r.parts[i].busy, r.mem);
		vec_free(r.mem, r.parts[i].launched, r.parts[i].launched_cap);
		map_release(&r.parts[i].op_map);
	}
	vec_free(r.mem, r.parts, r.part_cap);
	vec_free(r.mem, r.records, r.record_cap);
	buf_release(&r.args);
	arena_release(&r.scratch);
	drop_empty(&r);
	job->file_count += MAX(m->source.count, 2) - 1;
	return status;
}
