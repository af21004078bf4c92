/* py_settle.c: see py_settle.h. */
#include "live/py_settle.h"

#include "base/clock.h"

#include <time.h>

#define READINGS 12
#define READINGS_OLD 5 /* where each frame lies for itself */
#define READINGS_BESIDE 6
#define STILL 10   /* readings that are the same in everything */
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

/* One more reading becomes thread->raw; *state is MIXED also when it was disturbed. */
static enum py_walk_result look(struct py_process *p, struct py_thread *thread,
				struct py_head *head, bool first, struct agreement *agreement,
				enum py_stack_state *state, size_t *common)
{
	const struct glimpse *glimpse = first ? &p->all : &p->again;
	enum py_walk_result result =
		first ? py_walk(p, thread, &p->all, &p->other, head) : read_again(p, thread, head);

	if (result != PY_WALK_DONE)
		return result;
	*state = py_walk_check(&p->place.offsets, &p->other);
	*common = common_frames(&thread->raw, &p->other);
	compare(agreement, &thread->raw, &p->other, *common);
	swap_stacks(&thread->raw, &p->other); /* raw is the newest one */
	if (glimpse->disturbed)
		*state = PY_STACK_MIXED;
	return PY_WALK_DONE;
}

static bool has_spent_enough(const struct py_process *p)
{
	return p->give_up_ns && clock_ns(CLOCK_THREAD_CPUTIME_ID) > p->give_up_ns;
}

/* While the thread waits for us all readings are the same; it must not have been given a processor between the first
 * of them and the last. */
static enum py_walk_result settle_beside(struct py_process *p, struct py_thread *thread,
					 struct py_head *head)
{
	struct agreement agreement = { 0 };
	uint64_t turns = 0, turns_now = 0;

	for (int i = 0; i < READINGS_BESIDE; i++) {
		enum py_stack_state state = PY_STACK_MIXED;
		enum py_walk_result result;
		size_t common = 0;

		result = look(p, thread, head, false, &agreement, &state, &common);
		if (result == PY_WALK_GONE || result == PY_WALK_NO_MEMORY)
			return result;
		if (result == PY_WALK_TORN || state == PY_STACK_MIXED)
			agreement = (struct agreement){ 0 };
		else if (agreement.all >= AGREEING) {
			thread->settled = py_thread_turns(thread, &turns_now) && turns_now == turns;
			return thread->settled ? PY_WALK_DONE : PY_WALK_TORN;
		} else if (agreement.all == 1 && !py_thread_turns(thread, &turns))
			break;
	}
	return PY_WALK_TORN;
}

enum py_walk_result py_settle(struct py_process *p, struct py_thread *thread, struct py_head *head)
{
	const struct py_offsets *o = &p->place.offsets;
	/* As the last sample is good enough. */
	struct agreement agreement = { thread->settled ? AGREEING : 0, 0 };
	int readings = o->minor < 11 ? READINGS_OLD : READINGS;
	enum py_walk_result result;

	thread->settled = false;
	for (int i = 0; i < readings; i++) {
		enum py_stack_state state = PY_STACK_MIXED;
		size_t common = 0;

		if (i >= AGREEING && has_spent_enough(p))
			return PY_WALK_TORN;
		result = look(p, thread, head, !i, &agreement, &state, &common);
		if (result == PY_WALK_GONE || result == PY_WALK_NO_MEMORY)
			return result;
		if (result == PY_WALK_TORN)
			continue;
		thread->settled = is_settled(o, &thread->raw, state, common, &agreement);
		if (thread->settled)
			return PY_WALK_DONE;
	}
	if (!beside_go(&p->beside, p->pid, thread->tid))
		return PY_WALK_TORN;
	result = settle_beside(p, thread, head);
	beside_leave(&p->beside);
	return result;
}
