/*
 * trace_frames.c: reads stackFrames, the table of frames of a trace, each with its caller. A frame becomes a stack of
 * the model; events name it by `sf`. Called by import_trace.c when the events are read. Samples that name frames are
 * events like any other: import_trace.c reads them, trace_pair.c makes slices of them.
 */
#include "import/chrome/trace_int.h"

#include "base/vec.h"

#define FRAMES_MAX ((uint64_t)1 << 30)

struct trace_frame {
	struct trace_id id, parent; /* ids; text ids are model strings */
	str_id name, category;
	stack_id stack;
	bool visited;
};

static uint32_t decode(const struct trace_job *job, struct str raw)
{
	struct buf scratch;
	str_id id;

	if (json_is_plain(raw))
		return builder_str(job->b, raw).v;
	buf_init(&scratch, job->mem);
	json_decode(raw, &scratch);
	if (scratch.failed)
		builder_no_memory(job->b);
	id = builder_str(job->b, buf_str(&scratch));
	buf_release(&scratch);
	return id.v;
}

static struct trace_id frame_id_of(const struct trace_job *job, struct json_value v)
{
	struct trace_id id = { .kind = ID_INT };

	if (v.kind != JSON_STRING && v.kind != JSON_NUMBER)
		return (struct trace_id){ 0 };
	if (str_to_i64(json_text(v), &id.value))
		return id;
	id.kind = ID_TEXT;
	id.value = decode(job, json_text(v));
	return id;
}

static uint64_t hash_frame(struct trace_id id)
{
	return map_hash_u64((uint64_t)id.value, id.kind);
}

static struct trace_frame *find_frame(const struct trace_frames *frames, struct trace_id id)
{
	for (struct map_iter it = map_find(&frames->map, hash_frame(id)); it.value;
	     it = map_next(&frames->map, it))
		if (frames->list[it.value].id.value == id.value &&
		    frames->list[it.value].id.kind == id.kind)
			return &frames->list[it.value];
	return NULL;
}

static bool add_frame(const struct trace_job *job, struct trace_frames *frames, struct str key,
		      struct json_value value)
{
	struct trace_frame frame = { .id = frame_id_of(job, (struct json_value){ key.ptr,
										 (uint32_t)key.len,
										 JSON_STRING }) };
	struct json_value name = json_find(json_text(value), "name");
	struct json_value category = json_find(json_text(value), "category");

	frame.parent = frame_id_of(job, json_find(json_text(value), "parent"));
	frame.name.v = decode(job, json_text(name));
	frame.category.v = decode(job, json_text(category));
	if (!vec_reserve(job->mem, frames->list, frames->cap, (size_t)frames->count + 1))
		return false;
	frames->list[frames->count] = frame;
	return map_add(&frames->map, hash_frame(frame.id), frames->count++);
}

/* Walks up to a caller with a known stack, then down again. A cycle is cut where it closes. */
static void resolve(const struct trace_job *job, struct trace_frames *frames,
		    struct trace_frame *frame, struct trace_frame **chain)
{
	size_t depth = 0;
	stack_id stack = { 0 };

	while (frame && !frame->visited) {
		frame->visited = true;
		chain[depth++] = frame;
		frame = frame->parent.kind ? find_frame(frames, frame->parent) : NULL;
	}
	if (frame)
		stack = frame->stack;
	while (depth--) {
		frame = chain[depth];
		stack = builder_stack(
			job->b, stack,
			builder_frame(job->b, &(struct frame_row){ .file = frame->category,
								   .function = frame->name }));
		frame->stack = stack;
	}
}

static ow_status resolve_all(const struct trace_job *job, struct trace_frames *frames)
{
	struct trace_frame **chain = mem_alloc(job->mem, frames->count * sizeof(*chain));

	if (!chain)
		return trace_no_memory(job);
	for (uint32_t i = 1; i < frames->count; i++)
		resolve(job, frames, &frames->list[i], chain);
	mem_free(job->mem, chain, frames->count * sizeof(*chain));
	return builder_status(job->b);
}

ow_status trace_frames_read(const struct trace_job *job, const struct trace_header *header,
			    struct trace_frames *frames)
{
	struct json_reader r;
	struct json_value value;
	struct str key;
	char *text;
	ow_status status;

	frames->count = 1;
	map_init(&frames->map, job->mem);
	if (!header->frames_size || header->frames_size > FRAMES_MAX)
		return OW_OK;
	text = mem_alloc(job->mem, (size_t)header->frames_size);
	if (!text)
		return trace_no_memory(job);
	status = input_read_at(job->ctx->in, header->frames_offset, text,
			       (size_t)header->frames_size, job->ctx->err);
	r = json_over(str_make(text, (size_t)header->frames_size));
	while (status == OW_OK && json_next_member(&r, &key, &value)) {
		if (value.kind == JSON_OBJECT && !add_frame(job, frames, key, value))
			status = trace_no_memory(job);
	}
	mem_free(job->mem, text, (size_t)header->frames_size);
	return status == OW_OK ? resolve_all(job, frames) : status;
}

void trace_frames_release(const struct trace_job *job, struct trace_frames *frames)
{
	mem_free(job->mem, frames->list, frames->cap * sizeof(*frames->list));
	if (frames->count)
		map_release(&frames->map);
}

stack_id trace_frames_find(const struct trace_frames *frames, struct trace_id id)
{
	const struct trace_frame *frame = find_frame(frames, id);

	return frame ? frame->stack : (stack_id){ 0 };
}
