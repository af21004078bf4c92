/*
 * collector_hear.c: the connections of a collector: its socket, who may come, and what they hand over: regions and rings.
 */
#include "live/collector_int.h"
#include "live/packet.h"

#include "base/clock.h"
#include "live/sweep.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define KNOWN_MOST 65536u

/* ---- messages ---- */

static void refuse(struct collector *c, uint32_t pid, uint32_t number, const char *why)
{
	struct live_process row = { .number = number, .pid = pid, .flags = LIVE_REFUSED };

	c->totals.refused++;
	recording_add_process(c->recording, &row);
	collector_tell(c,
		       "process %u: %s; nothing of it is recorded: use the recorder of the same "
		       "installation",
		       pid, why);
}

static void refuse_version(struct collector *c, uint32_t pid, uint32_t number, uint32_t version)
{
	char why[96];

	snprintf(why, sizeof(why), "its recorder speaks version %u, this program %u", version,
		 RING_VERSION);
	refuse(c, pid, number, why);
}

void collector_refuse(struct collector *c, uint32_t pid, uint32_t version)
{
	refuse_version(c, pid, ++c->last_number, version);
}

/* Who has lost its connection comes again: it keeps its number, and what was said of its end is written before. True when
 * it is a new one. */
static bool meet(struct collector *c, struct collected *p)
{
	uint64_t clock = p->view.process->clock_monotonic_ns;
	void *list = c->known;

	for (size_t i = c->known_count; i-- > 0;) {
		if (c->known[i].pid != p->pid || c->known[i].monotonic_ns != clock)
			continue;
		(void)collector_flush(c); /* what fails is told, and tried again */
		p->number = c->known[i].number;
		p->known = i + 1;
		return false;
	}
	if (c->known_count < KNOWN_MOST &&
	    mem_grow(c->mem, &list, &c->known_cap, c->known_count + 1, sizeof(*c->known))) {
		c->known = list;
		c->known[c->known_count++] = (struct collector_known){ .pid = p->pid,
								       .number = p->number,
								       .monotonic_ns = clock };
		p->known = c->known_count;
	}
	return true;
}

static void take_hello(struct collector *c, struct collected *p, int fd)
{
	struct error err = { 0 };
	ow_status status;

	if (p->view.process || fd < 0)
		return;
	status = process_view_open(&p->view, fd, &err);
	if (status != OW_OK) {
		if (p->view.process)
			atomic_store(&p->view.process->state, RING_REFUSED);
		process_view_close(&p->view);
		refuse(c, p->pid, p->number, err.text);
		return;
	}
	p->texts = mem_zalloc(c->mem, TEXT_WORDS * sizeof(*p->texts));
	if (!p->texts) {
		process_view_close(&p->view);
		return;
	}
	c->totals.processes += meet(c, p);
	collector_introduce(c, p);
	collector_look_at(c, p, steady_ns());
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
	/* One that another collector has read before does not say again whose it is. */
	p->rings[p->ring_count] =
		(struct ring_seen){ .view = view, .tid = atomic_load(&view.ring->thread) };
	collector_add_place(c, p, &p->rings[p->ring_count++]);
}

/* One packet with its descriptor; false when there is none. */
static bool receive(int socket, struct ring_message *message, int *fd, bool *closed)
{
	size_t len = packet_receive(socket, message, sizeof(*message), fd, closed);

	if (!len)
		return false;
	if (len == sizeof(*message) &&
	    memcmp(message->magic, RING_HELLO_MAGIC, sizeof(message->magic)) == 0)
		return true;
	*closed = true; /* no recorder talks like that */
	if (*fd >= 0)
		close(*fd);
	return false;
}

void collector_hear_one(struct collector *c, struct collected *p)
{
	struct ring_message message = { 0 };
	bool closed = false;
	int fd;

	while (receive(p->fd, &message, &fd, &closed)) {
		if (message.kind == RING_REFUSAL) {
			refuse_version(c, p->pid, p->number, message.version);
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

/* The connection is closed when there is no memory. */
static struct collected *add_process(struct collector *c, int fd, uint32_t pid, uint32_t number)
{
	void *processes = c->processes;
	struct collected *p = mem_zalloc(c->mem, sizeof(*p));

	if (!p || !mem_grow(c->mem, &processes, &c->cap, c->count + 1, sizeof(*c->processes))) {
		mem_free(c->mem, p, sizeof(*p));
		close(fd);
		return NULL;
	}
	c->processes = processes;
	*p = (struct collected){ .number = number, .fd = fd, .pid = pid };
	c->processes[c->count++] = p;
	return p;
}

bool collector_adopt(struct collector *c, int fd, uint32_t pid, uint32_t number, int memory)
{
	struct collected *p = add_process(c, fd, pid, number ? number : ++c->last_number);

	if (p)
		take_hello(c, p, memory);
	return p && p->view.process;
}

bool collector_accept(struct collector *c, bool *more)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	*more = fd >= 0;
	if (fd < 0)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 || !is_welcome(&peer)) {
		close(fd);
		return true;
	}
	return add_process(c, fd, (uint32_t)peer.pid, ++c->last_number) != NULL;
}

/* ---- the socket ---- */

static ow_status make_socket(struct collector *c, struct error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *base = getenv("XDG_RUNTIME_DIR");

	for (int i = 0; i < 2; i++) {
		const char *where = i == 0 && base && strlen(base) < 64 ? base : "/tmp";

		sweep_sockets(where);
		snprintf(c->folder, sizeof(c->folder), "%s/opwatch-XXXXXX", where);
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

void collector_let_in(struct collector *c, uid_t user)
{
	if (geteuid() != 0 || user == 0)
		return;
	/* Into the folder, which cannot be listed; the socket is that user's. */
	if (chmod(c->folder, 0711) != 0 || chown(c->socket_path, user, (gid_t)-1) != 0)
		collector_tell(c, "%s: cannot be opened to user %u", c->socket_path,
			       (unsigned)user);
}

void collector_remove_socket(struct collector *c)
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

	collector_init(c, mem, recording);
	status = make_socket(c, err);
	if (status != OW_OK)
		collector_remove_socket(c);
	return status;
}
