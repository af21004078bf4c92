/*
 * collector.c: reads the rings of recorded processes and writes their records to a recording; also counts steps as
 * they pass, and begins new files. Called by launch.c and the daemon; connections are in collector_socket.c, checks of
 * hooks, counters and threads in collector_check.c.
 *
 * Rings are read at intervals, and at once when one of them calls. They are written only when a ring is filling
 * up, much is waiting, or some time has passed, to keep segments reasonably large.
 */
#include "live/record/collector_int.h"

#include "base/clock.h"
#include "live/daemon/job_identity.h"
#include "live/proc/proc.h"
#include "live/record/collector.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* largest shared memory, also of other versions, which are refused with a reason */
#define REGION_MOST ((size_t)64 << 20)

/* Maps memory of `least` to `most` bytes that cannot shrink, or returns NULL. A process can claim any size
 * at no cost. */
static void *map_sealed(int fd, size_t least, size_t most, size_t *bytes, struct ow_error *err)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	void *memory;

	if (fstat(fd, &st) != 0) {
		error_errno(err, errno, "the recorder's shared memory");
		return NULL;
	}
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || st.st_size < (off_t)least ||
	    st.st_size > (off_t)most) {
		error_set(err, OW_E_CORRUPT,
			  "the recorder's shared memory is not sealed, or has a wrong size");
		return NULL;
	}
	*bytes = (size_t)st.st_size;
	memory = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory != MAP_FAILED)
		return memory;
	error_errno(err, errno, "the recorder's shared memory");
	return NULL;
}

ow_status ring_view_open(struct ring_view *v, int fd, struct ow_error *err)
{
	uint32_t capacity = RING_RECORDS_MIN;

	*v = (struct ring_view){ 0 };
	v->ring = map_sealed(fd, (size_t)ring_bytes(RING_RECORDS_MIN),
			     (size_t)ring_bytes(RING_RECORDS_MAX), &v->bytes, err);
	if (!v->ring)
		return OW_E_CORRUPT;
	while (capacity < RING_RECORDS_MAX && ring_bytes(capacity * 2) <= v->bytes)
		capacity *= 2;
	v->capacity = capacity;
	v->number = v->ring->number;
	v->next = atomic_load(&v->ring->tail);
	if (memcmp(v->ring->magic, RING_MAGIC, sizeof(v->ring->magic)) == 0 &&
	    v->ring->version == RING_VERSION && v->ring->records == capacity &&
	    v->bytes == ring_bytes(capacity))
		return OW_OK;
	ring_view_close(v);
	return error_set(err, OW_E_CORRUPT,
			 "a ring of the recorder is damaged or has another version");
}

void ring_view_empty(struct ring_view *v)
{
	madvise(v->ring, v->bytes, MADV_REMOVE);
}

void ring_view_close(struct ring_view *v)
{
	if (v->ring)
		munmap(v->ring, v->bytes);
	v->ring = NULL;
}

uint32_t ring_view_pending(const struct ring_view *v)
{
	uint64_t head = atomic_load_explicit(&v->ring->head, memory_order_acquire);
	uint64_t waiting = head - v->next;

	return waiting > v->capacity
		       ? 0
		       : (uint32_t)waiting; /* more than fits: no recorder writes that */
}

void ring_view_copy(const struct ring_view *v, struct ring_record *to, uint32_t count)
{
	const struct ring_record *records = ring_records(v->ring);
	uint32_t at = (uint32_t)v->next & (v->capacity - 1), first = MIN(count, v->capacity - at);

	memcpy(to, records + at, first * sizeof(*to));
	memcpy(to + first, records, (count - first) * sizeof(*to));
}

void ring_view_commit(struct ring_view *v, uint32_t count)
{
	v->next += count;
	atomic_store_explicit(&v->ring->tail, v->next, memory_order_release);
}

ow_status process_view_open(struct process_view *v, int fd, struct ow_error *err)
{
	*v = (struct process_view){ 0 };
	v->process = map_sealed(fd, RING_TEXT_OFFSET, REGION_MOST, &v->bytes, err);
	if (!v->process)
		return OW_E_CORRUPT;
	if (memcmp(v->process->magic, RING_PROCESS_MAGIC, sizeof(v->process->magic)) != 0) {
		process_view_close(v);
		return error_set(err, OW_E_CORRUPT, "the recorder's shared memory is damaged");
	}
	if (v->process->version != RING_VERSION)
		return error_set(
			err, OW_E_UNSUPPORTED,
			"the recorder in the process has protocol version %u, this program has "
			"%u; use the recorder of this installation",
			v->process->version, RING_VERSION);
	if (v->bytes != RING_TEXT_OFFSET + RING_TEXT_BYTES) {
		process_view_close(v);
		return error_set(err, OW_E_CORRUPT,
				 "the recorder's shared memory has a wrong size");
	}
	v->text_bytes = (uint32_t)MIN(v->bytes - RING_TEXT_OFFSET, (size_t)RING_TEXT_BYTES);
	return OW_OK;
}

void process_view_close(struct process_view *v)
{
	if (v->process)
		munmap(v->process, v->bytes);
	v->process = NULL;
}

struct str process_view_text(const struct process_view *v, uint32_t number, char *to)
{
	const struct ring_text *text;
	uint64_t at = (uint64_t)number * 8;
	uint32_t len;

	if (!number || at + sizeof(*text) > v->text_bytes)
		return (struct str){ 0 };
	text = (const struct ring_text *)(const void *)((const char *)v->process +
							RING_TEXT_OFFSET + at);
	len = *(const volatile uint32_t *)&text->len;
	if (len > RING_TEXT_MAX || at + sizeof(*text) + len > v->text_bytes)
		return (struct str){ 0 };
	memcpy(to, text->bytes, len);
	return str_make(to, len);
}

/* Rings do not call for their reader: a recorded program must not make calls that it would not make alone. So the next
 * look comes the sooner the fuller they were at the last one. Waking up is what costs. */
#define LOOK_MS 50
#define LOOK_LEAST_MS 1
#define FLUSH_NS (200 * 1000000LL)
#define FLUSH_RECORDS 8192u
#define RETRY_NS (1000 * 1000000LL) /* time between two tries after a failed write */
#define GIVE_UP_NS ((int64_t)10000000000)
#define RUN_RECORDS 4096u

enum step_mark step_mark_of(struct str name)
{
	if (str_starts(name, STR("Optimizer.step#")))
		return STEP_MARK_OPTIMIZER;
	return str_starts(name, STR("enumerate(DataLoader)#")) ? STEP_MARK_LOADER : STEP_MARK_NONE;
}

void step_meter_see(struct step_meter *m, enum step_mark mark, int64_t start_ns, int64_t dur_ns)
{
	struct step_marks *marks = &m->marks[mark];
	int64_t now = mark == STEP_MARK_OPTIMIZER ? start_ns + dur_ns : start_ns;

	if (mark == STEP_MARK_NONE || now <= 0)
		return;
	if (marks->count && now > marks->last_ns)
		marks->durations[(marks->count - 1) % STEP_METER_LAST] = now - marks->last_ns;
	else if (marks->count)
		return; /* from another thread, or from a clock that went back */
	marks->count++;
	marks->last_ns = now;
}

static const struct step_marks *marks_of(const struct step_meter *m)
{
	const struct step_marks *optimizer = &m->marks[STEP_MARK_OPTIMIZER];

	return optimizer->count ? optimizer : &m->marks[STEP_MARK_LOADER];
}

uint64_t step_meter_count(const struct step_meter *m)
{
	const struct step_marks *marks = marks_of(m);

	/* an optimizer's step ends a step; a wait for a batch ends the step before it */
	return marks->count && m->marks[STEP_MARK_OPTIMIZER].count == 0 ? marks->count - 1
									: marks->count;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int64_t step_meter_median(const struct step_meter *m)
{
	const struct step_marks *marks = marks_of(m);
	int64_t sorted[STEP_METER_LAST];
	size_t count;

	if (marks->count < 2)
		return 0;
	count = (size_t)MIN(marks->count - 1, (uint64_t)STEP_METER_LAST);
	memcpy(sorted, marks->durations, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_value);
	return sorted[count / 2];
}

void collector_report(struct collector *c, const char *format, ...)
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

void collector_add_text(struct collector *c, struct collected *p, enum live_text_kind kind,
			uint32_t number, uint32_t text)
{
	char copy[RING_TEXT_MAX];
	struct str s = process_view_text(&p->view, text, copy);

	if (s.len)
		recording_add_text(c->recording, p->number, kind, number, s);
}

/* Remembers a name if slices of that name mark steps. */
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
		if (!r->name)
			collector_name_thread(c, p, ring);
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

/* Calls `each` for all rings, beginning with another one each time: records that do not fit wait
 * for the next segment. */
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

/* Writes the records of all rings to the file, then frees their room in the rings. */
bool collector_flush(struct collector *c)
{
	struct ow_error err = { 0 };

	c->turn++;
	for_rings(c, take_ring);
	c->last_flush_ns = steady_ns();
	if (recording_flush(c->recording, &err) == OW_OK) {
		if (c->failure.status != OW_OK)
			collector_report(c, "%s: writing works again", c->recording->path);
		c->failure.status = OW_OK;
		for_rings(c, commit_ring);
		return true;
	}
	if (c->failure.status == OW_OK) {
		collector_report(
			c,
			"%s; the job continues, and records that cannot be written count as "
			"dropped",
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

static void release_process(struct collector *c, struct collected *p)
{
	/* the process was asked to stop and has disconnected */
	bool stopped =
		p->view.process && p->fd < 0 && atomic_load(&p->view.process->state) != RING_RUN;

	if (c->quota)
		c->quota->processes--;
	for (size_t i = 0; i < p->ring_count; i++) {
		if (c->quota) {
			c->quota->rings--;
			c->quota->bytes -= p->rings[i].view.bytes;
		}
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

/* Adds the drops of a ring. A ring keeps its count when its process connects again. */
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

/* Adds losses of a process; its counts continue after it has connected again. */
static void count_lost(struct collector *c, const struct collected *p, const struct live_end *end)
{
	struct collector_known none = { 0 }, *known = p->known ? &c->known[p->known - 1] : &none;

	c->totals.texts_lost += end->texts_lost - MIN(end->texts_lost, known->texts_lost);
	c->totals.rings_lost += end->rings_lost - MIN(end->rings_lost, known->rings_lost);
	known->texts_lost = end->texts_lost;
	known->rings_lost = end->rings_lost;
}

/* Writes the calls that were only counted, because they came too fast, since the last recorded one. */
static void look_at_unrecorded(struct collector *c, struct collected *p, int64_t now)
{
	for (size_t i = 0; i < p->ring_count; i++)
		for (size_t k = 0; k < RING_SAMPLED + RING_OPS; k++) {
			struct ring *ring = p->rings[i].view.ring;
			struct ring_sampled *s = &ring->sampled[k];
			uint32_t taken = atomic_load(&s->taken);
			struct live_count row = { .process = p->number,
						  .counter = LIVE_UNRECORDED,
						  .ts_ns = now,
						  .calls = atomic_load(&s->count.calls),
						  .ns = atomic_load(&s->name),
						  .bytes = atomic_load(&s->count.bytes) };

			if (!row.calls || !row.ns || row.calls > UINT32_MAX)
				continue;
			/* the process was killed after a record that includes these calls */
			if (taken && (int32_t)((uint32_t)atomic_load(&ring->head) - taken) >= 0)
				continue;
			collector_need_name(c, p, row.ns);
			recording_add_count(c->recording, &row);
		}
}

static void say_end(struct collector *c, struct collected *p)
{
	struct live_end end = { .process = p->number, .ts_ns = steady_ns() };

	if (p->view.process) {
		end.texts_lost = atomic_load(&p->view.process->text_lost);
		end.rings_lost = atomic_load(&p->view.process->rings_lost);
		collector_check_process(c, p, end.ts_ns);
		look_at_unrecorded(c, p, end.ts_ns);
	}
	count_lost(c, p, &end);
	count_dropped(c, p);
	recording_add_end(c->recording, &end);
	p->ended = true;
}

/* Removes ended processes whose records are written. */
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

/* Takes the unread records of a ring and returns the number of calls that they stand for. */
static uint64_t take_pending(struct ring_view *v)
{
	struct ring_record records[32];
	uint64_t calls = 0;
	uint32_t count;

	while ((count = (uint32_t)MIN(ring_view_pending(v), ARRAY_COUNT(records))) > 0) {
		ring_view_copy(v, records, count);
		for (uint32_t i = 0; i < count; i++)
			calls += MAX(records[i].calls, 1u);
		ring_view_commit(v, count);
	}
	return calls;
}

/* Drops data of ended processes after a while if it cannot be written, because a disk may stay full. */
static void give_up_ended(struct collector *c)
{
	if (steady_ns() - c->failing_ns < GIVE_UP_NS)
		return;
	for (size_t i = 0; i < c->count; i++) {
		struct collected *p = c->processes[i];

		for (size_t k = 0; p->fd < 0 && k < p->ring_count; k++) {
			struct ring_view *v = &p->rings[k].view;

			atomic_fetch_add(&v->ring->dropped, take_pending(v));
		}
	}
	remove_ended(c);
}

void collector_init(struct collector *c, struct mem *mem, struct recording *recording)
{
	*c = (struct collector){ .mem = mem, .recording = recording, .listener = -1 };
	c->last_flush_ns = c->last_look_ns = steady_ns();
}

/* Returns whether there is enough data for a segment. */
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

void collector_receive(struct collector *c, const struct pollfd *fds, size_t count)
{
	bool gone = false;

	for (size_t i = 0; i < MIN(count, c->count); i++) {
		if (fds[i].revents)
			collector_receive_one(c, c->processes[i]);
		gone |= c->processes[i]->fd < 0;
	}
	if (gone)
		flush_and_remove(c);
}

void collector_tick(struct collector *c)
{
	collector_check_all(c);
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

int collector_next_look_ms(unsigned fill, int before_ms)
{
	if (fill >= 64)
		return LOOK_LEAST_MS;
	if (fill >= 16)
		return MAX(LOOK_LEAST_MS, MIN(before_ms / 2, 8));
	return MIN(before_ms * 2, LOOK_MS);
}

/* Returns the time until the next look at the rings, or the next beat. */
static struct timespec time_to_wait(const struct collector *c)
{
	int64_t ns = MAX(c->look_ms, LOOK_LEAST_MS) * 1000000LL;

	if (c->beat)
		ns = MAX(MIN(ns, c->next_beat_ns - steady_ns()), 0);
	return (struct timespec){ .tv_nsec = ns };
}

bool collector_turn(struct collector *c, int fd)
{
	size_t count = c->count, bytes = (count + 2) * sizeof(struct pollfd);
	struct pollfd *fds = mem_alloc(c->mem, bytes);
	struct timespec wait = time_to_wait(c);
	bool good = true;
	int64_t now;

	if (!fds)
		return false;
	collector_poll(c, fds);
	fds[count] = (struct pollfd){ .fd = c->listener, .events = POLLIN };
	fds[count + 1] = (struct pollfd){ .fd = fd, .events = POLLIN };
	if (ppoll(fds, count + 2, &wait, NULL) > 0) {
		bool knocks = fds[count].revents;

		collector_receive(c, fds, count);
		while (knocks && good)
			good = collector_accept(c, &knocks);
	}
	mem_free(c->mem, fds, bytes);
	c->look_ms = collector_next_look_ms(collector_fill(c), MAX(c->look_ms, LOOK_LEAST_MS));
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
				collector_receive_one(c, c->processes[i]);
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

/* Records the thread of a ring whose records do not begin with its description. */
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
		p->schedule = (struct thread_schedule){ 0 };
		collector_introduce(c, p);
		introduce_queues(c, p);
		for (size_t k = 0; k < p->ring_count; k++) {
			collector_add_place(c, p, &p->rings[k]);
			p->rings[k].name[0] = '\0';
			p->rings[k].schedule = (struct thread_schedule){ 0 };
		}
	}
	c->files++;
	c->last_look_ns = 0; /* examine hooks and names at once */
}

static int32_t rank_of(const struct collected *p)
{
	char copy[RING_TEXT_MAX];

	return identity_rank(process_view_text(&p->view, p->view.process->identity, copy));
}

/* Copies the function that --step-marker named, from the process's environment; empty if there is none. */
static void copy_marker(const struct collected *p, char to[RING_MARKER_MAX])
{
	char copy[RING_TEXT_MAX];
	struct str text = process_view_text(&p->view, p->view.process->identity, copy), word;

	to[0] = '\0';
	while (str_split(&text, '\0', &word))
		if (str_starts(word, STR(RING_ENV_MARKER "=")))
			snprintf(to, RING_MARKER_MAX, "%.*s",
				 STR_ARG(str_skip(word, sizeof(RING_ENV_MARKER))));
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
	copy_marker(p, info->step_marker);
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
