/*
 * native_rows.c: native stacks of running processes as rows of the model, for `opwatch stacks --native`. Merges a
 * native stack with the Python stack that was read at the same time, names addresses, and follows processes that
 * start and end. Sampling and unwinding are in native_stacks.c.
 */
#include "live/native/native_rows.h"

#include "base/clock.h"
#include "base/demangle/demangle.h"
#include "base/map.h"
#include "base/vec.h"
#include "live/proc/proc.h"

#include <time.h>

#define LOOK_NS (1000000000 / 4)
#define MAX_FDS 256
#define MAX_PYTHON 512
/* a thread is assumed to be where it was if its sample is younger than this */
#define MAX_AGE_NS 1000000

static size_t count_true(const bool *flags, size_t n)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += flags[i];
	return sum;
}

size_t mixed_stack_join(const struct mixed_input *in, struct mixed_frame *out)
{
	size_t loops = count_true(in->is_loop, in->native_count);
	size_t calls = count_true(in->was_called, in->python_count), python = 0, used = 0;

	if (!loops || loops > calls || (loops < calls && in->native_is_whole))
		return 0;
	for (size_t i = 0; i < in->native_count; i++) {
		if (!in->is_loop[i]) {
			out[used++] = (struct mixed_frame){ false, (uint32_t)i };
			continue;
		}
		/* all Python frames that this call of the interpreter loop runs */
		while (python < in->python_count) {
			out[used++] = (struct mixed_frame){ true, (uint32_t)python };
			if (in->was_called[python++])
				break;
		}
	}
	while (python < in->python_count) /* Python frames beyond the known native stack */
		out[used++] = (struct mixed_frame){ true, (uint32_t)python++ };
	return used;
}

/* An address whose name was looked up. */
struct named_pc {
	uint64_t pc;
	frame_id frame;
	bool is_loop;  /* the address is in the loop of the Python interpreter */
	bool is_begin; /* the address is in the start function of a thread or of the program */
};

struct native_process {
	struct native_rows *rows;
	pid_t pid;
	char name[PROC_NAME];
	struct native_events events;
	struct native_unwind *unwind;
	struct map map;
	struct named_pc *pcs; /* looked-up addresses; item 0 is not used */
	size_t count, cap;
	bool no_memory;
};

void native_rows_init(struct native_rows *rows, struct builder *b, const struct sampler *sampler,
		      uint32_t hz, int64_t to_wall_ns)
{
	*rows = (struct native_rows){
		.b = b, .sampler = sampler, .hz = hz, .to_wall_ns = to_wall_ns
	};
	rows->metric = builder_metric(b, STR("native"), STR("ns"));
	rows->refused.mem = b->m->mem;
	buf_init(&rows->name, b->m->mem);
}

static void free_process(struct native_rows *rows, struct native_process *p)
{
	rows->lost += p->events.lost;
	rows->refused_threads += p->events.refused;
	native_events_close(&p->events);
	native_unwind_free(p->unwind);
	map_release(&p->map);
	mem_free(rows->b->m->mem, p->pcs, p->cap * sizeof(*p->pcs));
	mem_free(rows->b->m->mem, p, sizeof(*p));
}

void native_rows_release(struct native_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		free_process(rows, rows->items[i]);
	mem_free(rows->b->m->mem, rows->items, rows->cap * sizeof(struct native_process *));
	rows->items = NULL;
	rows->count = rows->cap = 0;
	pid_list_release(&rows->refused);
	buf_release(&rows->name);
}

static void read_name(struct native_process *p)
{
	struct proc_stat stat;

	if (proc_stat_read(p->pid, 0, &stat))
		memcpy(p->name, stat.name, sizeof(p->name));
}

ow_status native_rows_add(struct native_rows *rows, pid_t pid, struct ow_error *err)
{
	struct mem *mem = rows->b->m->mem;
	struct native_process *p = mem_zalloc(mem, sizeof(*p));
	ow_status status;

	if (!p || !vec_reserve(mem, rows->items, rows->cap, rows->count + 1)) {
		mem_free(mem, p, p ? sizeof(*p) : 0);
		return error_no_memory(err);
	}
	p->rows = rows;
	p->pid = pid;
	p->events.mem = mem;
	map_init(&p->map, mem);
	read_name(p);
	status = native_events_open(&p->events, mem, pid, rows->hz, err);
	if (status == OW_OK)
		status = native_unwind_new(&p->unwind, mem, pid, err);
	if (status != OW_OK) {
		free_process(rows, p);
		return status;
	}
	rows->items[rows->count++] = p;
	rows->processes++;
	return OW_OK;
}

static bool is_one_of(struct str name, const char *const *names)
{
	for (; *names; names++)
		if (str_eq(name, str_from(*names)))
			return true;
	return false;
}

static struct named_pc make_frame(struct native_process *p, uint64_t pc)
{
	static const char *const begins[] = { "_start",	      "__libc_start_main",
					      "__clone",      "__clone3",
					      "clone",	      "clone3",
					      "start_thread", NULL };
	struct builder *b = p->rows->b;
	struct native_name name = native_unwind_name(p->unwind, pc);
	struct buf *text = &p->rows->name;
	struct named_pc named = { .pc = pc };

	named.is_loop = str_starts(name.function, STR("_PyEval_EvalFrameDefault"));
	named.is_begin = is_one_of(name.function, begins);
	buf_clear(text);
	if (!name.function.len)
		buf_printf(text, "0x%" PRIx64, pc);
	else if (!demangle_name(name.function, text)) {
		buf_clear(text);
		buf_add(text, name.function.ptr, utf8_valid_prefix(name.function));
	}
	named.frame =
		builder_frame(b, &(struct frame_row){ .function = builder_str(b, buf_str(text)),
						      .module = builder_str(b, name.module),
						      .flags = name.is_jit ? FRAME_JIT : 0 });
	return named;
}

static struct named_pc frame_at(struct native_process *p, uint64_t pc)
{
	uint64_t hash = map_hash_u64(pc, 0);
	struct named_pc named;

	for (struct map_iter it = map_find(&p->map, hash); it.value; it = map_next(&p->map, it))
		if (p->pcs[it.value].pc == pc)
			return p->pcs[it.value];
	named = make_frame(p, pc);
	if (!vec_reserve(p->rows->b->m->mem, p->pcs, p->cap, p->count + 2)) {
		p->no_memory = true;
		return named;
	}
	if (map_add(&p->map, hash, (uint32_t)p->count + 1))
		p->pcs[++p->count] = named;
	else
		p->no_memory = true;
	return named;
}

/* Returns the track of a thread, named as in sampler.c, so that the same thread has one track. */
static track_id track_of(struct native_process *p, pid_t tid)
{
	struct builder *b = p->rows->b;
	char name[PROC_NAME] = "main";

	if (tid != p->pid && !proc_thread_name(p->pid, tid, name))
		snprintf(name, sizeof(name), "thread");
	return builder_track(b, &(struct track_row){ .name = builder_cstr(b, name),
						     .process = builder_cstr(b, p->name),
						     .pid = p->pid,
						     .tid = tid,
						     .kind = TRACK_HOST,
						     .source = b->source });
}

/* Returns whether a native frame runs a Python frame: the interpreter keeps its address in a
 * register or on its stack. */
static bool has_frame(const struct native_sample *s, uint64_t at)
{
	for (uint32_t i = 0; i < s->register_count; i++)
		if (s->registers[i] == at)
			return true;
	for (size_t i = 0; i + 8 <= s->stack_size; i += 8)
		if (remote_word(s->stack, i) == at)
			return true;
	return false;
}

/* A sample with its native calls, and the Python stack that was read right after it; NULL: none. */
struct both {
	const struct native_sample *sample;
	struct named_pc native[NATIVE_DEPTH];
	size_t native_count;
	const struct py_thread *python;
};

/* Joins both stacks; returns the number of frames, 0 if they do not belong together. */
static size_t join_stacks(const struct both *both,
			  struct mixed_frame out[NATIVE_DEPTH + MAX_PYTHON])
{
	bool is_loop[NATIVE_DEPTH], was_called[MAX_PYTHON];
	struct mixed_input in = { .is_loop = is_loop,
				  .native_count = both->native_count,
				  .was_called = was_called,
				  .python_count = both->python->frame_count };

	for (size_t i = 0; i < both->native_count; i++) {
		is_loop[i] = both->native[i].is_loop;
		in.native_is_whole |= both->native[i].is_begin;
	}
	if (in.python_count > MAX_PYTHON)
		return 0;
	for (size_t i = 0; i < in.python_count; i++)
		was_called[i] = both->python->frames[i].was_called;
	if (!in.python_count || !has_frame(both->sample, both->python->frames[0].at))
		return 0;
	return mixed_stack_join(&in, out);
}

static stack_id add_python(struct builder *b, stack_id stack, const struct py_frame *frame)
{
	return builder_stack(
		b, stack,
		builder_frame(b, &(struct frame_row){ .file = builder_str(b, frame->code->file),
						      .function = builder_str(b, frame->code->name),
						      .line = frame->line,
						      .function_line = frame->code->first }));
}

static stack_id make_stack(struct native_rows *rows, const struct both *both)
{
	struct mixed_frame frames[NATIVE_DEPTH + MAX_PYTHON];
	size_t count = both->python ? join_stacks(both, frames) : 0;
	stack_id stack = { 0 };

	rows->joined += count > 0;
	for (size_t i = count; i-- > 0;)
		stack = frames[i].is_python
				? add_python(rows->b, stack, &both->python->frames[frames[i].index])
				: builder_stack(rows->b, stack,
						both->native[frames[i].index].frame);
	for (size_t i = count ? 0 : both->native_count; i-- > 0;)
		stack = builder_stack(rows->b, stack, both->native[i].frame);
	return stack;
}

/* Reads the Python stack first, because the thread continues to run. */
static const struct py_thread *look_at_python(const struct native_process *p,
					      const struct native_sample *sample)
{
	struct py_process *python = sampler_find(p->rows->sampler, p->pid);
	int64_t now = steady_ns();

	if (!python || now - sample->ts_ns > MAX_AGE_NS)
		return NULL;
	return py_process_glance(python, sample->tid, now + p->rows->to_wall_ns);
}

static void add_sample_row(void *arg, const struct native_sample *sample)
{
	struct native_process *p = arg;
	struct builder *b = p->rows->b;
	struct both both = { .sample = sample, .python = look_at_python(p, sample) };
	uint64_t pcs[NATIVE_DEPTH], joined = p->rows->joined;
	bool runs_python = false;
	stack_id stack;

	both.native_count = native_unwind_walk(p->unwind, sample, pcs);
	for (size_t i = 0; i < both.native_count; i++) {
		both.native[i] = frame_at(p, pcs[i]);
		runs_python |= both.native[i].is_loop;
	}
	stack = make_stack(p->rows, &both);
	p->rows->unjoined += runs_python && p->rows->joined == joined;
	builder_add_sample(b, &(struct sample_row){ .ts_ns = sample->ts_ns + p->rows->to_wall_ns,
						    .stack = stack,
						    .track = track_of(p, sample->tid),
						    .metric = p->rows->metric,
						    .weight = 1000000000 / p->rows->hz });
	p->rows->samples++;
}

/* Waits for a sample; false if the time is over or a signal has arrived. */
static bool poll_until(struct native_rows *rows, const struct timespec *wait, bool *ended)
{
	struct pollfd fds[MAX_FDS];
	size_t count = 0, at = 0;

	for (size_t i = 0; i < rows->count; i++)
		count += native_events_poll(&rows->items[i]->events, fds + count, MAX_FDS - count);
	*ended = false;
	if (ppoll(fds, count, wait, NULL) <= 0)
		return false;
	for (size_t i = 0; i < rows->count && at < count; i++) {
		struct native_events *e = &rows->items[i]->events;

		native_events_polled(e, fds + at, count - at);
		at += MIN(e->count, count - at);
	}
	for (size_t i = 0; i < count; i++)
		if (fds[i].revents & POLLIN)
			return true;
	*ended = true;
	return false;
}

bool native_rows_wait(struct native_rows *rows, int64_t until_ns)
{
	bool ended = true;

	while (ended) { /* each ended thread is reported once */
		int64_t ns = until_ns - steady_ns();
		struct timespec wait = { ns / 1000000000, ns % 1000000000 };

		if (ns <= 0)
			return false;
		if (poll_until(rows, &wait, &ended))
			return true;
	}
	return false;
}

static bool is_sampled(const struct native_rows *rows, pid_t pid)
{
	for (size_t i = 0; i < rows->count; i++)
		if (rows->items[i]->pid == pid)
			return true;
	return pid_list_has(&rows->refused, pid);
}

/* Adds new processes; false if memory runs out. A process that may not be sampled is not tried again. */
static bool add_new_processes(struct native_rows *rows)
{
	struct pid_list pids = { .mem = rows->b->m->mem };
	bool good = sampler_pids(rows->sampler, &pids);

	for (size_t i = 0; good && i < pids.count; i++) {
		struct ow_error why = { 0 };
		ow_status status = is_sampled(rows, pids.items[i])
					   ? OW_OK
					   : native_rows_add(rows, pids.items[i], &why);

		good = status != OW_E_NO_MEMORY;
		if (good && status != OW_OK && status != OW_E_NOT_FOUND)
			good = pid_list_add(&rows->refused, pids.items[i]);
	}
	pid_list_release(&pids);
	return good;
}

/* Starts over with a new program of the process, because its addresses have another meaning now. */
static bool begin_program(struct native_rows *rows, struct native_process *p)
{
	struct ow_error why;

	native_unwind_free(p->unwind);
	map_release(&p->map);
	map_init(&p->map, rows->b->m->mem);
	p->count = 0;
	read_name(p);
	return native_unwind_new(&p->unwind, rows->b->m->mem, p->pid, &why) == OW_OK;
}

static bool check_process(struct native_rows *rows, size_t index)
{
	struct native_process *p = rows->items[index];
	bool other_program = p->events.other_program;

	if (!native_events_refresh(&p->events))
		return false;
	if (other_program && !begin_program(rows, p))
		return false;
	if (!p->events.count) { /* the process has ended */
		free_process(rows, p);
		rows->items[index] = rows->items[--rows->count];
	}
	return true;
}

uint64_t native_rows_refused(const struct native_rows *rows)
{
	uint64_t count = rows->refused_threads;

	for (size_t i = 0; i < rows->count; i++)
		count += rows->items[i]->events.refused;
	return count;
}

bool native_rows_read(struct native_rows *rows)
{
	int64_t now = steady_ns();
	bool look = now - rows->looked_ns >= LOOK_NS, good = true;

	for (size_t i = rows->count; i-- > 0;) {
		struct native_process *p = rows->items[i];

		native_events_read(&p->events, add_sample_row, p);
		good &= !p->no_memory;
		if (look || p->events.other_program)
			good &= check_process(rows, i);
	}
	if (!look)
		return good;
	rows->looked_ns = now;
	return add_new_processes(rows) && good;
}
