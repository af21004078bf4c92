/*
 * tf_code.c: see tf_code.h. Runs under the model's lock when it decodes. Ids without a text read as
 * the empty text. The same raw frame comes again and again, so its bytes are looked up before they are
 * decoded.
 */
#include "import/tf_code.h"

#include "import/tf_stacks.h"
#include "wire/pb.h"

/* Raw frames are short, as they refer to texts by id; those with texts in them are found by their
 * place in model.code. */
#define INLINE_BYTES 19

struct known_frame {
	uint64_t offset; /* of its raw bytes in model.code */
	uint32_t size;
	frame_id frame;
	uint8_t bytes[INLINE_BYTES];
};

struct known_text {
	int64_t id;
	str_id text;
};

struct tf_code {
	struct builder *b; /* while importing */
	struct mem *mem;
	uint64_t begin, end; /* this source's part of model.code */
	struct map by_id;
	struct known_text *texts; /* [0] is unused */
	size_t count, cap;
	/* while decoding */
	struct map by_bytes;
	struct known_frame *known; /* [0] is unused */
	size_t known_count, known_cap;
};

struct tf_code *tf_code_new(struct builder *b)
{
	struct tf_code *code = mem_zalloc(b->m->mem, sizeof(*code));

	if (!code) {
		builder_fail(b, error_no_memory(b->err));
		return NULL;
	}
	code->b = b;
	code->mem = b->m->mem;
	code->begin = b->m->code.len;
	code->count = code->known_count = 1;
	map_init(&code->by_id, code->mem);
	map_init(&code->by_bytes, code->mem);
	return code;
}

static void drop_known(struct tf_code *code)
{
	map_release(&code->by_bytes);
	mem_free(code->mem, code->known, code->known_cap * sizeof(*code->known));
	code->known = NULL;
	code->known_cap = 0;
	code->known_count = 1;
}

void tf_code_free(struct tf_code *code)
{
	if (!code)
		return;
	drop_known(code);
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
		builder_fail(code->b, error_no_memory(code->b->err));
		return;
	}
	code->texts[code->count++] = (struct known_text){ id, text };
}

size_t tf_code_strings(const struct tf_code *code)
{
	return code->count - 1;
}

void tf_code_copy(struct tf_code *code, struct str bytes)
{
	struct buf *to = &code->b->m->code;

	buf_add(to, bytes.ptr, bytes.len);
	if (to->failed)
		builder_fail(code->b, error_no_memory(code->b->err));
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

/* Older writers put the texts into the frame; where they are empty the ids count. */
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

static void remember(struct tf_code *code, struct builder *b, uint64_t hash, struct str bytes,
		     frame_id frame)
{
	void *known = code->known;
	struct known_frame *fresh;

	if (!mem_grow(code->mem, &known, &code->known_cap, code->known_count + 1,
		      sizeof(*code->known)) ||
	    (code->known = known, !map_add(&code->by_bytes, hash, (uint32_t)code->known_count))) {
		builder_fail(b, error_no_memory(b->err));
		return;
	}
	fresh = &code->known[code->known_count++];
	fresh->offset = (uint64_t)(bytes.ptr - b->m->code.ptr);
	fresh->size = (uint32_t)bytes.len;
	fresh->frame = frame;
	if (bytes.len <= INLINE_BYTES)
		memcpy(fresh->bytes, bytes.ptr, bytes.len);
}

static bool same_bytes(const struct known_frame *known, const struct model *m, struct str bytes)
{
	const void *have = known->bytes;

	if (known->size != bytes.len)
		return false;
	if (bytes.len > INLINE_BYTES)
		have = m->code.ptr + known->offset;
	return memcmp(have, bytes.ptr, bytes.len) == 0;
}

static frame_id frame_of(struct tf_code *code, struct builder *b, struct str bytes, uint64_t hash)
{
	struct map_iter it = map_find(&code->by_bytes, hash);
	frame_id frame;

	for (; it.value && code->known; it = map_next(&code->by_bytes, it))
		if (OW_LIKELY(same_bytes(&code->known[it.value], b->m, bytes)))
			return code->known[it.value].frame;
	frame = decode_frame(code, b, bytes);
	remember(code, b, hash, bytes, frame);
	return frame;
}

/* Frames that are looked up together, so that their cache misses overlap. */
#define BATCH 32

struct batch {
	size_t count;
	struct str bytes[BATCH];
	uint64_t hash[BATCH];
};

static void flush(struct tf_code *code, struct builder *b, struct batch *batch,
		  struct code_traces *to)
{
	const struct map *map = &code->by_bytes;

	for (size_t i = 0; i < batch->count && code->known; i++)
		__builtin_prefetch(&code->known[map_find(map, batch->hash[i]).value]);
	for (size_t i = 0; i < batch->count; i++)
		to->frames[to->count++] = frame_of(code, b, batch->bytes[i], batch->hash[i]);
	batch->count = 0;
}

static void add_to_batch(struct tf_code *code, struct batch *batch, struct str bytes)
{
	const struct map *map = &code->by_bytes;
	uint64_t hash = str_hash(bytes);

	if (map->slots)
		__builtin_prefetch(&map->slots[(size_t)(hash >> 32) & map->mask]);
	batch->bytes[batch->count] = bytes;
	batch->hash[batch->count++] = hash;
}

static bool is_ours(const struct tf_code *code, const struct model *m, uint32_t op)
{
	uint64_t offset = COLUMN_GET(m->op.code_offset, op);

	return COLUMN_GET(m->op.code_size, op) && offset >= code->begin && offset < code->end;
}

/* Room for a batch; places are 32-bit numbers, and a frame takes two bytes at least. */
static bool room_for_batch(struct builder *b, struct code_traces *to)
{
	void *frames = to->frames;

	if (to->count + BATCH >= UINT32_MAX ||
	    !mem_grow(b->m->mem, &frames, &to->cap, to->count + BATCH, sizeof(*to->frames))) {
		builder_fail(b, error_no_memory(b->err));
		return false;
	}
	to->frames = frames;
	return true;
}

/* All traces of the source as frames, outermost first. */
static ow_status read_traces(struct tf_code *code, struct builder *b, struct code_traces *to)
{
	struct model *m = b->m;
	struct batch batch = { 0 };
	struct pb_field f;

	for (uint32_t i = 1; i < m->op.count && b->status == OW_OK; i++) {
		struct pb r;

		if (!is_ours(code, m, i))
			continue;
		to->first[i] = (uint32_t)to->count;
		r = pb_over(m->code.ptr + COLUMN_GET(m->op.code_offset, i), m->op.code_size[i]);
		if (!room_for_batch(b, to))
			break;
		while (pb_next(&r, &f)) {
			if (f.tag == PB_TAG(1, PB_BYTES))
				add_to_batch(code, &batch, pb_str(&f));
			if (batch.count < BATCH)
				continue;
			flush(code, b, &batch, to);
			if (!room_for_batch(b, to))
				break;
		}
		flush(code, b, &batch, to);
		to->len[i] = (uint32_t)to->count - to->first[i];
	}
	return b->status;
}

static ow_status trace(struct model *m, void *state, struct error *err)
{
	struct tf_code *code = state;
	struct builder b;
	ow_status status;

	builder_init(&b, m, err);
	status = read_traces(code, &b, &m->traces);
	drop_known(code);
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

static ow_status decode(struct model *m, void *state, struct error *err)
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
	drop_known(code);
	if (status == OW_OK)
		status = build(code, &b, &own);
	code_traces_release(&own, m->mem);
	return status;
}

static void release(void *state)
{
	tf_code_free(state);
}

ow_status tf_code_defer(struct tf_code *code)
{
	struct builder *b = code->b;

	code->end = b->m->code.len;
	code->b = NULL;
	if (code->begin == code->end) { /* nothing to decode */
		tf_code_free(code);
		return OW_OK;
	}
	return builder_defer_stacks(
		b, &(struct deferred){
			   .run = decode, .trace = trace, .release = release, .state = code });
}
