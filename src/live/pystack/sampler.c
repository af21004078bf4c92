/*
 * sampler.c: samples the Python stacks of several processes and their children at a given rate, within a limit on
 * CPU time, and turns samples into rows of the model. Called by src/api for `opwatch stacks`, and by stack_feed.c
 * for recordings. Reading one stack is py_process.c's.
 */
#include "live/pystack/sampler.h"

#include "base/clock.h"
#include "base/vec.h"

#include <errno.h>
#include <time.h>

#define SECOND_NS 1000000000
#define SCAN_NS (SECOND_NS / 4)
#define MAX_WAIT_NS ((int64_t)4 * SECOND_NS)
#define STRIKES 20 /* number of implausible rounds after which the interpreter is searched again */
/* sampling may use one part in this many of a processor; with start and end about 1 % */
#define SHARE 112
#define SHARE_HZ 100u
#define SAVED_TICKS 20
#define OWED_TICKS 20
#define LEFT_OUT_MOST 9 /* after this many skipped ticks in a row a sample is taken anyway */
#define START_TRIES 40
#define START_WAIT_NS (SECOND_NS / 20)
/* after a longer pause of the machine, the time is not attributed to a stack */
#define MAX_PERIODS 5

struct sampled {
	pid_t pid;
	uint64_t start_ticks; /* start time, to recognise a reused pid */
	bool is_root;	      /* the caller named the process */
	bool open;	      /* p is open; otherwise this is not a Python process for now */
	bool counted;
	int64_t next_try_ns, wait_ns;
	uint32_t strikes;
	struct py_process p;
};

void sampler_init(struct sampler *s, struct mem *mem, bool children)
{
	*s = (struct sampler){ .mem = mem, .children = children, .scanned_ns = INT64_MIN };
}

static void close_process(struct sampler *s, struct sampled *item)
{
	if (!item->open)
		return;
	s->samples += item->p.samples;
	s->torn += item->p.torn;
	s->reads += item->p.remote.reads;
	py_process_close(&item->p);
	item->open = false;
}

static void drop_process(struct sampler *s, size_t index)
{
	close_process(s, s->items[index]);
	mem_free(s->mem, s->items[index], sizeof(struct sampled));
	s->items[index] = s->items[--s->count];
}

void sampler_release(struct sampler *s)
{
	while (s->count)
		drop_process(s, s->count - 1);
	mem_free(s->mem, s->items, s->cap * sizeof(struct sampled *));
	s->items = NULL;
	s->cap = 0;
}

static struct sampled *new_item(struct sampler *s, pid_t pid)
{
	struct sampled *item;
	struct proc_stat stat = { 0 };

	if (!vec_reserve(s->mem, s->items, s->cap, s->count + 1))
		return NULL;
	item = mem_zalloc(s->mem, sizeof(*item));
	if (!item)
		return NULL;
	proc_stat_read(pid, 0, &stat);
	item->pid = pid;
	item->start_ticks = stat.start_ticks;
	s->items[s->count++] = item;
	return item;
}

static ow_status open_process(struct sampler *s, struct sampled *item, struct ow_error *err)
{
	ow_status status = py_process_open(&item->p, s->mem, item->pid, err);

	if (status != OW_OK) {
		py_process_close(&item->p);
		return status;
	}
	item->open = true;
	item->strikes = 0;
	s->processes += !item->counted;
	item->counted = true;
	return OW_OK;
}

static void sleep_ns(int64_t ns)
{
	struct timespec wait = { ns / SECOND_NS, ns % SECOND_NS };

	nanosleep(&wait, NULL);
}

ow_status sampler_add(struct sampler *s, pid_t pid, struct ow_error *err)
{
	struct sampled *item;
	ow_status status;

	for (size_t i = 0; i < s->count; i++)
		if (s->items[i]->pid == pid)
			return OW_OK;
	item = new_item(s, pid);
	if (!item)
		return error_no_memory(err);
	item->is_root = true;
	status = open_process(s, item, err);
	for (int i = 0; status == OW_E_EMPTY && i < START_TRIES; i++) {
		sleep_ns(START_WAIT_NS);
		status = open_process(s, item, err);
	}
	if (status != OW_OK)
		drop_process(s, s->count - 1);
	return status;
}

bool sampler_watch(struct sampler *s, pid_t pid)
{
	struct sampled *item;

	for (size_t i = 0; i < s->count; i++)
		if (s->items[i]->pid == pid)
			return true;
	item = new_item(s, pid);
	if (item)
		item->is_root = true;
	return item;
}

static bool is_same_process(const struct sampled *item)
{
	struct proc_stat stat;

	return proc_stat_read(item->pid, 0, &stat) && stat.start_ticks == item->start_ticks &&
	       stat.state != 'Z';
}

static bool is_known(const struct sampler *s, pid_t pid)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i]->pid == pid)
			return true;
	return false;
}

static ow_status scan_children(struct sampler *s, int64_t now_ns, struct ow_error *err)
{
	struct pid_list found = { .mem = s->mem };
	bool good = true;

	for (size_t i = 0; i < s->count && good; i++)
		good = proc_descendants(s->items[i]->pid, &found);
	for (size_t i = 0; i < found.count && good; i++) {
		struct sampled *item;

		if (is_known(s, found.items[i]))
			continue;
		item = new_item(s, found.items[i]);
		good = item;
		if (item)
			item->next_try_ns = now_ns;
	}
	pid_list_release(&found);
	return good ? OW_OK : error_no_memory(err);
}

/* Tries again to open a process: a shell may execute Python, which takes time to start. */
static ow_status try_again(struct sampler *s, struct sampled *item, int64_t now_ns,
			   struct ow_error *err)
{
	struct ow_error why = { 0 };
	ow_status status;

	if (item->open || now_ns < item->next_try_ns)
		return OW_OK;
	status = open_process(s, item, &why);
	if (status == OW_E_NO_MEMORY) {
		if (err)
			*err = why;
		return status;
	}
	/* an interpreter that is just starting is ready soon */
	item->wait_ns =
		status == OW_E_EMPTY ? SCAN_NS : MIN(MAX(item->wait_ns * 2, SCAN_NS), MAX_WAIT_NS);
	item->next_try_ns = now_ns + item->wait_ns;
	return OW_OK;
}

/* Now and then looks for processes that ended, started or became readable. */
static ow_status look_around(struct sampler *s, int64_t now_ns, struct ow_error *err)
{
	if (s->scanned_ns != INT64_MIN && now_ns - s->scanned_ns < SCAN_NS)
		return OW_OK;
	s->scanned_ns = now_ns;
	for (size_t i = s->count; i-- > 0;)
		if (!is_same_process(s->items[i]))
			drop_process(s, i);
	if (s->children)
		OW_TRY(scan_children(s, now_ns, err));
	for (size_t i = 0; i < s->count; i++)
		OW_TRY(try_again(s, s->items[i], now_ns, err));
	return OW_OK;
}

/* Samples one process; sets *gone if it has ended. */
static ow_status sample_one(struct sampler *s, struct sampled *item, int64_t now_ns,
			    py_take_fn take, void *arg, bool *gone, struct ow_error *err)
{
	uint64_t samples = item->p.samples, lost = item->p.lost;
	struct ow_error why = { 0 };
	ow_status status;

	status = py_process_sample(&item->p, now_ns, take, arg, &why);
	if (status == OW_E_NO_MEMORY) {
		if (err)
			*err = why;
		return status;
	}
	*gone = status != OW_OK;
	if (item->p.samples != samples || item->p.lost == lost) {
		item->strikes = 0;
		return OW_OK;
	}
	if (++item->strikes < STRIKES)
		return OW_OK;
	close_process(s, item); /* the process may have executed another program */
	item->next_try_ns = now_ns;
	return OW_OK;
}

static int64_t own_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void sampler_limit(struct sampler *s, uint32_t hz, bool own_thread)
{
	s->allowance_ns = SECOND_NS / SHARE / MAX(MIN(hz, SHARE_HZ), 1u);
	s->own_thread = own_thread;
	s->credit_ns = SAVED_TICKS * s->allowance_ns;
	s->cpu_mark_ns = own_cpu_ns();
}

/* Begins a tick; false if it should be skipped. */
static bool begin_tick(struct sampler *s)
{
	int64_t now;

	if (!s->allowance_ns)
		return true;
	now = own_cpu_ns();
	if (s->own_thread)
		s->credit_ns -= now - s->cpu_mark_ns;
	s->cpu_mark_ns = now;
	s->credit_ns = MIN(s->credit_ns + s->allowance_ns, SAVED_TICKS * s->allowance_ns);
	s->credit_ns = MAX(s->credit_ns, -OWED_TICKS * s->allowance_ns);
	if (s->credit_ns > 0 || s->left_out_in_row >= LEFT_OUT_MOST)
		return true;
	s->left_out++;
	s->left_out_in_row++;
	return false;
}

static void end_tick(struct sampler *s)
{
	s->left_out_in_row = 0;
	if (s->allowance_ns && !s->own_thread)
		s->credit_ns -= own_cpu_ns() - s->cpu_mark_ns;
}

static ow_status sample_processes(struct sampler *s, int64_t now_ns, py_take_fn take, void *arg,
				  struct ow_error *err)
{
	OW_TRY(look_around(s, now_ns, err));
	for (size_t i = s->count; i-- > 0;) {
		bool gone = false;

		if (!s->items[i]->open)
			continue;
		s->items[i]->p.give_up_ns =
			s->allowance_ns ? s->cpu_mark_ns + s->credit_ns + s->allowance_ns : 0;
		OW_TRY(sample_one(s, s->items[i], now_ns, take, arg, &gone, err));
		if (gone)
			drop_process(s, i);
	}
	return OW_OK;
}

ow_status sampler_tick(struct sampler *s, int64_t now_ns, py_take_fn take, void *arg,
		       struct ow_error *err)
{
	ow_status status;

	if (!begin_tick(s))
		return OW_OK;
	status = sample_processes(s, now_ns, take, arg, err);
	end_tick(s);
	return status;
}

struct py_process *sampler_find(const struct sampler *s, pid_t pid)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i]->pid == pid && s->items[i]->open)
			return &s->items[i]->p;
	return NULL;
}

void sampler_sums(const struct sampler *s, struct sampler_sums *sums)
{
	*sums = (struct sampler_sums){
		.samples = s->samples,
		.torn = s->torn,
		.reads = s->reads,
		.left_out = s->left_out,
		.processes = s->processes,
	};
	for (size_t i = 0; i < s->count; i++) {
		const struct py_process *p = &s->items[i]->p;

		if (!s->items[i]->open)
			continue;
		sums->samples += p->samples;
		sums->torn += p->torn;
		sums->reads += p->remote.reads;
		sums->alive++;
	}
}

bool sampler_pids(const struct sampler *s, struct pid_list *list)
{
	for (size_t i = 0; i < s->count; i++)
		if (!pid_list_add(list, s->items[i]->pid))
			return false;
	return true;
}

/* Sleeps until a time; signals end the sleep so that go_on is called. */
static void sleep_until(int64_t ns)
{
	struct timespec until = { ns / SECOND_NS, ns % SECOND_NS };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static void wait_until(const struct sampler_clock *clock, int64_t ns)
{
	if (clock->wait)
		clock->wait(clock->arg, ns);
	else
		sleep_until(ns);
}

static bool any_root_or_open(const struct sampler *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i]->is_root || s->items[i]->open)
			return true;
	return false;
}

ow_status sampler_run(struct sampler *s, struct sampler_clock *clock, py_take_fn take, void *arg,
		      struct ow_error *err)
{
	int64_t period = SECOND_NS / MAX(clock->hz, 1u), begin = steady_ns(), tick = begin;
	uint64_t dice = (uint64_t)begin;

	while (any_root_or_open(s) && (!clock->go_on || clock->go_on(clock->arg))) {
		int64_t now = steady_ns();

		if (clock->for_ns && now - begin >= clock->for_ns)
			break;
		if (now - tick > period) {
			clock->late_ticks += (uint64_t)((now - tick) / period);
			tick = now;
		}
		OW_TRY(sampler_tick(s, clock->now(clock->arg), take, arg, err));
		clock->ticks++;
		tick += period;
		dice = map_hash_u64(dice, clock->ticks);
		wait_until(clock, tick + (int64_t)(dice % (uint64_t)(period / 4 + 1)));
	}
	return OW_OK;
}

struct sample_row_thread {
	track_id track;
	stack_id stack;
	int64_t last_ns;
	bool is_loader;
};

void sample_rows_init(struct sample_rows *rows, struct builder *b, const struct sampler *sampler,
		      int64_t period_ns)
{
	*rows = (struct sample_rows){ .b = b, .sampler = sampler, .period_ns = period_ns };
	rows->wall = builder_metric(b, STR("wall"), STR("ns"));
	rows->cpu = builder_metric(b, STR("cpu"), STR("ns"));
	if (rows->wall.v)
		b->m->metric.is_default[rows->wall.v] = 1;
}

/* Marks loader threads at the end, because native stacks find a thread's track by its original
 * properties. */
static void mark_loaders(struct sample_rows *rows)
{
	for (size_t i = 1; i <= rows->count; i++)
		if (rows->threads[i].is_loader && rows->threads[i].track.v)
			rows->b->m->track.kind[rows->threads[i].track.v] = TRACK_LOADER;
}

void sample_rows_release(struct sample_rows *rows)
{
	mark_loaders(rows);
	mem_free(rows->b->m->mem, rows->threads, rows->cap * sizeof(*rows->threads));
	rows->threads = NULL;
	rows->count = rows->cap = 0;
}

/* Detects workers of PyTorch's DataLoader. */
static bool is_loader(const struct py_thread *thread)
{
	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct py_code *code = thread->frames[i].code;

		if (str_eq(code->name, STR("_worker_loop")) &&
		    str_ends(code->file, STR("torch/utils/data/_utils/worker.py")))
			return true;
	}
	return false;
}

static track_id make_track(struct sample_rows *rows, const struct py_process *p,
			   const struct py_thread *thread)
{
	struct builder *b = rows->b;

	return builder_track(
		b, &(struct track_row){
			   .name = builder_cstr(b, thread->name[0] ? thread->name : "thread"),
			   .process = builder_cstr(b, p->name),
			   .pid = p->pid,
			   .tid = thread->tid ? thread->tid : (int64_t)thread->number,
			   .kind = TRACK_HOST,
			   .source = b->source,
		   });
}

static struct sample_row_thread *find_thread(struct sample_rows *rows, const struct py_process *p,
					     struct py_thread *thread)
{
	if (thread->user)
		return &rows->threads[thread->user];
	if (!vec_reserve(rows->b->m->mem, rows->threads, rows->cap, rows->count + 2)) {
		error_set_no_memory(rows->b->err);
		builder_fail(rows->b, OW_E_NO_MEMORY);
		return NULL;
	}
	thread->user = ++rows->count;
	rows->threads[thread->user] = (struct sample_row_thread){
		.track = make_track(rows, p, thread),
		.last_ns = rows->now_ns - rows->period_ns,
	};
	return &rows->threads[thread->user];
}

static stack_id make_stack(struct builder *b, const struct py_thread *thread)
{
	stack_id stack = { 0 };

	for (size_t i = thread->frame_count; i-- > 0;) {
		const struct py_code *code = thread->frames[i].code;
		frame_id frame = builder_frame(
			b, &(struct frame_row){ .file = builder_str(b, code->file),
						.function = builder_str(b, code->name),
						.line = thread->frames[i].line,
						.function_line = code->first });

		stack = builder_stack(b, stack, frame);
	}
	return stack;
}

void sample_rows_take(void *arg, struct py_process *p, struct py_thread *thread)
{
	struct sample_rows *rows = arg;
	struct builder *b = rows->b;
	struct sample_row_thread *row = find_thread(rows, p, thread);
	struct sample_row sample = { .ts_ns = rows->now_ns, .metric = rows->wall };

	if (!row)
		return;
	if (!thread->same || !row->stack.v) {
		row->stack = make_stack(b, thread);
		/* the worker may have just started */
		row->is_loader = row->is_loader || is_loader(thread);
	}
	sample.stack = row->stack;
	sample.track = row->track;
	sample.weight = rows->now_ns - row->last_ns;
	sample.weight = MIN(sample.weight,
			    (MAX_PERIODS + rows->sampler->left_out_in_row) * rows->period_ns);
	row->last_ns = rows->now_ns;
	builder_add_sample(b, &sample);
	if (!thread->cpu_ns)
		return;
	sample.metric = rows->cpu;
	sample.weight = thread->cpu_ns;
	builder_add_sample(b, &sample);
}
