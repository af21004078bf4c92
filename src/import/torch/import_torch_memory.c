/*
 * torch_heap.c: what only the whole of a torch snapshot tells: which device a trace is of, what was
 * allocated before it began (freed without having been allocated, or held at the end by blocks that the
 * trace does not know), what the allocator holds in segments, and how broken up that is. Also the steps
 * that annotations mark. See import_torch_memory.c.
 */
#include "import/torch_snapshot.h"

#define DEVICES_MAX 4096 /* a number beyond is no device */

struct gpu {
	bool used;
	device_id id;
	struct u64set seen; /* addresses that the trace allocates or frees */
	int64_t segment_change;
	int64_t reserved, active, unused, largest_unused; /* at the end */
	int64_t last_ns;
	bool has_segments;
};

struct gpus {
	struct snapshot *s;
	struct gpu *list;
	size_t count, cap;
	uint64_t segments, blocks;
};

static struct gpu *gpu_of(struct gpus *g, int64_t number)
{
	struct builder *b = g->s->b;
	void *list = g->list;
	struct gpu *gpu;
	char name[32];

	if (number < 0 || number >= DEVICES_MAX)
		number = 0;
	if ((size_t)number >= g->count) {
		size_t old = g->cap;

		if (!mem_grow(b->m->mem, &list, &g->cap, (size_t)number + 1, sizeof(*g->list))) {
			builder_fail(b, error_no_memory(g->s->err));
			return NULL;
		}
		g->list = list;
		memset(g->list + old, 0, (g->cap - old) * sizeof(*g->list));
		g->count = (size_t)number + 1;
	}
	gpu = &g->list[number];
	if (gpu->used)
		return gpu;
	snprintf(name, sizeof(name), "GPU %d", (int)number);
	gpu->id = builder_device(b, str_from(name));
	gpu->last_ns = TIME_UNKNOWN;
	gpu->used = true;
	u64set_init(&gpu->seen, b->m->mem);
	return gpu;
}

static void release_gpus(struct gpus *g)
{
	for (size_t i = 0; i < g->count; i++)
		if (g->list[i].used)
			u64set_release(&g->list[i].seen);
	mem_free(g->s->b->m->mem, g->list, g->cap * sizeof(*g->list));
}

/* ---- traces ---- */

static void add_existing(struct snapshot *s, const struct gpu *gpu, uint64_t address, int64_t size,
			 int64_t requested, stack_id stack)
{
	builder_add_heap(s->b, &(struct heap_row){ .ts_ns = TIME_UNKNOWN,
						   .kind = HEAP_EXISTING,
						   .size = size,
						   .requested = requested == size ? 0 : requested,
						   .device = gpu->id,
						   .source = s->b->source,
						   .address = address,
						   .stack = stack });
}

static bool see(struct snapshot *s, struct gpu *gpu, uint64_t address, bool *first)
{
	enum u64set_added added = address ? u64set_add(&gpu->seen, address) : U64SET_OLD;

	*first = added == U64SET_NEW;
	if (added == U64SET_NO_MEMORY)
		builder_fail(s->b, error_no_memory(s->err));
	return added != U64SET_NO_MEMORY;
}

static ow_status finish_row(struct snapshot *s, struct gpu *gpu, uint32_t row)
{
	struct heap_table *t = &s->b->m->heap;
	uint64_t address = COLUMN_GET(t->address, row);
	int64_t size = t->size[row];
	bool first;

	t->device[row] = gpu->id;
	gpu->last_ns = t->ts_ns[row];
	switch (t->kind[row]) {
	case HEAP_SEGMENT_ALLOC:
	case HEAP_SEGMENT_FREE:
	case HEAP_SEGMENT_MAP:
	case HEAP_SEGMENT_UNMAP:
		gpu->segment_change = wrap_add(gpu->segment_change, size);
		break;
	case HEAP_ALLOC:
	case HEAP_FREE:
		if (!see(s, gpu, address, &first))
			break;
		if (first && t->kind[row] == HEAP_FREE)
			add_existing(s, gpu, address, -size, 0, (stack_id){ 0 });
		break;
	default:
		break;
	}
	return s->b->status;
}

static int by_list(const void *a, const void *b)
{
	const struct snapshot_span *x = a, *y = b;

	if (x->list != y->list)
		return x->list < y->list ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

/* The lists in device_traces are those of device 0, 1, …: their place, from 1, in the tags. */
static void number_lists(struct snapshot *s)
{
	const struct pickle_value *traces = pickle_find(&s->p, s->p.root, "device_traces");
	const struct pickle_object *o = traces ? pickle_object(&s->p, *traces) : NULL;

	if (!traces || (traces->kind != PICKLE_LIST && traces->kind != PICKLE_TUPLE))
		return;
	for (uint32_t i = 0; i < o->count; i++)
		if (o->items[i].kind == PICKLE_LIST && !pickle_object(&s->p, o->items[i])->tag)
			pickle_object(&s->p, o->items[i])->tag = i + 1;
}

static ow_status finish_traces(struct gpus *g)
{
	struct snapshot *s = g->s;

	number_lists(s);
	if (s->span_count)
		qsort(s->spans, s->span_count, sizeof(*s->spans), by_list);
	for (size_t i = 0; i < s->span_count; i++) {
		const struct snapshot_span *span = &s->spans[i];
		uint32_t tag = s->p.objects[span->list].tag;
		struct gpu *gpu = gpu_of(g, tag ? (int64_t)tag - 1 : 0);

		if (!gpu)
			return s->b->status;
		for (uint32_t k = 0; k < span->count; k++)
			OW_TRY(finish_row(s, gpu, span->first + k));
	}
	return s->b->status;
}

/* ---- segments ---- */

/* Blocks of old versions have their frames in a history, the newest first. */
static struct pickle_value frames_of(struct snapshot *s, const struct snapshot_record *block)
{
	const struct pickle_object *history;
	const struct pickle_value *frames;

	if (snapshot_has(block, WORD_FRAMES))
		return block->fields[WORD_FRAMES];
	if (!snapshot_has(block, WORD_HISTORY) || block->fields[WORD_HISTORY].kind != PICKLE_LIST)
		return (struct pickle_value){ 0 };
	history = pickle_object(&s->p, block->fields[WORD_HISTORY]);
	frames = history->count ? pickle_find(&s->p, history->items[0], "frames") : NULL;
	return frames ? *frames : (struct pickle_value){ 0 };
}

static ow_status add_block(struct gpus *g, struct gpu *gpu, const struct snapshot_record *block,
			   uint64_t address)
{
	struct snapshot *s = g->s;
	enum snapshot_word state = snapshot_has(block, WORD_STATE)
					   ? snapshot_word(s, block->fields[WORD_STATE])
					   : WORD_OTHER;
	int64_t size = snapshot_number(block, WORD_SIZE);
	bool first;

	g->blocks++;
	if (size <= 0)
		return OW_OK;
	if (state == WORD_INACTIVE) {
		gpu->unused = wrap_add(gpu->unused, size);
		gpu->largest_unused = MAX(gpu->largest_unused, size);
		return OW_OK;
	}
	if (state != WORD_ACTIVE_ALLOCATED && state != WORD_ACTIVE_PENDING &&
	    state != WORD_ACTIVE_AWAITING) {
		s->odd++;
		return OW_OK;
	}
	gpu->active = wrap_add(gpu->active, size);
	if (see(s, gpu, address, &first) && first)
		add_existing(s, gpu, address, size, snapshot_number(block, WORD_REQUESTED_SIZE),
			     snapshot_stack(s, frames_of(s, block)));
	return s->b->status;
}

static ow_status add_segment(struct gpus *g, struct pickle_value value)
{
	struct snapshot *s = g->s;
	struct snapshot_record segment, block;
	const struct pickle_object *blocks;
	struct gpu *gpu;
	uint64_t at;

	if (!snapshot_read(s, value, &segment) || !snapshot_has(&segment, WORD_TOTAL_SIZE)) {
		s->odd++;
		return OW_OK;
	}
	gpu = gpu_of(g, snapshot_number(&segment, WORD_DEVICE));
	if (!gpu)
		return s->b->status;
	g->segments++;
	gpu->has_segments = true;
	gpu->reserved = wrap_add(gpu->reserved, snapshot_number(&segment, WORD_TOTAL_SIZE));
	at = (uint64_t)snapshot_number(&segment, WORD_ADDRESS);
	if (!snapshot_has(&segment, WORD_BLOCKS) || segment.fields[WORD_BLOCKS].kind != PICKLE_LIST)
		return OW_OK;
	blocks = pickle_object(&s->p, segment.fields[WORD_BLOCKS]);
	for (uint32_t i = 0; i < blocks->count && s->rows < s->most; i++, s->rows++) {
		if (!snapshot_read(s, blocks->items[i], &block))
			continue;
		if (snapshot_has(&block, WORD_ADDRESS))
			at = (uint64_t)snapshot_number(&block, WORD_ADDRESS);
		OW_TRY(add_block(g, gpu, &block, at));
		at += (uint64_t)snapshot_number(&block, WORD_SIZE);
	}
	return OW_OK;
}

static ow_status add_segments(struct gpus *g)
{
	struct snapshot *s = g->s;
	const struct pickle_value *segments = pickle_find(&s->p, s->p.root, "segments");
	struct pickle_value list = s->p.root.kind == PICKLE_LIST ? s->p.root
				   : segments			 ? *segments
								 : (struct pickle_value){ 0 };

	if (list.kind != PICKLE_LIST)
		return OW_OK;
	for (uint32_t i = 0; i < pickle_object(&s->p, list)->count && s->rows < s->most; i++) {
		s->rows++;
		OW_TRY(add_segment(g, pickle_object(&s->p, list)->items[i]));
	}
	return OW_OK;
}

/* What the allocator held before the trace is what it holds at the end less what the trace adds. */
static void add_totals(struct snapshot *s, const struct gpu *gpu)
{
	int64_t before = wrap_sub(gpu->reserved, gpu->segment_change);
	double broken = gpu->unused > 0 ? 1 - (double)gpu->largest_unused / (double)gpu->unused : 0;

	if (!gpu->has_segments)
		return;
	if (before > 0)
		builder_add_heap(s->b, &(struct heap_row){ .ts_ns = TIME_UNKNOWN,
							   .kind = HEAP_SEGMENT_EXISTING,
							   .size = before,
							   .device = gpu->id,
							   .source = s->b->source });
	builder_add_heap(s->b, &(struct heap_row){ .ts_ns = gpu->last_ns,
						   .kind = HEAP_TOTAL,
						   .device = gpu->id,
						   .source = s->b->source,
						   .allocated = gpu->active,
						   .reserved = gpu->reserved,
						   .fragmentation = broken });
}

/* ---- steps ---- */

static bool step_number(struct str name, int64_t *number)
{
	static const struct str marker = { "ProfilerStep#", 13 };

	return str_starts(name, marker) && str_to_i64(str_skip(name, marker.len), number);
}

/* Annotations are pairs of START and END; those of other names are passed over. */
static void add_steps(struct snapshot *s)
{
	const struct pickle_value *list = pickle_find(&s->p, s->p.root, "external_annotations");
	struct window_table *w = &s->b->m->window;
	uint32_t open = 0;

	if (!list || list->kind != PICKLE_LIST)
		return;
	for (uint32_t i = 0; i < pickle_object(&s->p, *list)->count; i++) {
		struct snapshot_record r;
		enum snapshot_word stage;
		step_id step;
		int64_t number, ts;

		if (!snapshot_read(s, pickle_object(&s->p, *list)->items[i], &r) ||
		    !snapshot_has(&r, WORD_NAME) || !snapshot_has(&r, WORD_STAGE) ||
		    !step_number(pickle_text(&s->p, r.fields[WORD_NAME]), &number))
			continue;
		stage = snapshot_word(s, r.fields[WORD_STAGE]);
		ts = us_to_ns(snapshot_number(&r, WORD_TIME_US));
		step = builder_step(s->b, number);
		if (stage == WORD_START && (!open || w->step[open].v != step.v))
			open = builder_add_window(s->b,
						  &(struct window_row){ .step = step,
									.source = s->b->source,
									.start_ns = ts,
									.end_ns = ts })
				       .v;
		else if (stage == WORD_END && open && w->step[open].v == step.v)
			w->end_ns[open] = MAX(ts, w->start_ns[open]);
		if (s->b->status != OW_OK)
			return;
		s->b->m->step.name[step.v] = builder_cstr(s->b, "ProfilerStep");
		if (s->b->m->step.start_ns[step.v] == TIME_UNKNOWN)
			s->b->m->step.start_ns[step.v] = ts;
		if (s->b->m->step.end_ns[step.v] == TIME_UNKNOWN ||
		    s->b->m->step.end_ns[step.v] < ts)
			s->b->m->step.end_ns[step.v] = ts;
	}
}

/* ---- all of it ---- */

static void add_facts(struct gpus *g)
{
	struct builder *b = g->s->b;
	int64_t reserved = 0, active = 0, devices = 0;

	for (size_t i = 0; i < g->count; i++) {
		devices += g->list[i].used;
		reserved = wrap_add(reserved, g->list[i].reserved);
		active = wrap_add(active, g->list[i].active);
	}
	fact_int(b, (fact_id){ 0 }, "devices", devices);
	fact_int(b, (fact_id){ 0 }, "segments", (int64_t)g->segments);
	fact_int(b, (fact_id){ 0 }, "blocks", (int64_t)g->blocks);
	fact_int(b, (fact_id){ 0 }, "reserved_bytes", reserved);
	fact_int(b, (fact_id){ 0 }, "active_bytes", active);
}

ow_status snapshot_finish(struct snapshot *s)
{
	struct gpus g = { .s = s };
	ow_status status = finish_traces(&g);

	if (status == OW_OK)
		status = add_segments(&g);
	for (size_t i = 0; i < g.count && status == OW_OK; i++)
		if (g.list[i].used)
			add_totals(s, &g.list[i]);
	if (status == OW_OK) {
		add_steps(s);
		add_facts(&g);
		status = builder_status(s->b);
	}
	release_gpus(&g);
	return status;
}
