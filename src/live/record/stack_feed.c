/*
 * stack_feed.c: samples the Python stacks of a collector's processes between two of its turns, and writes them to
 * the same recording. Called by src/api (`opwatch record --stacks`) and the daemon. Reading stacks is pystack's, on a side
 * thread: the collector waits for it for PATIENCE_NS at most, and lets it use the recording only while it waits.
 */
#include "live/record/stack_feed.h"

#include "base/clock.h"
#include "live/proc/side_thread.h"
#include "live/record/step_watch.h"
#include "base/vec.h"

#define SECOND_NS 1000000000
#define WATCH_NS (SECOND_NS / 10)
/* after a longer pause of the machine, the time is not attributed to a stack */
#define MAX_PERIODS 5

#define PATIENCE_NS (SECOND_NS / 10)
#define SLOW_NS (SECOND_NS / 20)
/* pause after a slow round, as a multiple of it: sampling takes at most a twentieth of the
 * collector's time */
#define SLOW_PAUSE 20

struct feed_side {
	struct side_thread *thread;
	struct stack_feed *f;
	struct sampler sampler;
	struct step_watches steps;
	int64_t now_ns;
	bool no_memory;
};

struct feed_thread {
	uint32_t process, stack;
	int64_t last_ns;
	bool named; /* the thread is named in this file */
};

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

static struct feed_thread *find_thread(struct stack_feed *f, const struct py_process *p,
				       struct py_thread *thread)
{
	uint32_t process;

	if (thread->user)
		return &f->threads[thread->user];
	process = collector_number(f->c, p->pid);
	if (!process || !thread->tid) {
		f->unknown++;
		return NULL;
	}
	if (!vec_reserve(f->mem, f->threads, f->thread_cap, f->thread_count + 2)) {
		f->no_memory = true;
		return NULL;
	}
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

/* Starts over when the recording continues in another file. */
static void begin_file(struct stack_feed *f)
{
	f->file = f->c->files;
	stack_names_begin(&f->table, f->c->recording);
	for (size_t i = 1; i <= f->thread_count; i++) {
		f->threads[i].stack = 0;
		f->threads[i].named = false;
	}
}

static void write_sample(struct stack_feed *f, struct py_process *p, struct py_thread *thread)
{
	struct feed_thread *own = f->no_memory ? NULL : find_thread(f, p, thread);
	int64_t wall;

	if (!own)
		return;
	name_thread(f, own, p, thread);
	step_watch_see(&f->side->steps, p, thread, own->process, f->c->recording);
	if (!thread->same || !own->stack)
		own->stack = stack_number(f, thread);
	if (f->no_memory)
		return;
	wall = MIN(f->now_ns - own->last_ns,
		   (MAX_PERIODS + f->side->sampler.left_out_in_row) * f->period_ns);
	own->last_ns = f->now_ns;
	recording_add_sample(f->c->recording, &(struct live_sample){ .process = own->process,
								     .tid = (uint32_t)thread->tid,
								     .stack = own->stack,
								     .ts_ns = f->now_ns,
								     .wall_ns = wall,
								     .cpu_ns = thread->cpu_ns });
}

/* Adds a sample; runs on the side thread. */
static void add_sample(void *arg, struct py_process *p, struct py_thread *thread)
{
	struct feed_side *side = arg;

	if (!side_thread_begin_use(side->thread))
		return; /* too late: the collector has continued */
	write_sample(side->f, p, thread);
	side_thread_end_use(side->thread);
}

/* Samples all processes; runs on the side thread. */
static void run_tick(void *arg)
{
	struct feed_side *side = arg;

	if (sampler_tick(&side->sampler, side->now_ns, add_sample, side, NULL) != OW_OK)
		side->no_memory = true;
	if (!side_thread_begin_use(side->thread))
		return;
	step_watches_write(&side->steps, side->f->c->recording, side->f->file, side->now_ns);
	side_thread_end_use(side->thread);
}

static void watch_connected(struct stack_feed *f)
{
	struct collected_info info;

	if (f->now_ns - f->watched_ns < WATCH_NS)
		return;
	f->watched_ns = f->now_ns;
	for (size_t i = 0; i < f->c->count; i++)
		if (collector_info(f->c, i, &info) &&
		    (!sampler_watch(&f->side->sampler, (pid_t)info.pid) ||
		     (info.step_marker[0] &&
		      !step_watch_mark(&f->side->steps, (pid_t)info.pid, info.step_marker))))
			f->no_memory = true;
}

static int64_t sample_all(void *arg, int64_t now_ns)
{
	struct stack_feed *f = arg;
	int64_t next = f->c->next_beat_ns + f->period_ns, took_ns;

	f->now_ns = now_ns;
	if (f->file != f->c->files)
		begin_file(f);
	if (f->no_memory)
		return INT64_MAX;
	if (side_thread_is_busy(f->side->thread)) {
		f->unanswered++;
		return now_ns + PATIENCE_NS;
	}
	watch_connected(f);
	f->side->now_ns = now_ns;
	if (!side_thread_run(f->side->thread, run_tick, f->side, PATIENCE_NS))
		f->unanswered++;
	else
		f->no_memory |= f->side->no_memory;
	took_ns = steady_ns() - now_ns;
	if (took_ns > SLOW_NS) {
		f->late += (uint64_t)(SLOW_PAUSE * took_ns / f->period_ns);
		return now_ns + SLOW_PAUSE * took_ns;
	}
	if (next < now_ns) {
		f->late += (uint64_t)((now_ns - next) / f->period_ns) + 1;
		next = now_ns + f->period_ns;
	}
	/* random delays keep samples from coinciding with the job's period */
	f->dice = map_hash_u64(f->dice, (uint64_t)now_ns);
	return next - f->period_ns / 8 + (int64_t)(f->dice % (uint64_t)(f->period_ns / 4 + 1));
}

static struct feed_side *start_side(struct stack_feed *f, uint32_t hz)
{
	struct feed_side *side = mem_zalloc(side_mem(), sizeof(*side));

	if (!side)
		return NULL;
	side->f = f;
	side->thread = side_thread_start();
	if (!side->thread) {
		mem_free(side_mem(), side, sizeof(*side));
		return NULL;
	}
	sampler_init(&side->sampler, side_mem(), false);
	sampler_limit(&side->sampler, hz, false);
	step_watches_init(&side->steps, side_mem());
	return side;
}

void stack_feed_open(struct stack_feed *f, struct mem *mem, struct collector *c, uint32_t hz)
{
	*f = (struct stack_feed){ .mem = mem,
				  .c = c,
				  .file = c->files,
				  .period_ns = SECOND_NS / MAX(hz, 1u),
				  .dice = (uint64_t)steady_ns() };
	f->side = start_side(f, hz);
	f->no_memory = !f->side;
	stack_names_init(&f->table, mem, c->recording);
	c->beat = sample_all;
	c->beat_arg = f;
	c->next_beat_ns = steady_ns();
}

static void add_note(struct stack_feed *f, uint64_t count, const char *what)
{
	char text[160];
	int len = snprintf(text, sizeof(text), "%" PRIu64 " %s", count, what);

	if (count)
		recording_add_text(f->c->recording, 0, LIVE_NOTE, 0, str_make(text, (size_t)len));
}

void stack_feed_close(struct stack_feed *f)
{
	struct sampler_sums sums = { 0 };
	bool is_over = f->side && side_thread_close(f->side->thread);

	if (is_over) {
		step_watches_write(&f->side->steps, f->c->recording, f->file, steady_ns());
		sampler_sums(&f->side->sampler, &sums);
	}
	add_note(f, sums.torn, "samples dropped: the stack changed while it was read");
	add_note(f, sums.left_out, "samples skipped to keep sampling within its CPU limit");
	add_note(f, f->late, "samples missed: the machine was busy");
	add_note(f, f->unknown, "samples dropped: the thread is unknown");
	add_note(f, f->unanswered, "samples missed: files or memory of the job did not answer");
	add_note(f, f->no_memory, "time that memory ran out: stacks were not sampled after that");
	f->c->beat = NULL;
	if (is_over) { /* otherwise the thread keeps its working data */
		sampler_release(&f->side->sampler);
		step_watches_release(&f->side->steps);
		mem_free(side_mem(), f->side, sizeof(*f->side));
	}
	stack_names_release(&f->table);
	mem_free(f->mem, f->threads, f->thread_cap * sizeof(*f->threads));
}
