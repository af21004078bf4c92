/*
 * collector.c: see collector.h. When to write: rings are looked at now and then, and at once when one of them calls, but
 * written only when one is filling up, much is waiting, or some time has passed, so that a segment is worth its head.
 */
#include "live/collector_int.h"

#include "base/clock.h"

#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 50 /* short of a call; waking up is what costs */
#define FLUSH_NS (200 * 1000000LL)
#define FLUSH_RECORDS 8192u
#define RETRY_NS (1000 * 1000000LL) /* after a failed write */
#define GIVE_UP_NS ((int64_t)10000000000)
#define RUN_RECORDS 4096u

void collector_tell(struct collector *c, const char *format, ...)
{
	char text[512];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (c->message && len > 0)
		c->message(c->message_arg, text, MIN((size_t)len, sizeof(text) - 1));
}

/* ---- texts ---- */

void collector_add_text(struct collector *c, struct collected *p, enum live_text_kind kind,
			uint32_t number, uint32_t text)
{
	char copy[RING_TEXT_MAX];
	struct str s = process_view_text(&p->view, text, copy);

	if (s.len)
		recording_add_text(c->recording, p->number, kind, number, s);
}

/* Whether slices of that name mark steps. */
static void see_name(struct collected *p, uint32_t number, struct str name)
{
	enum step_mark mark = step_mark_of(name);

	if (mark == STEP_MARK_NONE || p->step_count == STEP_NAMES)
		return;
	for (size_t i = 0; i < p->step_count; i++)
		if (p->step_names[i] == number)
			return;
	p->step_names[p->step_count] = number;
	p->step_marks[p->step_count++] = (uint8_t)mark;
}

void collector_need_name(struct collector *c, struct collected *p, uint64_t number)
{
	uint64_t word = number / 64, bit = (uint64_t)1 << number % 64;
	char copy[RING_TEXT_MAX];
	struct str text;

	if (!number || word >= TEXT_WORDS || p->texts[word] & bit)
		return;
	p->texts[word] |= bit;
	text = process_view_text(&p->view, (uint32_t)number, copy);
	if (!text.len)
		return;
	recording_add_text(c->recording, p->number, LIVE_NAME, (uint32_t)number, text);
	see_name(p, (uint32_t)number, text);
}

/* ---- rings ---- */

static void see_step(struct collected *p, const struct ring_record *r)
{
	for (size_t i = 0; i < p->step_count; i++)
		if (p->step_names[i] == r->name && r->start_ns <= INT64_MAX / 2 &&
		    r->dur_ns <= INT64_MAX / 2)
			step_meter_see(&p->steps, (enum step_mark)p->step_marks[i],
				       (int64_t)r->start_ns, (int64_t)r->dur_ns);
}

static void see_queue(struct collector *c, struct collected *p, const struct ring_record *r)
{
	size_t at = 0;

	collector_need_name(c, p, r->id);
	while (at < p->queue_count && p->queues[at].stream != r->stream)
		at++;
	if (at == QUEUES)
		return;
	p->queue_count = MAX(p->queue_count, at + 1);
	p->queues[at] = (struct queue_seen){ r->stream, r->name, (uint32_t)r->id };
}

static void see_record(struct collector *c, struct collected *p, struct ring_seen *ring,
		       const struct ring_record *r)
{
	collector_need_name(c, p, r->name);
	if (r->kind == RING_QUEUE)
		see_queue(c, p, r);
	if (r->kind == RING_THREAD) {
		ring->tid = (uint32_t)r->id;
		ring->name[0] = '\0';
	}
	if (r->category == RING_RANGE && p->step_count)
		see_step(p, r);
}

static void take_ring(struct collector *c, struct collected *p, struct ring_seen *ring)
{
	uint32_t count = MIN(ring_view_pending(&ring->view), RUN_RECORDS * 4);
	size_t waiting = c->recording->record.len / sizeof(struct ring_record);
	struct live_run run = { .process = p->number,
				.ring = ring->view.number,
				.first = ring->view.next,
				.dropped = atomic_load(&ring->view.ring->dropped),
				.dropped_marks =
					(uint32_t)MIN(atomic_load(&ring->view.ring->dropped_marks),
						      (uint64_t)UINT32_MAX) };
	struct ring_record *records;

	ring->taken = 0;
	if (c->segment_bytes) {
		size_t most = MAX(c->segment_bytes / sizeof(struct ring_record), (size_t)1);

		count = (uint32_t)MIN((size_t)count, most - MIN(waiting, most));
	}
	if (!count)
		return;
	run.count = count;
	records = recording_add_run(c->recording, &run);
	if (!records)
		return;
	ring_view_copy(&ring->view, records, count);
	for (uint32_t i = 0; i < count; i++)
		see_record(c, p, ring, &records[i]);
	ring->taken = count;
}

/* Each time another one comes first: what a segment has no room for waits for the next. */
static void for_rings(struct collector *c, void (*each)(struct collector *c, struct collected *p,
							struct ring_seen *ring))
{
	for (size_t i = 0; i < c->count; i++) {
		struct collected *p = c->processes[(c->turn + i) % c->count];

		for (size_t k = 0; k < p->ring_count; k++)
			each(c, p, &p->rings[(c->turn + k) % p->ring_count]);
	}
}

static void commit_ring(struct collector *c, struct collected *p, struct ring_seen *ring)
{
	if (ring->taken)
		ring_view_commit(&ring->view, ring->taken);
	p->records += ring->taken;
	c->totals.records += ring->taken;
	ring->taken = 0;
}

static void forget_ring(struct collector *c, struct collected *p, struct ring_seen *ring)
{
	(void)c;
	(void)p;
	ring->taken = 0;
}

/* What is in the rings goes to the file, and then out of the rings. */
bool collector_flush(struct collector *c)
{
	struct error err = { 0 };

	c->turn++;
	for_rings(c, take_ring);
	c->last_flush_ns = steady_ns();
	if (recording_flush(c->recording, &err) == OW_OK) {
		if (c->failure.status != OW_OK)
			collector_tell(c, "%s: writing works again", c->recording->path);
		c->failure.status = OW_OK;
		for_rings(c, commit_ring);
		return true;
	}
	if (c->failure.status == OW_OK) {
		collector_tell(c,
			       "%s; the job goes on, and what is not written is counted as dropped",
			       err.text);
		c->failing_ns = steady_ns();
	}
	c->failure = err;
	c->failed_ns = steady_ns();
	c->totals.failed_writes++;
	recording_drop_runs(c->recording);
	buf_clear(&c->recording->count);
	for_rings(c, forget_ring);
	return false;
}

/* ---- processes ---- */

static void release_process(struct collector *c, struct collected *p)
{
	/* It was asked to stop, and has hung up. */
	bool stopped =
		p->view.process && p->fd < 0 && atomic_load(&p->view.process->state) != RING_RUN;

	for (size_t i = 0; i < p->ring_count; i++) {
		if (stopped)
			ring_view_empty(&p->rings[i].view);
		ring_view_close(&p->rings[i].view);
	}
	mem_free(c->mem, p->rings, p->ring_cap * sizeof(*p->rings));
	mem_free(c->mem, p->texts, p->texts ? TEXT_WORDS * sizeof(*p->texts) : 0);
	process_view_close(&p->view);
	if (p->fd >= 0)
		close(p->fd);
	mem_free(c->mem, p, sizeof(*p));
}

uint64_t ring_seen_dropped(const struct ring_seen *ring)
{
	uint64_t dropped = atomic_load(&ring->view.ring->dropped);

	return dropped - MIN(dropped, atomic_load(&ring->view.ring->counted));
}

/* Rings go on with the drops that they have when their process connects anew. */
static void count_dropped(struct collector *c, const struct collected *p)
{
	for (size_t i = 0; i < p->ring_count; i++) {
		uint64_t dropped = ring_seen_dropped(&p->rings[i]);

		c->totals.dropped += dropped;
		atomic_fetch_add(&p->rings[i].view.ring->counted, dropped);
	}
}

void collector_count_dropped(struct collector *c)
{
	for (size_t i = 0; i < c->count; i++)
		count_dropped(c, c->processes[i]);
}

static bool is_drained(const struct collected *p)
{
	for (size_t i = 0; i < p->ring_count; i++)
		if (ring_view_pending(&p->rings[i].view))
			return false;
	return true;
}

/* What a process says is since its begin, also when it has connected anew. */
static void count_lost(struct collector *c, const struct collected *p, const struct live_end *end)
{
	struct collector_known none = { 0 }, *known = p->known ? &c->known[p->known - 1] : &none;

	c->totals.texts_lost += end->texts_lost - MIN(end->texts_lost, known->texts_lost);
	c->totals.rings_lost += end->rings_lost - MIN(end->rings_lost, known->rings_lost);
	known->texts_lost = end->texts_lost;
	known->rings_lost = end->rings_lost;
}

static void say_end(struct collector *c, struct collected *p)
{
	struct live_end end = { .process = p->number, .ts_ns = steady_ns() };

	if (p->view.process) {
		end.texts_lost = atomic_load(&p->view.process->text_lost);
		end.rings_lost = atomic_load(&p->view.process->rings_lost);
		collector_look_at(c, p, end.ts_ns);
	}
	count_lost(c, p, &end);
	count_dropped(c, p);
	recording_add_end(c->recording, &end);
	p->ended = true;
}

/* Those that have ended and whose records are written. */
static void remove_ended(struct collector *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->count; i++) {
		struct collected *p = c->processes[i];

		if (p->fd < 0 && !p->ended && (!p->view.process || is_drained(p)))
			say_end(c, p);
		if (p->ended)
			release_process(c, p);
		else
			c->processes[kept++] = p;
	}
	c->count = kept;
}

/* What processes left that ended while nothing can be written is kept for a while, and then dropped: a disk may stay full. */
static void give_up_ended(struct collector *c)
{
	if (steady_ns() - c->failing_ns < GIVE_UP_NS)
		return;
	for (size_t i = 0; i < c->count; i++) {
		struct collected *p = c->processes[i];

		for (size_t k = 0; p->fd < 0 && k < p->ring_count; k++) {
			struct ring_view *v = &p->rings[k].view;
			uint32_t pending = ring_view_pending(v);

			atomic_fetch_add(&v->ring->dropped, pending);
			ring_view_commit(v, pending);
		}
	}
	remove_ended(c);
}

/* ---- turns ---- */

void collector_init(struct collector *c, struct mem *mem, struct recording *recording)
{
	*c = (struct collector){ .mem = mem, .recording = recording, .listener = -1 };
	c->last_flush_ns = c->last_look_ns = steady_ns();
}

/* Worth a segment? */
static bool is_due(const struct collector *c)
{
	uint64_t waiting = 0;
	int64_t now = steady_ns();

	if (c->failure.status != OW_OK)
		return now - c->failed_ns >= RETRY_NS;
	if (now - c->last_flush_ns >= FLUSH_NS)
		return true;
	for (size_t i = 0; i < c->count; i++) {
		const struct collected *p = c->processes[i];

		for (size_t k = 0; k < p->ring_count; k++) {
			uint32_t pending = ring_view_pending(&p->rings[k].view);

			if (pending >= ring_plenty(p->rings[k].view.capacity))
				return true;
			waiting += pending;
		}
	}
	return waiting >= FLUSH_RECORDS;
}

static void flush_and_remove(struct collector *c)
{
	if (collector_flush(c))
		remove_ended(c);
	else
		give_up_ended(c);
}

void collector_poll(const struct collector *c, struct pollfd *fds)
{
	for (size_t i = 0; i < c->count; i++)
		fds[i] = (struct pollfd){ .fd = c->processes[i]->fd, .events = POLLIN };
}

void collector_hear(struct collector *c, const struct pollfd *fds, size_t count)
{
	bool gone = false;

	for (size_t i = 0; i < MIN(count, c->count); i++) {
		if (fds[i].revents)
			collector_hear_one(c, c->processes[i]);
		gone |= c->processes[i]->fd < 0;
	}
	if (gone)
		flush_and_remove(c);
}

void collector_tick(struct collector *c)
{
	collector_look_around(c);
	if (is_due(c))
		flush_and_remove(c);
}

unsigned collector_fill(const struct collector *c)
{
	uint64_t most = 0;

	for (size_t i = 0; i < c->count; i++)
		for (size_t k = 0; k < c->processes[i]->ring_count; k++) {
			const struct ring_view *v = &c->processes[i]->rings[k].view;

			most = MAX(most, (uint64_t)ring_view_pending(v) * 256 / v->capacity);
		}
	return (unsigned)most;
}

uint32_t collector_number(const struct collector *c, pid_t pid)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->processes[i]->pid == (uint32_t)pid && c->processes[i]->fd >= 0)
			return c->processes[i]->number;
	return 0;
}

/* Until the next look, or the next beat. */
static struct timespec patience(const struct collector *c)
{
	int64_t ns = LOOK_MS * 1000000LL;

	if (c->beat)
		ns = MAX(MIN(ns, c->next_beat_ns - steady_ns()), 0);
	return (struct timespec){ .tv_nsec = ns };
}

bool collector_turn(struct collector *c, int fd)
{
	size_t count = c->count, bytes = (count + 2) * sizeof(struct pollfd);
	struct pollfd *fds = mem_alloc(c->mem, bytes);
	struct timespec wait = patience(c);
	bool good = true;
	int64_t now;

	if (!fds)
		return false;
	collector_poll(c, fds);
	fds[count] = (struct pollfd){ .fd = c->listener, .events = POLLIN };
	fds[count + 1] = (struct pollfd){ .fd = fd, .events = POLLIN };
	if (ppoll(fds, count + 2, &wait, NULL) > 0) {
		bool knocks = fds[count].revents;

		collector_hear(c, fds, count);
		while (knocks && good)
			good = collector_accept(c, &knocks);
	}
	mem_free(c->mem, fds, bytes);
	now = steady_ns();
	if (c->beat && now >= c->next_beat_ns)
		c->next_beat_ns = c->beat(c->beat_arg, now);
	collector_tick(c);
	return good;
}

void collector_drain(struct collector *c)
{
	for (bool more = true; more;) {
		while (more && collector_accept(c, &more))
			;

		for (size_t i = 0; i < c->count; i++)
			if (c->processes[i]->fd >= 0)
				collector_hear_one(c, c->processes[i]);
		if (!collector_flush(c))
			return;
		more = false;
		for (size_t i = 0; i < c->count; i++)
			more |= c->processes[i]->fd < 0 && !is_drained(c->processes[i]);
		remove_ended(c);
	}
}

size_t collector_live(const struct collector *c)
{
	size_t live = 0;

	for (size_t i = 0; i < c->count; i++)
		live += c->processes[i]->fd >= 0;
	return live;
}

void collector_ask_stop(struct collector *c, uint32_t pid)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->processes[i]->view.process && (!pid || c->processes[i]->pid == pid))
			atomic_store(&c->processes[i]->view.process->state, RING_STOP);
}

bool collector_stop(struct collector *c, int64_t patience_ns)
{
	int64_t end = steady_ns() + patience_ns;
	bool all;

	collector_ask_stop(c, 0);
	do {
		all = true;
		for (size_t i = 0; i < c->count; i++) {
			const struct collected *p = c->processes[i];

			all &= p->fd < 0 || !p->view.process ||
			       atomic_load(&p->view.process->state) == RING_STOPPED;
		}
	} while (!all && steady_ns() < end && collector_turn(c, -1));
	return all;
}

static void release_all(struct collector *c)
{
	for (size_t i = 0; i < c->count; i++)
		release_process(c, c->processes[i]);
	c->count = 0;
	mem_free(c->mem, c->processes, c->cap * sizeof(*c->processes));
	c->processes = NULL;
	c->cap = 0;
	mem_free(c->mem, c->known, c->known_cap * sizeof(*c->known));
	c->known = NULL;
	c->known_count = c->known_cap = 0;
	collector_remove_socket(c);
}

void collector_close(struct collector *c)
{
	collector_drain(c);
	for (size_t i = 0; i < c->count; i++)
		if (c->processes[i]->view.process)
			say_end(c, c->processes[i]);
	release_all(c);
}

void collector_leave(struct collector *c)
{
	collector_drain(c);
	release_all(c);
}
