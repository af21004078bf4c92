/*
 * nsys_rows.c: makes the rows of the model from an export of Nsight Systems: one track per lane, ordered by process, and the
 * slices of each lane as events in order of time. import_nsys.c calls nsys_make_rows once, when all tables have been read and
 * all names are known. What the events mean is decided by import/interpret/.
 */
#include "import/nsys/nsys_store.h"

#include "import/interpret/interpret.h"
#include "import/nsys/nsys_marks.h"
#include "import/chrome/trace_sort.h"

static const char *const categories[NSYS_CATEGORIES] = {
	[NSYS_RUNTIME] = "cuda_runtime", [NSYS_DRIVER] = "cuda_driver", [NSYS_KERNEL] = "kernel",
	[NSYS_COPY] = "gpu_memcpy",	 [NSYS_SET] = "gpu_memset",	[NSYS_SYNC] = "cuda_sync",
	[NSYS_RANGE] = "nvtx",		 [NSYS_OSRT] = "osrt",		[NSYS_MPI] = "mpi",
	[NSYS_LIBRARY] = "library",	 [NSYS_OVERHEAD] = "overhead",	[NSYS_CPU] = "sched",
};

struct row_maker {
	struct nsys *n;
	struct event_draft draft;
	uint32_t *order; /* indexes of lanes, in the order of their tracks */
	str_id *calls;	 /* for each name: the name of a call without its version */
	str_id category[NSYS_CATEGORIES];
	str_id *domain;	 /* for each domain: the category of its ranges */
	str_id operator; /* the category of ranges that are operators */
	uint8_t *marks;	 /* for each string: enum nsys_mark + 1, 0 = not examined yet */
	uint32_t mark_count;
	/* For the current lane: the stack in the last MARK_STACK range, and the end of that range. */
	stack_id marked;
	int64_t marked_until;
	str_id nameless;
	struct map backtraces;
	int64_t machine; /* high bits of the process ids of the first machine */
	bool stacks;	 /* some calls have call chains */
};

static int by_lane(const void *a, const void *b, void *arg)
{
	const struct nsys *n = arg;
	const struct nsys_lane *x = &n->lanes[*(const uint32_t *)a];
	const struct nsys_lane *y = &n->lanes[*(const uint32_t *)b];
	const int64_t left[] = { x->process, x->kind == LANE_CALLS ? 0 : x->kind, x->device,
				 x->number, x->context };
	const int64_t right[] = { y->process, y->kind == LANE_CALLS ? 0 : y->kind, y->device,
				  y->number, y->context };

	for (size_t i = 0; i < ARRAY_COUNT(left); i++)
		if (left[i] != right[i])
			return left[i] < right[i] ? -1 : 1;
	return 0;
}

static const struct {
	uint8_t kind;
	const char *what;
} lane_tracks[LANE_KINDS] = {
	[LANE_CALLS] = { TRACK_HOST, "" },
	[LANE_OVERHEAD] = { TRACK_SPAN, " (profiler)" },
	[LANE_CPU] = { TRACK_OTHER, " (on CPU)" },
	[LANE_RANGES] = { TRACK_ASYNC, "NVTX ranges" },
	[LANE_STREAM] = { TRACK_STREAM, "" },
	[LANE_UNIFIED] = { TRACK_COPY, " unified memory" },
	[LANE_WAITS] = { TRACK_DERIVED, " waits" },
	[LANE_VALUES] = { TRACK_OTHER, " metrics" },
};

static str_id thread_name(struct row_maker *k, const struct nsys_lane *lane)
{
	struct nsys *n = k->n;
	uint32_t calls = nsys_find_thread(n, LANE_CALLS, lane->process | lane->number);
	str_id id = nsys_string(n, lane->name);
	char name[32];

	if (calls && n->lanes[calls].rank < lane->rank)
		id = nsys_string(n, n->lanes[calls].name);
	if (id.v)
		return id;
	snprintf(name, sizeof(name), "thread %" PRId64, lane->number);
	return builder_cstr(n->b, name);
}

/* The name of a lane's track: the thread and the kind of rows, or the stream of a device. */
static str_id lane_name(struct row_maker *k, const struct nsys_lane *lane,
			const struct nsys_lane *before)
{
	const char *what = lane_tracks[lane->kind].what;
	struct nsys *n = k->n;
	bool stream = (lane->kind == LANE_STREAM || lane->kind == LANE_WAITS) &&
		      lane->number != (int64_t)UINT32_MAX;
	bool again = before->kind == lane->kind && before->process == lane->process &&
		     before->device == lane->device && before->number == lane->number;
	struct buf text;
	str_id id;

	buf_init(&text, n->mem);
	if (lane->kind <= LANE_CPU)
		buf_add_str(&text, model_str(n->b->m, thread_name(k, lane)));
	else if (lane->kind != LANE_RANGES)
		buf_printf(&text, "GPU %" PRId64, lane->device);
	if (stream)
		buf_printf(&text, " stream %" PRId64, lane->number);
	buf_puts(&text, what);
	if (again)
		buf_printf(&text, ", context %" PRId64, lane->context);
	if (text.failed)
		import_no_memory(n->ctx);
	id = builder_str(n->b, buf_str(&text));
	buf_release(&text);
	return id;
}

static str_id process_name(struct row_maker *k, int64_t process)
{
	const struct nsys_process *p = nsys_find_process(k->n, process);
	char name[32];

	if (!process)
		return (str_id){ 0 }; /* metrics of a device do not belong to a process */
	if (p && p->name.v)
		return p->name;
	snprintf(name, sizeof(name), "process %" PRId64, nsys_pid(process));
	return builder_cstr(k->n->b, name);
}

static device_id device_of(struct nsys *n, const struct nsys_lane *lane)
{
	char name[32];

	if (lane->kind < LANE_STREAM)
		return (device_id){ 0 };
	snprintf(name, sizeof(name), "GPU %" PRId64, lane->device);
	return builder_device(n->b, str_from(name));
}

static ow_status make_track(struct row_maker *k, struct nsys_lane *lane,
			    const struct nsys_lane *before)
{
	struct nsys *n = k->n;
	uint32_t tracks = MAX(n->b->m->track.count, 1u);
	struct track_row row = { .name = lane_name(k, lane, before),
				 .process = process_name(k, lane->process),
				 .pid = nsys_pid(lane->process),
				 .tid = lane->kind == LANE_RANGES ? MODEL_NO_ID : lane->number,
				 .device = device_of(n, lane),
				 .kind = lane_tracks[lane->kind].kind,
				 .flags = TRACK_SLICES,
				 .source = n->b->source };

	if (lane->process && lane->process >> 48 != k->machine)
		/* a process of another machine may have the same pid */
		row.pid = lane->process >> 24;
	lane->track = builder_track(n->b, &row);
	if (n->b->m->track.count == tracks && builder_status(n->b) == OW_OK)
		/* a track of its own, because rows of two lanes must not mix */
		lane->track = builder_add_track(n->b, &row);
	return builder_status(n->b);
}

/* Shifts the correlation numbers of each process into a separate range. */
static void spread_numbers(struct nsys *n)
{
	uint64_t next = 0;

	for (size_t i = 1; i < n->process_count; i++) {
		struct nsys_process *p = &n->processes[i];
		uint64_t span;

		if (!p->correlated)
			continue;
		span = (uint64_t)p->highest - p->lowest + 1;
		p->shift = (uint32_t)(next ? next + 1 - p->lowest : 0);
		p->beyond = next + span > UINT32_MAX - 1;
		next = next ? next + span : p->highest;
	}
}

static uint32_t number_of(const struct nsys_process *p, const struct nsys_kept *s)
{
	return s->correlation && p && !p->beyond ? s->correlation + p->shift : 0;
}

/* Compares by length; a point, whose length is unknown, comes last. */
static int by_length(const void *a, const void *b, void *arg)
{
	const struct nsys_kept *list = arg;
	uint32_t x = ((const struct trace_ref *)a)->row, y = ((const struct trace_ref *)b)->row;

	if (list[x].dur != list[y].dur)
		return list[x].dur > list[y].dur ? -1 : 1;
	return (x > y) - (x < y);
}

static void order_same_start(struct nsys_kept *list, struct trace_ref *refs, size_t count)
{
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && refs[end].ts == refs[i].ts; end++)
			;
		if (end - i > 1)
			qsort_r(refs + i, end - i, sizeof(*refs), by_length, list);
	}
}

/* Sorts the slices of a lane by time; if two start together the longer comes first, because it contains the other. */
static struct trace_ref *order_slices(struct nsys *n, const struct nsys_lane *lane)
{
	size_t size = lane->count * sizeof(struct trace_ref);
	struct trace_ref *refs = mem_alloc(n->mem, size);
	struct trace_ref *scratch = refs ? mem_alloc(n->mem, size) : NULL;

	if (!scratch) {
		mem_free(n->mem, refs, size);
		import_no_memory(n->ctx);
		return NULL;
	}
	for (uint32_t i = 0; i < lane->count; i++)
		refs[i] = (struct trace_ref){ .ts = lane->list[i].ts, .row = i };
	trace_sort(refs, lane->count, scratch);
	order_same_start(lane->list, refs, lane->count);
	mem_free(n->mem, scratch, size);
	return refs;
}

static ow_status index_backtraces(struct row_maker *k)
{
	const struct nsys *n = k->n;

	for (size_t i = 0; i < n->backtrace_count; i++)
		if (!map_add(&k->backtraces,
			     map_hash_u64(n->backtraces[i].lane, n->backtraces[i].correlation),
			     (uint32_t)i + 1))
			return import_no_memory(k->n->ctx);
	return OW_OK;
}

static uint32_t backtrace_of(const struct row_maker *k, uint32_t lane, uint32_t correlation)
{
	uint64_t hash = map_hash_u64(lane, correlation);

	for (struct map_iter it = map_find(&k->backtraces, hash); it.value;
	     it = map_next(&k->backtraces, it)) {
		const struct nsys_backtrace *b = &k->n->backtraces[it.value - 1];

		if (b->lane == lane && b->correlation == correlation)
			return b->chain;
	}
	return 0;
}

static stack_id stack_of(const struct row_maker *k, uint32_t lane, const struct nsys_kept *s)
{
	bool cuda = s->category == NSYS_RUNTIME || s->category == NSYS_DRIVER;
	uint32_t chain = k->n->extras[s->extra].chain;

	if (!k->stacks || (!cuda && s->category != NSYS_OSRT))
		return (stack_id){ 0 };
	if (cuda && !chain && s->correlation)
		chain = backtrace_of(k, lane, s->correlation);
	return chain ? nsys_stack(k->n, cuda ? CHAINS_CUDA : CHAINS_OSRT, chain) : (stack_id){ 0 };
}

/* The name of a call without its version: cudaMalloc_v3020 becomes cudaMalloc. Short numbers belong to the name:
 * cuMemAlloc_v2. */
static struct str without_version(struct str name)
{
	size_t at = name.len;

	while (at && name.ptr[at - 1] >= '0' && name.ptr[at - 1] <= '9')
		at--;
	if (at + 4 <= name.len && at > 2 && name.ptr[at - 1] == 'v' && name.ptr[at - 2] == '_')
		return str_first(name, at - 2);
	return name;
}

static str_id name_of(struct row_maker *k, const struct nsys_kept *s)
{
	struct nsys *n = k->n;
	str_id id = nsys_string(n, s->name);

	if (OW_UNLIKELY(!id.v)) {
		nsys_problem(n, NSYS_NO_TEXT);
		return k->nameless;
	}
	if ((s->category != NSYS_RUNTIME && s->category != NSYS_DRIVER) || s->name & NSYS_TEXT)
		return id;
	if (!k->calls[s->name].v)
		k->calls[s->name] = builder_str(n->b, without_version(model_str(n->b->m, id)));
	return k->calls[s->name];
}

/* Whether a call keeps its version: Nsight Systems prints cudaGraphLaunch_v10000 unchanged, because it removes four
 * digits only. */
static bool keeps_version(const struct nsys *n, const struct nsys_kept *s, uint32_t shown)
{
	const struct model *m = n->b->m;
	str_id id = nsys_string(n, s->name);

	return id.v != shown &&
	       model_str(m, id).len > model_str(m, (str_id){ shown }).len + STR("_v1000").len;
}

static enum nsys_mark mark_of(struct row_maker *k, uint32_t name)
{
	if (name >= k->mark_count)
		return MARK_PLAIN;
	if (!k->marks[name])
		k->marks[name] =
			(uint8_t)(nsys_mark_of(model_str(k->n->b->m, (str_id){ name })) + 1);
	return (enum nsys_mark)(k->marks[name] - 1);
}

/* Reads the text of a range: ranges of PyTorch's profilers can be operators, or contain the call stack of operators. */
static void read_mark(struct row_maker *k, event_id e)
{
	struct builder *b = k->n->b;
	struct event_table *events = &b->m->event;
	uint32_t name = k->draft.op_name[e.v - k->draft.first].v;

	switch (mark_of(k, name)) {
	case MARK_OPERATOR:
		events->category[e.v] = k->operator;
		/* only launches and their work keep correlation numbers */
		events->correlation[e.v] = 0;
		break;
	case MARK_STACK:
		k->marked = nsys_mark_stack(b, model_str(b->m, (str_id){ name }));
		if (__builtin_add_overflow(events->ts_ns[e.v], MAX(events->dur_ns[e.v], 0),
					   &k->marked_until))
			k->marked_until = INT64_MAX;
		break;
	case MARK_PLAIN:
		break;
	}
}

/* Sets rare columns, which are zero for rows where nothing is set. */
static void set_rare(struct row_maker *k, uint32_t lane, const struct nsys_kept *s, event_id e)
{
	struct nsys *n = k->n;
	struct event_table *events = &n->b->m->event;
	uint32_t op = k->draft.op_name[e.v - k->draft.first].v;
	stack_id stack = stack_of(k, lane, s);

	if (!stack.v && k->marked.v && s->ts < k->marked_until)
		stack = k->marked;
	if (n->extras[s->extra].bytes)
		BUILDER_SET(n->b, event, bytes, e, n->extras[s->extra].bytes);
	if (stack.v)
		BUILDER_SET(n->b, event, stack, e, stack);
	if (op != k->nameless.v && keeps_version(n, s, op))
		BUILDER_SET(n->b, event, name, e, nsys_string(n, s->name));
	if (s->open) {
		BUILDER_SET(n->b, event, flags, e, EVENT_UNFINISHED);
		if (__builtin_sub_overflow(n->last_ns, s->ts, &events->dur_ns[e.v]) ||
		    events->dur_ns[e.v] < 0)
			events->dur_ns[e.v] = 0;
	} else if (s->dur == TIME_UNKNOWN) {
		BUILDER_SET(n->b, event, ph, e, 'i');
	}
}

/* Adds an event; the caller has made room in the table. */
static void add_event(struct row_maker *k, uint32_t lane, const struct nsys_kept *s,
		      const struct nsys_process *p)
{
	struct event_table *events = &k->n->b->m->event;
	uint32_t at = events->count++;

	events->ts_ns[at] = s->ts;
	events->dur_ns[at] = s->dur;
	k->draft.op_name[at - k->draft.first] = name_of(k, s);
	events->track[at] = k->n->lanes[lane].track;
	events->step[at].v = 0;
	events->category[at] =
		s->category == NSYS_RANGE ? k->domain[s->domain] : k->category[s->category];
	events->correlation[at] = number_of(p, s);
	if (s->category == NSYS_RANGE)
		read_mark(k, (event_id){ at });
	set_rare(k, lane, s, (event_id){ at });
}

/* Lets the rows of the next lane use the memory that the lists of finished lanes occupied. */
static void use_freed(struct nsys *n, struct event_draft *d, uint32_t rows)
{
	struct event_table *e = &n->b->m->event;

#define USE_FREED(column)                                                                          \
	mem_use_kept(n->mem, e->column, e->cap * sizeof(*e->column),                               \
		     e->count * sizeof(*e->column),                                                \
		     ((size_t)e->count + rows) * sizeof(*e->column))
	USE_FREED(ts_ns);
	USE_FREED(dur_ns);
	mem_use_kept(n->mem, d->op_name, d->cap * sizeof(str_id),
		     (e->count - d->first) * sizeof(str_id),
		     ((size_t)e->count - d->first + rows) * sizeof(str_id));
	USE_FREED(track);
	USE_FREED(step);
	USE_FREED(category);
	USE_FREED(correlation);
#undef USE_FREED
}

static ow_status add_lane(struct row_maker *k, uint32_t number, const struct nsys_lane *before)
{
	struct nsys *n = k->n;
	struct nsys_lane *lane = &n->lanes[number];
	const struct nsys_process *p = nsys_find_process(n, lane->process);
	struct trace_ref *refs = NULL;

	OW_TRY(make_track(k, lane, before));
	if (lane->unsorted) {
		refs = order_slices(n, lane);
		OW_TRY(builder_status(n->b));
	}
	use_freed(n, &k->draft, lane->count);
	k->marked = (stack_id){ 0 };
	for (uint32_t i = 0; i < lane->count; i++)
		add_event(k, number, &lane->list[refs ? refs[i].row : i], p);
	mem_free(n->mem, refs, refs ? lane->count * sizeof(*refs) : 0);
	mem_free(n->mem, lane->list, lane->cap * sizeof(*lane->list));
	lane->list = NULL;
	lane->cap = 0;
	return builder_status(n->b);
}

static ow_status make_names(struct row_maker *k)
{
	struct nsys *n = k->n;
	struct buf text;

	k->nameless = builder_cstr(n->b, "(no name)");
	k->operator= builder_cstr(n->b, "cpu_op,nvtx");
	for (int i = 0; i < NSYS_CATEGORIES; i++)
		k->category[i] = builder_cstr(n->b, categories[i]);
	k->domain[0] = k->category[NSYS_RANGE];
	buf_init(&text, n->mem);
	for (size_t i = 1; i < n->domain_count; i++) {
		str_id name = nsys_string(n, n->domains[i].text);

		buf_clear(&text);
		buf_printf(&text, "%s,", categories[NSYS_RANGE]);
		buf_add_str(&text, model_str(n->b->m, name));
		if (text.failed)
			import_no_memory(n->ctx);
		k->domain[i] = name.v ? builder_str(n->b, buf_str(&text)) : k->domain[0];
	}
	buf_release(&text);
	return builder_status(n->b);
}

static ow_status add_lanes(struct row_maker *k)
{
	static const struct nsys_lane none;
	struct nsys *n = k->n;
	const struct nsys_lane *before = &none;

	for (uint32_t i = 1; i < n->lane_count; i++) {
		struct nsys_lane *lane = &n->lanes[k->order[i]];

		if (!lane->count && !lane->used)
			continue;
		OW_TRY(add_lane(k, k->order[i], before));
		before = lane;
	}
	return OW_OK;
}

static void add_values(struct nsys *n)
{
	for (size_t i = 0; i < n->reading_count; i++) {
		const struct nsys_reading *v = &n->readings[i];

		builder_add_counter(n->b, &(struct counter_row){ .track = n->lanes[v->lane].track,
								 .name = nsys_string(n, v->name),
								 .series = nsys_string(n, v->name),
								 .ts_ns = v->ts,
								 .value = v->value });
	}
}

/* Adds the samples. Some versions of Nsight Systems record cycles for each sample; the others only that there was
 * one. */
static void add_samples(struct nsys *n)
{
	bool cycles = false;
	metric_id metric;

	for (size_t i = 0; i < n->sample_count && !cycles; i++)
		cycles = n->samples[i].weight != 1;
	if (!n->sample_count)
		return;
	metric = builder_metric(n->b, cycles ? STR("cycles") : STR("samples"), STR("count"));
	n->b->m->metric.is_default[metric.v] = 1;
	for (size_t i = 0; i < n->sample_count; i++) {
		const struct nsys_sample *s = &n->samples[i];

		builder_add_sample(n->b, &(struct sample_row){
						 .ts_ns = s->ts,
						 .weight = s->weight,
						 .metric = metric,
						 .stack = nsys_stack(n, CHAINS_SAMPLES, s->chain),
						 .track = n->lanes[s->lane].track,
						 .cpu = s->cpu });
	}
}

static ow_status make_rows(struct row_maker *k, struct arena *arena)
{
	struct nsys *n = k->n;
	size_t lanes = n->lane_count;

	k->order = ARENA_ARRAY(arena, uint32_t, lanes);
	k->calls = ARENA_ARRAY(arena, str_id, n->name_count);
	k->domain = ARENA_ARRAY(arena, str_id, n->domain_count);
	if (!k->order || !k->calls || !k->domain)
		return import_no_memory(n->ctx);
	for (uint32_t i = 0; i < lanes; i++)
		k->order[i] = i;
	qsort_r(k->order + 1, lanes - 1, sizeof(*k->order), by_lane, n);
	if (!builder_grow(n->b, TABLE_event, (uint32_t)n->slice_count) ||
	    !builder_need_column(n->b, TABLE_event, offsetof(struct event_table, category)) ||
	    !builder_need_column(n->b, TABLE_event, offsetof(struct event_table, correlation)))
		return builder_status(n->b);
	if (!event_draft_reserve(&k->draft, n->slice_count, false))
		return import_no_memory(n->ctx);
	OW_TRY(make_names(k));
	k->mark_count = n->b->m->strings.count;
	k->marks = ARENA_ARRAY(arena, uint8_t, k->mark_count);
	if (!k->marks)
		return import_no_memory(n->ctx);
	OW_TRY(index_backtraces(k));
	spread_numbers(n);
	k->stacks = n->chains[CHAINS_CUDA].count || n->chains[CHAINS_OSRT].count;
	for (size_t i = lanes; i-- > 1;)
		if (n->lanes[k->order[i]].process)
			k->machine = n->lanes[k->order[i]].process >> 48;
	OW_TRY(add_lanes(k));
	add_values(n);
	add_samples(n);
	return builder_status(n->b);
}

/* Assigns to each sample the step during which it was taken. The windows of a source are sorted by time. */
static ow_status assign_steps(struct nsys *n, uint32_t first_sample, uint32_t first_window)
{
	const struct model *m = n->b->m;
	const struct window_table *w = &m->window;

	if (first_window == w->count)
		return OW_OK;
	for (uint32_t i = first_sample; i < m->sample.count; i++) {
		uint32_t low = first_window, high = w->count;

		while (low < high) {
			uint32_t middle = low + (high - low) / 2;

			if (w->start_ns[middle] <= m->sample.ts_ns[i])
				low = middle + 1;
			else
				high = middle;
		}
		if (low > first_window && m->sample.ts_ns[i] < w->end_ns[low - 1])
			BUILDER_SET(n->b, sample, step, (sample_id){ i }, w->step[low - 1]);
	}
	return builder_status(n->b);
}

ow_status nsys_make_rows(struct nsys *n)
{
	uint32_t first_sample = n->b->m->sample.count, first_window = n->b->m->window.count;
	struct model *m = n->b->m;
	struct row_maker k = { .n = n };
	struct interpret_input in = { .source = n->b->source,
				      .input = n->ctx->in,
				      .options = n->ctx->options,
				      .draft = &k.draft,
				      .first_track = m->track.count,
				      .first_flow = m->flow.count,
				      .producer = "nsys",
				      .title = n->version };
	struct arena arena;
	ow_status status;

	arena_init(&arena, n->mem);
	map_init(&k.backtraces, n->mem);
	event_draft_init(&k.draft, n->b);
	status = make_rows(&k, &arena);
	in.stacks = m->event.stack != NULL;
	map_release(&k.backtraces);
	arena_release(&arena);
	if (status == OW_OK)
		status = interpret_trace(n->b, &in);
	event_draft_release(&k.draft);
	return status == OW_OK ? assign_steps(n, first_sample, first_window) : status;
}
