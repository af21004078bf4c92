/*
 * live_functions.c: the thread that samples the functions of running processes for `opwatch top`. Python stacks come
 * from the sampler, native ones from perf events; each sample adds to a table of functions whose sums fade. Recordings do
 * not go through here: they keep every sample (stack_feed.c, stacks.c).
 */
#include "live/record/live_functions.h"

#include "base/parallel.h"
#include "base/clock.h"
#include "base/demangle/demangle.h"
#include "base/map.h"
#include "base/vec.h"
#include "live/native/native_stacks.h"
#include "live/pystack/sampler.h"

#include <math.h>
#include <pthread.h>

#define HZ 50u
/* not a round number, so that samples do not coincide with periodic work */
#define NATIVE_HZ 97u
#define PERIOD_NS 20000000 /* period of HZ */
#define FADE_NS 1000000000 /* time after which sums are halved */
#define HALF_LIFE_NS 4e9
#define ENTRIES_MAX 8192u
#define PC_SLOTS 4096u
#define READ_NS 50000000
#define STOP_NS 2000000000

struct entry {
	char name[LIVE_FUNCTION_NAME], place[LIVE_FUNCTION_NAME];
	double own_ns, total_ns, cpu_ns;
	/* last stack that contained the function, so that it counts once per stack */
	uint64_t stack;
};

struct pc_slot {
	uint64_t pc;
	uint32_t entry, version; /* index in the table of entries, and its version */
};

struct native_target {
	struct live_functions *f;
	pid_t pid;
	bool refused;
	struct native_events events;
	struct native_unwind *unwind;
	struct pc_slot *slots;
};

struct live_functions {
	struct mem *mem;
	pthread_t thread;
	pthread_mutex_t lock; /* guards the members below, up to those of the thread */
	bool stop, changed;
	pid_t wanted[LIVE_FUNCTIONS_PROCESSES];
	size_t wanted_count, wanted_all;
	struct entry *entries; /* entries; item 0 is not used */
	size_t count, cap;
	double elapsed_ns; /* sampled time, faded as the sums */
	char why[256];
	/* Members that only the thread uses: */
	struct map map;
	uint32_t version;
	uint64_t stacks;
	struct sampler sampler;
	bool has_sampler;
	struct native_target natives[LIVE_FUNCTIONS_PROCESSES];
	size_t native_count;
	int64_t tick_ns, faded_ns;
};

static uint64_t hash_text(const char *a, const char *b)
{
	uint64_t hash = 0;

	for (; *a; a++)
		hash = map_hash_u64(hash, (unsigned char)*a);
	for (; *b; b++)
		hash = map_hash_u64(hash, (unsigned char)*b + 256u);
	return hash;
}

/* Removes entries that have almost faded. False if memory runs out. */
static bool drop_faded(struct live_functions *f)
{
	size_t kept = 1;

	map_release(&f->map);
	map_init(&f->map, f->mem);
	for (size_t i = 1; i <= f->count; i++)
		if (f->entries[i].total_ns > 1e6)
			f->entries[kept++] = f->entries[i];
	f->count = kept - 1 < ENTRIES_MAX / 2 ? kept - 1 : 0;
	f->version++;
	for (size_t i = 1; i <= f->count; i++)
		if (!map_add(&f->map, hash_text(f->entries[i].name, f->entries[i].place),
			     (uint32_t)i))
			return false;
	return true;
}

/* Returns the entry of a function; 0 if memory runs out. */
static uint32_t entry_of(struct live_functions *f, const char *name, const char *place)
{
	uint64_t hash = hash_text(name, place);

	for (struct map_iter it = map_find(&f->map, hash); it.value; it = map_next(&f->map, it))
		if (strcmp(f->entries[it.value].name, name) == 0 &&
		    strcmp(f->entries[it.value].place, place) == 0)
			return it.value;
	if (f->count >= ENTRIES_MAX && !drop_faded(f))
		return 0;
	if (!vec_reserve(f->mem, f->entries, f->cap, f->count + 2) ||
	    !map_add(&f->map, hash, (uint32_t)f->count + 1))
		return 0;
	f->count++;
	f->entries[f->count] = (struct entry){ 0 };
	snprintf(f->entries[f->count].name, LIVE_FUNCTION_NAME, "%s", name);
	snprintf(f->entries[f->count].place, LIVE_FUNCTION_NAME, "%s", place);
	return (uint32_t)f->count;
}

static void copy_text(char to[LIVE_FUNCTION_NAME], struct str text)
{
	text = str_first(text, MIN(text.len, (size_t)LIVE_FUNCTION_NAME - 1));
	text = str_first(text, utf8_valid_prefix(text));
	if (text.len)
		memcpy(to, text.ptr, text.len);
	to[text.len] = '\0';
}

static void add_time(struct live_functions *f, uint32_t entry, bool innermost, double ns,
		     double cpu_ns)
{
	struct entry *e = &f->entries[entry];

	if (!entry)
		return;
	if (innermost) {
		e->own_ns += ns;
		e->cpu_ns += cpu_ns;
	}
	if (e->stack != f->stacks)
		e->total_ns += ns;
	e->stack = f->stacks;
}

/* Returns the last two parts of a path, which identify the file. */
static struct str end_of_path(struct str path)
{
	size_t at = path.len, slashes = 0;

	while (at > 0) {
		slashes += path.ptr[at - 1] == '/';
		if (slashes == 2)
			break;
		at--;
	}
	return str_skip(path, at);
}

static uint32_t python_entry(struct live_functions *f, const struct py_frame *frame)
{
	char name[LIVE_FUNCTION_NAME], place[LIVE_FUNCTION_NAME], file[LIVE_FUNCTION_NAME];

	copy_text(name, frame->code->name);
	copy_text(file, end_of_path(frame->code->file));
	snprintf(place, sizeof(place), "%.110s:%d", file, (int)frame->code->first);
	return entry_of(f, name, place);
}

/* Takes a Python stack. Waiting threads are left out, except the first one, because what the main thread waits for
 * is what the program waits for. */
static void take_python(void *arg, struct py_process *p, struct py_thread *thread)
{
	struct live_functions *f = arg;
	double cpu = MIN((double)thread->cpu_ns, (double)PERIOD_NS);

	if (!thread->frame_count || (thread->cpu_ns <= 0 && thread->tid != p->pid))
		return;
	f->stacks++;
	for (size_t i = 0; i < thread->frame_count; i++)
		add_time(f, python_entry(f, &thread->frames[i]), i == 0, PERIOD_NS, cpu);
}

static uint32_t native_entry(struct native_target *t, uint64_t pc)
{
	struct live_functions *f = t->f;
	struct pc_slot *slot = &t->slots[map_hash_u64(pc, 1) % PC_SLOTS];
	char name[LIVE_FUNCTION_NAME], place[LIVE_FUNCTION_NAME];
	struct native_name found;
	struct buf text;

	if (slot->pc == pc && slot->entry && slot->version == f->version)
		return slot->entry;
	found = native_unwind_name(t->unwind, pc);
	buf_init(&text, f->mem);
	if (!found.function.len)
		snprintf(name, sizeof(name), "0x%" PRIx64, pc);
	else if (demangle_name(found.function, &text))
		copy_text(name, buf_str(&text));
	else
		copy_text(name, found.function);
	buf_release(&text);
	copy_text(place, found.is_jit ? STR("compiled at run time") : end_of_path(found.module));
	*slot = (struct pc_slot){ .pc = pc, .entry = entry_of(f, name, place) };
	slot->version = f->version;
	return slot->entry;
}

static void take_native(void *arg, const struct native_sample *sample)
{
	struct native_target *t = arg;
	const double ns = 1e9 / NATIVE_HZ;
	uint64_t pcs[NATIVE_DEPTH];
	size_t count = native_unwind_walk(t->unwind, sample, pcs);

	t->f->stacks++;
	for (size_t i = 0; i < count; i++)
		add_time(t->f, native_entry(t, pcs[i]), i == 0, ns, ns);
}

static void close_native(struct native_target *t)
{
	if (!t->refused) {
		native_events_close(&t->events);
		native_unwind_free(t->unwind);
	}
	mem_free(t->f->mem, t->slots, PC_SLOTS * sizeof(*t->slots));
	t->slots = NULL;
}

static void open_native(struct live_functions *f, pid_t pid)
{
	struct native_target *t = &f->natives[f->native_count];
	struct ow_error why = { 0 };
	ow_status status;

	if (f->native_count == LIVE_FUNCTIONS_PROCESSES)
		return;
	*t = (struct native_target){ .f = f, .pid = pid };
	t->slots = mem_zalloc(f->mem, PC_SLOTS * sizeof(*t->slots));
	if (!t->slots)
		return;
	f->native_count++;
	status = native_events_open(&t->events, f->mem, pid, NATIVE_HZ, &why);
	if (status == OW_OK) {
		status = native_unwind_new(&t->unwind, f->mem, pid, &why);
		if (status != OW_OK)
			native_events_close(&t->events);
	}
	t->refused = status != OW_OK;
	if (t->refused && status != OW_E_NOT_FOUND)
		snprintf(f->why, sizeof(f->why), "%.255s", why.text);
}

static bool has_native(const struct live_functions *f, pid_t pid)
{
	for (size_t i = 0; i < f->native_count; i++)
		if (f->natives[i].pid == pid)
			return true;
	return false;
}

static void forget_targets(struct live_functions *f)
{
	for (size_t i = 0; i < f->native_count; i++)
		close_native(&f->natives[i]);
	f->native_count = 0;
	if (f->has_sampler)
		sampler_release(&f->sampler);
	f->has_sampler = false;
}

static void begin_targets(struct live_functions *f)
{
	forget_targets(f);
	f->changed = false;
	f->count = 0;
	f->elapsed_ns = 0;
	f->why[0] = '\0';
	f->version++;
	map_release(&f->map);
	map_init(&f->map, f->mem);
	sampler_init(&f->sampler, f->mem, false);
	sampler_limit(&f->sampler, HZ, true);
	f->has_sampler = true;
	for (size_t i = 0; i < f->wanted_count; i++)
		if (!sampler_watch(&f->sampler, f->wanted[i]))
			snprintf(f->why, sizeof(f->why), "out of memory");
	if (f->wanted_all > f->wanted_count)
		snprintf(f->why, sizeof(f->why), "%zu of %zu processes are sampled",
			 f->wanted_count, f->wanted_all);
	f->tick_ns = f->faded_ns = steady_ns();
}

/* Samples processes that are not Python through the kernel. */
static void sample_natives(struct live_functions *f)
{
	for (size_t i = 0; i < f->wanted_count; i++)
		if (!sampler_find(&f->sampler, f->wanted[i]) && !has_native(f, f->wanted[i]))
			open_native(f, f->wanted[i]);
	for (size_t i = 0; i < f->native_count; i++) {
		struct native_target *t = &f->natives[i];

		if (t->refused)
			continue;
		if (sampler_find(&f->sampler,
				 t->pid)) { /* the process was not Python when it started */
			close_native(t);
			t->refused = true;
			continue;
		}
		native_events_read(&t->events, take_native, t);
		if (t->events.other_program)
			memset(t->slots, 0, PC_SLOTS * sizeof(*t->slots));
	}
}

static void fade(struct live_functions *f, int64_t now)
{
	double factor = exp2(-(double)(now - f->faded_ns) / HALF_LIFE_NS);

	f->faded_ns = now;
	f->elapsed_ns *= factor;
	for (size_t i = 1; i <= f->count; i++) {
		f->entries[i].own_ns *= factor;
		f->entries[i].total_ns *= factor;
		f->entries[i].cpu_ns *= factor;
	}
	for (size_t i = 0; i < f->native_count; i++)
		if (!f->natives[i].refused && !native_events_refresh(&f->natives[i].events))
			snprintf(f->why, sizeof(f->why), "out of memory");
}

static void sample_once(struct live_functions *f, uint64_t number)
{
	struct ow_error err = { 0 };
	int64_t now = steady_ns();

	f->elapsed_ns += (double)(now - f->tick_ns);
	f->tick_ns = now;
	if (sampler_tick(&f->sampler, now, take_python, f, &err) != OW_OK)
		snprintf(f->why, sizeof(f->why), "%.255s", err.text);
	if (number % 10 == 5)
		sample_natives(f);
	if (now - f->faded_ns >= FADE_NS)
		fade(f, now);
}

static void *sample_always(void *arg)
{
	struct live_functions *f = arg;

	for (uint64_t number = 0;; number++) {
		bool stop;

		pthread_mutex_lock(&f->lock);
		stop = f->stop;
		if (!stop && f->changed)
			begin_targets(f);
		if (!stop && f->has_sampler && f->wanted_count)
			sample_once(f, number);
		pthread_mutex_unlock(&f->lock);
		if (stop)
			return NULL;
		nanosleep(&(struct timespec){ .tv_nsec = PERIOD_NS }, NULL);
	}
}

ow_status live_functions_start(struct live_functions **out, struct mem *mem, struct ow_error *err)
{
	struct live_functions *f = mem_zalloc(mem, sizeof(*f));
	int failed;

	*out = NULL;
	if (!f)
		return error_no_memory(err);
	f->mem = mem;
	map_init(&f->map, mem);
	pthread_mutex_init(&f->lock, NULL);
	failed = background_start(&f->thread, sample_always, f);
	if (failed) {
		pthread_mutex_destroy(&f->lock);
		mem_free(mem, f, sizeof(*f));
		return error_set(err, OW_E_LIMIT, "cannot start a thread: %s", strerror(failed));
	}
	*out = f;
	return OW_OK;
}

/* Takes the lock, but does not wait long, so that drawing is never delayed by sampling. */
static bool lock_soon(struct live_functions *f, int64_t ns)
{
	int64_t until = clock_ns(CLOCK_REALTIME) + ns;
	struct timespec at = { until / 1000000000, until % 1000000000 };

	return pthread_mutex_timedlock(&f->lock, &at) == 0;
}

void live_functions_stop(struct live_functions *f)
{
	struct mem *mem;

	if (!f)
		return;
	mem = f->mem;
	if (!lock_soon(f, STOP_NS))
		return; /* the kernel blocks the thread, for instance in a file that does not respond: it is left alone */
	f->stop = true;
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	forget_targets(f);
	map_release(&f->map);
	vec_free(mem, f->entries, f->cap);
	pthread_mutex_destroy(&f->lock);
	mem_free(mem, f, sizeof(*f));
}

void live_functions_choose(struct live_functions *f, const pid_t *pids, size_t count)
{
	size_t taken = MIN(count, (size_t)LIVE_FUNCTIONS_PROCESSES);

	if (!lock_soon(f, READ_NS))
		return; /* the processes are chosen again with the next picture */
	if (taken != f->wanted_count || count != f->wanted_all ||
	    (taken && memcmp(f->wanted, pids, taken * sizeof(*pids)) != 0)) {
		if (taken)
			memcpy(f->wanted, pids, taken * sizeof(*pids));
		f->wanted_count = taken;
		f->wanted_all = count;
		f->changed = true;
	}
	pthread_mutex_unlock(&f->lock);
}

/* Orders functions that compute before functions that wait. */
static int by_cpu(const void *a, const void *b)
{
	const struct live_function *x = a, *y = b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? 1 : -1;
	if (x->own != y->own)
		return x->own < y->own ? 1 : -1;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* Keeps the largest functions; replaces the smallest one if there is no room. */
static void keep_most(struct live_function *to, size_t cap, size_t *count,
		      const struct live_function *new)
{
	size_t at = *count;

	if (at == cap) {
		at = 0;
		for (size_t i = 1; i < cap; i++)
			if (by_cpu(&to[i], &to[at]) > 0)
				at = i;
		if (by_cpu(new, &to[at]) >= 0)
			return;
	} else {
		++*count;
	}
	to[at] = *new;
}

size_t live_functions_read(struct live_functions *f, struct live_function *to, size_t cap,
			   char why[256])
{
	size_t count = 0;

	if (!lock_soon(f, READ_NS)) {
		snprintf(why, 256, "sampling is slow");
		return 0;
	}
	for (size_t i = 1; cap && !f->changed && f->elapsed_ns > 0 && i <= f->count; i++) {
		const struct entry *e = &f->entries[i];
		struct live_function one = { .own = e->own_ns / f->elapsed_ns,
					     .total = e->total_ns / f->elapsed_ns,
					     .cpu = e->cpu_ns / f->elapsed_ns };

		if (one.total < 0.0005)
			continue;
		memcpy(one.name, e->name, sizeof(one.name));
		memcpy(one.place, e->place, sizeof(one.place));
		keep_most(to, cap, &count, &one);
	}
	memcpy(why, f->why, 256);
	pthread_mutex_unlock(&f->lock);
	if (count)
		qsort(to, count, sizeof(*to), by_cpu);
	return count;
}
