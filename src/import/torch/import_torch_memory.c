/*
 * import_torch_memory.c: the importer of torch's memory snapshots (torch.cuda.memory._dump_snapshot, or _snapshot and
 * memory_snapshot pickled): the actions of the caching allocator on each device, with the stacks of the callers, and
 * its segments and blocks at the end. The pickle is read without running anything (wire/pickle/pickle.h). Entries of
 * traces become rows of `heap` while they are read, so a long history needs little memory. Afterwards the rest is
 * added: the device of each trace, memory that was allocated before it began (freed without an allocation, or held at
 * the end by unknown blocks), segments, fragmentation, and the steps that annotations mark.
 */
#include "import/importer.h"

#include "base/u64set.h"
#include "base/vec.h"
#include "import/common/model_text.h"
#include "wire/pickle/pickle.h"

/* Keys and values that are used. The tag of a text in the pickle caches its word. */
enum snapshot_word {
	WORD_UNKNOWN, /* not looked up yet */
	WORD_OTHER,
	WORD_ACTION,
	WORD_ADDR,
	WORD_ADDRESS,
	WORD_SIZE,
	WORD_REQUESTED_SIZE,
	WORD_STREAM,
	WORD_TIME_US,
	WORD_FRAMES,
	WORD_DEVICE,
	WORD_STATE,
	WORD_BLOCKS,
	WORD_TOTAL_SIZE,
	WORD_FILENAME,
	WORD_LINE,
	WORD_NAME,
	WORD_STAGE,
	WORD_HISTORY,
	WORD_REAL_SIZE,
	WORD_ALLOC, /* actions, in the order of add_actions */
	WORD_FREE,
	WORD_FREE_COMPLETED,
	WORD_FREE_REQUESTED,
	WORD_SEGMENT_ALLOC,
	WORD_SEGMENT_FREE,
	WORD_SEGMENT_MAP,
	WORD_SEGMENT_UNMAP,
	WORD_OOM,
	WORD_SNAPSHOT,
	WORD_ACTIVE_ALLOCATED, /* states of a block */
	WORD_ACTIVE_PENDING,
	WORD_ACTIVE_AWAITING,
	WORD_INACTIVE,
	WORD_START,
	WORD_END,
	WORD_COUNT
};

/* One dictionary: an entry of a trace, a segment, a block, a frame or an annotation. */
struct snapshot_record {
	struct pickle_value fields[WORD_COUNT]; /* indexed by key */
	uint64_t present;			/* one bit for each field that is set */
};

/* Rows that were made from the items of one list. */
struct snapshot_span {
	uint32_t list;
	uint32_t first, count;
};

struct snapshot {
	struct builder *b;
	struct pickle p;
	struct ow_error *err;
	struct snapshot_span *spans;
	size_t span_count, span_cap;
	uint64_t actions[WORD_COUNT];
	uint64_t odd;	     /* number of entries with unknown content */
	uint64_t bad_times;  /* number of entries with a time that no clock shows */
	uint64_t rows, most; /* number of rows made, and limit of rows for a file of this size */
	bool without_times;  /* some entries have no time */
	int64_t last_ns;
	bool repaired;
};

static inline bool snapshot_has(const struct snapshot_record *r, enum snapshot_word word)
{
	return r->present >> word & 1;
}

static const struct {
	const char *text;
	enum snapshot_word word;
} known_words[] = {
	{ "action", WORD_ACTION },
	{ "addr", WORD_ADDR },
	{ "address", WORD_ADDRESS },
	{ "size", WORD_SIZE },
	{ "requested_size", WORD_REQUESTED_SIZE },
	{ "stream", WORD_STREAM },
	{ "time_us", WORD_TIME_US },
	{ "frames", WORD_FRAMES },
	{ "device", WORD_DEVICE },
	{ "state", WORD_STATE },
	{ "blocks", WORD_BLOCKS },
	{ "total_size", WORD_TOTAL_SIZE },
	{ "filename", WORD_FILENAME },
	{ "line", WORD_LINE },
	{ "name", WORD_NAME },
	{ "stage", WORD_STAGE },
	{ "history", WORD_HISTORY },
	{ "real_size", WORD_REAL_SIZE },
	{ "alloc", WORD_ALLOC },
	{ "free", WORD_FREE },
	{ "free_completed", WORD_FREE_COMPLETED },
	{ "free_requested", WORD_FREE_REQUESTED },
	{ "segment_alloc", WORD_SEGMENT_ALLOC },
	{ "segment_free", WORD_SEGMENT_FREE },
	{ "segment_map", WORD_SEGMENT_MAP },
	{ "segment_unmap", WORD_SEGMENT_UNMAP },
	{ "oom", WORD_OOM },
	{ "snapshot", WORD_SNAPSHOT },
	{ "active_allocated", WORD_ACTIVE_ALLOCATED },
	{ "active_pending_free", WORD_ACTIVE_PENDING },
	{ "active_awaiting_free", WORD_ACTIVE_AWAITING },
	{ "inactive", WORD_INACTIVE },
	{ "START", WORD_START },
	{ "END", WORD_END },
};

_Static_assert(WORD_COUNT <= 64, "snapshot_record.present has a bit each");

static enum snapshot_word find_word(struct str text)
{
	for (size_t i = 0; i < ARRAY_COUNT(known_words); i++)
		if (str_eq(text, str_from(known_words[i].text)))
			return known_words[i].word;
	return WORD_OTHER;
}

static enum snapshot_word snapshot_word(struct snapshot *s, struct pickle_value text)
{
	struct pickle_object *o = pickle_object(&s->p, text);

	if (text.kind != PICKLE_TEXT)
		return WORD_OTHER;
	if (!o->tag)
		o->tag = find_word(str_make(o->text, o->count));
	return (enum snapshot_word)o->tag;
}

/* Reads a dictionary into a record; false when the value is not a dictionary. */
static bool snapshot_read(struct snapshot *s, struct pickle_value dict, struct snapshot_record *r)
{
	const struct pickle_object *o = pickle_object(&s->p, dict);

	r->present = 0;
	if (dict.kind != PICKLE_DICT)
		return false;
	for (uint32_t i = 0; i + 1 < o->count; i += 2) {
		enum snapshot_word word = snapshot_word(s, o->items[i]);

		if (word <= WORD_OTHER)
			continue;
		r->fields[word] = o->items[i + 1];
		r->present |= (uint64_t)1 << word;
	}
	return true;
}

/* A number of the record; 0 when it is missing. */
static int64_t snapshot_number(const struct snapshot_record *r, enum snapshot_word word)
{
	if (!snapshot_has(r, word))
		return 0;
	switch (r->fields[word].kind) {
	case PICKLE_INT:
	case PICKLE_BOOL:
		return r->fields[word].number;
	default:
		return 0;
	}
}

/* Interns a text; bytes that are not UTF-8 are replaced. */
static str_id snapshot_string(struct snapshot *s, struct pickle_value value)
{
	struct str text = pickle_text(&s->p, value);

	if (OW_LIKELY(utf8_valid(text)))
		return builder_str(s->b, text);
	s->repaired = true;
	return utf8_repair(s->b, text);
}

/* The frame of a dictionary; the dictionary's tag caches it. */
static frame_id frame_of(struct snapshot *s, struct pickle_value value)
{
	struct pickle_object *o = pickle_object(&s->p, value);
	struct snapshot_record r;
	frame_id frame;
	int64_t line;

	if (value.kind == PICKLE_DICT && o->tag)
		return (frame_id){ o->tag };
	if (!snapshot_read(s, value, &r))
		return (frame_id){ 0 };
	line = snapshot_number(&r, WORD_LINE);
	frame = builder_frame(
		s->b, &(struct frame_row){
			      .file = snapshot_string(s, r.present >> WORD_FILENAME & 1
								 ? r.fields[WORD_FILENAME]
								 : (struct pickle_value){ 0 }),
			      .function = snapshot_string(s, r.present >> WORD_NAME & 1
								     ? r.fields[WORD_NAME]
								     : (struct pickle_value){ 0 }),
			      .line = line > 0 && line <= INT32_MAX ? (int32_t)line : 0 });
	o->tag = frame.v;
	return frame;
}

/* The stack of a list of frames, innermost first; nil when it is empty. The list's tag caches it, because entries
 * share lists. */
static stack_id snapshot_stack(struct snapshot *s, struct pickle_value frames)
{
	struct pickle_object *o = pickle_object(&s->p, frames);
	stack_id stack = { 0 };

	if ((frames.kind != PICKLE_LIST && frames.kind != PICKLE_TUPLE) || !o->count)
		return stack;
	if (o->tag)
		return (stack_id){ o->tag };
	for (uint32_t i = o->count; i-- > 0;) {
		frame_id frame = frame_of(s, o->items[i]);

		if (frame.v)
			stack = builder_stack(s->b, stack, frame);
	}
	o->tag = stack.v;
	return stack;
}

struct action {
	uint8_t kind;
	int8_t sign;
};

static const struct action actions[WORD_COUNT] = {
	[WORD_ALLOC] = { HEAP_ALLOC, 1 },
	[WORD_FREE] = { HEAP_FREE, -1 },
	[WORD_FREE_COMPLETED] = { HEAP_FREE, -1 },
	[WORD_FREE_REQUESTED] = { HEAP_FREE_REQUESTED, -1 },
	[WORD_SEGMENT_ALLOC] = { HEAP_SEGMENT_ALLOC, 1 },
	[WORD_SEGMENT_FREE] = { HEAP_SEGMENT_FREE, -1 },
	[WORD_SEGMENT_MAP] = { HEAP_SEGMENT_MAP, 1 },
	[WORD_SEGMENT_UNMAP] = { HEAP_SEGMENT_UNMAP, -1 },
	[WORD_OOM] = { HEAP_OUT_OF_MEMORY, 1 },
	[WORD_SNAPSHOT] = { HEAP_SNAPSHOT, 1 },
};

static bool is_action(enum snapshot_word word)
{
	return word >= WORD_ALLOC && word <= WORD_SNAPSHOT;
}

#define TIME_MAX_US INT64_C(4000000000000000) /* in the year 2096; later is damage */
#define SIZE_MAX_BYTES (INT64_C(1) << 50)     /* more is damage */

/* The time of an entry. Early versions of torch wrote no times: their entries get times one nanosecond apart. */
static int64_t time_of(struct snapshot *s, const struct snapshot_record *r)
{
	bool has_time = snapshot_has(r, WORD_TIME_US) && r->fields[WORD_TIME_US].kind == PICKLE_INT;
	int64_t us = has_time ? r->fields[WORD_TIME_US].number : 0;

	if (has_time && us >= 0 && us < TIME_MAX_US) {
		s->last_ns = us_to_ns(us);
	} else if (has_time) {
		s->bad_times++; /* the entries are in order: it happened after the one before */
	} else {
		s->without_times = true;
		s->last_ns = wrap_add(s->last_ns, 1);
	}
	return s->last_ns;
}

static ow_status add_to_span(struct snapshot *s, uint32_t list, uint32_t row)
{
	struct snapshot_span *last = s->span_count ? &s->spans[s->span_count - 1] : NULL;

	if (last && last->list == list && last->first + last->count == row) {
		last->count++;
		return OW_OK;
	}
	if (!vec_push(s->b->m->mem, s->spans, s->span_count, s->span_cap,
		      (struct snapshot_span){ list, row, 1 }))
		return builder_fail(s->b, error_no_memory(s->err));
	return OW_OK;
}

static void add_entry(struct snapshot *s, uint32_t list, const struct snapshot_record *r)
{
	enum snapshot_word word = snapshot_word(s, r->fields[WORD_ACTION]);
	int64_t size = snapshot_number(r, WORD_SIZE);
	heap_id row;

	if (!is_action(word) || size < 0 || size > SIZE_MAX_BYTES) {
		s->odd++;
		return;
	}
	s->actions[word]++;
	row = builder_add_heap(
		s->b,
		&(struct heap_row){
			.ts_ns = time_of(s, r),
			.size = size * actions[word].sign,
			.kind = actions[word].kind,
			.source = s->b->source,
			.address = word == WORD_OOM ? 0 : (uint64_t)snapshot_number(r, WORD_ADDR),
			.stack = snapshot_has(r, WORD_FRAMES)
					 ? snapshot_stack(s, r->fields[WORD_FRAMES])
					 : (stack_id){ 0 } });
	s->rows++;
	if (row.v)
		(void)add_to_span(s, list, row.v);
}

/* Callback of the pickle reader: makes rows from entries of traces while they are read. */
static bool snapshot_take(void *arg, struct pickle *p, uint32_t list, struct pickle_value item)
{
	struct snapshot *s = arg;
	struct snapshot_record r;

	if (!snapshot_read(s, item, &r) || !snapshot_has(&r, WORD_ACTION))
		return false;
	if (s->rows >= s->most) {
		s->odd++; /* an endless repetition of the same entry */
		return true;
	}
	add_entry(s, list, &r);
	if (s->b->status != OW_OK)
		p->status = s->b->status;
	return true;
}

#define DEVICES_MAX 4096 /* limit of device numbers */

struct gpu {
	bool used;
	device_id id;
	struct u64set seen; /* addresses that the trace allocates or frees */
	int64_t segment_change;
	int64_t reserved, active, unused, largest_unused; /* sums at the end of the trace */
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
	struct gpu *gpu;
	char name[32];

	if (number < 0 || number >= DEVICES_MAX)
		number = 0;
	if ((size_t)number >= g->count) {
		size_t old = g->cap;

		if (!vec_reserve(b->m->mem, g->list, g->cap, (size_t)number + 1)) {
			builder_fail(b, error_no_memory(g->s->err));
			return NULL;
		}
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

static bool mark_seen(struct snapshot *s, struct gpu *gpu, uint64_t address, bool *first)
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
		if (!mark_seen(s, gpu, address, &first))
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

/* Stores the device number, from 1, in the tags of the lists in device_traces, which belong to device 0, 1, …. */
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

/* The frames of a block; in old versions they are in a history, the newest first. */
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
	if (mark_seen(s, gpu, address, &first) && first)
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

/* Adds the memory that the allocator held before the trace: what it holds at the end, minus what the trace adds. */
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

static bool step_number(struct str name, int64_t *number)
{
	static const struct str marker = { "ProfilerStep#", 13 };

	return str_starts(name, marker) && str_to_i64(str_skip(name, marker.len), number);
}

/* Adds steps from annotations, which are pairs of START and END. Names other than ProfilerStep are skipped. */
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

static void add_totals_facts(struct gpus *g)
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

static ow_status snapshot_finish(struct snapshot *s)
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
		add_totals_facts(&g);
		status = builder_status(s->b);
	}
	release_gpus(&g);
	return status;
}

/* Whether a pickle begins with an opcode of a list or dictionary, after PROTO and FRAME. */
static bool starts_container(struct str s)
{
	return s.len && (s.ptr[0] == '}' || s.ptr[0] == ']' ||
			 (s.ptr[0] == '(' && s.len > 1 && (s.ptr[1] == 'd' || s.ptr[1] == 'l')));
}

static int sniff_torch_memory(const struct sniff *s)
{
	struct str head = s->head;
	bool protocol = head.len > 2 && (unsigned char)head.ptr[0] == 0x80 && head.ptr[1] >= 2 &&
			head.ptr[1] <= 5;

	if (protocol)
		head = str_skip(head, 2);
	if (protocol && head.len && (unsigned char)head.ptr[0] == 0x95)
		head = str_skip(head, 9);
	if (!starts_container(head))
		return 0;
	if (str_has(s->head, STR("total_size")) || str_has(s->head, STR("device_traces")) ||
	    (str_has(s->head, STR("segments")) && str_has(s->head, STR("action"))))
		return protocol ? 95 : 60;
	return 0;
}

static const char *word_for_kind(uint32_t kind)
{
	static const char *const kinds[] = {
		"NoneType", "bool", "int",   "float", "int",  "str",
		"bytes",    "list", "tuple", "set",   "dict", "object"
	};

	return kind < ARRAY_COUNT(kinds) ? kinds[kind] : "object";
}

static void add_keys(struct snapshot *s, const char *name, struct pickle_value dict)
{
	const struct pickle_object *o = pickle_object(&s->p, dict);
	fact_id list = fact_list(s->b, (fact_id){ 0 }, name);

	for (uint32_t i = 0; i + 1 < o->count && i < 200; i += 2)
		if (o->items[i].kind == PICKLE_TEXT)
			fact_text(s->b, list, NULL,
				  model_str(s->b->m, snapshot_string(s, o->items[i])));
}

static void add_shape_of_root(struct snapshot *s)
{
	const struct pickle_object *o = pickle_object(&s->p, s->p.root);
	bool dict = s->p.root.kind == PICKLE_DICT;

	fact_text(s->b, (fact_id){ 0 }, "toplevel", str_from(word_for_kind(s->p.root.kind)));
	fact_int(s->b, (fact_id){ 0 }, "len", dict ? o->count / 2 : o->count);
	if (dict)
		add_keys(s, "keys", s->p.root);
	else if (o->count && s->p.root.kind == PICKLE_LIST && o->items[0].kind == PICKLE_DICT)
		add_keys(s, "first_item_keys", o->items[0]);
}

static void add_actions(struct snapshot *s)
{
	static const char *const names[] = { "alloc",	       "free",		"free_completed",
					     "free_requested", "segment_alloc", "segment_free",
					     "segment_map",    "segment_unmap", "oom",
					     "snapshot" };
	fact_id list = fact_object(s->b, (fact_id){ 0 }, "actions");
	uint64_t all = 0;

	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		uint64_t count = s->actions[WORD_ALLOC + i];

		all += count;
		if (count)
			fact_int(s->b, list, names[i], (int64_t)count);
	}
	fact_int(s->b, (fact_id){ 0 }, "trace_entries", (int64_t)all);
}

static void note_damage(struct snapshot *s)
{
	struct pickle *p = &s->p;

	if (p->damage)
		builder_note(s->b, p->truncated ? NOTE_TRUNCATED : NOTE_DAMAGED, p->damage_offset,
			     "the pickle cannot be read to its end: %s; what comes before is used",
			     p->damage);
	for (uint32_t i = 0; i < p->foreign_names; i++)
		builder_note(s->b, NOTE_DROPPED, OW_NO_OFFSET,
			     "the pickle asks to run '%.*s', which opwatch does not do; its result "
			     "is left out",
			     STR_ARG(model_str(s->b->m, snapshot_string(s, p->foreign[i]))));
	if (s->odd)
		builder_note_many(s->b, NOTE_DAMAGED, OW_NO_OFFSET, s->odd,
				  "entries, segments or blocks in a form that PyTorch does not "
				  "write are left out");
	if (s->bad_times)
		builder_note_many(s->b, NOTE_REPAIRED, OW_NO_OFFSET, s->bad_times,
				  "times out of range: replaced by the time of the entry before");
	if (s->without_times)
		builder_note(s->b, NOTE_MISSING, OW_NO_OFFSET,
			     "the snapshot has no times: its entries are shown one nanosecond "
			     "apart");
	if (s->repaired)
		builder_note(s->b, NOTE_REPAIRED, OW_NO_OFFSET,
			     "texts that are not UTF-8 were repaired");
}

static ow_status read_pickle(struct snapshot *s, struct import_ctx *ctx)
{
	ow_status status = pickle_run(&s->p);

	if (status == OW_E_CORRUPT)
		return error_wrap(ctx->err, status, "%s", ctx->in->name);
	if (status != OW_OK)
		return builder_fail(s->b, status);
	add_shape_of_root(s);
	add_actions(s);
	OW_TRY(snapshot_finish(s));
	note_damage(s);
	if (s->b->m->heap.count == 1)
		builder_note(s->b, NOTE_MISSING, OW_NO_OFFSET,
			     "the pickle has no segments and no traces; switch recording on with "
			     "torch.cuda.memory._record_memory_history()");
	return builder_status(s->b);
}

static ow_status load_torch_memory(struct import_ctx *ctx)
{
	struct snapshot s = { .b = ctx->b, .err = ctx->err, .most = ctx->in->size / 4 + 16 };
	ow_status status;

	pickle_init(&s.p, ctx->in, ctx->err);
	s.p.take = snapshot_take;
	s.p.arg = &s;
	if (!ctx->b->m->time_unit_ns || ctx->b->m->time_unit_ns > 1000)
		ctx->b->m->time_unit_ns = 1000;
	status = read_pickle(&s, ctx);
	mem_free(ctx->b->m->mem, s.spans, s.span_cap * sizeof(*s.spans));
	pickle_release(&s.p);
	return status;
}

const struct importer import_torch_memory = {
	.name = "torch_memory",
	.summary = "PyTorch memory snapshot (pickle): allocations, segments, stacks",
	.extensions = ".pickle .pkl",
	.role = ROLE_TRACE,
	.sniff = sniff_torch_memory,
	.load = load_torch_memory,
};
