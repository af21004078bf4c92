/*
 * py_process.c: reads the Python stacks of a running process: the list of threads, one reading of a thread's
 * frames (py_walk), reading again until the stack is certain to have existed (py_stack_verify), and turning frames
 * into functions and lines. Called by sampler.c, native_rows.c and src/watch. The process is neither stopped nor
 * written to.
 */
#include "live/pystack/py_process.h"

#include "base/clock.h"
#include "base/vec.h"
#include "live/proc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#define MAX_DEPTH 4096
#define MAX_BYTES 512 /* largest number of bytes of a thread or frame that are read */
#define MORE_BYTES 1024
#define PAGE_BYTES 4096
#define READINGS 12
#define READINGS_OLD 5 /* number of readings in versions whose frames are separate objects */
#define READINGS_BESIDE 6
#define STILL 10   /* number of identical readings that make a stack certain */
#define AGREEING 3 /* number of agreeing readings in versions whose frames are separate objects */
#define MAX_INTERPRETERS 256
#define MAX_THREADS 8192
#define IDLE_SAMPLES 8
#define MAX_CODE_BYTES ((size_t)256 << 20)

/* Fields of a thread state. */
struct py_head {
	uint64_t next, interpreter, number, native;
};

enum py_walk_result { PY_WALK_DONE, PY_WALK_TORN, PY_WALK_GONE, PY_WALK_NO_MEMORY };

/* Reads the thread at thread->at from the batch, or else from the process. */
enum py_walk_result py_walk(struct py_process *p, struct py_thread *thread,
			    struct remote_batch *batch, struct py_raw_stack *out,
			    struct py_head *head);

enum py_stack_state {
	PY_STACK_MIXED, /* the frames are from two different moments */
	/* the innermost function is just starting or returning, or called others since */
	PY_STACK_TURNING,
	PY_STACK_WHOLE
};

/* Checks a stack by the marks of its frames; removes finished frames from its inner end. */
enum py_stack_state py_walk_check(const struct py_offsets *o, struct py_raw_stack *stack);

/* Sets thread->raw to the accepted stack. */
enum py_walk_result py_stack_verify(struct py_process *p, struct py_thread *thread,
				    struct py_head *head);

enum { OWNED_BY_GENERATOR = 1, OWNED_BY_C = 3 };

/*
 * A reading is consistent when its marks are. From 3.11 on a running frame has no stack pointer (-1), and a
 * frame that has called another Python function, or has returned, has one. So the innermost frame is the
 * outermost one that runs, whatever the thread itself says a moment earlier or later, and frames above it have
 * ended. Before 3.11 each frame of a stack says whether it executes. Calls through C leave the caller without a
 * mark: the callee is an entry (3.11), or a shim frame lies between (from 3.12 on).
 */

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

/* Requests the memory that a thread used when it was last read; if nothing has changed, the walk needs no
 * more. */
static void py_walk_want(const struct py_process *p, const struct py_thread *thread,
			 struct remote_batch *batch)
{
	const struct py_offsets *o = &p->place.offsets;
	size_t len = frame_bytes(o);

	remote_batch_want(batch, thread->at, thread_bytes(o));
	if (thread->cframe)
		remote_batch_want(batch, thread->cframe + o->cf_frame, 8);
	for (size_t i = 0; i < thread->raw.count; i++) {
		uint64_t at = thread->raw.items[i].at;

		remote_batch_want(batch, at, i ? len : len + room_behind(o, at + len));
	}
	if (o->minor < 11)
		remote_batch_once(
			batch); /* frames are separate objects, so whole readings are compared */
}

/* Finds the innermost frame; false if the thread changes while it is read. */
static bool find_top(struct py_process *p, struct py_thread *thread, struct remote_batch *batch,
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
	bytes = remote_batch_get(batch, &p->remote, value + o->cf_frame, 8, own, &piece);
	if (!bytes) {
		thread->cframe = 0;
		return false;
	}
	*top = remote_word(bytes, 0);
	/* only the frame pointer in the thread state itself may be empty; others are just being
	 * created */
	return *top || value - thread->at < PAGE_BYTES;
}

static bool frame_runs(const struct py_offsets *o, const unsigned char *bytes)
{
	int32_t stacktop;

	if (o->minor < 10)
		return bytes[o->fr_mark] == 1; /* the byte is f_executing */
	if (o->minor == 10)
		return bytes[o->fr_mark] == 0; /* the value 0 is FRAME_EXECUTING */
	memcpy(&stacktop, bytes + o->fr_mark, sizeof(stacktop));
	return stacktop == -1;
}

/* Returns whether a frame is the same in both readings. */
static bool frame_is_same(const struct py_offsets *o, const unsigned char *a,
			  const unsigned char *b)
{
	return remote_word(a, o->fr_code) == remote_word(b, o->fr_code) &&
	       remote_word(a, o->fr_prev) == remote_word(b, o->fr_prev) &&
	       frame_runs(o, a) == frame_runs(o, b);
}

static bool push_raw_frame(struct py_process *p, struct py_raw_stack *out, uint64_t at,
			   const unsigned char *bytes, const unsigned char *again, uint32_t piece)
{
	const struct py_offsets *o = &p->place.offsets;

	return vec_push(
		p->mem, out->items, out->count, out->cap,
		(struct py_raw_frame){
			.at = at,
			.code = remote_word(bytes, o->fr_code),
			.prev = remote_word(bytes, o->fr_prev),
			.instr = remote_word(bytes, o->fr_instr),
			.piece = piece,
			.runs = frame_runs(o, bytes),
			.held = again && frame_is_same(o, bytes, again),
			.held_instr = again && remote_word(bytes, o->fr_instr) ==
						       remote_word(again, o->fr_instr),
			.is_entry = o->fr_entry && bytes[o->fr_entry],
			.is_shim = o->minor >= 12 && bytes[o->fr_owner] == OWNED_BY_C,
			.is_generator = o->fr_owner && bytes[o->fr_owner] == OWNED_BY_GENERATOR,
		});
}

static enum py_walk_result walk_frames(struct py_process *p, struct remote_batch *batch,
				       uint64_t top, struct py_raw_stack *out)
{
	size_t len = frame_bytes(&p->place.offsets);
	unsigned char own[MAX_BYTES];
	uint64_t mark = 0; /* an earlier frame for cycle detection, moved further in steps */

	for (uint64_t at = top; at; at = out->items[out->count - 1].prev) {
		const unsigned char *bytes;
		uint32_t piece;

		if (at == mark)
			return PY_WALK_TORN; /* frames of different moments form a cycle */
		if (!(out->count & (out->count + 1)))
			mark = at;
		if (out->count == MAX_DEPTH) {
			out->too_deep = true;
			break;
		}
		bytes = remote_batch_get(batch, &p->remote, at, len, own, &piece);
		if (!bytes)
			return PY_WALK_TORN;
		if (!push_raw_frame(p, out, at, bytes, remote_batch_again(batch, bytes), piece))
			return PY_WALK_NO_MEMORY;
	}
	return PY_WALK_DONE;
}

enum py_walk_result py_walk(struct py_process *p, struct py_thread *thread,
			    struct remote_batch *batch, struct py_raw_stack *out,
			    struct py_head *head)
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
	bytes = remote_batch_get(batch, &p->remote, thread->at, thread_bytes(o), own, &piece);
	if (!bytes)
		return PY_WALK_GONE;
	*head = (struct py_head){
		.next = remote_word(bytes, o->ts_next),
		.interpreter = remote_word(bytes, o->ts_interp),
		.number = remote_word(bytes, o->ts_thread),
		.native = o->ts_native ? remote_word(bytes, o->ts_native) : 0,
	};
	if (!find_top(p, thread, batch, remote_word(bytes, o->ts_frame), &top))
		return PY_WALK_TORN;
	return walk_frames(p, batch, top, out);
}

static void drop_inner(struct py_raw_stack *stack, size_t drop)
{
	stack->count -= drop;
	memmove(stack->items, stack->items + drop, stack->count * sizeof(*stack->items));
}

/* Returns whether Python code itself, not C, called the frame. */
static bool is_inlined(const struct py_raw_frame *frame)
{
	return !frame->is_shim && !frame->is_entry;
}

/* Returns whether a walk ended at a valid outermost frame; a waiting generator has no caller, so
 * a walk may end there. */
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

/* Returns how many frames, from the innermost on, were copied at once and did not change in
 * between. */
static size_t py_walk_run(const struct py_offsets *o, const struct py_raw_stack *stack)
{
	const struct py_raw_frame *items = stack->items;
	size_t n = 0;

	if (!stack->count)
		return 0;
	if (o->minor < 11)
		return 1;
	/* the instruction of the innermost frame may change */
	while (n < stack->count && items[n].piece && items[n].piece == items[0].piece &&
	       items[n].held && (!n || items[n].held_instr))
		n++;
	return n;
}

/*
 * A reading is accepted when its marks are those of a whole stack, its inner frames were copied at once, and its
 * outer frames, copied some hundred nanoseconds earlier or later, equal those of the reading before, with the
 * same instructions. Adjacent frames are copied within some ten nanoseconds, less than a call takes, unless this
 * thread is interrupted: readings that took longer than usual are not used. Before 3.11 frames are scattered in
 * memory; then three readings in a row must agree. A thread that lost its processor in the middle of a call
 * stays there: many equal readings in a row, down to the instruction, are accepted without the innermost mark.
 */

static bool same_frame(const struct py_raw_frame *a, const struct py_raw_frame *b)
{
	return a->at == b->at && a->code == b->code && a->prev == b->prev && a->instr == b->instr;
}

/* Returns how many of the outermost frames are the same. */
static size_t common_frames(const struct py_raw_stack *a, const struct py_raw_stack *b)
{
	size_t n = 0;

	while (n < a->count && n < b->count &&
	       same_frame(&a->items[a->count - 1 - n], &b->items[b->count - 1 - n]))
		n++;
	return n;
}

/* Returns whether two stacks are the same, except for the instruction of the innermost frame. */
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
	remote_batch_begin(&p->again);
	py_walk_want(p, thread, &p->again);
	remote_batch_read(&p->again, &p->remote);
	return py_walk(p, thread, &p->again, &p->other, head);
}

/* Number of consecutive equal readings of a stack: without its innermost instruction, and with it. */
struct agreement {
	uint32_t frames, all;
};

static void compare_stacks(struct agreement *a, const struct py_raw_stack *old,
			   const struct py_raw_stack *now, size_t common)
{
	a->frames = is_same(old, now, common) ? a->frames + 1 : 1;
	a->all = old->count == now->count && common == now->count ? a->all + 1 : 1;
}

/* Returns whether the newest reading, raw, is certainly a stack that existed. */
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

/* Makes one more reading of thread->raw; *state is also MIXED if the reading was disturbed. */
static enum py_walk_result read_stack_once(struct py_process *p, struct py_thread *thread,
					   struct py_head *head, bool first,
					   struct agreement *agreement, enum py_stack_state *state,
					   size_t *common)
{
	const struct remote_batch *batch = first ? &p->all : &p->again;
	enum py_walk_result result =
		first ? py_walk(p, thread, &p->all, &p->other, head) : read_again(p, thread, head);

	if (result != PY_WALK_DONE)
		return result;
	*state = py_walk_check(&p->place.offsets, &p->other);
	*common = common_frames(&thread->raw, &p->other);
	compare_stacks(agreement, &thread->raw, &p->other, *common);
	swap_stacks(&thread->raw, &p->other); /* raw is the newest reading */
	if (batch->disturbed)
		*state = PY_STACK_MIXED;
	return PY_WALK_DONE;
}

static bool has_spent_enough(const struct py_process *p)
{
	return p->give_up_ns && clock_ns(CLOCK_THREAD_CPUTIME_ID) > p->give_up_ns;
}

/* While the thread waits for us all readings are the same; it must not have been given a processor between the first
 * of them and the last. */
static enum py_walk_result verify_colocated(struct py_process *p, struct py_thread *thread,
					    struct py_head *head)
{
	struct agreement agreement = { 0 };
	uint64_t turns = 0, turns_now = 0;

	for (int i = 0; i < READINGS_BESIDE; i++) {
		enum py_stack_state state = PY_STACK_MIXED;
		enum py_walk_result result;
		size_t common = 0;

		result = read_stack_once(p, thread, head, false, &agreement, &state, &common);
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

enum py_walk_result py_stack_verify(struct py_process *p, struct py_thread *thread,
				    struct py_head *head)
{
	const struct py_offsets *o = &p->place.offsets;
	/* a stack that equals the last sample is accepted */
	struct agreement agreement = { thread->settled ? AGREEING : 0, 0 };
	int readings = o->minor < 11 ? READINGS_OLD : READINGS;
	enum py_walk_result result;

	thread->settled = false;
	for (int i = 0; i < readings; i++) {
		enum py_stack_state state = PY_STACK_MIXED;
		size_t common = 0;

		if (i >= AGREEING && has_spent_enough(p))
			return PY_WALK_TORN;
		result = read_stack_once(p, thread, head, !i, &agreement, &state, &common);
		if (result == PY_WALK_GONE || result == PY_WALK_NO_MEMORY)
			return result;
		if (result == PY_WALK_TORN)
			continue;
		thread->settled = is_settled(o, &thread->raw, state, common, &agreement);
		if (thread->settled)
			return PY_WALK_DONE;
	}
	if (!cpu_colocate_enter(&p->beside, p->pid, thread->tid))
		return PY_WALK_TORN;
	result = verify_colocated(p, thread, head);
	cpu_colocate_leave(&p->beside);
	return result;
}

/* The ids of threads as the kernel knows them, by the place that all of them have in what pthread_self points to.
 * Only Python 3.11 and later say them. */
struct tid_search {
	struct pid_list tasks;
	unsigned char (*blocks)[1024];
	size_t count;
};

static uint32_t common_offset(const struct tid_search *s)
{
	for (uint32_t at = 4; at + 4 <= sizeof(s->blocks[0]); at += 4) {
		size_t good = 0;

		for (size_t i = 0; i < s->count; i++) {
			int32_t value;

			memcpy(&value, s->blocks[i] + at, sizeof(value));
			good += pid_list_has(&s->tasks, value);
		}
		if (good == s->count)
			return at;
	}
	return 0;
}

static uint32_t find_tid_offset(struct py_process *p)
{
	const struct py_offsets *o = &p->place.offsets;
	unsigned char blocks[8][1024];
	struct tid_search s = { .tasks = { .mem = p->mem }, .blocks = blocks };
	uint64_t interpreter = 0, thread = 0, number;
	uint32_t found = 0;

	if (!proc_threads(p->pid, &s.tasks) ||
	    !remote_read(&p->remote, p->place.runtime + o->rt_interpreters, &interpreter, 8) ||
	    !remote_read(&p->remote, interpreter + o->is_threads, &thread, 8))
		thread = 0;
	while (thread && s.count < ARRAY_COUNT(blocks)) {
		if (!remote_read(&p->remote, thread + o->ts_thread, &number, 8) ||
		    !remote_read(&p->remote, number, blocks[s.count], sizeof(blocks[0])) ||
		    !remote_read(&p->remote, thread + o->ts_next, &thread, 8))
			break;
		s.count++;
	}
	if (s.count)
		found = common_offset(&s);
	pid_list_release(&s.tasks);
	return found;
}

ow_status py_process_open(struct py_process *p, struct mem *mem, pid_t pid, struct ow_error *err)
{
	struct proc_stat stat;

	*p = (struct py_process){ .mem = mem, .pid = pid, .remote = { .pid = pid } };
	py_codes_init(&p->codes, mem);
	OW_TRY(py_find(mem, pid, &p->place, err));
	if (proc_stat_read(pid, 0, &stat))
		memcpy(p->name, stat.name, sizeof(p->name));
	if (!remote_batch_init(&p->all, mem) || !remote_batch_init(&p->again, mem))
		return error_no_memory(err);
	p->tid_offset = p->place.offsets.ts_native ? 0 : find_tid_offset(p);
	return OW_OK;
}

static void free_stack(struct py_process *p, struct py_raw_stack *stack)
{
	mem_free(p->mem, stack->items, stack->cap * sizeof(*stack->items));
	*stack = (struct py_raw_stack){ 0 };
}

static void free_thread(struct py_process *p, struct py_thread *thread)
{
	if (thread->schedstat >= 0)
		close(thread->schedstat);
	free_stack(p, &thread->raw);
	mem_free(p->mem, thread->frames, thread->frame_cap * sizeof(*thread->frames));
}

void py_process_close(struct py_process *p)
{
	for (size_t i = 0; i < p->thread_count; i++)
		free_thread(p, &p->threads[i]);
	mem_free(p->mem, p->threads, p->thread_cap * sizeof(*p->threads));
	free_stack(p, &p->other);
	remote_batch_release(&p->all, p->mem);
	remote_batch_release(&p->again, p->mem);
	py_codes_release(&p->codes);
	*p = (struct py_process){ .mem = p->mem };
}

static bool task_exists(const struct py_process *p, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)p->pid, (int)tid);
	return access(path, F_OK) == 0;
}

static pid_t find_tid(struct py_process *p, const struct py_head *head)
{
	int32_t tid = (int32_t)head->native;
	struct proc_stat stat;

	if (!tid && p->tid_offset &&
	    !remote_read(&p->remote, head->number + p->tid_offset, &tid, sizeof(tid)))
		tid = 0;
	if (tid > 0 && task_exists(p, tid))
		return tid;
	/* right after a fork Python still stores the id of the parent's thread */
	return proc_stat_read(p->pid, 0, &stat) && stat.threads == 1 ? p->pid : 0;
}

/* Reads the kernel's account of a thread: time on a processor, time waiting for one, and number of times
 * it got one. */
static bool read_account(const struct py_thread *thread, uint64_t account[3])
{
	char text[64], *at = text;
	ssize_t got;

	if (thread->schedstat < 0)
		return false;
	got = pread(thread->schedstat, text, sizeof(text) - 1, 0);
	if (got <= 0)
		return false;
	text[got] = 0;
	for (int i = 0; i < 3; i++)
		account[i] = strtoull(at, &at, 10);
	return true;
}

static bool read_cpu(const struct py_thread *thread, uint64_t *ns)
{
	uint64_t account[3];

	if (!read_account(thread, account))
		return false;
	*ns = account[0];
	return true;
}

bool py_thread_turns(const struct py_thread *thread, uint64_t *turns)
{
	uint64_t account[3];

	if (!read_account(thread, account))
		return false;
	*turns = account[2];
	return true;
}

static void name_thread(const struct py_process *p, struct py_thread *thread)
{
	thread->name[0] = 0;
	if (thread->tid == p->pid)
		snprintf(thread->name, sizeof(thread->name), "main");
	else if (thread->tid && !proc_thread_name(p->pid, thread->tid, thread->name))
		thread->name[0] = 0;
}

static void greet_thread(struct py_process *p, struct py_thread *thread, const struct py_head *head)
{
	char path[64];

	if (thread->schedstat >= 0)
		close(thread->schedstat);
	thread->schedstat = -1;
	thread->number = head->number;
	thread->user = 0;
	thread->tid = find_tid(p, head);
	name_thread(p, thread);
	if (thread->tid) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)p->pid,
			 (int)thread->tid);
		thread->schedstat = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (!read_cpu(thread, &thread->cpu_total_ns))
		thread->cpu_total_ns = 0;
}

static struct py_thread *thread_at(struct py_process *p, uint64_t at)
{
	for (size_t i = 0; i < p->thread_count; i++)
		if (p->threads[i].at == at)
			return &p->threads[i];
	if (!vec_reserve(p->mem, p->threads, p->thread_cap, p->thread_count + 1)) {
		p->no_memory = true;
		return NULL;
	}
	p->threads[p->thread_count] = (struct py_thread){ .at = at, .schedstat = -1 };
	return &p->threads[p->thread_count++];
}

static void forget_unseen(struct py_process *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->thread_count; i++)
		if (p->threads[i].seen)
			p->threads[kept++] = p->threads[i];
		else
			free_thread(p, &p->threads[i]);
	p->thread_count = kept;
}

static bool add_frame(struct py_process *p, struct py_thread *thread, size_t *count,
		      struct py_frame frame)
{
	if (!vec_reserve(p->mem, thread->frames, thread->frame_cap, *count + 1)) {
		p->no_memory = true;
		return false;
	}
	if (*count >= thread->frame_count || thread->frames[*count].code != frame.code ||
	    thread->frames[*count].line != frame.line)
		thread->same = false;
	thread->frames[(*count)++] = frame;
	return true;
}

/* Returns whether C, not the Python code before it, called the frame. */
static bool was_called(const struct py_offsets *o, const struct py_raw_stack *raw, size_t i)
{
	if (o->minor < 11 || i + 1 >= raw->count)
		return true;
	return o->minor == 11 ? raw->items[i].is_entry : raw->items[i + 1].is_shim;
}

/* Resolves addresses to files, functions and lines. False if one of the frames has no code. */
static bool resolve_frames(struct py_process *p, struct py_thread *thread, int64_t now_ns)
{
	const struct py_offsets *o = &p->place.offsets;
	size_t count = 0;

	thread->same = true;
	for (size_t i = 0; i < thread->raw.count; i++) {
		const struct py_raw_frame *raw = &thread->raw.items[i];
		struct py_code *code;

		if (raw->is_shim)
			continue;
		code = py_codes_get(&p->codes, &p->remote, o, raw->code, now_ns);
		p->no_memory |= p->codes.no_memory;
		if (!code ||
		    !add_frame(p, thread, &count,
			       (struct py_frame){ code, py_code_line(code, o, raw->instr),
						  was_called(o, &thread->raw, i), raw->at })) {
			thread->frame_count = 0;
			thread->settled = false;
			return false;
		}
	}
	thread->same &= count == thread->frame_count;
	thread->frame_count = count;
	return true;
}

/* Counts processor time. For a thread that stays idle, the time is read only now and then. */
static void count_cpu(struct py_thread *thread)
{
	bool look =
		!thread->same || ++thread->idle < IDLE_SAMPLES || thread->idle % IDLE_SAMPLES == 0;
	uint64_t ns;

	thread->cpu_ns = 0;
	if (!look || !read_cpu(thread, &ns))
		return;
	if (ns != thread->cpu_total_ns || !thread->same)
		thread->idle = 0;
	thread->cpu_ns = ns > thread->cpu_total_ns ? (int64_t)(ns - thread->cpu_total_ns) : 0;
	thread->cpu_total_ns = ns;
}

struct round {
	struct py_process *p;
	int64_t now_ns;
	py_take_fn take;
	void *arg;
};

/* Samples a thread; *next becomes the following thread, 0 at the end. False if the list cannot
 * be followed. */
static bool sample_thread(struct round *r, uint64_t at, uint64_t interpreter, uint64_t *next)
{
	struct py_process *p = r->p;
	struct py_thread *thread = thread_at(p, at);
	struct py_head head = { 0 };
	enum py_walk_result result;

	if (!thread)
		return false;
	result = py_stack_verify(p, thread, &head);
	if (result == PY_WALK_NO_MEMORY)
		p->no_memory = true;
	if (result == PY_WALK_GONE || result == PY_WALK_NO_MEMORY ||
	    head.interpreter != interpreter)
		return false;
	*next = head.next;
	thread->seen = true;
	if (thread->number != head.number || (!thread->tid && p->samples % 64 == 0))
		greet_thread(p, thread, &head);
	if (result == PY_WALK_DONE && !thread->raw.count)
		return true; /* the thread runs no Python code */
	if (result != PY_WALK_DONE) {
		p->torn++;
		return true;
	}
	if (!resolve_frames(p, thread, r->now_ns)) {
		p->torn++;
		p->lost++;
		return !p->no_memory;
	}
	if (!thread->frame_count)
		return true;
	if (p->glances) {
		thread->changed |= !thread->same;
		r->take(r->arg, p, thread);
		return true;
	}
	thread->same &= !thread->changed;
	thread->changed = false;
	count_cpu(thread);
	p->samples++;
	r->take(r->arg, p, thread);
	return true;
}

static bool sample_interpreter(struct round *r, uint64_t interpreter, uint64_t first)
{
	uint64_t at = first, next;

	for (size_t i = 0; at && i < MAX_THREADS; i++, at = next)
		if (at & 7 || !sample_thread(r, at, interpreter, &next))
			return false;
	return true;
}

/* Reads in one call all memory that was used the last time. */
static void read_all(struct py_process *p)
{
	const struct py_offsets *o = &p->place.offsets;

	remote_batch_begin(&p->all);
	remote_batch_want(&p->all, p->place.runtime + o->rt_interpreters, 8);
	for (size_t i = 0; i < PY_INTERPRETERS && p->interpreters[i]; i++) {
		remote_batch_want(&p->all, p->interpreters[i] + o->is_next, 8);
		remote_batch_want(&p->all, p->interpreters[i] + o->is_threads, 8);
	}
	remote_batch_once(&p->all);
	for (size_t i = 0; i < p->thread_count; i++)
		py_walk_want(p, &p->threads[i], &p->all);
	remote_batch_read(&p->all, &p->remote);
}

static bool get_word(struct py_process *p, uint64_t at, uint64_t *word)
{
	unsigned char own[8];
	uint32_t piece;
	const unsigned char *bytes = remote_batch_get(&p->all, &p->remote, at, 8, own, &piece);

	if (bytes)
		*word = remote_word(bytes, 0);
	return bytes;
}

/* Samples all threads; false if memory could not be read. */
static bool sample_all(struct round *r)
{
	struct py_process *p = r->p;
	const struct py_offsets *o = &p->place.offsets;
	uint64_t at;

	read_all(p);
	memset(p->interpreters, 0, sizeof(p->interpreters));
	if (!get_word(p, p->place.runtime + o->rt_interpreters, &at))
		return false;
	for (size_t i = 0; at && i < MAX_INTERPRETERS; i++) {
		uint64_t next, first;

		if (at & 7 || !get_word(p, at + o->is_next, &next) ||
		    !get_word(p, at + o->is_threads, &first) || !sample_interpreter(r, at, first))
			return false;
		if (i < PY_INTERPRETERS)
			p->interpreters[i] = at;
		at = next;
	}
	return true;
}

/* Drops all code objects if functions that are created repeatedly fill the memory; they are read
 * again. */
static void forget_code(struct py_process *p)
{
	for (size_t i = 0; i < p->thread_count; i++)
		p->threads[i].frame_count = 0;
	py_codes_release(&p->codes);
}

ow_status py_process_sample(struct py_process *p, int64_t now_ns, py_take_fn take, void *arg,
			    struct ow_error *err)
{
	struct round round = { p, now_ns, take, arg };

	p->remote.failure = 0;
	if (p->codes.bytes > MAX_CODE_BYTES)
		forget_code(p);
	for (size_t i = 0; i < p->thread_count; i++)
		p->threads[i].seen = false;
	if (sample_all(&round)) {
		forget_unseen(p);
		return OW_OK;
	}
	if (p->no_memory)
		return error_no_memory(err);
	if (remote_is_gone(&p->remote))
		return error_set(err, OW_E_NOT_FOUND, "process %d has ended", (int)p->pid);
	if (p->remote.failure == EPERM)
		return py_explain_refusal(p->pid, EPERM, err);
	p->torn++;
	p->lost++;
	return OW_OK;
}

struct glance {
	pid_t tid;
	const struct py_thread *found;
};

static void take_glance(void *arg, struct py_process *p, struct py_thread *thread)
{
	struct glance *glance = arg;

	(void)p;
	if (thread->tid == glance->tid)
		glance->found = thread;
}

const struct py_thread *py_process_glance(struct py_process *p, pid_t tid, int64_t now_ns)
{
	struct glance glance = { .tid = tid };
	uint64_t torn = p->torn, lost = p->lost;
	ow_status status;

	p->glances = true;
	status = py_process_sample(p, now_ns, take_glance, &glance, NULL);
	p->glances = false;
	p->torn = torn;
	p->lost = lost;
	return status == OW_OK ? glance.found : NULL;
}
