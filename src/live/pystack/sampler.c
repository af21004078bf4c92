/* sampler.c: see sampler.h. */
#include "live/sampler.h"

#include "base/clock.h"

#include <errno.h>
#include <time.h>

#define SECOND_NS 1000000000
#define SCAN_NS (SECOND_NS / 4)
#define MAX_WAIT_NS ((int64_t)4 * SECOND_NS)
#define STRIKES 20 /* rounds that make no sense, until it is looked for anew */
#define SHARE 112  /* one part in so many of a processor; with start and end a hundredth */
#define SHARE_HZ 100u
#define SAVED_TICKS 20
#define OWED_TICKS 20
#define LEFT_OUT_MOST 9 /* in a row: longer nobody is left without stacks */
#define START_TRIES 40
#define START_WAIT_NS (SECOND_NS / 20)

struct sampled {
	pid_t pid;
	uint64_t start_ticks; /* who it is, when its number is used again */
	bool is_root;	      /* named by the caller */
	bool open;	      /* p is; else it is no Python process, for now */
	bool counted;
	int64_t next_try_ns, wait_ns;
	uint32_t strikes;
	struct py_process p;
};

void sampler_init(struct sampler *s, struct mem *mem, bool children)
{
	*s = (struct sampler){ .mem = mem, .children = children, .scanned_ns = INT64_MIN };
}

/* ---- processes ---- */

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

static void drop(struct sampler *s, size_t index)
{
	close_process(s, s->items[index]);
	mem_free(s->mem, s->items[index], sizeof(struct sampled));
	s->items[index] = s->items[--s->count];
}

void sampler_release(struct sampler *s)
{
	while (s->count)
		drop(s, s->count - 1);
	mem_free(s->mem, s->items, s->cap * sizeof(struct sampled *));
	s->items = NULL;
	s->cap = 0;
}

static struct sampled *new_item(struct sampler *s, pid_t pid)
{
	void *items = s->items;
	struct sampled *item;
	struct proc_stat stat = { 0 };

	if (!mem_grow(s->mem, &items, &s->cap, s->count + 1, sizeof(struct sampled *)))
		return NULL;
	s->items = items;
	item = mem_zalloc(s->mem, sizeof(*item));
	if (!item)
		return NULL;
	proc_stat_read(pid, 0, &stat);
	item->pid = pid;
	item->start_ticks = stat.start_ticks;
	s->items[s->count++] = item;
	return item;
}

static ow_status open_process(struct sampler *s, struct sampled *item, struct error *err)
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

ow_status sampler_add(struct sampler *s, pid_t pid, struct error *err)
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
		drop(s, s->count - 1);
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

/* ---- children ---- */

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

static ow_status scan_children(struct sampler *s, int64_t now_ns, struct error *err)
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

/* What is no Python process may become one: shells start it, and it starts up. */
static ow_status try_again(struct sampler *s, struct sampled *item, int64_t now_ns,
			   struct error *err)
{
	struct error why = { 0 };
	ow_status status;

	if (item->open || now_ns < item->next_try_ns)
		return OW_OK;
	status = open_process(s, item, &why);
	if (status == OW_E_NO_MEMORY) {
		if (err)
			*err = why;
		return status;
	}
	/* One that is just starting is ready soon. */
	item->wait_ns =
		status == OW_E_EMPTY ? SCAN_NS : MIN(MAX(item->wait_ns * 2, SCAN_NS), MAX_WAIT_NS);
	item->next_try_ns = now_ns + item->wait_ns;
	return OW_OK;
}

/* Now and then: who is gone, who has come, who has become readable. */
static ow_status look_around(struct sampler *s, int64_t now_ns, struct error *err)
{
	if (s->scanned_ns != INT64_MIN && now_ns - s->scanned_ns < SCAN_NS)
		return OW_OK;
	s->scanned_ns = now_ns;
	for (size_t i = s->count; i-- > 0;)
		if (!is_same_process(s->items[i]))
			drop(s, i);
	if (s->children)
		OW_TRY(scan_children(s, now_ns, err));
	for (size_t i = 0; i < s->count; i++)
		OW_TRY(try_again(s, s->items[i], now_ns, err));
	return OW_OK;
}

/* ---- sampling ---- */

/* Of one process; *gone when it has ended. */
static ow_status sample_one(struct sampler *s, struct sampled *item, int64_t now_ns,
			    py_take_fn take, void *arg, bool *gone, struct error *err)
{
	uint64_t samples = item->p.samples, lost = item->p.lost;
	struct error why = { 0 };
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
	close_process(s, item); /* it has run another program, perhaps */
	item->next_try_ns = now_ns;
	return OW_OK;
}

/* ---- what it takes ---- */

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

/* False when this tick is to be left out. */
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

/* ---- a tick ---- */

static ow_status sample_processes(struct sampler *s, int64_t now_ns, py_take_fn take, void *arg,
				  struct error *err)
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
			drop(s, i);
	}
	return OW_OK;
}

ow_status sampler_tick(struct sampler *s, int64_t now_ns, py_take_fn take, void *arg,
		       struct error *err)
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

/* ---- by the clock ---- */

/* Signals end the sleep: go_on is asked then. */
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
		      struct error *err)
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
