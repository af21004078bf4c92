/*
 * torch_snapshot.c: the records of torch's memory snapshots: dictionaries with known keys, frames, and the
 * entries of the traces, which become rows while the pickle is read. See import_torch_memory.c.
 */
#include "import/torch_snapshot.h"

#include "import/repaired_text.h"

static const struct {
	const char *text;
	enum snapshot_word word;
} words[] = {
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

static enum snapshot_word look_up(struct str text)
{
	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		if (str_eq(text, str_from(words[i].text)))
			return words[i].word;
	return WORD_OTHER;
}

enum snapshot_word snapshot_word(struct snapshot *s, struct pickle_value text)
{
	struct pickle_object *o = pickle_object(&s->p, text);

	if (text.kind != PICKLE_TEXT)
		return WORD_OTHER;
	if (!o->tag)
		o->tag = look_up(str_make(o->text, o->count));
	return (enum snapshot_word)o->tag;
}

bool snapshot_read(struct snapshot *s, struct pickle_value dict, struct snapshot_record *r)
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

int64_t snapshot_number(const struct snapshot_record *r, enum snapshot_word word)
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

/* ---- texts and frames ---- */

/* What is not UTF-8 is replaced. */
str_id snapshot_string(struct snapshot *s, struct pickle_value value)
{
	struct str text = pickle_text(&s->p, value);

	if (OW_LIKELY(utf8_valid(text)))
		return builder_str(s->b, text);
	s->repaired = true;
	return repaired_text(s->b, text);
}

/* A frame is remembered in the tag of its dictionary. */
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

/* A list of frames remembers its stack, too: entries share them. */
stack_id snapshot_stack(struct snapshot *s, struct pickle_value frames)
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

/* ---- entries of traces ---- */

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

/* Early versions of torch gave no times: their entries are put a nanosecond apart. */
static int64_t time_of(struct snapshot *s, const struct snapshot_record *r)
{
	if (snapshot_has(r, WORD_TIME_US) && r->fields[WORD_TIME_US].kind == PICKLE_INT) {
		s->last_ns = us_to_ns(r->fields[WORD_TIME_US].number);
	} else {
		s->without_times = true;
		s->last_ns = wrap_add(s->last_ns, 1);
	}
	return s->last_ns;
}

static ow_status add_to_span(struct snapshot *s, uint32_t list, uint32_t row)
{
	struct snapshot_span *last = s->span_count ? &s->spans[s->span_count - 1] : NULL;
	void *spans = s->spans;

	if (last && last->list == list && last->first + last->count == row) {
		last->count++;
		return OW_OK;
	}
	if (!mem_grow(s->b->m->mem, &spans, &s->span_cap, s->span_count + 1, sizeof(*s->spans)))
		return builder_fail(s->b, error_no_memory(s->err));
	s->spans = spans;
	s->spans[s->span_count++] = (struct snapshot_span){ list, row, 1 };
	return OW_OK;
}

static void add_entry(struct snapshot *s, uint32_t list, const struct snapshot_record *r)
{
	enum snapshot_word word = snapshot_word(s, r->fields[WORD_ACTION]);
	int64_t size = snapshot_number(r, WORD_SIZE);
	heap_id row;

	if (!is_action(word) || size < 0) {
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

bool snapshot_take(void *arg, struct pickle *p, uint32_t list, struct pickle_value item)
{
	struct snapshot *s = arg;
	struct snapshot_record r;

	if (!snapshot_read(s, item, &r) || !snapshot_has(&r, WORD_ACTION))
		return false;
	if (s->rows >= s->most) {
		s->odd++; /* the same entry again and again */
		return true;
	}
	add_entry(s, list, &r);
	if (s->b->status != OW_OK)
		p->status = s->b->status;
	return true;
}
