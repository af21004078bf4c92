/*
 * collector.c: see collector.h. When to write: rings are looked at every few milliseconds, but written only when one
 * is filling up, much is waiting, or some time has passed, so that a segment is worth its head.
 */
#include "live/collector.h"

#include "live/proc.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 5
#define FLUSH_NS (200 * 1000000LL)
#define FLUSH_RECORDS 8192u
#define NAMES_NS (1000 * 1000000LL) /* how often threads and counters are asked for */
#define RETRY_NS (1000 * 1000000LL) /* after a failed write */
#define RUN_RECORDS 4096u

struct ring_seen {
	struct ring_view view;
	uint32_t tid;
	char name[16];
	uint32_t taken; /* in the segment that is being written */
};

struct collected {
	uint32_t number;
	int fd; /* the connection; -1 when it was closed */
	uint32_t pid;
	struct process_view view;
	uint64_t *texts; /* a bit per text that was written */
	struct ring_seen *rings;
	size_t ring_count, ring_cap;
	uint32_t hook_states[RING_HOOKS];
	uint64_t counts[RING_COUNTERS];
	bool ended;
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void tell(struct collector *c, const char *format, ...) OW_PRINTF(2, 3);

static void tell(struct collector *c, const char *format, ...)
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

#define TEXT_WORDS (RING_TEXT_BYTES / 8 / 64)

static void add_text(struct collector *c, struct collected *p, enum live_text_kind kind,
		     uint32_t number, uint32_t text)
{
	char copy[RING_TEXT_MAX];
	struct str s = process_view_text(&p->view, text, copy);

	if (s.len)
		recording_add_text(c->recording, p->number, kind, number, s);
}

/* A name that a record uses: written once. */
static void need_name(struct collector *c, struct collected *p, uint64_t number)
{
	uint64_t word = number / 64, bit = (uint64_t)1 << number % 64;

	if (!number || word >= TEXT_WORDS || p->texts[word] & bit)
		return;
	p->texts[word] |= bit;
	add_text(c, p, LIVE_NAME, (uint32_t)number, (uint32_t)number);
}

/* ---- rings ---- */

static void see_record(struct collector *c, struct collected *p, struct ring_seen *ring,
		       const struct ring_record *r)
{
	need_name(c, p, r->name);
	if (r->kind == RING_QUEUE)
		need_name(c, p, r->id);
	if (r->kind == RING_THREAD) {
		ring->tid = (uint32_t)r->id;
		ring->name[0] = '\0';
	}
}

static void take_ring(struct collector *c, struct collected *p, struct ring_seen *ring)
{
	uint32_t count = MIN(ring_view_pending(&ring->view), RUN_RECORDS * 4);
	struct live_run run = { .process = p->number,
				.ring = ring->view.number,
				.first = ring->view.next,
				.count = count,
				.dropped = atomic_load(&ring->view.ring->dropped) };
	struct ring_record *records;

	ring->taken = 0;
	if (!count)
		return;
	records = recording_add_run(c->recording, &run);
	if (!records)
		return;
	ring_view_copy(&ring->view, records, count);
	for (uint32_t i = 0; i < count; i++)
		see_record(c, p, ring, &records[i]);
	ring->taken = count;
}

static void for_rings(struct collector *c, void (*each)(struct collector *c, struct collected *p,
							struct ring_seen *ring))
{
	for (size_t i = 0; i < c->count; i++)
		for (size_t k = 0; k < c->processes[i]->ring_count; k++)
			each(c, c->processes[i], &c->processes[i]->rings[k]);
}

static void commit_ring(struct collector *c, struct collected *p, struct ring_seen *ring)
{
	(void)p;
	if (ring->taken)
		ring_view_commit(&ring->view, ring->taken);
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
static bool flush(struct collector *c)
{
	struct error err = { 0 };

	for_rings(c, take_ring);
	c->last_flush_ns = now_ns();
	if (recording_flush(c->recording, &err) == OW_OK) {
		if (c->failure.status != OW_OK)
			tell(c, "%s: writing works again", c->recording->path);
		c->failure.status = OW_OK;
		for_rings(c, commit_ring);
		return true;
	}
	if (c->failure.status == OW_OK)
		tell(c, "%s; the job goes on, and what is not written is counted as dropped",
		     err.text);
	c->failure = err;
	c->failed_ns = now_ns();
	c->totals.failed_writes++;
	recording_drop_runs(c->recording);
	buf_clear(&c->recording->count);
	for_rings(c, forget_ring);
	return false;
}

/* ---- what changes slowly ---- */

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
			tell(c, "process %u: %.*s", p->pid, STR_ARG(text));
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

static void look_at_process(struct collector *c, struct collected *p, int64_t now)
{
	struct live_count io = { .process = p->number, .counter = LIVE_IO_READ, .ts_ns = now };

	look_at_hooks(c, p);
	look_at_counts(c, p, now);
	if (p->fd >= 0 && proc_read_io((pid_t)p->pid, &io.calls, &io.bytes))
		recording_add_count(c->recording, &io);
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

static void look_around(struct collector *c)
{
	int64_t now = now_ns();

	if (now - c->last_look_ns < NAMES_NS)
		return;
	c->last_look_ns = now;
	for (size_t i = 0; i < c->count; i++)
		if (c->processes[i]->view.process) /* it has said hello */
			look_at_process(c, c->processes[i], now);
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

static uint64_t dropped_by(const struct collected *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->ring_count; i++)
		sum += atomic_load(&p->rings[i].view.ring->dropped);
	return sum;
}

static bool is_drained(const struct collected *p)
{
	for (size_t i = 0; i < p->ring_count; i++)
		if (ring_view_pending(&p->rings[i].view))
			return false;
	return true;
}

static void say_end(struct collector *c, struct collected *p)
{
	struct live_end end = { .process = p->number, .ts_ns = now_ns() };

	if (p->view.process) {
		end.texts_lost = atomic_load(&p->view.process->text_lost);
		end.rings_lost = atomic_load(&p->view.process->rings_lost);
		look_at_process(c, p, end.ts_ns);
	}
	c->totals.texts_lost += end.texts_lost;
	c->totals.rings_lost += end.rings_lost;
	c->totals.dropped += dropped_by(p);
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

/* ---- messages ---- */

static void refuse(struct collector *c, struct collected *p, const char *why)
{
	struct live_process row = { .number = p->number, .pid = p->pid, .flags = LIVE_REFUSED };

	c->totals.refused++;
	recording_add_process(c->recording, &row);
	tell(c,
	     "process %u: %s; nothing of it is recorded: use the recorder of the same installation",
	     p->pid, why);
}

static void take_hello(struct collector *c, struct collected *p, int fd)
{
	struct error err = { 0 };
	ow_status status;
	struct live_process row = { .number = p->number, .pid = p->pid };

	if (p->view.process || fd < 0)
		return;
	status = process_view_open(&p->view, fd, &err);
	if (status != OW_OK) {
		if (p->view.process)
			atomic_store(&p->view.process->state, RING_REFUSED);
		process_view_close(&p->view);
		refuse(c, p, err.text);
		return;
	}
	p->texts = mem_zalloc(c->mem, TEXT_WORDS * sizeof(*p->texts));
	if (!p->texts) {
		process_view_close(&p->view);
		return;
	}
	row.parent = p->view.process->parent;
	row.flags = (p->view.process->forked ? LIVE_FORKED : 0) | (c->attached ? LIVE_ATTACHED : 0);
	row.monotonic_ns = (int64_t)p->view.process->clock_monotonic_ns;
	row.wall_ns = (int64_t)p->view.process->clock_wall_ns;
	recording_add_process(c->recording, &row);
	add_text(c, p, LIVE_COMMAND, 0, p->view.process->command);
	add_text(c, p, LIVE_IDENTITY, 0, p->view.process->identity);
	c->totals.processes++;
}

static void take_new_ring(struct collector *c, struct collected *p, int fd)
{
	void *rings = p->rings;
	struct ring_view view;

	if (!p->view.process || fd < 0 || ring_view_open(&view, fd, NULL) != OW_OK)
		return;
	for (size_t i = 0; i < p->ring_count; i++)
		if (p->rings[i].view.number == view.number) {
			ring_view_close(&view);
			return;
		}
	if (!mem_grow(c->mem, &rings, &p->ring_cap, p->ring_count + 1, sizeof(*p->rings))) {
		ring_view_close(&view);
		return;
	}
	p->rings = rings;
	p->rings[p->ring_count++] = (struct ring_seen){ .view = view };
}

/* One packet with its descriptor; false when there is none. */
static bool receive(int socket, struct ring_message *message, int *fd, bool *closed)
{
	struct iovec part = { message, sizeof(*message) };
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr packet = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(socket, &packet, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c;

	*fd = -1;
	*closed = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
	if (n <= 0)
		return false;
	c = CMSG_FIRSTHDR(&packet);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	if (n == (ssize_t)sizeof(*message) &&
	    memcmp(message->magic, RING_HELLO_MAGIC, sizeof(message->magic)) == 0)
		return true;
	*closed = true; /* no recorder talks like that */
	if (*fd >= 0)
		close(*fd);
	return false;
}

static void hear(struct collector *c, struct collected *p)
{
	struct ring_message message;
	bool closed = false;
	int fd;

	while (receive(p->fd, &message, &fd, &closed)) {
		if (message.kind == RING_REFUSAL) {
			char why[96];

			snprintf(why, sizeof(why),
				 "its recorder speaks version %u, this program %u", message.version,
				 RING_VERSION);
			refuse(c, p, why);
		} else if (message.kind == RING_HELLO) {
			take_hello(c, p, fd);
		} else if (message.kind == RING_NEW) {
			take_new_ring(c, p, fd);
		}
		if (fd >= 0)
			close(fd);
	}
	if (closed) {
		close(p->fd);
		p->fd = -1;
	}
}

/* Whose process it is: the user's own, or anybody's for root. */
static bool is_welcome(const struct ucred *peer)
{
	return geteuid() == 0 || peer->uid == geteuid();
}

/* False when there is no memory; *more tells whether there was one. */
static bool accept_one(struct collector *c, bool *more)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	void *processes = c->processes;
	struct collected *p;

	*more = fd >= 0;
	if (fd < 0)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 || !is_welcome(&peer)) {
		close(fd);
		return true;
	}
	p = mem_zalloc(c->mem, sizeof(*p));
	if (!p || !mem_grow(c->mem, &processes, &c->cap, c->count + 1, sizeof(*c->processes))) {
		mem_free(c->mem, p, sizeof(*p));
		close(fd);
		return false;
	}
	c->processes = processes;
	*p = (struct collected){ .number = ++c->last_number, .fd = fd, .pid = (uint32_t)peer.pid };
	c->processes[c->count++] = p;
	return true;
}

/* ---- the socket ---- */

static ow_status make_socket(struct collector *c, struct error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *base = getenv("XDG_RUNTIME_DIR");

	for (int i = 0; i < 2; i++) {
		snprintf(c->folder, sizeof(c->folder), "%s/opwatch-XXXXXX",
			 i == 0 && base && strlen(base) < 64 ? base : "/tmp");
		if (mkdtemp(c->folder))
			break;
		c->folder[0] = '\0';
	}
	if (!c->folder[0])
		return error_errno(err, errno, "a directory for the socket in /tmp");
	snprintf(c->socket_path, sizeof(c->socket_path), "%s/s", c->folder);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", c->socket_path);
	c->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->listener < 0 ||
	    bind(c->listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    chmod(c->socket_path, 0600) != 0 || listen(c->listener, 1024) != 0)
		return error_errno(err, errno, "%s", c->socket_path);
	return OW_OK;
}

static void remove_socket(struct collector *c)
{
	if (c->listener >= 0)
		close(c->listener);
	if (c->socket_path[0])
		unlink(c->socket_path);
	if (c->folder[0])
		rmdir(c->folder);
	c->listener = -1;
}

ow_status collector_open(struct collector *c, struct mem *mem, struct recording *recording,
			 struct error *err)
{
	ow_status status;

	*c = (struct collector){ .mem = mem, .recording = recording, .listener = -1 };
	c->last_flush_ns = c->last_look_ns = now_ns();
	status = make_socket(c, err);
	if (status != OW_OK)
		remove_socket(c);
	return status;
}

/* ---- turns ---- */

/* Worth a segment? */
static bool is_due(const struct collector *c)
{
	uint64_t waiting = 0;
	int64_t now = now_ns();

	if (c->failure.status != OW_OK)
		return now - c->failed_ns >= RETRY_NS;
	if (now - c->last_flush_ns >= FLUSH_NS)
		return true;
	for (size_t i = 0; i < c->count; i++) {
		const struct collected *p = c->processes[i];

		for (size_t k = 0; k < p->ring_count; k++) {
			uint32_t pending = ring_view_pending(&p->rings[k].view);

			if (pending >= p->rings[k].view.capacity / 4)
				return true;
			waiting += pending;
		}
	}
	return waiting >= FLUSH_RECORDS;
}

static void flush_and_remove(struct collector *c)
{
	if (flush(c))
		remove_ended(c);
}

/* Whatever is closed or has something to say. */
static bool listen_to(struct collector *c, struct pollfd *fds)
{
	bool gone = false;

	for (size_t i = 0; i < c->count; i++) {
		if (fds[i].revents)
			hear(c, c->processes[i]);
		gone |= c->processes[i]->fd < 0;
	}
	if (gone)
		flush_and_remove(c);
	return gone;
}

bool collector_turn(struct collector *c, int fd)
{
	size_t count = c->count, bytes = (count + 2) * sizeof(struct pollfd);
	struct pollfd *fds = mem_alloc(c->mem, bytes);
	bool good = true;

	if (!fds)
		return false;
	for (size_t i = 0; i < count; i++)
		fds[i] = (struct pollfd){ .fd = c->processes[i]->fd, .events = POLLIN };
	fds[count] = (struct pollfd){ .fd = c->listener, .events = POLLIN };
	fds[count + 1] = (struct pollfd){ .fd = fd, .events = POLLIN };
	if (poll(fds, count + 2, LOOK_MS) > 0) {
		bool knocks = fds[count].revents;

		listen_to(c, fds);
		while (knocks && good)
			good = accept_one(c, &knocks);
	}
	mem_free(c->mem, fds, bytes);
	look_around(c);
	if (is_due(c))
		flush_and_remove(c);
	return good;
}

void collector_drain(struct collector *c)
{
	for (bool more = true; more;) {
		while (more && accept_one(c, &more))
			;

		for (size_t i = 0; i < c->count; i++)
			if (c->processes[i]->fd >= 0)
				hear(c, c->processes[i]);
		if (!flush(c))
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

bool collector_stop(struct collector *c, int64_t patience_ns)
{
	int64_t end = now_ns() + patience_ns;
	bool all;

	for (size_t i = 0; i < c->count; i++)
		if (c->processes[i]->view.process)
			atomic_store(&c->processes[i]->view.process->state, RING_STOP);
	do {
		all = true;
		for (size_t i = 0; i < c->count; i++) {
			const struct collected *p = c->processes[i];

			all &= p->fd < 0 || !p->view.process ||
			       atomic_load(&p->view.process->state) == RING_STOPPED;
		}
	} while (!all && now_ns() < end && collector_turn(c, -1));
	return all;
}

void collector_close(struct collector *c)
{
	collector_drain(c);
	for (size_t i = 0; i < c->count; i++) {
		if (c->processes[i]->view.process)
			say_end(c, c->processes[i]);
		release_process(c, c->processes[i]);
	}
	c->count = 0;
	mem_free(c->mem, c->processes, c->cap * sizeof(*c->processes));
	c->processes = NULL;
	remove_socket(c);
}
