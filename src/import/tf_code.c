/*
 * tf_code.c: see tf_code.h. Runs under the model's lock when it decodes. Ids without a text read as
 * the empty text. The same raw frame comes again and again, so its bytes are looked up before they are
 * decoded.
 */
#include "import/tf_code.h"

#include "wire/pb.h"

struct known_frame {
	uint64_t offset; /* of its raw bytes in model.code */
	uint32_t size;
	frame_id frame;
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

	if (!mem_grow(code->mem, &known, &code->known_cap, code->known_count + 1,
		      sizeof(*code->known)) ||
	    (code->known = known, !map_add(&code->by_bytes, hash, (uint32_t)code->known_count))) {
		builder_fail(b, error_no_memory(b->err));
		return;
	}
	code->known[code->known_count++] =
		(struct known_frame){ (uint64_t)(bytes.ptr - b->m->code.ptr), (uint32_t)bytes.len,
				      frame };
}

static frame_id frame_of(struct tf_code *code, struct builder *b, struct str bytes)
{
	uint64_t hash = str_hash(bytes);
	frame_id frame;

	for (struct map_iter it = map_find(&code->by_bytes, hash); it.value;
	     it = map_next(&code->by_bytes, it)) {
		const struct known_frame *known = &code->known[it.value];

		if (known->size == bytes.len &&
		    memcmp(b->m->code.ptr + known->offset, bytes.ptr, bytes.len) == 0)
			return known->frame;
	}
	frame = decode_frame(code, b, bytes);
	remember(code, b, hash, bytes, frame);
	return frame;
}

static stack_id stack_of(struct tf_code *code, struct builder *b, struct str bytes)
{
	struct pb r = pb_over(bytes.ptr, bytes.len);
	stack_id stack = { 0 };
	struct pb_field f;

	while (pb_next(&r, &f))
		if (f.tag == PB_TAG(1, PB_BYTES))
			stack = builder_stack(b, stack, frame_of(code, b, pb_str(&f)));
	return stack;
}

static ow_status decode(struct model *m, void *state, struct error *err)
{
	struct tf_code *code = state;
	struct builder b;

	builder_init(&b, m, err);
	for (uint32_t i = 1; i < m->op.count && b.status == OW_OK; i++) {
		uint64_t offset = COLUMN_GET(m->op.code_offset, i);
		uint32_t size = COLUMN_GET(m->op.code_size, i);
		stack_id stack;

		if (!size || offset < code->begin || offset >= code->end)
			continue;
		stack = stack_of(code, &b, str_make(m->code.ptr + offset, size));
		if (stack.v)
			BUILDER_SET(&b, op, stack, (op_id){ i }, stack);
	}
	drop_known(code);
	return b.status;
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
	return builder_defer_stacks(b, decode, release, code);
}
