/*
 * step_timeline.c: draws traced steps as TensorFlow's Timeline class does (step_timeline.h). The order of all output is
 * that of TensorFlow's class: processes, lanes, tensors, compute with its arrows, memory. So are its peculiarities,
 * such as tensors produced twice; comments name them.
 */
#include "sink/timeline/step_timeline.h"
#include "base/vec.h"
#include "model/model.h"
#include "sink/timeline/lanes.h"
#include "base/json_escape.h"

/* Events.
 * Events as Python's json.dumps(…, indent=4) writes them: layout and escapes.
 *
 * 	events_open(e, 'X', "Op", name, pid, tid, ts);
 * 	events_int(e, "dur", 5);
 * 	events_args(e);
 * 	events_arg(e, STR("name"), true);
 * 	events_string(e, name);
 * 	events_args_end(e);
 * 	events_close(e);
 */

static void put_string(struct writer *w, struct str s)
{
	char escape[JSON_ESCAPE_MAX];

	writer_char(w, '"');
	while (s.len)
		writer_str(w, json_escape_next(&s, JSON_ASCII, escape));
	writer_char(w, '"');
}

static void events_begin(struct step_events *e, struct mem *mem, const struct out *out,
			 struct ow_error *err)
{
	*e = (struct step_events){ 0 };
	writer_init(&e->w, mem, out, err);
	writer_puts(&e->w, "{\n    \"traceEvents\": [");
}

static ow_status events_finish(struct step_events *e)
{
	writer_puts(&e->w, "\n    ]\n}");
	return writer_finish(&e->w);
}

static void open_event(struct step_events *e)
{
	writer_puts(&e->w, e->any ? ",\n        {" : "\n        {");
	e->any = true;
}

static void events_close(struct step_events *e)
{
	writer_puts(&e->w, "\n        }");
}

static void events_string(struct step_events *e, struct str s)
{
	put_string(&e->w, s);
}

static void put_key(struct step_events *e, const char *key, bool first)
{
	writer_puts(&e->w, first ? "\n            \"" : ",\n            \"");
	writer_puts(&e->w, key);
	writer_puts(&e->w, "\": ");
}

static void events_int(struct step_events *e, const char *key, int64_t value)
{
	put_key(e, key, false);
	writer_int(&e->w, value);
}

static void events_args(struct step_events *e)
{
	put_key(e, "args", false);
	writer_char(&e->w, '{');
}

static void events_arg(struct step_events *e, struct str key, bool first)
{
	writer_puts(&e->w, first ? "\n                " : ",\n                ");
	put_string(&e->w, key);
	writer_puts(&e->w, ": ");
}

static void events_args_end(struct step_events *e)
{
	writer_puts(&e->w, "\n            }");
}

static void events_open(struct step_events *e, char ph, const char *category, struct str name,
			int64_t pid, int64_t tid, int64_t ts)
{
	open_event(e);
	put_key(e, "ph", true);
	writer_printf(&e->w, "\"%c\"", ph);
	put_key(e, "cat", false);
	put_string(&e->w, str_from(category));
	put_key(e, "name", false);
	put_string(&e->w, name);
	events_int(e, "pid", pid);
	events_int(e, "tid", tid);
	events_int(e, "ts", ts);
}

static void events_process(struct step_events *e, int64_t pid, struct str name, const char *what)
{
	struct buf full;

	buf_init(&full, e->w.mem);
	buf_add_str(&full, name);
	buf_puts(&full, what);
	if (full.failed)
		writer_fail(&e->w, error_no_memory(e->w.err));
	open_event(e);
	put_key(e, "name", true);
	writer_puts(&e->w, "\"process_name\"");
	put_key(e, "ph", false);
	writer_puts(&e->w, "\"M\"");
	events_int(e, "pid", pid);
	events_args(e);
	events_arg(e, STR("name"), true);
	put_string(&e->w, buf_str(&full));
	events_args_end(e);
	events_close(e);
	buf_release(&full);
}

struct timeline_device {
	struct str name;
	int64_t compute_pid, tensors_pid;
	uint32_t step; /* number of the last step that listed the device, from 1 */
	struct lanes lanes;
};

/* A tensor of the step being drawn. */
struct tensor {
	struct str name, allocator;
	int64_t id, bytes, create_us, last_unref_us, pid;
	int64_t flow_us, flow_pid, flow_tid; /* start of the arrows that lead to consumers */
	/* index of the next tensor of the same allocator, 0 = none; for add_memory */
	uint32_t next;
};

/* State while one step is drawn. */
struct drawing {
	struct step_timeline *t;
	const struct step_stats *stats;
	uint32_t *tids; /* lane of each node; the nodes of all devices follow each other */
	size_t node_count;
	struct arena arena; /* memory for the names of outputs */
	struct map map;
	struct tensor *tensors; /* index 0 is unused */
	size_t count, cap;
};

static struct timeline_device *find_device(const struct step_timeline *t, struct str name)
{
	for (struct map_iter it = map_find(&t->device_map, str_hash(name)); it.value;
	     it = map_next(&t->device_map, it))
		if (str_eq(t->devices[it.value].name, name))
			return &t->devices[it.value];
	return NULL;
}

static struct timeline_device *add_device(struct step_timeline *t, struct str name)
{
	struct str copy = arena_str(&t->arena, name);

	if (!copy.ptr || !vec_reserve(t->mem, t->devices, t->device_cap, t->device_count + 1)) {
		writer_fail(&t->events.w, error_no_memory(t->err));
		return NULL;
	}
	t->devices[t->device_count] = (struct timeline_device){ .name = copy };
	lanes_init(&t->devices[t->device_count].lanes, t->mem, LANES_APART);
	if (!map_add(&t->device_map, str_hash(copy), (uint32_t)t->device_count)) {
		writer_fail(&t->events.w, error_no_memory(t->err));
		return NULL;
	}
	return &t->devices[t->device_count++];
}

void step_timeline_begin(struct step_timeline *t, struct mem *mem, const struct out *out,
			 bool show_dataflow, bool show_memory, struct ow_error *err)
{
	*t = (struct step_timeline){ .mem = mem,
				     .show_dataflow = show_dataflow,
				     .show_memory = show_memory,
				     .device_count = 1,
				     .next_pid = 1,
				     .err = err };
	arena_init(&t->arena, mem);
	map_init(&t->device_map, mem);
	events_begin(&t->events, mem, out, err);
	events_process(&t->events, 0, STR("Allocators"), "");
}

/* Registers the devices of a step. A device that one step lists twice gets new processes, and the last ones are used
 * for both. */
void step_timeline_devices(struct step_timeline *t, const struct step_stats *stats)
{
	t->steps++;
	for (size_t i = 0; i < stats->count && t->events.w.status == OW_OK; i++) {
		struct str name = stats->devices[i].name;
		struct timeline_device *device = find_device(t, name);

		if (device && device->step != t->steps) {
			device->step = t->steps;
			continue;
		}
		if (!device)
			device = add_device(t, name);
		if (!device)
			return;
		device->step = t->steps;
		device->compute_pid = t->next_pid++;
		device->tensors_pid = t->next_pid++;
		events_process(&t->events, device->compute_pid, name, " Compute");
		events_process(&t->events, device->tensors_pid, name, " Tensors");
	}
}

static void assign_lanes(struct drawing *d)
{
	struct step_timeline *t = d->t;
	size_t at = 0;

	for (size_t i = 0; i < d->stats->count && t->events.w.status == OW_OK; i++) {
		const struct stats_device *from = &d->stats->devices[i];
		struct timeline_device *device = find_device(t, from->name);

		if (!device)
			return;
		/* the step lists the device twice: its lanes start over */
		if (device->step == t->drawn)
			lanes_clear(&device->lanes);
		device->step = t->drawn;
		for (size_t k = 0; k < from->count; k++) {
			const struct stats_node *node = &from->nodes[k];

			if (!lanes_take(&device->lanes, node->start_us,
					wrap_add(node->start_us, node->dur_us), &d->tids[at++])) {
				writer_fail(&t->events.w, error_no_memory(t->err));
				return;
			}
		}
	}
}

static uint32_t find_tensor(const struct drawing *d, struct str name)
{
	for (struct map_iter it = map_find(&d->map, str_hash(name)); it.value;
	     it = map_next(&d->map, it))
		if (str_eq(d->tensors[it.value].name, name))
			return it.value;
	return 0;
}

/* Adds a tensor. A tensor of the same name is replaced but keeps its place; its id is the next new one. */
static struct tensor *produce(struct drawing *d, struct str name)
{
	uint32_t at = find_tensor(d, name);
	int64_t id = d->t->first_tensor + (int64_t)(d->count - 1);

	if (!at) {
		if (!vec_reserve(d->t->mem, d->tensors, d->cap, d->count + 1))
			goto no_memory;
		d->tensors[d->count].name = name;
		if (!map_add(&d->map, str_hash(name), (uint32_t)d->count))
			goto no_memory;
		at = (uint32_t)d->count++;
	}
	d->tensors[at] = (struct tensor){ .name = d->tensors[at].name, .id = id };
	return &d->tensors[at];
no_memory:
	writer_fail(&d->t->events.w, error_no_memory(d->t->err));
	return NULL;
}

static void put_object(struct step_timeline *t, char ph, const struct tensor *tensor, int64_t ts,
		       int64_t tid)
{
	events_open(&t->events, ph, "Tensor", tensor->name, tensor->pid, tid, ts);
	events_int(&t->events, "id", tensor->id);
}

static void put_snapshot(struct step_timeline *t, const struct tensor *tensor, int64_t ts,
			 int64_t tid, struct str description)
{
	put_object(t, 'O', tensor, ts, tid);
	events_args(&t->events);
	events_arg(&t->events, STR("snapshot"), true);
	writer_puts(&t->events.w, "{\n                    \"tensor_description\": ");
	events_string(&t->events, description);
	writer_puts(&t->events.w, "\n                }");
	events_args_end(&t->events);
	events_close(&t->events);
}

/* The name of an output: "node", "node:1", … */
static struct str output_name(struct drawing *d, const struct stats_node *node, uint32_t index)
{
	char *name;

	if (!index)
		return node->name;
	name = arena_push_aligned(&d->arena, node->name.len + 16, 1);
	if (!name) {
		writer_fail(&d->t->events.w, error_no_memory(d->t->err));
		return STR("");
	}
	memcpy(name, node->name.ptr, node->name.len);
	return str_make(name,
			node->name.len + (size_t)snprintf(name + node->name.len, 16, ":%u", index));
}

static void add_outputs(struct drawing *d, const struct timeline_device *device,
			const struct stats_node *node, uint32_t tid)
{
	int64_t start = node->start_us, end = wrap_add(start, node->dur_us);

	for (uint32_t i = 0; i < node->output_count; i++) {
		const struct stats_output *output = &node->outputs[i];
		struct tensor *tensor = produce(d, output_name(d, node, i));

		if (!tensor)
			return;
		tensor->allocator = output->allocator;
		tensor->bytes = output->requested;
		tensor->create_us = start;
		tensor->last_unref_us = end;
		tensor->pid = device->tensors_pid;
		tensor->flow_us = end;
		tensor->flow_pid = device->compute_pid;
		tensor->flow_tid = tid;
		if (!d->t->show_memory)
			continue;
		put_object(d->t, 'N', tensor, start, tid);
		events_close(&d->t->events);
		put_snapshot(d->t, tensor, wrap_add(end, -1), tid, output->description);
	}
}

static void add_tensors(struct drawing *d)
{
	size_t at = 0;

	for (size_t i = 0; i < d->stats->count; i++) {
		const struct stats_device *from = &d->stats->devices[i];
		const struct timeline_device *device = find_device(d->t, from->name);

		for (size_t k = 0; device && k < from->count && d->t->events.w.status == OW_OK; k++)
			add_outputs(d, device, &from->nodes[k], d->tids[at++]);
	}
}

struct label {
	struct str op, inputs; /* inputs: separated by ", "; NULL ptr when there are none */
};

static size_t rfind(struct str s, struct str needle)
{
	for (size_t i = s.len; i + 1 > needle.len;) {
		if (memcmp(s.ptr + (i - needle.len), needle.ptr, needle.len) == 0)
			return i - needle.len;
		i--;
	}
	return STR_NONE;
}

/* Matches "(.*) = (.*)\((.*)\)" from the start, greedily, where '.' does not match a line feed. */
static bool parse_label(struct str text, struct label *label)
{
	struct str line = str_first(text, str_find_char(text, '\n'));
	size_t close = str_rfind_char(line, ')'), open, equals;

	*label = (struct label){ STR("unknown"), { NULL, 0 } };
	if (close == STR_NONE)
		return false;
	open = str_rfind_char(str_first(line, close), '(');
	if (open == STR_NONE)
		return false;
	equals = rfind(str_first(line, open), STR(" = "));
	if (equals == STR_NONE)
		return false;
	label->op = str_first(str_skip(line, equals + 3), open - equals - 3);
	if (close > open + 1)
		label->inputs = str_first(str_skip(line, open + 1), close - open - 1);
	return true;
}

/* Removes the next input from *rest; false at the end. */
static bool next_input(struct str *rest, struct str *input)
{
	size_t comma;

	if (!rest->ptr)
		return false;
	comma = str_find(*rest, STR(", "));
	*input = str_first(*rest, comma);
	*rest = comma == STR_NONE ? (struct str){ NULL, 0 } : str_skip(*rest, comma + 2);
	return true;
}

/* Whether a device is a stream or copy engine; records of these are called name:op. */
static bool is_gpu_trace(struct str device)
{
	return str_has(device, STR("/stream:")) || str_has(device, STR("/memcpy"));
}

static struct label label_of(const struct stats_node *node, bool gpu_trace, struct str *name)
{
	struct label label;
	size_t colon;

	*name = node->name;
	if (gpu_trace) {
		colon = str_find_char(node->name, ':');
		*name = str_first(node->name, colon);
		label = (struct label){ STR("unknown"), { NULL, 0 } };
		if (colon != STR_NONE) {
			struct str rest = str_skip(node->name, colon + 1);

			label.op = str_first(rest, str_find_char(rest, ':'));
		}
		return label;
	}
	if (str_eq(node->name, STR("RecvTensor")))
		return (struct label){ STR("RecvTensor"), { NULL, 0 } };
	parse_label(node->label, &label);
	return label;
}

static void put_op(struct step_timeline *t, const struct stats_node *node, struct str name,
		   const struct label *label, int64_t pid, uint32_t tid)
{
	struct str rest = label->inputs, input;
	uint32_t number = 0;
	char key[24];

	events_open(&t->events, 'X', "Op", label->op, pid, tid, node->start_us);
	events_int(&t->events, "dur", node->dur_us);
	events_args(&t->events);
	events_arg(&t->events, STR("name"), true);
	events_string(&t->events, name);
	events_arg(&t->events, STR("op"), false);
	events_string(&t->events, label->op);
	while (next_input(&rest, &input)) {
		snprintf(key, sizeof(key), "input%u", number++);
		events_arg(&t->events, str_from(key), false);
		events_string(&t->events, input);
	}
	events_args_end(&t->events);
	events_close(&t->events);
}

static void put_flow(struct step_timeline *t, char ph, struct str name, int64_t ts, int64_t pid,
		     int64_t tid, int64_t id)
{
	events_open(&t->events, ph, "DataFlow", name, pid, tid, ts);
	events_int(&t->events, "id", id);
	events_close(&t->events);
}

/* Finds the tensor of an input. Partitioning puts a send and a receive between ops and adds "/_123" to the name of
 * the received tensor. */
static uint32_t find_producer(const struct drawing *d, struct str *input)
{
	uint32_t found = find_tensor(d, *input);
	size_t cut;

	if (found)
		return found;
	cut = rfind(*input, STR("/_"));
	if (cut == STR_NONE || cut == 0)
		return 0;
	*input = str_first(*input, cut);
	return find_tensor(d, *input);
}

static void add_inputs(struct drawing *d, const struct stats_node *node, const struct label *label,
		       int64_t pid, uint32_t tid)
{
	struct str rest = label->inputs, input;
	int64_t unref = wrap_add(wrap_add(node->start_us, node->dur_us), -1);

	while (next_input(&rest, &input)) {
		uint32_t at = find_producer(d, &input);
		struct tensor *tensor = &d->tensors[at];
		int64_t id;

		if (!at)
			continue;
		tensor->last_unref_us = MAX(tensor->last_unref_us, unref);
		if (!d->t->show_dataflow || (tensor->flow_pid == pid && tensor->flow_tid == tid))
			continue;
		id = d->t->next_flow++;
		put_flow(d->t, 's', input, tensor->flow_us, tensor->flow_pid, tensor->flow_tid, id);
		put_flow(d->t, 't', input, node->start_us, pid, tid, id);
	}
}

static void add_compute(struct drawing *d)
{
	size_t at = 0;

	for (size_t i = 0; i < d->stats->count; i++) {
		const struct stats_device *from = &d->stats->devices[i];
		const struct timeline_device *device = find_device(d->t, from->name);
		bool gpu_trace = is_gpu_trace(from->name);

		for (size_t k = 0; device && k < from->count && d->t->events.w.status == OW_OK;
		     k++) {
			const struct stats_node *node = &from->nodes[k];
			uint32_t tid = d->tids[at++];
			struct label label;
			struct str name;

			label = label_of(node, gpu_trace, &name);
			put_op(d->t, node, name, &label, device->compute_pid, tid);
			add_inputs(d, node, &label, device->compute_pid, tid);
		}
	}
}

struct change {
	int64_t ts, bytes;
	struct str name;
};

static int by_time(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return str_cmp(x->name, y->name);
}

/* Writes the counter of one allocator, whose tensors are chained from `first` on. */
static void put_counters(struct drawing *d, uint32_t first, struct change *changes)
{
	struct step_timeline *t = d->t;
	struct str allocator = d->tensors[first].allocator;
	size_t count = 0;
	int64_t total = 0;

	for (uint32_t i = first; i; i = d->tensors[i].next) {
		const struct tensor *x = &d->tensors[i];
		int64_t freed = (int64_t)(0 - (uint64_t)x->bytes);

		changes[count++] = (struct change){ x->create_us, x->bytes, x->name };
		changes[count++] = (struct change){ x->last_unref_us, freed, x->name };
	}
	qsort(changes, count, sizeof(*changes), by_time);
	for (size_t i = 0; i < count && t->events.w.status == OW_OK; i++) {
		total = wrap_add(total, changes[i].bytes);
		if (t->memory)
			t->memory(t->memory_arg, allocator, changes[i].name, changes[i].ts,
				  changes[i].bytes);
		events_open(&t->events, 'C', "Memory", allocator, 0, 0, changes[i].ts);
		events_args(&t->events);
		events_arg(&t->events, allocator, true);
		writer_int(&t->events.w, total);
		events_args_end(&t->events);
		events_close(&t->events);
	}
}

/* Chains the tensors of each allocator, from the last to the first; firsts[] receives the heads, in order of use.
 * Returns the number of allocators. */
static size_t chain_allocators(struct drawing *d, uint32_t *firsts)
{
	struct map heads; /* allocator → its first tensor so far */
	size_t count = 0;

	map_init(&heads, d->t->mem);
	for (uint32_t i = (uint32_t)d->count; i-- > 1;) {
		uint64_t hash = str_hash(d->tensors[i].allocator);
		struct map_iter it;

		for (it = map_find(&heads, hash); it.value; it = map_next(&heads, it))
			if (str_eq(d->tensors[it.value].allocator, d->tensors[i].allocator))
				break;
		if (it.value) {
			d->tensors[i].next = it.value;
			heads.slots[it.index].value = i;
		} else if (!map_add(&heads, hash, i)) {
			writer_fail(&d->t->events.w, error_no_memory(d->t->err));
			break;
		}
	}
	for (uint32_t i = 1; i < d->count; i++)
		for (struct map_iter it = map_find(&heads, str_hash(d->tensors[i].allocator));
		     it.value; it = map_next(&heads, it))
			if (it.value == i)
				firsts[count++] = i;
	map_release(&heads);
	return count;
}

static void add_memory(struct drawing *d)
{
	size_t size = d->count * (2 * sizeof(struct change) + sizeof(uint32_t)), count;
	struct change *changes = mem_alloc(d->t->mem, size);
	uint32_t *firsts = changes ? (uint32_t *)(changes + 2 * d->count) : NULL;

	if (!changes) {
		writer_fail(&d->t->events.w, error_no_memory(d->t->err));
		return;
	}
	for (size_t i = 1; i < d->count && d->t->events.w.status == OW_OK; i++) {
		put_object(d->t, 'D', &d->tensors[i], d->tensors[i].last_unref_us, 0);
		events_close(&d->t->events);
	}
	count = chain_allocators(d, firsts);
	for (size_t i = 0; i < count && d->t->events.w.status == OW_OK; i++)
		put_counters(d, firsts[i], changes);
	mem_free(d->t->mem, changes, size);
}

static void put_step(struct step_timeline *t, const struct step_stats *stats)
{
	int64_t first = INT64_MAX, last = INT64_MIN;
	char name[32];

	for (size_t i = 0; i < stats->count; i++)
		for (size_t k = 0; k < stats->devices[i].count; k++) {
			const struct stats_node *node = &stats->devices[i].nodes[k];

			if (node->start_us <= 0)
				continue;
			first = MIN(first, node->start_us);
			last = MAX(last, wrap_add(node->start_us, node->dur_us));
		}
	if (first > last)
		return;
	snprintf(name, sizeof(name), "step %" PRId64, stats->step);
	events_open(&t->events, 'X', "Step", str_from(name), t->next_pid, 0, first);
	events_int(&t->events, "dur", wrap_add(last, -first));
	events_args(&t->events);
	events_arg(&t->events, STR("step"), true);
	writer_int(&t->events.w, stats->step);
	events_args_end(&t->events);
	events_close(&t->events);
}

void step_timeline_draw(struct step_timeline *t, const struct step_stats *stats)
{
	struct drawing d = { .t = t, .stats = stats, .count = 1 };

	if (t->events.w.status != OW_OK)
		return;
	if (!t->drawn++) {
		for (size_t i = 1; i < t->device_count; i++)
			t->devices[i].step = 0;
		if (t->steps > 1)
			events_process(&t->events, t->next_pid, STR("Steps"), "");
	}
	for (size_t i = 0; i < stats->count; i++)
		d.node_count += stats->devices[i].count;
	d.tids = mem_zalloc(t->mem, (d.node_count + 1) * sizeof(*d.tids));
	d.tensors = mem_zalloc(t->mem, 8 * sizeof(*d.tensors));
	d.cap = 8;
	if (!d.tids || !d.tensors) {
		writer_fail(&t->events.w, error_no_memory(t->err));
	} else {
		map_init(&d.map, t->mem);
		arena_init(&d.arena, t->mem);
		assign_lanes(&d);
		add_tensors(&d);
		add_compute(&d);
		if (t->show_memory)
			add_memory(&d);
		if (t->steps > 1)
			put_step(t, stats);
		map_release(&d.map);
		arena_release(&d.arena);
	}
	t->first_tensor += (int64_t)d.count;
	mem_free(t->mem, d.tids, d.tids ? (d.node_count + 1) * sizeof(*d.tids) : 0);
	mem_free(t->mem, d.tensors, d.tensors ? d.cap * sizeof(*d.tensors) : 0);
}

ow_status step_timeline_finish(struct step_timeline *t)
{
	for (size_t i = 1; i < t->device_count; i++)
		lanes_release(&t->devices[i].lanes);
	mem_free(t->mem, t->devices, t->device_cap * sizeof(*t->devices));
	map_release(&t->device_map);
	arena_release(&t->arena);
	return events_finish(&t->events);
}
