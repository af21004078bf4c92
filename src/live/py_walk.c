/* py_walk.c: see py_walk.h. */
#include "live/py_walk.h"

#define MAX_DEPTH 4096
#define MAX_BYTES 512 /* of a thread, or of a frame */

static uint64_t word_at(const unsigned char *bytes, size_t offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

static size_t thread_bytes(const struct py_offsets *o)
{
	size_t last = MAX(MAX(o->ts_next, o->ts_interp), MAX(o->ts_thread, o->ts_native));

	return MAX(last, (size_t)o->ts_frame) + 8;
}

static size_t frame_bytes(const struct py_offsets *o)
{
	return (size_t)MAX(MAX(o->fr_code, o->fr_prev), MAX(o->fr_instr, o->fr_owner)) + 8;
}

void py_walk_want(const struct py_process *p, const struct py_thread *thread,
		  struct glimpse *glimpse)
{
	const struct py_offsets *o = &p->place.offsets;

	glimpse_want(glimpse, thread->at, thread_bytes(o));
	if (thread->cframe)
		glimpse_want(glimpse, thread->cframe + o->cf_frame, 8);
	for (size_t i = 0; i < thread->raw.count; i++)
		glimpse_want(glimpse, thread->raw.items[i].at, frame_bytes(o));
}

/* The innermost frame; false when the thread does not hold still. */
static bool find_top(struct py_process *p, struct py_thread *thread, struct glimpse *glimpse,
		     uint64_t value, uint64_t *top)
{
	const struct py_offsets *o = &p->place.offsets;
	const unsigned char *bytes;
	unsigned char own[8];

	*top = value;
	if (!py_has_cframe(o))
		return true;
	thread->cframe = value;
	if (!value)
		return true;
	bytes = glimpse_get(glimpse, &p->remote, value + o->cf_frame, 8, own);
	if (!bytes) {
		thread->cframe = 0;
		return false;
	}
	*top = word_at(bytes, 0);
	return true;
}

static bool push(struct py_process *p, struct py_raw_stack *out, uint64_t at,
		 const unsigned char *bytes)
{
	const struct py_offsets *o = &p->place.offsets;
	void *items = out->items;

	if (!mem_grow(p->mem, &items, &out->cap, out->count + 1, sizeof(*out->items)))
		return false;
	out->items = items;
	out->items[out->count++] = (struct py_raw_frame){
		.at = at,
		.code = word_at(bytes, o->fr_code),
		.prev = word_at(bytes, o->fr_prev),
		.instr = word_at(bytes, o->fr_instr),
		.is_shim = o->minor >= 12 && bytes[o->fr_owner] == 3,
	};
	return true;
}

static enum py_walk_result walk_frames(struct py_process *p, struct glimpse *glimpse, uint64_t top,
				       struct py_raw_stack *out)
{
	size_t len = frame_bytes(&p->place.offsets);
	unsigned char own[MAX_BYTES];

	out->count = 0;
	out->too_deep = false;
	for (uint64_t at = top; at; at = out->items[out->count - 1].prev) {
		const unsigned char *bytes;

		if (out->count == MAX_DEPTH) {
			out->too_deep = true;
			break;
		}
		bytes = glimpse_get(glimpse, &p->remote, at, len, own);
		if (!bytes)
			return PY_WALK_TORN;
		if (!push(p, out, at, bytes))
			return PY_WALK_NO_MEMORY;
	}
	return PY_WALK_DONE;
}

enum py_walk_result py_walk(struct py_process *p, struct py_thread *thread, struct glimpse *glimpse,
			    struct py_raw_stack *out, struct py_head *head)
{
	const struct py_offsets *o = &p->place.offsets;
	unsigned char own[MAX_BYTES];
	const unsigned char *bytes;
	uint64_t top;

	if (thread_bytes(o) > MAX_BYTES || frame_bytes(o) > MAX_BYTES)
		return PY_WALK_TORN;
	bytes = glimpse_get(glimpse, &p->remote, thread->at, thread_bytes(o), own);
	if (!bytes)
		return PY_WALK_GONE;
	*head = (struct py_head){
		.next = word_at(bytes, o->ts_next),
		.interpreter = word_at(bytes, o->ts_interp),
		.number = word_at(bytes, o->ts_thread),
		.native = o->ts_native ? word_at(bytes, o->ts_native) : 0,
	};
	if (!find_top(p, thread, glimpse, word_at(bytes, o->ts_frame), &top))
		return PY_WALK_TORN;
	return walk_frames(p, glimpse, top, out);
}
