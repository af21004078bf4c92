/* py_walk.c: see py_walk.h. */
#include "live/py_walk.h"

#define MAX_DEPTH 4096
#define MAX_BYTES 512 /* of a thread, or of a frame */
#define MORE_BYTES 1024
#define PAGE_BYTES 4096

enum { OWNED_BY_GENERATOR = 1, OWNED_BY_C = 3 };

static size_t thread_bytes(const struct py_offsets *o)
{
	size_t last = MAX(MAX(o->ts_next, o->ts_interp), MAX(o->ts_thread, o->ts_native));

	return MAX(last, (size_t)o->ts_frame) + 8;
}

static size_t frame_bytes(const struct py_offsets *o)
{
	size_t last = MAX(MAX(o->fr_code, o->fr_prev), MAX(o->fr_instr, o->fr_owner));

	return MAX(last, (size_t)o->fr_mark) + 8;
}

/* From 3.11 on the frames of a thread lie one behind the other: what may have been called since is behind the
 * innermost. Not beyond the page, which may be the last one. */
static size_t room_behind(const struct py_offsets *o, uint64_t end)
{
	return o->minor < 11 ? 0 : (size_t)MIN(-end % PAGE_BYTES, (uint64_t)MORE_BYTES);
}

void py_walk_want(const struct py_process *p, const struct py_thread *thread,
		  struct glimpse *glimpse)
{
	const struct py_offsets *o = &p->place.offsets;
	size_t len = frame_bytes(o);

	glimpse_want(glimpse, thread->at, thread_bytes(o));
	if (thread->cframe)
		glimpse_want(glimpse, thread->cframe + o->cf_frame, 8);
	for (size_t i = 0; i < thread->raw.count; i++) {
		uint64_t at = thread->raw.items[i].at;

		glimpse_want(glimpse, at, i ? len : len + room_behind(o, at + len));
	}
	if (o->minor < 11)
		glimpse_once(glimpse); /* frames lie apart: whole readings are compared */
}

/* The innermost frame; false when the thread does not hold still. */
static bool find_top(struct py_process *p, struct py_thread *thread, struct glimpse *glimpse,
		     uint64_t value, uint64_t *top)
{
	const struct py_offsets *o = &p->place.offsets;
	const unsigned char *bytes;
	unsigned char own[8];
	uint32_t piece;

	*top = value;
	if (!py_has_cframe(o))
		return true;
	thread->cframe = value;
	if (!value)
		return true;
	bytes = glimpse_get(glimpse, &p->remote, value + o->cf_frame, 8, own, &piece);
	if (!bytes) {
		thread->cframe = 0;
		return false;
	}
	*top = remote_word(bytes, 0);
	/* Only the one in the thread itself may be empty: others are just being made. */
	return *top || value - thread->at < PAGE_BYTES;
}

static bool runs(const struct py_offsets *o, const unsigned char *bytes)
{
	int32_t stacktop;

	if (o->minor < 10)
		return bytes[o->fr_mark] == 1; /* f_executing */
	if (o->minor == 10)
		return bytes[o->fr_mark] == 0; /* FRAME_EXECUTING */
	memcpy(&stacktop, bytes + o->fr_mark, sizeof(stacktop));
	return stacktop == -1;
}

/* Whether a frame was the same one in both readings. */
static bool held(const struct py_offsets *o, const unsigned char *a, const unsigned char *b)
{
	return remote_word(a, o->fr_code) == remote_word(b, o->fr_code) &&
	       remote_word(a, o->fr_prev) == remote_word(b, o->fr_prev) && runs(o, a) == runs(o, b);
}

static bool push(struct py_process *p, struct py_raw_stack *out, uint64_t at,
		 const unsigned char *bytes, const unsigned char *again, uint32_t piece)
{
	const struct py_offsets *o = &p->place.offsets;
	void *items = out->items;

	if (!mem_grow(p->mem, &items, &out->cap, out->count + 1, sizeof(*out->items)))
		return false;
	out->items = items;
	out->items[out->count++] = (struct py_raw_frame){
		.at = at,
		.code = remote_word(bytes, o->fr_code),
		.prev = remote_word(bytes, o->fr_prev),
		.instr = remote_word(bytes, o->fr_instr),
		.piece = piece,
		.runs = runs(o, bytes),
		.held = again && held(o, bytes, again),
		.held_instr =
			again && remote_word(bytes, o->fr_instr) == remote_word(again, o->fr_instr),
		.is_entry = o->fr_entry && bytes[o->fr_entry],
		.is_shim = o->minor >= 12 && bytes[o->fr_owner] == OWNED_BY_C,
		.is_generator = o->fr_owner && bytes[o->fr_owner] == OWNED_BY_GENERATOR,
	};
	return true;
}

static enum py_walk_result walk_frames(struct py_process *p, struct glimpse *glimpse, uint64_t top,
				       struct py_raw_stack *out)
{
	size_t len = frame_bytes(&p->place.offsets);
	unsigned char own[MAX_BYTES];
	uint64_t mark = 0; /* a frame before; further and further in */

	for (uint64_t at = top; at; at = out->items[out->count - 1].prev) {
		const unsigned char *bytes;
		uint32_t piece;

		if (at == mark)
			return PY_WALK_TORN; /* frames of different moments make a ring */
		if (!(out->count & (out->count + 1)))
			mark = at;
		if (out->count == MAX_DEPTH) {
			out->too_deep = true;
			break;
		}
		bytes = glimpse_get(glimpse, &p->remote, at, len, own, &piece);
		if (!bytes)
			return PY_WALK_TORN;
		if (!push(p, out, at, bytes, glimpse_again(glimpse, bytes), piece))
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
	uint32_t piece;
	uint64_t top;

	out->count = 0;
	out->too_deep = false;
	if (thread_bytes(o) > MAX_BYTES || frame_bytes(o) > MAX_BYTES)
		return PY_WALK_TORN;
	bytes = glimpse_get(glimpse, &p->remote, thread->at, thread_bytes(o), own, &piece);
	if (!bytes)
		return PY_WALK_GONE;
	*head = (struct py_head){
		.next = remote_word(bytes, o->ts_next),
		.interpreter = remote_word(bytes, o->ts_interp),
		.number = remote_word(bytes, o->ts_thread),
		.native = o->ts_native ? remote_word(bytes, o->ts_native) : 0,
	};
	if (!find_top(p, thread, glimpse, remote_word(bytes, o->ts_frame), &top))
		return PY_WALK_TORN;
	return walk_frames(p, glimpse, top, out);
}

/* ---- marks ---- */

static void drop_inner(struct py_raw_stack *stack, size_t drop)
{
	stack->count -= drop;
	memmove(stack->items, stack->items + drop, stack->count * sizeof(*stack->items));
}

/* Called by Python code itself, rather than through C. */
static bool is_inlined(const struct py_raw_frame *frame)
{
	return !frame->is_shim && !frame->is_entry;
}

/* A generator that waits has no caller: a walk that comes by then ends there. */
static bool ends_well(const struct py_offsets *o, const struct py_raw_stack *stack)
{
	const struct py_raw_frame *last = &stack->items[stack->count - 1];

	if (stack->too_deep)
		return true;
	return o->minor >= 12 ? last->is_shim : last->is_entry && !last->is_generator;
}

static enum py_stack_state check_old(const struct py_raw_stack *stack)
{
	for (size_t i = 1; i < stack->count; i++)
		if (!stack->items[i].runs)
			return PY_STACK_MIXED;
	return stack->items[0].runs ? PY_STACK_WHOLE : PY_STACK_TURNING;
}

enum py_stack_state py_walk_check(const struct py_offsets *o, struct py_raw_stack *stack)
{
	const struct py_raw_frame *items = stack->items;

	if (!stack->count)
		return PY_STACK_WHOLE;
	if (o->minor < 11)
		return check_old(stack);
	if (!ends_well(o, stack))
		return PY_STACK_MIXED;
	for (size_t i = stack->count - 1; i > 0; i--)
		if (items[i].runs && !items[i].is_shim && is_inlined(&items[i - 1])) {
			drop_inner(stack, i);
			break;
		}
	return items[0].runs && !items[0].is_shim ? PY_STACK_WHOLE : PY_STACK_TURNING;
}

size_t py_walk_run(const struct py_offsets *o, const struct py_raw_stack *stack)
{
	const struct py_raw_frame *items = stack->items;
	size_t n = 0;

	if (!stack->count)
		return 0;
	if (o->minor < 11)
		return 1;
	/* of the innermost the instruction may change */
	while (n < stack->count && items[n].piece && items[n].piece == items[0].piece &&
	       items[n].held && (!n || items[n].held_instr))
		n++;
	return n;
}
