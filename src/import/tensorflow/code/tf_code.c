/*
 * tf_code.c: code traces of ops (tf_code.h): kept as raw bytes during the import, decoded on first use. Frames are made
 * first, each distinct one once; then the traces of all ops become stacks, one level after the other. Decoding runs
 * under the model's lock. Ids without a text read as the empty text. Traces that stay in their file have offsets beyond
 * those in model.code: IN_FILE, the source, the offset.
 */
#include "import/tensorflow/code/tf_code.h"
#include "base/vec.h"
#include "wire/protobuf/pb.h"
#include "model/builder.h"
#include "model/model.h"

struct tf_trace {
	op_id op;
	uint32_t parent;    /* the stack that the trace has reached so far */
	uint32_t next, end; /* range of its frames that are not placed yet */
};

struct tf_stacks {
	struct builder *b;
	const struct code_traces *from;
	struct tf_trace *traces;
	size_t trace_count, trace_cap;
};

/* Raw frames are short, because they refer to texts by id: short ones are stored in the table itself. Frames that
 * contain texts are copied once. */
#define TF_SHORT_BYTES 19

struct tf_short_frame {
	uint64_t bytes[2];
	uint32_t rest; /* the last three bytes, and the size */
	frame_id frame;
};

struct tf_long_frame {
	size_t offset; /* offset in long_bytes */
	size_t size;
	frame_id frame;
};

struct tf_frames {
	struct mem *mem;
	/* A hash table with open addressing, at most half full; a nil frame marks a free slot. */
	struct tf_short_frame *slots;
	size_t mask, count; /* mask: number of slots - 1; count: number of used slots */
	struct map by_bytes;
	struct buf long_bytes;
	struct tf_long_frame *longs; /* index 0 is unused */
	size_t long_count, long_cap;
};

/* A frame to be looked up. */
struct tf_raw_frame {
	struct str bytes;
	uint64_t hash;
	struct tf_short_frame key; /* key of a short frame */
};

/* Stacks: builds the prefix tree of many code traces at once. Adding one frame after the other would look up millions
 * of (caller, frame) pairs; going level by level through all traces shows which traces share their callers with no
 * other, and for those nothing needs to be looked up any more. tf_stacks_add is called for each op, then
 * tf_stacks_build sets op.stack.
 */

/* Traces that have reached the same stack, within one level. */
struct group {
	uint64_t key; /* caller's stack and frame */
	uint32_t stack;
	uint32_t count;
};

struct level {
	struct map map;
	struct group *groups; /* index 0 is unused */
	size_t count, cap;
	uint32_t *of; /* group of each active trace */
	size_t of_cap;
	uint32_t last;
};

static void tf_stacks_init(struct tf_stacks *s, struct builder *b, const struct code_traces *from)
{
	*s = (struct tf_stacks){ .b = b, .from = from };
}

static void tf_stacks_release(struct tf_stacks *s)
{
	mem_free(s->b->m->mem, s->traces, s->trace_cap * sizeof(*s->traces));
	*s = (struct tf_stacks){ .b = s->b };
}

/* Adds the trace of an op; failures are reported by the builder. */
static void tf_stacks_add(struct tf_stacks *s, op_id op)
{
	uint32_t first = s->from->first[op.v];

	if (!vec_push(s->b->m->mem, s->traces, s->trace_count, s->trace_cap,
		      (struct tf_trace){
			      .op = op, .next = first, .end = first + s->from->len[op.v] }))
		builder_no_memory(s->b);
}

static uint32_t find_group(struct tf_stacks *s, struct level *l, uint64_t key)
{
	uint64_t hash = map_hash_u64(key, 12);

	if (l->groups[l->last].key == key && l->last)
		return l->last; /* neighbouring ops were often made by the same code */
	for (struct map_iter it = map_find(&l->map, hash); it.value; it = map_next(&l->map, it))
		if (l->groups[it.value].key == key)
			return l->last = it.value;
	if (!vec_reserve(s->b->m->mem, l->groups, l->cap, l->count + 1)) {
		builder_no_memory(s->b);
		return 0;
	}
	if (!map_add(&l->map, hash, (uint32_t)l->count)) {
		builder_no_memory(s->b);
		return 0;
	}
	l->groups[l->count] = (struct group){ .key = key };
	return l->last = (uint32_t)l->count++;
}

/* Adds a stack. If other sources have added stacks, each pair is looked up among them. */
static uint32_t add_stack(struct tf_stacks *s, bool alone, uint32_t parent, frame_id frame)
{
	stack_id caller = { parent };

	if (alone)
		return builder_add_stack(s->b,
					 &(struct stack_row){ .parent = caller, .frame = frame })
			.v;
	return builder_stack(s->b, caller, frame).v;
}

/* Groups the traces of a level by caller and next frame. Traces without a next frame are done. */
static size_t group_traces(struct tf_stacks *s, struct level *l, bool alone)
{
	size_t active = 0;

	for (size_t i = 0; i < s->trace_count && s->b->status == OW_OK; i++) {
		struct tf_trace trace = s->traces[i];
		struct group *group;
		uint32_t g;

		if (trace.next == trace.end) {
			if (trace.parent)
				BUILDER_SET(s->b, op, stack, trace.op, (stack_id){ trace.parent });
			continue;
		}
		g = find_group(s, l, (uint64_t)trace.parent << 32 | s->from->frames[trace.next].v);
		group = &l->groups[g];
		if (!group->count++)
			group->stack =
				add_stack(s, alone, trace.parent, s->from->frames[trace.next]);
		trace.parent = group->stack;
		trace.next++;
		s->traces[active] = trace;
		l->of[active++] = g;
	}
	return active;
}

/* Adds the rest of a trace that shares no more callers with others. */
static void finish_trace(struct tf_stacks *s, const struct tf_trace *trace)
{
	uint32_t stack = trace->parent;

	for (uint32_t i = trace->next; i < trace->end; i++)
		stack = add_stack(s, true, stack, s->from->frames[i]);
	BUILDER_SET(s->b, op, stack, trace->op, (stack_id){ stack });
}

static size_t finish_lonely(struct tf_stacks *s, const struct level *l, size_t active)
{
	size_t left = 0;

	for (size_t i = 0; i < active && s->b->status == OW_OK; i++)
		if (l->groups[l->of[i]].count == 1)
			finish_trace(s, &s->traces[i]);
		else
			s->traces[left++] = s->traces[i];
	return left;
}

static bool begin_levels(struct tf_stacks *s, struct level *l)
{
	struct mem *mem = s->b->m->mem;
	void *groups = NULL;

	*l = (struct level){ .count = 1 };
	map_init(&l->map, mem);
	l->of_cap = s->trace_count;
	l->of = mem_alloc(mem, l->of_cap * sizeof(*l->of));
	if (!l->of || !mem_grow(mem, &groups, &l->cap, 8, sizeof(*l->groups))) {
		builder_no_memory(s->b);
		return false;
	}
	l->groups = groups;
	l->groups[0] = (struct group){ 0 };
	return true;
}

static ow_status tf_stacks_build(struct tf_stacks *s)
{
	struct model *m = s->b->m;
	bool alone = m->stack.count <= 1;
	struct level l;

	if (!s->trace_count || s->b->status != OW_OK)
		return s->b->status;
	if (begin_levels(s, &l))
		while (s->trace_count && s->b->status == OW_OK) {
			size_t active = group_traces(s, &l, alone);

			s->trace_count = alone ? finish_lonely(s, &l, active) : active;
			map_release(&l.map);
			map_init(&l.map, m->mem);
			l.count = 1;
			l.last = 0;
		}
	map_release(&l.map);
	mem_free(m->mem, l.of, l.of_cap * sizeof(*l.of));
	mem_free(m->mem, l.groups, l.cap * sizeof(*l.groups));
	return s->b->status;
}

/* Frames: raw frames (CodeDef.Trace) that were decoded before, found by their bytes, which is much cheaper than
 * decoding them again. Several frames are prepared and then looked up together, so that their cache misses overlap.
 */

#define SLOTS_MIN 256

static bool is_short(struct str bytes)
{
	return bytes.len <= TF_SHORT_BYTES;
}

static bool same_key(const struct tf_short_frame *a, const struct tf_short_frame *b)
{
	return a->bytes[0] == b->bytes[0] && a->bytes[1] == b->bytes[1] && a->rest == b->rest;
}

static uint64_t hash_key(const struct tf_short_frame *key)
{
	return map_hash_u64(key->bytes[0] ^ (uint64_t)key->rest << 32, key->bytes[1]);
}

/* The key of a short frame: its bytes, padded with zeros, and the size. */
static struct tf_short_frame key_of(struct str bytes, const char *end)
{
	const uint8_t *at = (const uint8_t *)bytes.ptr;
	uint8_t copy[24] = { 0 };
	uint64_t words[3];

	if (OW_UNLIKELY((size_t)(end - bytes.ptr) < sizeof(copy)))
		at = memcpy(copy, bytes.ptr, bytes.len);
	for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
		size_t left = bytes.len - MIN(bytes.len, i * 8);

		words[i] = pb_load64(at + i * 8);
		if (left < 8)
			words[i] &= (UINT64_C(1) << left * 8) - 1;
	}
	return (struct tf_short_frame){ .bytes = { words[0], words[1] },
					.rest = (uint32_t)words[2] | (uint32_t)bytes.len << 24 };
}

/* The slot of a key, or a free slot. */
static struct tf_short_frame *slot_of(const struct tf_frames *t, const struct tf_short_frame *key,
				      uint64_t hash)
{
	size_t at = (size_t)hash & t->mask;

	while (t->slots[at].frame.v && !same_key(&t->slots[at], key))
		at = (at + 1) & t->mask;
	return &t->slots[at];
}

static bool resize(struct tf_frames *t, size_t slots)
{
	struct tf_frames old = *t;
	struct tf_short_frame *fresh = mem_zalloc(t->mem, slots * sizeof(*fresh));

	if (!fresh)
		return false;
	t->slots = fresh;
	t->mask = slots - 1;
	for (size_t i = 0; old.slots && i <= old.mask; i++)
		if (old.slots[i].frame.v)
			*slot_of(t, &old.slots[i], hash_key(&old.slots[i])) = old.slots[i];
	if (old.slots)
		mem_free(t->mem, old.slots, (old.mask + 1) * sizeof(*old.slots));
	return true;
}

static bool tf_frames_init(struct tf_frames *t, struct mem *mem)
{
	*t = (struct tf_frames){ .mem = mem, .long_count = 1 };
	map_init(&t->by_bytes, mem);
	buf_init(&t->long_bytes, mem);
	return resize(t, SLOTS_MIN);
}

static void tf_frames_release(struct tf_frames *t)
{
	if (t->slots)
		mem_free(t->mem, t->slots, (t->mask + 1) * sizeof(*t->slots));
	map_release(&t->by_bytes);
	buf_release(&t->long_bytes);
	mem_free(t->mem, t->longs, t->long_cap * sizeof(*t->longs));
}

/* Prepares the lookup of a frame. Bytes after the frame, up to `end`, may be read. */
static void tf_frames_prepare(const struct tf_frames *t, struct tf_raw_frame *raw, struct str bytes,
			      const char *end)
{
	raw->bytes = bytes;
	if (!is_short(bytes)) {
		raw->hash = str_hash(bytes);
		return;
	}
	raw->key = key_of(bytes, end);
	raw->hash = hash_key(&raw->key);
	__builtin_prefetch(&t->slots[(size_t)raw->hash & t->mask]);
}

static struct str long_bytes(const struct tf_frames *t, const struct tf_long_frame *frame)
{
	return str_make(t->long_bytes.ptr + frame->offset, frame->size);
}

/* Finds a frame; nil when it is unknown. */
static frame_id tf_frames_find(const struct tf_frames *t, const struct tf_raw_frame *raw)
{
	if (OW_LIKELY(is_short(raw->bytes)))
		return slot_of(t, &raw->key, raw->hash)->frame;
	for (struct map_iter it = map_find(&t->by_bytes, raw->hash); it.value;
	     it = map_next(&t->by_bytes, it))
		if (str_eq(long_bytes(t, &t->longs[it.value]), raw->bytes))
			return t->longs[it.value].frame;
	return (frame_id){ 0 };
}

static bool add_long(struct tf_frames *t, const struct tf_raw_frame *raw, frame_id frame)
{
	struct tf_long_frame fresh = { t->long_bytes.len, raw->bytes.len, frame };

	buf_add_str(&t->long_bytes, raw->bytes);
	if (t->long_bytes.failed || t->long_count > UINT32_MAX ||
	    !vec_reserve(t->mem, t->longs, t->long_cap, t->long_count + 1))
		return false;
	t->longs[t->long_count] = fresh;
	return map_add(&t->by_bytes, raw->hash, (uint32_t)t->long_count++);
}

/* Adds a frame that was not found. False if memory runs out; then nothing may be added any more. */
static bool tf_frames_add(struct tf_frames *t, const struct tf_raw_frame *raw, frame_id frame)
{
	struct tf_short_frame *slot;

	if (!is_short(raw->bytes))
		return add_long(t, raw, frame);
	slot = slot_of(t, &raw->key, raw->hash);
	*slot = raw->key;
	slot->frame = frame;
	t->count++;
	return t->count * 2 <= t->mask || resize(t, 2 * (t->mask + 1));
}

#define IN_FILE (UINT64_C(1) << 63)
#define FILE_BITS 40   /* bits of an offset in a file */
#define SOURCE_BITS 22 /* bits of a source */

struct known_text {
	int64_t id;
	str_id text;
};

struct tf_code {
	struct builder *b; /* used only while importing */
	struct mem *mem;
	uint64_t begin, end; /* this source's part of model.code, or of the offsets in files */
	/* the source whose file holds the traces; nil: model.code holds them */
	source_id in_file;
	bool any; /* there are traces */
	struct map by_id;
	struct known_text *texts; /* index 0 is unused */
	size_t count, cap;
};

struct tf_code *tf_code_new(struct builder *b)
{
	struct tf_code *code = mem_zalloc(b->m->mem, sizeof(*code));

	if (!code) {
		builder_no_memory(b);
		return NULL;
	}
	code->b = b;
	code->mem = b->m->mem;
	code->begin = b->m->code.len;
	code->count = 1;
	map_init(&code->by_id, code->mem);
	return code;
}

void tf_code_stays(struct tf_code *code, const struct input *in)
{
	source_id source = code->b->source;

	if (in->data || in->size >> FILE_BITS || source.v >> SOURCE_BITS)
		return;
	code->in_file = source;
	code->begin = IN_FILE | (uint64_t)source.v << FILE_BITS;
}

void tf_code_free(struct tf_code *code)
{
	if (!code)
		return;
	map_release(&code->by_id);
	mem_free(code->mem, code->texts, code->cap * sizeof(*code->texts));
	mem_free(code->mem, code, sizeof(*code));
}

static size_t find_id(const struct tf_code *code, int64_t id)
{
	for (struct map_iter it = map_find(&code->by_id, map_hash_u64((uint64_t)id, 8)); it.value;
	     it = map_next(&code->by_id, it))
		if (code->texts[it.value].id == id)
			return it.value;
	return 0;
}

void tf_code_string(struct tf_code *code, int64_t id, str_id text)
{
	size_t at = find_id(code, id);
	void *texts = code->texts;

	if (at) {
		code->texts[at].text = text;
		return;
	}
	if (!mem_grow(code->mem, &texts, &code->cap, code->count + 1, sizeof(*code->texts)) ||
	    (code->texts = texts,
	     !map_add(&code->by_id, map_hash_u64((uint64_t)id, 8), (uint32_t)code->count))) {
		builder_no_memory(code->b);
		return;
	}
	code->texts[code->count++] = (struct known_text){ id, text };
}

void tf_code_read_string(struct tf_code *code, struct tf_read *r, const struct pb_stream_field *f)
{
	struct pb_field field;
	const uint8_t *bytes;
	struct str text = { 0 };
	int64_t id = 0;
	struct pb record;

	if (!pb_stream_record(&r->stream, f, &record))
		return;
	bytes = record.at;
	while (pb_next(&record, &field))
		if (field.tag == PB_TAG(1, PB_VARINT))
			id = (int64_t)field.value;
		else if (field.tag == PB_TAG(2, PB_BYTES))
			text = pb_str(&field);
	if (record.problem)
		tf_damaged(r, f, &record, bytes);
	else
		tf_code_string(code, id, tf_text(r, text));
}

size_t tf_code_strings(const struct tf_code *code)
{
	return code->count - 1;
}

uint64_t tf_code_add(struct tf_code *code, struct str bytes, uint64_t offset)
{
	uint64_t place = code->b->m->code.len;

	if (code->in_file.v) {
		code->any = true;
		return code->begin + offset;
	}
	tf_code_copy(code, bytes);
	return place;
}

void tf_code_copy(struct tf_code *code, struct str bytes)
{
	struct buf *to = &code->b->m->code;

	code->any |= bytes.len != 0;
	buf_add(to, bytes.ptr, bytes.len);
	if (to->failed)
		builder_no_memory(code->b);
}

static str_id text_of(const struct tf_code *code, int64_t id)
{
	size_t at = find_id(code, id);

	return at ? code->texts[at].text : (str_id){ 0 };
}

struct raw_frame {
	struct str file, function, text;
	int64_t file_id, function_id, text_id;
	int32_t line, function_line;
};

static void read_frame(struct raw_frame *raw, struct pb trace)
{
	struct pb_field f;

	while (pb_next(&trace, &f))
		switch (f.tag) {
		case PB_TAG(1, PB_BYTES):
			raw->file = pb_str(&f);
			break;
		case PB_TAG(2, PB_VARINT):
			raw->line = (int32_t)(uint32_t)f.value;
			break;
		case PB_TAG(3, PB_BYTES):
			raw->function = pb_str(&f);
			break;
		case PB_TAG(4, PB_BYTES):
			raw->text = pb_str(&f);
			break;
		case PB_TAG(5, PB_VARINT):
			raw->function_line = (int32_t)(uint32_t)f.value;
			break;
		case PB_TAG(6, PB_VARINT):
			raw->file_id = (int64_t)f.value;
			break;
		case PB_TAG(7, PB_VARINT):
			raw->function_id = (int64_t)f.value;
			break;
		case PB_TAG(8, PB_VARINT):
			raw->text_id = (int64_t)f.value;
			break;
		default:
			break;
		}
}

/* The text in a frame, or that of its id: older writers put texts into the frame; where these are empty the ids
 * count. */
static str_id text_or_id(struct tf_code *code, struct builder *b, struct str text, int64_t id)
{
	return text.len ? builder_str(b, text) : text_of(code, id);
}

static frame_id decode_frame(struct tf_code *code, struct builder *b, struct str bytes)
{
	struct raw_frame raw = { 0 };
	struct frame_row row;

	read_frame(&raw, pb_over(bytes.ptr, bytes.len));
	row = (struct frame_row){ .file = text_or_id(code, b, raw.file, raw.file_id),
				  .function = text_or_id(code, b, raw.function, raw.function_id),
				  .line = raw.line,
				  .function_line = raw.function_line,
				  .text = text_or_id(code, b, raw.text, raw.text_id) };
	return builder_frame(b, &row);
}

/* Frames that are looked up together, so that their cache misses overlap. */
#define BATCH 32

struct batch {
	struct tf_frames *known;
	size_t count;
	struct tf_raw_frame frames[BATCH];
};

static frame_id frame_of(struct tf_code *code, struct builder *b, struct tf_frames *known,
			 const struct tf_raw_frame *raw)
{
	frame_id frame = tf_frames_find(known, raw);

	if (OW_LIKELY(frame.v))
		return frame;
	frame = decode_frame(code, b, raw->bytes);
	if (b->status == OW_OK && !tf_frames_add(known, raw, frame))
		builder_no_memory(b);
	return frame;
}

static void decode_batch(struct tf_code *code, struct builder *b, struct batch *batch,
			 struct code_traces *to)
{
	for (size_t i = 0; i < batch->count; i++)
		to->frames[to->count++] = frame_of(code, b, batch->known, &batch->frames[i]);
	batch->count = 0;
}

static bool is_ours(const struct tf_code *code, const struct model *m, uint32_t op)
{
	uint64_t offset = COLUMN_GET(m->op.code_offset, op);

	return COLUMN_GET(m->op.code_size, op) && offset >= code->begin && offset < code->end;
}

/* Makes room for a batch of frames; indexes have 32 bits, and a frame takes at least two bytes. */
static bool room_for_batch(struct builder *b, struct code_traces *to)
{
	if (to->count + BATCH >= UINT32_MAX ||
	    !vec_reserve(b->m->mem, to->frames, to->cap, to->count + BATCH)) {
		builder_no_memory(b);
		return false;
	}
	return true;
}

/* Ops with traces of this source, in the order of the traces. */
struct traced_ops {
	uint32_t *list; /* NULL: all ops, including those without traces */
	uint32_t count, size;
};

static int by_place(const void *a, const void *b, void *arg)
{
	const uint64_t *place = arg;
	uint64_t x = place[*(const uint32_t *)a], y = place[*(const uint32_t *)b];

	return (x > y) - (x < y);
}

/* Orders the ops by the position of their traces in the file, which is mostly their own order. */
static bool order_ops(const struct tf_code *code, struct builder *b, struct traced_ops *ops)
{
	const struct model *m = b->m;
	uint64_t last = 0;
	bool sorted = true;

	*ops = (struct traced_ops){ .count = m->op.count };
	for (uint32_t i = 1; code->in_file.v && i < m->op.count; i++) {
		if (!is_ours(code, m, i))
			continue;
		sorted &= m->op.code_offset[i] >= last;
		last = m->op.code_offset[i];
		ops->size++;
	}
	if (sorted)
		return true;
	ops->list = mem_alloc(code->mem, ops->size * sizeof(*ops->list));
	if (!ops->list)
		return false;
	ops->count = 0;
	for (uint32_t i = 1; i < m->op.count; i++)
		if (is_ours(code, m, i))
			ops->list[ops->count++] = i;
	qsort_r(ops->list, ops->count, sizeof(*ops->list), by_place, m->op.code_offset);
	return true;
}

/* The raw trace of an op, and the end of the memory that contains it. */
static struct str trace_of(const struct tf_code *code, struct builder *b, struct window *window,
			   uint32_t op, const char **end)
{
	const struct buf *all = &b->m->code;
	uint64_t place = COLUMN_GET(b->m->op.code_offset, op);
	size_t size = b->m->op.code_size[op];
	const unsigned char *bytes;

	if (!code->in_file.v) {
		*end = all->ptr + all->len;
		return str_make(all->ptr + place, size);
	}
	bytes = window_at(window, place - code->begin, size);
	*end = (const char *)window->buf + window->len;
	if (!bytes)
		builder_fail(b, window->status);
	return str_make(bytes, bytes ? size : 0);
}

static void read_trace(struct tf_code *code, struct builder *b, struct batch *batch,
		       struct window *window, uint32_t op, struct code_traces *to)
{
	struct pb_field f;
	const char *end;
	struct str bytes = trace_of(code, b, window, op, &end);
	struct pb r = pb_over(bytes.ptr, bytes.len);

	to->first[op] = (uint32_t)to->count;
	if (!room_for_batch(b, to))
		return;
	while (pb_next(&r, &f)) {
		if (f.tag == PB_TAG(1, PB_BYTES))
			tf_frames_prepare(batch->known, &batch->frames[batch->count++], pb_str(&f),
					  end);
		if (batch->count < BATCH)
			continue;
		decode_batch(code, b, batch, to);
		if (!room_for_batch(b, to))
			return;
	}
	decode_batch(code, b, batch, to);
	to->len[op] = (uint32_t)to->count - to->first[op];
}

/* Opens the file with the traces; a file that has changed since the import is not read. */
static ow_status open_window(const struct tf_code *code, const struct model *m,
			     struct window *window, struct ow_error *err)
{
	const struct input *in = code->in_file.v < m->input_cap ? m->inputs[code->in_file.v] : NULL;

	if (!in)
		return error_set(err, OW_E_IO,
				 "the code traces cannot be read: their input file is closed");
	OW_TRY(input_check_unchanged(in, err));
	window_init(window, in, err);
	return OW_OK;
}

/* Decodes all traces of the source to frames, outermost first. */
static ow_status read_traces(struct tf_code *code, struct builder *b, struct code_traces *to)
{
	struct window window = { 0 };
	struct traced_ops ops = { 0 };
	struct tf_frames known;
	struct batch batch = { .known = &known };

	if (code->in_file.v)
		OW_TRY(builder_fail(b, open_window(code, b->m, &window, b->err)));
	if (!tf_frames_init(&known, code->mem) || !order_ops(code, b, &ops))
		builder_no_memory(b);
	for (uint32_t i = ops.list ? 0 : 1; i < ops.count && b->status == OW_OK; i++) {
		uint32_t op = ops.list ? ops.list[i] : i;

		if (is_ours(code, b->m, op))
			read_trace(code, b, &batch, &window, op, to);
	}
	tf_frames_release(&known);
	mem_free(code->mem, ops.list, ops.size * sizeof(*ops.list));
	if (window.in)
		window_release(&window);
	return b->status;
}

static ow_status trace(struct model *m, void *state, struct ow_error *err)
{
	struct tf_code *code = state;
	struct builder b;
	ow_status status;

	builder_init(&b, m, err);
	status = read_traces(code, &b, &m->traces);
	return status;
}

static ow_status build(const struct tf_code *code, struct builder *b,
		       const struct code_traces *traces)
{
	struct tf_stacks stacks;
	ow_status status;

	tf_stacks_init(&stacks, b, traces);
	for (uint32_t i = 1; i < b->m->op.count && b->status == OW_OK; i++)
		if (is_ours(code, b->m, i))
			tf_stacks_add(&stacks, (op_id){ i });
	status = tf_stacks_build(&stacks);
	tf_stacks_release(&stacks);
	return status;
}

static ow_status decode(struct model *m, void *state, struct ow_error *err)
{
	struct tf_code *code = state;
	struct code_traces own;
	struct builder b;
	ow_status status;

	builder_init(&b, m, err);
	if (m->traces.ops)
		return build(code, &b, &m->traces);
	OW_TRY(code_traces_init(&own, m, err));
	status = read_traces(code, &b, &own);
	if (status == OW_OK)
		status = build(code, &b, &own);
	code_traces_release(&own, m->mem);
	return status;
}

static void free_code(void *state)
{
	tf_code_free(state);
}

ow_status tf_code_defer(struct tf_code *code)
{
	struct builder *b = code->b;

	code->end = code->in_file.v ? code->begin + (UINT64_C(1) << FILE_BITS) : b->m->code.len;
	code->b = NULL;
	if (!code->any) { /* nothing to decode */
		tf_code_free(code);
		return OW_OK;
	}
	return builder_defer_stacks(
		b, &(struct deferred){
			   .run = decode, .trace = trace, .release = free_code, .state = code });
}
