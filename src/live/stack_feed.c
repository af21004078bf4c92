/* stack_feed.c: see stack_feed.h. */
#include "live/stack_feed.h"

#include "base/clock.h"

#define SECOND_NS 1000000000
#define WATCH_NS (SECOND_NS / 10)
#define MAX_PERIODS 5 /* a machine that stood still says nothing about where the job was */
#define MAX_ROWS ((size_t)1 << 22)

struct feed_thread {
	uint32_t process, stack;
	int64_t last_ns;
};

/* ---- numbers ---- */

static uint32_t text_number(struct stack_feed *f, struct str text)
{
	uint64_t hash = str_hash(text);
	void *texts = f->texts;
	struct str copy;

	for (struct map_iter it = map_find(&f->text_map, hash); it.value;
	     it = map_next(&f->text_map, it))
		if (str_eq(f->texts[it.value], text))
			return it.value;
	copy = arena_str(&f->arena, text);
	if (!copy.ptr || f->text_count >= MAX_ROWS ||
	    !mem_grow(f->mem, &texts, &f->text_cap, f->text_count + 2, sizeof(*f->texts))) {
		f->no_memory = true;
		return 0;
	}
	f->texts = texts;
	if (!map_add(&f->text_map, hash, (uint32_t)f->text_count + 1)) {
		f->no_memory = true;
		return 0;
	}
	f->texts[++f->text_count] = copy;
	recording_add_text(f->c->recording, 0, LIVE_SOURCE, (uint32_t)f->text_count, copy);
	return (uint32_t)f->text_count;
}

/* *is_new: the caller writes it. 0 without memory. */
static uint32_t row_number(struct stack_feed *f, struct feed_table *t, const uint32_t key[4],
			   bool *is_new)
{
	uint64_t hash =
		map_hash_u64((uint64_t)key[0] << 32 | key[1], (uint64_t)key[2] << 32 | key[3]);
	void *keys = t->keys;

	*is_new = false;
	for (struct map_iter it = map_find(&t->map, hash); it.value; it = map_next(&t->map, it))
		if (memcmp(t->keys[it.value], key, sizeof(t->keys[0])) == 0)
			return it.value;
	if (t->count >= MAX_ROWS ||
	    !mem_grow(f->mem, &keys, &t->cap, t->count + 2, sizeof(*t->keys))) {
		f->no_memory = true;
		return 0;
	}
	t->keys = keys;
	if (!map_add(&t->map, hash, (uint32_t)t->count + 1)) {
		f->no_memory = true;
		return 0;
	}
	memcpy(t->keys[++t->count], key, sizeof(t->keys[0]));
	*is_new = true;
	return (uint32_t)t->count;
}

static uint32_t frame_number(struct stack_feed *f, const struct py_frame *frame)
{
	const struct py_code *code = frame->code;
	uint32_t key[4] = { text_number(f, code->name), text_number(f, code->file),
			    (uint32_t)frame->line, (uint32_t)code->first };
	bool is_new;
	uint32_t number = row_number(f, &f->frames, key, &is_new);

	if (is_new)
		recording_add_frame(f->c->recording,
				    &(struct live_frame){ .number = number,
							  .function = key[0],
							  .file = key[1],
							  .line = frame->line,
							  .function_line = code->first });
	return number;
}

static uint32_t stack_number(struct stack_feed *f, const struct py_thread *thread)
{
	uint32_t stack = 0;

	for (size_t i = thread->frame_count; i-- > 0 && !f->no_memory;) {
		uint32_t key[4] = { stack, frame_number(f, &thread->frames[i]) };
		bool is_new;

		stack = row_number(f, &f->stacks, key, &is_new);
		if (is_new)
			recording_add_stack(f->c->recording,
					    &(struct live_stack){ .number = stack,
								  .parent = key[0],
								  .frame = key[1] });
	}
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
	if (thread->name[0] && thread->tid != p->pid)
		recording_add_text(f->c->recording, process, LIVE_THREAD, (uint32_t)thread->tid,
				   str_from(thread->name));
	return &f->threads[thread->user];
}

static void take(void *arg, struct py_process *p, struct py_thread *thread)
{
	struct stack_feed *f = arg;
	struct feed_thread *own = f->no_memory ? NULL : find_thread(f, p, thread);
	int64_t wall;

	if (!own)
		return;
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
				  .period_ns = SECOND_NS / MAX(hz, 1u),
				  .dice = (uint64_t)steady_ns() };
	sampler_init(&f->sampler, mem, false);
	sampler_limit(&f->sampler, hz, false);
	arena_init(&f->arena, mem);
	map_init(&f->text_map, mem);
	map_init(&f->frames.map, mem);
	map_init(&f->stacks.map, mem);
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
	arena_release(&f->arena);
	map_release(&f->text_map);
	map_release(&f->frames.map);
	map_release(&f->stacks.map);
	mem_free(f->mem, f->texts, f->text_cap * sizeof(*f->texts));
	mem_free(f->mem, f->frames.keys, f->frames.cap * sizeof(*f->frames.keys));
	mem_free(f->mem, f->stacks.keys, f->stacks.cap * sizeof(*f->stacks.keys));
	mem_free(f->mem, f->threads, f->thread_cap * sizeof(*f->threads));
}
