/*
 * tf_code.c: see tf_code.h. Runs under the model's lock when it decodes. Ids without a text read as
 * the empty text.
 *
 * Traces that stay in their file have places beyond those in model.code: IN_FILE, the source, the offset.
 */
#include "import/tf_code.h"

#include "import/tf_frames.h"
#include "import/tf_stacks.h"
#include "wire/pb.h"

#define IN_FILE (UINT64_C(1) << 63)
#define FILE_BITS 40   /* of the offset in a file */
#define SOURCE_BITS 22 /* of the source */

struct known_text {
	int64_t id;
	str_id text;
};

struct tf_code {
	struct builder *b; /* while importing */
	struct mem *mem;
	uint64_t begin, end; /* this source's part of model.code, or of the places in files */
	source_id in_file;   /* whose file has the traces; nil: model.code has */
	bool any;	     /* there are some */
	struct map by_id;
	struct known_text *texts; /* [0] is unused */
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

static void flush(struct tf_code *code, struct builder *b, struct batch *batch,
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

/* Room for a batch; places are 32-bit numbers, and a frame takes two bytes at least. */
static bool room_for_batch(struct builder *b, struct code_traces *to)
{
	void *frames = to->frames;

	if (to->count + BATCH >= UINT32_MAX ||
	    !mem_grow(b->m->mem, &frames, &to->cap, to->count + BATCH, sizeof(*to->frames))) {
		builder_no_memory(b);
		return false;
	}
	to->frames = frames;
	return true;
}

/* Ops with traces of this source, in the order in which these lie. */
struct traced_ops {
	uint32_t *list; /* NULL: all ops, those without among them */
	uint32_t count, size;
};

static int by_place(const void *a, const void *b, void *arg)
{
	const uint64_t *place = arg;
	uint64_t x = place[*(const uint32_t *)a], y = place[*(const uint32_t *)b];

	return (x > y) - (x < y);
}

/* Traces in a file are read in the order of the file, which mostly is that of the ops. */
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

/* The raw trace of an op, and where the memory ends that it lies in. */
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
		flush(code, b, batch, to);
		if (!room_for_batch(b, to))
			return;
	}
	flush(code, b, batch, to);
	to->len[op] = (uint32_t)to->count - to->first[op];
}

/* The file with the traces. One that was changed since is not read. */
static ow_status open_window(const struct tf_code *code, const struct model *m,
			     struct window *window, struct error *err)
{
	const struct input *in = code->in_file.v < m->input_cap ? m->inputs[code->in_file.v] : NULL;

	if (!in)
		return error_set(err, OW_E_IO, "the file with the code traces is closed");
	OW_TRY(input_check_unchanged(in, err));
	window_init(window, in, err);
	return OW_OK;
}

/* All traces of the source as frames, outermost first. */
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

static ow_status trace(struct model *m, void *state, struct error *err)
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

	code->end = code->in_file.v ? code->begin + (UINT64_C(1) << FILE_BITS) : b->m->code.len;
	code->b = NULL;
	if (!code->any) { /* nothing to decode */
		tf_code_free(code);
		return OW_OK;
	}
	return builder_defer_stacks(
		b, &(struct deferred){
			   .run = decode, .trace = trace, .release = release, .state = code });
}
