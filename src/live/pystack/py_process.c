/* py_process.c: see py_process.h. */
#include "live/py_process.h"

#include "live/proc.h"
#include "live/py_settle.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define MAX_INTERPRETERS 256
#define MAX_THREADS 8192
#define IDLE_SAMPLES 8
#define MAX_CODE_BYTES ((size_t)256 << 20)

/* ---- opening ---- */

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

ow_status py_process_open(struct py_process *p, struct mem *mem, pid_t pid, struct error *err)
{
	struct proc_stat stat;

	*p = (struct py_process){ .mem = mem, .pid = pid, .remote = { .pid = pid } };
	py_codes_init(&p->codes, mem);
	OW_TRY(py_find(mem, pid, &p->place, err));
	if (proc_stat_read(pid, 0, &stat))
		memcpy(p->name, stat.name, sizeof(p->name));
	if (!glimpse_init(&p->all, mem) || !glimpse_init(&p->again, mem))
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
	glimpse_release(&p->all, p->mem);
	glimpse_release(&p->again, p->mem);
	py_codes_release(&p->codes);
	*p = (struct py_process){ .mem = p->mem };
}

/* ---- threads ---- */

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
	/* Right after a fork Python still has the id in the parent. */
	return proc_stat_read(p->pid, 0, &stat) && stat.threads == 1 ? p->pid : 0;
}

/* The kernel's own account of a thread: time on a processor, time waiting for one, how often it got one. */
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
	void *threads = p->threads;

	for (size_t i = 0; i < p->thread_count; i++)
		if (p->threads[i].at == at)
			return &p->threads[i];
	if (!mem_grow(p->mem, &threads, &p->thread_cap, p->thread_count + 1, sizeof(*p->threads))) {
		p->no_memory = true;
		return NULL;
	}
	p->threads = threads;
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

/* ---- one thread ---- */

static bool add_frame(struct py_process *p, struct py_thread *thread, size_t *count,
		      struct py_frame frame)
{
	void *frames = thread->frames;

	if (!mem_grow(p->mem, &frames, &thread->frame_cap, *count + 1, sizeof(frame))) {
		p->no_memory = true;
		return false;
	}
	thread->frames = frames;
	if (*count >= thread->frame_count || thread->frames[*count].code != frame.code ||
	    thread->frames[*count].line != frame.line)
		thread->same = false;
	thread->frames[(*count)++] = frame;
	return true;
}

/* By C, rather than by the Python code before it. */
static bool was_called(const struct py_offsets *o, const struct py_raw_stack *raw, size_t i)
{
	if (o->minor < 11 || i + 1 >= raw->count)
		return true;
	return o->minor == 11 ? raw->items[i].is_entry : raw->items[i + 1].is_shim;
}

/* From addresses to files, functions and lines. False when one of the frames has no code. */
static bool resolve(struct py_process *p, struct py_thread *thread, int64_t now_ns)
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

/* Of a thread that stays where it is without running, the time is asked for now and then only. */
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

/* *next is the thread after it; 0 at the end. False when the list cannot be followed. */
static bool sample_thread(struct round *r, uint64_t at, uint64_t interpreter, uint64_t *next)
{
	struct py_process *p = r->p;
	struct py_thread *thread = thread_at(p, at);
	struct py_head head = { 0 };
	enum py_walk_result result;

	if (!thread)
		return false;
	result = py_settle(p, thread, &head);
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
		return true; /* it runs no Python code */
	if (result != PY_WALK_DONE) {
		p->torn++;
		return true;
	}
	if (!resolve(p, thread, r->now_ns)) {
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

/* All that was there last time, by one call. */
static void read_all(struct py_process *p)
{
	const struct py_offsets *o = &p->place.offsets;

	glimpse_begin(&p->all);
	glimpse_want(&p->all, p->place.runtime + o->rt_interpreters, 8);
	for (size_t i = 0; i < PY_INTERPRETERS && p->interpreters[i]; i++) {
		glimpse_want(&p->all, p->interpreters[i] + o->is_next, 8);
		glimpse_want(&p->all, p->interpreters[i] + o->is_threads, 8);
	}
	glimpse_once(&p->all);
	for (size_t i = 0; i < p->thread_count; i++)
		py_walk_want(p, &p->threads[i], &p->all);
	glimpse_read(&p->all, &p->remote);
}

static bool get_word(struct py_process *p, uint64_t at, uint64_t *word)
{
	unsigned char own[8];
	uint32_t piece;
	const unsigned char *bytes = glimpse_get(&p->all, &p->remote, at, 8, own, &piece);

	if (bytes)
		*word = remote_word(bytes, 0);
	return bytes;
}

/* False when something could not be read. */
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

/* Functions that are made over and over fill the memory; then all are read anew. */
static void forget_code(struct py_process *p)
{
	for (size_t i = 0; i < p->thread_count; i++)
		p->threads[i].frame_count = 0;
	py_codes_release(&p->codes);
}

ow_status py_process_sample(struct py_process *p, int64_t now_ns, py_take_fn take, void *arg,
			    struct error *err)
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
