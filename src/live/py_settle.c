/* py_settle.c: see py_settle.h. */
#include "live/py_settle.h"

#define READINGS 24
#define STILL 12   /* readings that are the same in everything */
#define AGREEING 3 /* readings, where each frame lies for itself */

static bool same_frame(const struct py_raw_frame *a, const struct py_raw_frame *b)
{
	return a->at == b->at && a->code == b->code && a->prev == b->prev && a->instr == b->instr;
}

/* How many of the outermost frames are the same. */
static size_t common_frames(const struct py_raw_stack *a, const struct py_raw_stack *b)
{
	size_t n = 0;

	while (n < a->count && n < b->count &&
	       same_frame(&a->items[a->count - 1 - n], &b->items[b->count - 1 - n]))
		n++;
	return n;
}

/* All of it, but for how far the innermost has come. */
static bool is_same(const struct py_raw_stack *a, const struct py_raw_stack *b, size_t common)
{
	if (a->count != b->count || common + 1 < a->count)
		return false;
	return !a->count ||
	       (a->items[0].at == b->items[0].at && a->items[0].code == b->items[0].code &&
		a->items[0].prev == b->items[0].prev);
}

static void swap_stacks(struct py_raw_stack *a, struct py_raw_stack *b)
{
	struct py_raw_stack c = *a;

	*a = *b;
	*b = c;
}

static enum py_walk_result read_again(struct py_process *p, struct py_thread *thread,
				      struct py_head *head)
{
	glimpse_begin(&p->again);
	py_walk_want(p, thread, &p->again);
	glimpse_read(&p->again, &p->remote);
	return py_walk(p, thread, &p->again, &p->other, head);
}

/* How many readings in a row were the same: all but the innermost instruction; all. */
struct agreement {
	uint32_t frames, all;
};

static void compare(struct agreement *a, const struct py_raw_stack *old,
		    const struct py_raw_stack *now, size_t common)
{
	a->frames = is_same(old, now, common) ? a->frames + 1 : 1;
	a->all = old->count == now->count && common == now->count ? a->all + 1 : 1;
}

/* Whether the newest reading, raw, is a stack that was there. */
static bool is_settled(const struct py_offsets *o, const struct py_raw_stack *raw,
		       enum py_stack_state state, size_t common, const struct agreement *a)
{
	if (state == PY_STACK_MIXED)
		return false;
	if (state == PY_STACK_TURNING)
		return a->all >= STILL;
	if (o->minor < 11 || !raw->count)
		return a->frames >= AGREEING;
	return common + py_walk_run(o, raw) >= raw->count;
}

enum py_walk_result py_settle(struct py_process *p, struct py_thread *thread, struct py_head *head)
{
	const struct py_offsets *o = &p->place.offsets;
	/* As the last sample is good enough. */
	struct agreement agreement = { thread->settled ? AGREEING : 0, 0 };

	thread->settled = false;
	for (int i = 0; i < READINGS; i++) {
		const struct glimpse *glimpse = i ? &p->again : &p->all;
		enum py_walk_result result = i ? read_again(p, thread, head)
					       : py_walk(p, thread, &p->all, &p->other, head);
		enum py_stack_state state;
		size_t common;

		if (result == PY_WALK_GONE || result == PY_WALK_NO_MEMORY)
			return result;
		if (result == PY_WALK_TORN)
			continue;
		state = py_walk_check(o, &p->other);
		common = common_frames(&thread->raw, &p->other);
		compare(&agreement, &thread->raw, &p->other, common);
		swap_stacks(&thread->raw, &p->other); /* raw is the newest one */
		thread->settled = !glimpse->disturbed &&
				  is_settled(o, &thread->raw, state, common, &agreement);
		if (thread->settled)
			return PY_WALK_DONE;
	}
	return PY_WALK_TORN;
}
