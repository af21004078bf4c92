/* stack_feed.c: see stack_feed.h. */
#include "live/stack_feed.h"

#include "base/clock.h"

#define SECOND_NS 1000000000
#define WATCH_NS (SECOND_NS / 10)
#define MAX_PERIODS 5 /* a machine that stood still says nothing about where the job was */

struct feed_thread {
	uint32_t process, stack;
	int64_t last_ns;
	bool named; /* in this file */
};

/* ---- numbers ---- */

static uint32_t frame_number(struct stack_feed *f, const struct py_frame *frame)
{
	const struct py_code *code = frame->code;

	return stack_names_frame(
		&f->table,
		&(struct live_frame){ .function = stack_names_text(&f->table, code->name),
				      .file = stack_names_text(&f->table, code->file),
				      .line = frame->line,
				      .function_line = code->first });
}

static uint32_t stack_number(struct stack_feed *f, const struct py_thread *thread)
{
	uint32_t stack = 0;

	for (size_t i = thread->frame_count; i-- > 0 && !f->table.no_memory;)
		stack = stack_names_stack(&f->table, stack, frame_number(f, &thread->frames[i]));
	f->no_memory |= f->table.no_memory;
	return stack;
}

/* ---- samples ---- */

static struct feed_thread *find_thread(struct stack_feed *f, const struct py_process *p,
				       struct py_thread *thread)
{
	void *threads = f->threads;
	uint32_t process;

	if (thread->user)
		return &f->threads[thread->user];
	process = collector_number(f->c, p->pid);
	if (!process || !thread->tid) {
		f->unknown++;
		return NULL;
	}
	if (!mem_grow(f->mem, &threads, &f->thread_cap, f->thread_count + 2, sizeof(*f->threads))) {
		f->no_memory = true;
		return NULL;
	}
	f->threads = threads;
	thread->user = ++f->thread_count;
	f->threads[thread->user] =
		(struct feed_thread){ .process = process, .last_ns = f->now_ns - f->period_ns };
	return &f->threads[thread->user];
}

static void name_thread(struct stack_feed *f, struct feed_thread *own, const struct py_process *p,
			const struct py_thread *thread)
{
	if (!own->named && thread->name[0] && thread->tid != p->pid)
		recording_add_text(f->c->recording, own->process, LIVE_THREAD,
				   (uint32_t)thread->tid, str_from(thread->name));
	own->named = true;
}

/* The recording is another file now. */
static void begin_file(struct stack_feed *f)
{
	f->file = f->c->files;
	stack_names_begin(&f->table, f->c->recording);
	for (size_t i = 1; i <= f->thread_count; i++) {
		f->threads[i].stack = 0;
		f->threads[i].named = false;
	}
}

static void take(void *arg, struct py_process *p, struct py_thread *thread)
{
	struct stack_feed *f = arg;
	struct feed_thread *own = f->no_memory ? NULL : find_thread(f, p, thread);
	int64_t wall;

	if (!own)
		return;
	name_thread(f, own, p, thread);
	if (!thread->same || !own->stack)
		own->stack = stack_number(f, thread);
	if (f->no_memory)
		return;
	wall = MIN(f->now_ns - own->last_ns,
		   (MAX_PERIODS + f->sampler.left_out_in_row) * f->period_ns);
	own->last_ns = f->now_ns;
	recording_add_sample(f->c->recording, &(struct live_sample){ .process = own->process,
								     .tid = (uint32_t)thread->tid,
								     .stack = own->stack,
								     .ts_ns = f->now_ns,
								     .wall_ns = wall,
								     .cpu_ns = thread->cpu_ns });
}

static void watch_connected(struct stack_feed *f)
{
	struct collected_info info;

	if (f->now_ns - f->watched_ns < WATCH_NS)
		return;
	f->watched_ns = f->now_ns;
	for (size_t i = 0; i < f->c->count; i++)
		if (collector_info(f->c, i, &info) && !sampler_watch(&f->sampler, (pid_t)info.pid))
			f->no_memory = true;
}

static int64_t beat(void *arg, int64_t now_ns)
{
	struct stack_feed *f = arg;
	int64_t next = f->c->next_beat_ns + f->period_ns;

	f->now_ns = now_ns;
	if (f->file != f->c->files)
		begin_file(f);
	if (f->no_memory)
		return INT64_MAX;
	watch_connected(f);
	if (sampler_tick(&f->sampler, now_ns, take, f, NULL) != OW_OK)
		f->no_memory = true;
	if (next < now_ns) {
		f->late += (uint64_t)((now_ns - next) / f->period_ns) + 1;
		next = now_ns + f->period_ns;
	}
	/* Spread, so that samples do not fall into step with the job. */
	f->dice = map_hash_u64(f->dice, (uint64_t)now_ns);
	return next - f->period_ns / 8 + (int64_t)(f->dice % (uint64_t)(f->period_ns / 4 + 1));
}

/* ---- all ---- */

void stack_feed_open(struct stack_feed *f, struct mem *mem, struct collector *c, uint32_t hz)
{
	*f = (struct stack_feed){ .mem = mem,
				  .c = c,
				  .file = c->files,
				  .period_ns = SECOND_NS / MAX(hz, 1u),
				  .dice = (uint64_t)steady_ns() };
	sampler_init(&f->sampler, mem, false);
	sampler_limit(&f->sampler, hz, false);
	stack_names_init(&f->table, mem, c->recording);
	c->beat = beat;
	c->beat_arg = f;
	c->next_beat_ns = steady_ns();
}

static void tell(struct stack_feed *f, uint64_t count, const char *what)
{
	char text[160];
	int len = snprintf(text, sizeof(text), "%" PRIu64 " %s", count, what);

	if (count)
		recording_add_text(f->c->recording, 0, LIVE_NOTE, 0, str_make(text, (size_t)len));
}

void stack_feed_close(struct stack_feed *f)
{
	struct sampler_sums sums;

	sampler_sums(&f->sampler, &sums);
	tell(f, sums.torn, "samples dropped, since the stack changed while it was read");
	tell(f, sums.left_out, "samples left out, since looking may not take more of a processor");
	tell(f, f->late, "samples not taken, since the machine was busy");
	tell(f, f->unknown, "samples of threads without a known number dropped");
	tell(f, f->no_memory, "time the memory was used up: no stacks were sampled after that");
	f->c->beat = NULL;
	sampler_release(&f->sampler);
	stack_names_release(&f->table);
	mem_free(f->mem, f->threads, f->thread_cap * sizeof(*f->threads));
}
