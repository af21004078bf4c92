/*
 * collector_check.c: what the collector reads about each recorded process beside its rings: states of hooks and sums of calls, what the
 * system counts as I/O, names of threads, and the processor time of threads. Called by collector.c at each turn of its loop; the
 * intervals are below.
 */
#include "live/record/collector_int.h"

#include "base/clock.h"
#include "live/proc/proc.h"

#define SAME_MOMENT_NS 2000000 /* what is read within this time is compared */
#define SCHEDULE_NS (40 * 1000000LL)
#define SCHEDULES 8		    /* number of threads of a process whose scheduling is read */
#define NAMES_NS (1000 * 1000000LL) /* time between two readings of threads and counters */

void collector_name_thread(struct collector *c, struct collected *p, struct ring_seen *ring)
{
	char name[16];

	if (!ring->tid || !proc_thread_name((pid_t)p->pid, (pid_t)ring->tid, name) ||
	    strcmp(name, ring->name) == 0)
		return;
	memcpy(ring->name, name, sizeof(name));
	recording_add_text(c->recording, p->number, LIVE_THREAD, ring->tid, str_from(name));
}

static void look_at_hooks(struct collector *c, struct collected *p)
{
	for (uint32_t i = 0; i < RING_HOOKS; i++) {
		const struct ring_hook_info *hook = &p->view.process->hooks[i];
		uint32_t state = atomic_load(&hook->state);
		char copy[RING_TEXT_MAX];
		struct str text;

		if (state == p->hook_states[i] ||
		    (state != RING_HOOK_ARMED && state != RING_HOOK_UNKNOWN))
			continue;
		p->hook_states[i] = state;
		text = process_view_text(&p->view, atomic_load(&hook->text), copy);
		recording_add_text(c->recording, p->number,
				   state == RING_HOOK_ARMED ? LIVE_ARMED : LIVE_UNKNOWN, i, text);
		if (state == RING_HOOK_UNKNOWN)
			collector_report(c, "process %u: %.*s", p->pid, STR_ARG(text));
	}
}

/* Adds a counter of all rings of a process. */
static void add_counter(struct live_count *sum, const struct collected *p,
			enum ring_counter counter)
{
	for (size_t i = 0; i < p->ring_count; i++) {
		const struct ring_count *count = &p->rings[i].view.ring->counts[counter];

		sum->calls += atomic_load_explicit(&count->calls, memory_order_relaxed);
		sum->bytes += atomic_load_explicit(&count->bytes, memory_order_relaxed);
	}
}

static void look_at_counts(struct collector *c, struct collected *p, int64_t now)
{
	for (uint32_t k = 0; k < RING_COUNTERS; k++) {
		struct live_count sum = { .process = p->number, .counter = k, .ts_ns = now };

		if (k != RING_READS)
			add_counter(&sum, p, k);
		if (k == RING_READS || k == RING_RECEIVE)
			add_counter(&sum, p, RING_SOCKET_READ);
		if (k == RING_READS) {
			add_counter(&sum, p, RING_FILE_READS);
			add_counter(&sum, p, RING_PIPE_READ);
		}
		if (sum.calls == p->counts[k])
			continue;
		p->counts[k] = sum.calls;
		recording_add_count(c->recording, &sum);
	}
}

/* Reads the system's counts of I/O, to compare them with those of the hooks at the same moment, which was at
 * `counted_ns`. A process that has just ended still has its counts, until its parent waits for it. */
static void look_at_io(struct collector *c, struct collected *p, int64_t now, int64_t counted_ns)
{
	struct live_count row = { .process = p->number, .ts_ns = now };
	struct proc_io io;

	if (!proc_read_io((pid_t)p->pid, &io) || io.read_bytes < p->io_seen)
		return; /* the process is gone, or its pid belongs to another one by now */
	if (p->fd >= 0 && steady_ns() - counted_ns > SAME_MOMENT_NS)
		return; /* the collector had no processor meanwhile, and the process went on */
	p->io_seen = io.read_bytes;
	row.counter = LIVE_IO_READ;
	row.calls = io.read_calls;
	row.bytes = io.read_bytes;
	recording_add_count(c->recording, &row);
	row = (struct live_count){ .process = p->number,
				   .ts_ns = now,
				   .counter = LIVE_IO_STORAGE,
				   .bytes = io.storage_bytes };
	recording_add_count(c->recording, &row);
	row = (struct live_count){ .process = p->number, .ts_ns = now, .counter = LIVE_IO_URING };
	row.calls = p->fd >= 0 ? proc_count_urings((pid_t)p->pid) : 0;
	if (row.calls)
		recording_add_count(c->recording, &row);
}

/* Writes the processor time of a thread since the last look. For a sleeping thread nothing is written until it runs again; then
 * first the end of its sleep. */
static void look_at_schedule(struct collector *c, const struct collected *p, uint32_t tid,
			     struct thread_schedule *s, int64_t now)
{
	struct live_count row = { .process = p->number, .counter = LIVE_SCHEDULED, .calls = tid };
	uint64_t running, waiting;

	if (!proc_schedule((pid_t)p->pid, (pid_t)tid, &running, &waiting))
		return;
	if (s->seen_ns && running == s->running_ns && waiting == s->waiting_ns) {
		s->seen_ns = now;
		s->written = false;
		return;
	}
	if (s->seen_ns && !s->written) {
		row.ts_ns = s->seen_ns;
		row.ns = s->running_ns;
		row.bytes = s->waiting_ns;
		recording_add_count(c->recording, &row);
	}
	*s = (struct thread_schedule){ running, waiting, now, true };
	row.ts_ns = now;
	row.ns = running;
	row.bytes = waiting;
	recording_add_count(c->recording, &row);
}

/* Reads the scheduling of the first thread of each process, and of threads that recorded
 * something since. */
static void look_at_schedules(struct collector *c, int64_t now)
{
	if (now - c->last_schedule_ns < SCHEDULE_NS)
		return;
	c->last_schedule_ns = now;
	for (size_t i = 0; i < c->count; i++) {
		struct collected *p = c->processes[i];
		size_t looked = 0;

		if (!p->view.process || p->fd < 0)
			continue;
		look_at_schedule(c, p, p->pid, &p->schedule, now);
		for (size_t k = 0; k < p->ring_count && looked < SCHEDULES; k++) {
			struct ring_seen *ring = &p->rings[k];

			if (!ring->tid || ring->tid == p->view.process->pid ||
			    ring->scheduled_at == ring->view.next)
				continue;
			ring->scheduled_at = ring->view.next;
			look_at_schedule(c, p, ring->tid, &ring->schedule, now);
			looked++;
		}
	}
}

void collector_check_process(struct collector *c, struct collected *p, int64_t now)
{
	int64_t counted_ns;

	look_at_hooks(c, p);
	counted_ns = steady_ns();
	look_at_counts(c, p, now);
	look_at_io(c, p, now, counted_ns);
	for (size_t i = 0; i < p->ring_count && p->fd >= 0; i++)
		collector_name_thread(c, p, &p->rings[i]);
}

void collector_check_all(struct collector *c)
{
	int64_t now = steady_ns();

	look_at_schedules(c, now);
	if (now - c->last_look_ns < NAMES_NS)
		return;
	c->last_look_ns = now;
	for (size_t i = 0; i < c->count; i++)
		if (c->processes[i]->view.process) /* the process has sent its description */
			collector_check_process(c, c->processes[i], now);
}
