/*
 * sink_timeline.c: writes Chrome-trace timelines as tfprof does, byte for byte: the displayed tree of the scope and
 * code views with one row per depth, and one step of the graph view with its devices. The output is streamed. The
 * caller chooses the file, writes one file per step, and warns of large files.
 */
#include "sink/timeline/timeline_memory.h"
#include "base/vec.h"
#include "sink/timeline/lanes.h"

/* Graph.
 * One step of the graph view: a slice per run of every displayed op, on its device or on the accelerator's streams,
 * overlapping slices on several lanes, and flows from producers on other devices. The rules are tfprof's; its searches
 * are replaced by sorted arrays:
 *
 *  - a device is a row of `devices`, in byte order of names ("map order");
 *  - slices are sorted by (device, start); of several with the same start the first one stays;
 *  - the lowest free lane comes from lanes.h. tfprof scans a lane backwards, but all its slices but the last end before
 *    that one starts, so the last decides.
 */

/* Limit of flows. There is one for every pair of runs of producer and consumer: loops can make billions. */
#define FLOWS_MAX ((size_t)20 << 20)

struct device {
	str_id name;
	bool canonical;
	int64_t pid;	       /* process id; -1 until the walk reaches the device */
	uint32_t first, count; /* range of the device's slices */
	uint32_t lanes;
};

struct slice {
	int64_t start, dur;
	uint32_t device;
	uint32_t order; /* position of the op in the walk */
	op_id op;
	uint32_t lane;
};

struct flow {
	uint32_t src, dst; /* indexes of slices */
};

struct graph {
	struct timeline *t;
	const struct model *m;
	struct mem *mem;
	step_id step;

	uint32_t *op_step; /* for each op: its row in op_step at this step, 0 = none */
	/* for each op: index of its first run in `runs`; one more entry marks the end */
	uint32_t *run_first;
	uint32_t *runs; /* events of this step that count, grouped by op, in table order */
	uint32_t run_count;

	struct device *devices;
	uint32_t device_count;
	uint32_t *device_of_track; /* for each track: row in `devices`, or UINT32_MAX */
	uint32_t *by_pid;	   /* rows in `devices` of the devices that the walk reached */
	/* for each op: the device of all its executor runs, or one of the constants below */
	uint32_t *executor;

	struct slice *slices;
	size_t slice_cap;
	uint32_t slice_count;

	uint32_t *emit; /* indexes of slices, sorted by pid, lane, start */

	struct flow *flows; /* in the order found; later grouped by src */
	size_t flow_cap, flow_count;
	bool flows_cut;
	/* for each slice: index of its first flow; one more entry marks the end */
	uint32_t *flow_first;
	uint32_t *flow_dst;

	struct tracked *tracked;
	size_t tracked_cap;
	uint32_t tracked_count;
};

#define EXECUTOR_NONE UINT32_MAX
#define EXECUTOR_SEVERAL (UINT32_MAX - 1)

#define ALLOC(g, count, type) mem_zalloc((g)->mem, ((size_t)(count) + 1) * sizeof(type))
#define FREE(g, ptr, count)                                                                        \
	do {                                                                                       \
		if (ptr)                                                                           \
			mem_free((g)->mem, ptr, ((size_t)(count) + 1) * sizeof(*(ptr)));           \
	} while (0)

static bool counts(const struct graph *g, uint32_t event)
{
	uint8_t kind = g->m->track.kind[g->m->event.track[event].v];

	return g->step.v && g->m->event.step[event].v == g->step.v && g->m->event.op[event].v &&
	       (kind == TRACK_DEVICE || kind == TRACK_ACCELERATOR);
}

static ow_status index_runs(struct graph *g)
{
	const struct model *m = g->m;
	uint32_t sum = 0;

	g->op_step = ALLOC(g, m->op.count, uint32_t);
	g->run_first = ALLOC(g, m->op.count, uint32_t);
	if (!g->op_step || !g->run_first)
		return error_no_memory(g->t->err);
	for (uint32_t row = 1; row < m->op_step.count; row++)
		if (g->step.v && m->op_step.step[row].v == g->step.v)
			g->op_step[m->op_step.op[row].v] = row;
	for (uint32_t e = 1; e < m->event.count; e++)
		if (counts(g, e))
			g->run_first[m->event.op[e].v + 1]++;
	for (uint32_t op = 0; op <= m->op.count; op++)
		g->run_first[op] = sum += g->run_first[op];
	g->run_count = sum;
	g->runs = ALLOC(g, sum, uint32_t);
	if (!g->runs)
		return error_no_memory(g->t->err);
	/* run_first[op + 1] is used as the position to fill, and ends as the start of op + 1 */
	for (uint32_t e = m->event.count; e-- > 1;)
		if (counts(g, e))
			g->runs[--g->run_first[m->event.op[e].v + 1]] = e;
	for (uint32_t op = 0; op < m->op.count; op++)
		g->run_first[op] = g->run_first[op + 1];
	g->run_first[m->op.count] = sum;
	return OW_OK;
}

static bool trackable(const struct graph *g, op_id op)
{
	uint32_t row = op.v ? g->op_step[op.v] : 0;

	return row && g->m->op_step.first_start_ns[row] != 0 && g->m->op.device[op.v].v;
}

/* Whether the whole name matches the expression .*[/](device:gpu|gpu|device:cpu|cpu|device:sycl):\d+ */
static bool is_canonical(struct str name)
{
	static const char *const kinds[] = { "/device:gpu", "/gpu", "/device:cpu", "/cpu",
					     "/device:sycl" };
	size_t digits = 0;

	while (digits < name.len && name.ptr[name.len - 1 - digits] >= '0' &&
	       name.ptr[name.len - 1 - digits] <= '9')
		digits++;
	if (!digits || digits == name.len || name.ptr[name.len - 1 - digits] != ':')
		return false;
	name.len -= digits + 1;
	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
		if (str_ends(name, str_from(kinds[i])))
			return str_find_char(name, '\n') == STR_NONE;
	return false;
}

static int compare_devices(const void *a, const void *b, void *model)
{
	const struct device *x = a, *y = b;

	return str_cmp(model_str(model, x->name), model_str(model, y->name));
}

static uint32_t find_device(const struct graph *g, struct str name)
{
	uint32_t low = 0, high = g->device_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = str_cmp(model_str(g->m, g->devices[middle].name), name);

		if (!order)
			return middle;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return UINT32_MAX;
}

static ow_status list_devices(struct graph *g)
{
	const struct model *m = g->m;
	uint32_t kept = 0;

	g->device_of_track = ALLOC(g, m->track.count, uint32_t);
	g->devices = ALLOC(g, m->track.count, struct device);
	g->by_pid = ALLOC(g, m->track.count, uint32_t);
	if (!g->device_of_track || !g->devices || !g->by_pid)
		return error_no_memory(g->t->err);
	for (uint32_t track = 1; track < m->track.count; track++)
		if (m->track.kind[track] == TRACK_DEVICE ||
		    m->track.kind[track] == TRACK_ACCELERATOR)
			g->devices[g->device_count++].name = m->track.name[track];
	qsort_r(g->devices, g->device_count, sizeof(*g->devices), compare_devices,
		(void *)(uintptr_t)m);
	for (uint32_t i = 0; i < g->device_count; i++)
		if (!i || g->devices[i].name.v != g->devices[kept - 1].name.v)
			g->devices[kept++].name = g->devices[i].name;
	g->device_count = kept;
	for (uint32_t i = 0; i < kept; i++) {
		g->devices[i].pid = -1;
		g->devices[i].canonical = is_canonical(model_str(m, g->devices[i].name));
	}
	for (uint32_t track = 0; track < m->track.count; track++)
		g->device_of_track[track] = find_device(g, model_str(m, m->track.name[track]));
	return OW_OK;
}

/* Finds the device of each op's executor runs, so that link_producer need not search all runs of a producer for each
 * run of a consumer on the same device. */
static ow_status find_executors(struct graph *g)
{
	const struct model *m = g->m;

	g->executor = ALLOC(g, m->op.count, uint32_t);
	if (!g->executor)
		return error_no_memory(g->t->err);
	memset(g->executor, 0xff, (size_t)m->op.count * sizeof(*g->executor));
	for (uint32_t i = 0; i < g->run_count; i++) {
		track_id track = m->event.track[g->runs[i]];
		uint32_t *executor = &g->executor[m->event.op[g->runs[i]].v];
		uint32_t device = g->device_of_track[track.v];

		if (m->track.kind[track.v] != TRACK_DEVICE)
			continue;
		*executor = *executor == EXECUTOR_NONE || *executor == device ? device
									      : EXECUTOR_SEVERAL;
	}
	return OW_OK;
}

static ow_status add_slice(struct graph *g, uint32_t event, uint32_t device)
{
	const struct model *m = g->m;
	int64_t dur = m->event.dur_ns[event];

	if (!vec_reserve(g->mem, g->slices, g->slice_cap, (size_t)g->slice_count + 1))
		return error_no_memory(g->t->err);
	g->slices[g->slice_count] = (struct slice){ .start = m->event.ts_ns[event],
						    .dur = dur == TIME_UNKNOWN ? 0 : dur,
						    .device = device,
						    .order = g->slice_count,
						    .op = m->event.op[event] };
	g->slice_count++;
	return OW_OK;
}

static void see_device(struct graph *g, uint32_t device)
{
	struct device *d = &g->devices[device];
	struct str name = model_str(g->m, d->name);

	if (d->pid >= 0)
		return;
	g->by_pid[g->t->next_pid] = device;
	d->pid = g->t->next_pid++;
	timeline_process(g->t, d->pid,
			 str_has(name, STR("stream")) ? "Op execution threads: "
						      : "Op scheduling threads: ",
			 name, "");
}

/* The smallest device row above `after` among the runs of an op; UINT32_MAX if there is none. */
static uint32_t next_device(const struct graph *g, op_id op, int64_t after)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = g->run_first[op.v]; i < g->run_first[op.v + 1]; i++) {
		uint32_t device = g->device_of_track[g->m->event.track[g->runs[i]].v];

		if ((int64_t)device > after && device < best)
			best = device;
	}
	return best;
}

/* Adds the runs of an op as slices: by device in order of names; for one device the accelerator's runs come before
 * the executor's. */
static ow_status add_runs(struct graph *g, op_id op)
{
	static const uint8_t kinds[] = { TRACK_ACCELERATOR, TRACK_DEVICE };
	const struct model *m = g->m;

	for (uint32_t d = next_device(g, op, -1); d != UINT32_MAX; d = next_device(g, op, d)) {
		see_device(g, d);
		for (size_t k = 0; k < ARRAY_COUNT(kinds); k++)
			for (uint32_t i = g->run_first[op.v]; i < g->run_first[op.v + 1]; i++) {
				track_id track = m->event.track[g->runs[i]];

				if (g->device_of_track[track.v] == d &&
				    m->track.kind[track.v] == kinds[k])
					OW_TRY(add_slice(g, g->runs[i], d));
			}
	}
	return OW_OK;
}

static ow_status track_op(struct graph *g, op_id op)
{
	if (!vec_reserve(g->mem, g->tracked, g->tracked_cap, (size_t)g->tracked_count + 1))
		return error_no_memory(g->t->err);
	g->tracked[g->tracked_count++] = (struct tracked){ op, g->op_step[op.v] };
	return OW_OK;
}

static ow_status collect_ops(struct graph *g)
{
	for (uint32_t i = 1; i < g->t->tree->node_count; i++) {
		op_id op = g->t->tree->nodes[i].op;

		if (!trackable(g, op))
			continue;
		OW_TRY(track_op(g, op));
		OW_TRY(add_runs(g, op));
	}
	return OW_OK;
}

static int compare_slices(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void sort_slices(struct graph *g)
{
	uint32_t kept = 0;

	if (!g->slice_count)
		return;
	qsort(g->slices, g->slice_count, sizeof(*g->slices), compare_slices);
	for (uint32_t i = 0; i < g->slice_count; i++) {
		struct device *d = &g->devices[g->slices[i].device];

		if (kept && g->slices[kept - 1].device == g->slices[i].device &&
		    g->slices[kept - 1].start == g->slices[i].start)
			continue;
		if (!d->count++)
			d->first = kept;
		g->slices[kept++] = g->slices[i];
	}
	g->slice_count = kept;
}

static ow_status place(struct graph *g, struct device *d)
{
	bool good = true;
	struct lanes lanes;

	lanes_init(&lanes, g->mem, LANES_TOUCHING);
	for (uint32_t i = d->first; i < d->first + d->count && good; i++) {
		struct slice *s = &g->slices[i];

		good = lanes_take(&lanes, s->start, wrap_add(s->start, s->dur), &s->lane);
	}
	d->lanes = (uint32_t)lanes.used;
	lanes_release(&lanes);
	return good ? OW_OK : error_no_memory(g->t->err);
}

/* Sorts the slices of a device by (lane, start) into the array at `to`: a counting sort that keeps the order by
 * start. */
static ow_status order_device(struct graph *g, const struct device *d, uint32_t *to)
{
	uint32_t *first = ALLOC(g, d->lanes, uint32_t), sum = 0;

	if (!first)
		return error_no_memory(g->t->err);
	for (uint32_t i = d->first; i < d->first + d->count; i++)
		first[g->slices[i].lane + 1]++;
	for (uint32_t lane = 0; lane <= d->lanes; lane++)
		first[lane] = sum += first[lane];
	for (uint32_t i = d->first; i < d->first + d->count; i++)
		to[first[g->slices[i].lane]++] = i;
	FREE(g, first, d->lanes);
	return OW_OK;
}

static ow_status allocate_lanes(struct graph *g)
{
	uint32_t at = 0;

	if (!g->slices)
		return OW_OK;
	g->emit = ALLOC(g, g->slice_count, uint32_t);
	if (!g->emit)
		return error_no_memory(g->t->err);
	for (uint32_t i = 0; i < g->device_count; i++)
		OW_TRY(place(g, &g->devices[i]));
	for (int64_t pid = 0; pid < g->t->next_pid; pid++) {
		const struct device *d = &g->devices[g->by_pid[pid]];

		OW_TRY(order_device(g, d, g->emit + at));
		at += d->count;
	}
	return OW_OK;
}

static uint32_t find_slice(const struct graph *g, const struct device *d, int64_t start)
{
	uint32_t low = d->first, high = d->first + d->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (g->slices[middle].start == start)
			return middle;
		if (g->slices[middle].start < start)
			low = middle + 1;
		else
			high = middle;
	}
	return UINT32_MAX;
}

static ow_status add_flow(struct graph *g, uint32_t src, uint32_t dst)
{
	if (g->flow_count == FLOWS_MAX) {
		g->flows_cut = true;
		return OW_OK;
	}
	if (!vec_reserve(g->mem, g->flows, g->flow_cap, g->flow_count + 1))
		return error_no_memory(g->t->err);
	g->flows[g->flow_count++] = (struct flow){ src, dst };
	return OW_OK;
}

/* Adds a flow from every executor run of `producer` on another device to the slice dst. */
static ow_status link_producer(struct graph *g, op_id producer, uint32_t dst)
{
	const struct model *m = g->m;
	uint32_t d = g->executor[producer.v];

	if (d == EXECUTOR_NONE || d == g->slices[dst].device)
		return OW_OK;
	for (d = next_device(g, producer, -1); d != UINT32_MAX; d = next_device(g, producer, d)) {
		if (!g->devices[d].canonical || d == g->slices[dst].device)
			continue;
		for (uint32_t i = g->run_first[producer.v]; i < g->run_first[producer.v + 1]; i++) {
			track_id track = m->event.track[g->runs[i]];
			uint32_t src;

			if (g->device_of_track[track.v] != d ||
			    m->track.kind[track.v] != TRACK_DEVICE)
				continue;
			src = find_slice(g, &g->devices[d], m->event.ts_ns[g->runs[i]]);
			if (g->flows_cut)
				return OW_OK;
			if (src != UINT32_MAX)
				OW_TRY(add_flow(g, src, dst));
		}
	}
	return OW_OK;
}

static bool accounted(const struct graph *g, op_id op)
{
	return !g->t->tree->op_accounted || g->t->tree->op_accounted[op.v];
}

static ow_status link_slice(struct graph *g, uint32_t slice)
{
	const struct model *m = g->m;
	op_id op = g->slices[slice].op;

	for (uint32_t i = 0; i < m->op.input_count[op.v] && !g->flows_cut; i++) {
		op_id src = m->op_input.src[m->op.input_first[op.v] + i];

		if (src.v && accounted(g, src) && trackable(g, src))
			OW_TRY(link_producer(g, src, slice));
	}
	return OW_OK;
}

/* Groups flows by source slice, keeping the order in which they were found. */
static ow_status group_flows(struct graph *g)
{
	uint32_t sum = 0;

	g->flow_first = ALLOC(g, (size_t)g->slice_count + 1, uint32_t);
	g->flow_dst = ALLOC(g, g->flow_count, uint32_t);
	if (!g->flow_first || !g->flow_dst)
		return error_no_memory(g->t->err);
	for (size_t i = 0; i < g->flow_count; i++)
		g->flow_first[g->flows[i].src + 2]++;
	for (uint32_t s = 0; s <= g->slice_count + 1; s++)
		g->flow_first[s] = sum += g->flow_first[s];
	for (size_t i = 0; i < g->flow_count; i++)
		g->flow_dst[g->flow_first[g->flows[i].src + 1]++] = g->flows[i].dst;
	return OW_OK;
}

static ow_status find_flows(struct graph *g)
{
	for (uint32_t d = 0; d < g->device_count; d++)
		for (uint32_t i = 0; g->devices[d].canonical && i < g->devices[d].count; i++)
			OW_TRY(link_slice(g, g->devices[d].first + i));
	if (g->flows_cut && g->t->options->message)
		g->t->options->message(g->t->options->message_arg,
				       STR("More than 20 million flows: the rest is left out."));
	return group_flows(g);
}

static struct str slice_name(const struct graph *g, const struct slice *s)
{
	return model_str(g->m, g->m->op.name[s->op.v]);
}

static void put_flow(struct graph *g, struct str name, char phase, uint64_t id, int64_t ts,
		     const struct slice *at)
{
	struct writer *w = &g->t->w;

	timeline_next(g->t);
	writer_printf(w, "{\"cat\":\"DataFlow\",\"id\":%" PRIu64 ",\"name\":\"", id);
	writer_json_ascii(w, name);
	writer_printf(w, "_flow\",\"ph\":\"%c\",\"pid\":%" PRId64 ",\"tid\":%" PRIu32 ",\"ts\":",
		      phase, g->devices[at->device].pid, at->lane);
	writer_micros(w, ts);
	writer_char(w, '}');
}

static void put_flows(struct graph *g)
{
	uint64_t id = 1;

	for (uint32_t i = 0; i < g->slice_count && g->t->w.status == OW_OK; i++) {
		const struct slice *s = &g->slices[g->emit[i]];
		uint32_t last = g->flow_first[g->emit[i] + 1];

		for (uint32_t f = g->flow_first[g->emit[i]]; f < last; f++, id++) {
			const struct slice *dst = &g->slices[g->flow_dst[f]];

			put_flow(g, slice_name(g, s), 's', id, wrap_add(s->start, s->dur), s);
			put_flow(g, slice_name(g, s), 't', id, dst->start, dst);
		}
	}
}

static void put_slices(struct graph *g)
{
	for (uint32_t i = 0; i < g->slice_count && g->t->w.status == OW_OK; i++) {
		const struct slice *s = &g->slices[g->emit[i]];

		timeline_region(g->t, s->start, s->dur, g->devices[s->device].pid, s->lane,
				slice_name(g, s), false);
	}
}

static ow_status put_all(struct graph *g)
{
	struct timeline_memory *memory;

	timeline_stdout(g->t, STR("generating trace file."));
	OW_TRY(timeline_memory_new(g->t, g->tracked, g->tracked_count, &memory));
	put_slices(g);
	timeline_memory_names(memory);
	put_flows(g);
	timeline_memory_counters(memory);
	timeline_memory_free(memory);
	return OW_OK;
}

static ow_status build(struct graph *g)
{
	OW_TRY(index_runs(g));
	OW_TRY(list_devices(g));
	OW_TRY(find_executors(g));
	OW_TRY(collect_ops(g));
	sort_slices(g);
	OW_TRY(find_flows(g));
	OW_TRY(allocate_lanes(g));
	return put_all(g);
}

static ow_status timeline_graph(struct timeline *t)
{
	struct graph g = { .t = t,
			   .m = t->tree->model,
			   .mem = t->mem,
			   .step = model_find_step(t->tree->model, t->tree->step) };
	const struct model *m = g.m;
	ow_status status = build(&g);

	FREE(&g, g.op_step, m->op.count);
	FREE(&g, g.run_first, m->op.count);
	FREE(&g, g.runs, g.run_count);
	FREE(&g, g.devices, m->track.count);
	FREE(&g, g.device_of_track, m->track.count);
	FREE(&g, g.by_pid, m->track.count);
	FREE(&g, g.executor, m->op.count);
	FREE(&g, g.emit, g.slice_count);
	FREE(&g, g.flow_first, (size_t)g.slice_count + 1);
	FREE(&g, g.flow_dst, g.flow_count);
	if (g.slices)
		mem_free(g.mem, g.slices, g.slice_cap * sizeof(*g.slices));
	if (g.flows)
		mem_free(g.mem, g.flows, g.flow_cap * sizeof(*g.flows));
	if (g.tracked)
		mem_free(g.mem, g.tracked, g.tracked_cap * sizeof(*g.tracked));
	return status;
}

void timeline_next(struct timeline *t)
{
	if (t->any)
		writer_char(&t->w, ',');
	t->any = true;
}

void timeline_stdout(struct timeline *t, struct str line)
{
	if (t->options->stdout_line)
		t->options->stdout_line(t->options->stdout_arg, line);
}

void timeline_process(struct timeline *t, int64_t pid, const char *before, struct str name,
		      const char *after)
{
	timeline_next(t);
	writer_puts(&t->w, "{\"args\":{\"name\":\"");
	writer_puts(&t->w, before);
	writer_json_ascii(&t->w, name);
	writer_puts(&t->w, after);
	writer_puts(&t->w, "\"},\"name\":\"process_name\",\"ph\":\"M\",\"pid\":");
	writer_int(&t->w, pid);
	writer_char(&t->w, '}');
}

static void put_time(struct timeline *t, int64_t time)
{
	if (t->in_micros)
		writer_int(&t->w, time);
	else
		writer_micros(&t->w, time);
}

void timeline_region(struct timeline *t, int64_t start, int64_t dur, int64_t pid, int64_t tid,
		     struct str name, bool with_op)
{
	timeline_next(t);
	writer_puts(&t->w, "{\"args\":{\"name\":\"");
	writer_json_ascii(&t->w, name);
	if (with_op) {
		writer_puts(&t->w, "\",\"op\":\"");
		writer_json_ascii(&t->w, name);
	}
	writer_puts(&t->w, "\"},\"cat\":\"Op\",\"dur\":");
	put_time(t, dur);
	writer_puts(&t->w, ",\"name\":\"");
	writer_json_ascii(&t->w, name);
	writer_puts(&t->w, "\",\"ph\":\"X\",\"pid\":");
	writer_int(&t->w, pid);
	writer_puts(&t->w, ",\"tid\":");
	writer_int(&t->w, tid);
	writer_puts(&t->w, ",\"ts\":");
	put_time(t, start);
	writer_char(&t->w, '}');
}

static void put_depth(struct timeline *t, uint32_t depth)
{
	char number[16];

	snprintf(number, sizeof(number), "%" PRIu32, depth);
	timeline_process(t, depth, "Scope:", str_from(number), "");
}

/* Writes the tree. `next` holds, for each node, where its next child starts. A subtree without time is left out. The
 * original stops when children take longer than their parent; here they extend beyond it. */
static void put_tree(struct timeline *t, int64_t *next)
{
	const struct tree_node *nodes = t->tree->nodes;
	uint32_t depths = 0, skip_below = UINT32_MAX;

	for (uint32_t i = 0; i < t->tree->node_count && t->w.status == OW_OK; i++) {
		int64_t total = tree_total_stored(t->tree, &nodes[i], METRIC_MICROS), start = 0;

		if (nodes[i].depth > skip_below)
			continue;
		skip_below = i && total <= 0 ? nodes[i].depth : UINT32_MAX;
		if (skip_below != UINT32_MAX)
			continue;
		if (i) {
			start = next[nodes[i].parent];
			next[nodes[i].parent] = wrap_add(start, total);
		}
		next[i] = start;
		if (nodes[i].depth == depths)
			put_depth(t, depths++);
		timeline_region(t, start, total, nodes[i].depth, 0, nodes[i].name, true);
	}
}

static ow_status tree_timeline(struct timeline *t)
{
	size_t size = ((size_t)t->tree->node_count + 1) * sizeof(int64_t);
	int64_t *next = mem_alloc(t->mem, size);

	if (!next)
		return error_no_memory(t->err);
	t->in_micros = t->tree->in_micros;
	put_tree(t, next);
	mem_free(t->mem, next, size);
	return OW_OK;
}

static ow_status check(const struct tree *tree, struct ow_error *err)
{
	if (!tree || tree->kind == TREE_OP)
		return error_set(err, OW_E_USAGE,
				 "%s view doesn't support timeline yet. Consider graph/scope/code "
				 "view.",
				 tree ? "op" : "this");
	if (tree->kind == TREE_GRAPH && tree->step < 0)
		return error_set(err, OW_E_USAGE,
				 "a timeline of the graph view shows one step: choose it");
	return OW_OK;
}

static ow_status timeline_write(struct table *result, const struct sink_options *options,
				const struct out *out, struct ow_error *err)
{
	struct timeline t = {
		.mem = result->mem, .tree = result->tree, .options = options, .err = err
	};

	OW_TRY(check(t.tree, err));
	writer_init(&t.w, result->mem, out, err);
	writer_puts(&t.w, "{\"traceEvents\":[");
	writer_fail(&t.w, t.tree->kind == TREE_GRAPH ? timeline_graph(&t) : tree_timeline(&t));
	writer_puts(&t.w, "]}\n");
	return writer_finish(&t.w);
}

const struct sink sink_timeline = {
	.name = "timeline",
	.summary = "a Chrome trace, as tfprof writes it",
	.extension = "json",
	.accepts = SINK_TREE_SCOPE | SINK_TREE_GRAPH | SINK_TREE_CODE,
	.events = true,
	.write = timeline_write,
};
