/*
 * collector_look.c: what a collector asks for now and then: hooks, counters, names of threads; and what it tells each new
 * file, so that it is complete in itself.
 */
#include "live/collector_int.h"

#include "base/clock.h"

#include "live/job_identity.h"
#include "live/proc.h"

#define NAMES_NS (1000 * 1000000LL) /* how often threads and counters are asked for */

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
			collector_tell(c, "process %u: %.*s", p->pid, STR_ARG(text));
	}
}

static void look_at_counts(struct collector *c, struct collected *p, int64_t now)
{
	for (uint32_t k = 0; k < RING_COUNTERS; k++) {
		struct live_count sum = { .process = p->number, .counter = k, .ts_ns = now };

		for (size_t i = 0; i < p->ring_count; i++) {
			const struct ring_count *count = &p->rings[i].view.ring->counts[k];

			sum.calls += atomic_load_explicit(&count->calls, memory_order_relaxed);
			sum.ns += atomic_load_explicit(&count->ns, memory_order_relaxed);
			sum.bytes += atomic_load_explicit(&count->bytes, memory_order_relaxed);
		}
		if (sum.calls == p->counts[k])
			continue;
		p->counts[k] = sum.calls;
		recording_add_count(c->recording, &sum);
	}
}

/* What the system counts, to be compared with what the hooks saw at the same moment. A process that has just ended
 * still has its numbers, until it is waited for. */
static void look_at_io(struct collector *c, struct collected *p, int64_t now)
{
	struct live_count row = { .process = p->number, .ts_ns = now };
	struct proc_io io;

	if (!proc_read_io((pid_t)p->pid, &io) || io.read_bytes < p->io_seen)
		return; /* gone, or somebody else has its number by now */
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

void collector_look_at(struct collector *c, struct collected *p, int64_t now)
{
	look_at_hooks(c, p);
	look_at_counts(c, p, now);
	look_at_io(c, p, now);
	for (size_t i = 0; i < p->ring_count && p->fd >= 0; i++) {
		struct ring_seen *ring = &p->rings[i];
		char name[16];

		if (!ring->tid || !proc_thread_name((pid_t)p->pid, (pid_t)ring->tid, name) ||
		    strcmp(name, ring->name) == 0)
			continue;
		memcpy(ring->name, name, sizeof(name));
		recording_add_text(c->recording, p->number, LIVE_THREAD, ring->tid, str_from(name));
	}
}

void collector_look_around(struct collector *c)
{
	int64_t now = steady_ns();

	if (now - c->last_look_ns < NAMES_NS)
		return;
	c->last_look_ns = now;
	for (size_t i = 0; i < c->count; i++)
		if (c->processes[i]->view.process) /* it has said hello */
			collector_look_at(c, c->processes[i], now);
}

/* ---- new files ---- */

void collector_introduce(struct collector *c, struct collected *p)
{
	const struct ring_process *process = p->view.process;
	struct live_process row = { .number = p->number, .pid = p->pid };

	row.parent = process->parent;
	row.flags = (process->forked ? LIVE_FORKED : 0) | (c->attached ? LIVE_ATTACHED : 0);
	row.monotonic_ns = (int64_t)process->clock_monotonic_ns;
	row.wall_ns = (int64_t)process->clock_wall_ns;
	recording_add_process(c->recording, &row);
	collector_add_text(c, p, LIVE_COMMAND, 0, process->command);
	collector_add_text(c, p, LIVE_IDENTITY, 0, process->identity);
}

/* Whose the records of a ring are that do not begin with saying so. */
void collector_add_place(struct collector *c, struct collected *p, const struct ring_seen *ring)
{
	struct live_place place = { .process = p->number,
				    .ring = ring->view.number,
				    .id = ring->tid,
				    .first = ring->tid == p->view.process->pid };

	if (ring->tid)
		recording_add_place(c->recording, &place);
}

static void introduce_queues(struct collector *c, struct collected *p)
{
	for (size_t i = 0; i < p->queue_count; i++) {
		const struct queue_seen *queue = &p->queues[i];
		struct live_place place = { .process = p->number,
					    .id = queue->stream,
					    .name = queue->name,
					    .device = queue->device };

		collector_need_name(c, p, queue->name);
		collector_need_name(c, p, queue->device);
		recording_add_place(c->recording, &place);
	}
}

void collector_begin_file(struct collector *c)
{
	for (size_t i = 0; i < c->count; i++) {
		struct collected *p = c->processes[i];

		if (!p->view.process)
			continue;
		memset(p->texts, 0, TEXT_WORDS * sizeof(*p->texts));
		memset(p->hook_states, 0, sizeof(p->hook_states));
		memset(p->counts, 0, sizeof(p->counts));
		collector_introduce(c, p);
		introduce_queues(c, p);
		for (size_t k = 0; k < p->ring_count; k++) {
			collector_add_place(c, p, &p->rings[k]);
			p->rings[k].name[0] = '\0';
		}
	}
	c->files++;
	c->last_look_ns = 0; /* look at hooks and names at once */
}

/* ---- for lists of jobs ---- */

static int32_t rank_of(const struct collected *p)
{
	char copy[RING_TEXT_MAX];

	return identity_rank(process_view_text(&p->view, p->view.process->identity, copy));
}

bool collector_info(const struct collector *c, size_t index, struct collected_info *info)
{
	const struct collected *p = c->processes[index];
	const struct ring_hook_info *torch;
	char copy[RING_TEXT_MAX];

	if (!p->view.process || p->fd < 0)
		return false;
	*info = (struct collected_info){ .number = p->number,
					 .pid = p->pid,
					 .parent = p->view.process->parent,
					 .rank = rank_of(p),
					 .records = p->records,
					 .steps = p->steps };
	for (size_t i = 0; i < p->ring_count; i++)
		info->dropped += ring_seen_dropped(&p->rings[i]);
	torch = &p->view.process->hooks[RING_HOOK_TORCH];
	if (atomic_load(&torch->state) == RING_HOOK_ARMED) {
		struct str text = process_view_text(&p->view, atomic_load(&torch->text), copy);

		snprintf(info->torch, sizeof(info->torch), "%.*s",
			 (int)MIN(text.len, sizeof(info->torch) - 1), text.ptr ? text.ptr : "");
	}
	info->opencl = p->queue_count > 0;
	return true;
}
