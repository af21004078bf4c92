/*
 * collector_socket.c: the connections of a collector: its socket, who may connect, and the messages that pass
 * regions and rings. Also removes socket folders that killed collectors left behind. The records themselves are
 * read by collector.c.
 */
#include "live/record/collector_int.h"

#include "base/base.h"
#include "base/clock.h"
#include "base/vec.h"
#include "live/record/collector.h"

#include <dirent.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PREFIX "opwatch-"
#define RANDOM_CHARACTERS 6
#define OLD_SECONDS 60 /* a collector that is starting creates its folder before it listens */
#define KNOWN_MOST 65536u

/*
 * A killed collector cannot remove its socket. The next collector of the same user removes folders in which no
 * process listens any more, unless they are new.
 */

static bool is_old(const struct stat *st)
{
	return time(NULL) - st->st_mtime >= OLD_SECONDS;
}

/* Returns whether no process listens at the socket any more. */
static bool is_abandoned(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, refused;

	if (strlen(path) >= sizeof(address.sun_path))
		return false;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	refused = connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 &&
		  errno == ECONNREFUSED;
	close(fd);
	return refused;
}

static void remove_if_abandoned(const char *base, const char *name)
{
	char folder[128], path[160];
	struct stat st;

	if (snprintf(folder, sizeof(folder), "%s/%s", base, name) >= (int)sizeof(folder) ||
	    lstat(folder, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 0066) || !is_old(&st))
		return;
	snprintf(path, sizeof(path), "%s/s", folder);
	if (lstat(path, &st) == 0) {
		if (!S_ISSOCK(st.st_mode) || !is_old(&st) || !is_abandoned(path))
			return;
		unlink(path);
	}
	rmdir(folder); /* succeeds only if the folder is empty */
}

/* Removes abandoned sockets below /tmp or another base folder. */
static void stale_sockets_remove(const char *base)
{
	DIR *dir = opendir(base);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL)
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0 &&
		    strlen(entry->d_name) == strlen(PREFIX) + RANDOM_CHARACTERS)
			remove_if_abandoned(base, entry->d_name);
	if (dir)
		closedir(dir);
}

size_t packet_receive(int socket, void *to, size_t size, int *fd, bool *closed)
{
	struct iovec part = { to, size };
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
		return 0;
	c = CMSG_FIRSTHDR(&packet);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	return (size_t)n;
}

static void refuse_process(struct collector *c, uint32_t pid, uint32_t number, const char *why)
{
	struct live_process row = { .number = number, .pid = pid, .flags = LIVE_REFUSED };

	c->totals.refused++;
	recording_add_process(c->recording, &row);
	collector_report(c, "process %u is not recorded: %s", pid, why);
}

static void take_refusal(struct collector *c, uint32_t pid, uint32_t number,
			 const struct ring_message *message)
{
	char why[128];

	snprintf(why, sizeof(why),
		 "its recorder has protocol version %u, this program has %u; use the recorder of "
		 "this installation",
		 message->version, RING_VERSION);
	refuse_process(c, pid, number,
		       message->number == RING_NO_MEMORY ? RING_NO_MEMORY_TEXT : why);
}

void collector_refuse(struct collector *c, uint32_t pid, const struct ring_message *message)
{
	take_refusal(c, pid, ++c->last_number, message);
}

/* Numbers a process. One that lost its connection and connects again keeps its number, and the record of its end is
 * written first. True when the process is new. */
static bool number_process(struct collector *c, struct collected *p)
{
	uint64_t clock = p->view.process->clock_monotonic_ns;

	for (size_t i = c->known_count; i-- > 0;) {
		if (c->known[i].pid != p->pid || c->known[i].monotonic_ns != clock)
			continue;
		(void)collector_flush(c); /* a failure is reported, and writing is tried again */
		p->number = c->known[i].number;
		p->known = i + 1;
		return false;
	}
	if (c->known_count < KNOWN_MOST &&
	    vec_reserve(c->mem, c->known, c->known_cap, c->known_count + 1)) {
		c->known[c->known_count++] = (struct collector_known){ .pid = p->pid,
								       .number = p->number,
								       .monotonic_ns = clock };
		p->known = c->known_count;
	}
	return true;
}

static void take_hello(struct collector *c, struct collected *p, int fd)
{
	struct ow_error err = { 0 };
	ow_status status;

	if (p->view.process || fd < 0)
		return;
	status = process_view_open(&p->view, fd, &err);
	if (status != OW_OK) {
		if (p->view.process)
			atomic_store(&p->view.process->state, RING_REFUSED);
		process_view_close(&p->view);
		refuse_process(c, p->pid, p->number, err.text);
		return;
	}
	p->texts = mem_zalloc(c->mem, TEXT_WORDS * sizeof(*p->texts));
	if (!p->texts) {
		process_view_close(&p->view);
		return;
	}
	c->totals.processes += number_process(c, p);
	collector_introduce(c, p);
	collector_check_process(c, p, steady_ns());
}

/* Returns whether a new ring is within the quota. A thread whose ring is refused counts as lost;
 * the first one of a process is reported. */
static bool is_within_quota(struct collector *c, struct collected *p, size_t bytes)
{
	const struct collector_quota *q = c->quota;

	if (!q || !q->most_rings ||
	    (q->rings < q->most_rings && bytes <= q->most_bytes - MIN(q->bytes, q->most_bytes)))
		return true;
	if (!p->over_quota)
		collector_report(
			c,
			"process %u: a thread is not recorded: the processes of user %u "
			"have %zu rings of %zu MB already, the most that one user may have",
			p->pid, q->uid, q->rings, q->bytes >> 20);
	p->over_quota = true;
	c->totals.rings_lost++;
	return false;
}

static void take_new_ring(struct collector *c, struct collected *p, int fd)
{
	struct ring_view view;

	if (!p->view.process || fd < 0 || ring_view_open(&view, fd, NULL) != OW_OK)
		return;
	if (!is_within_quota(c, p, view.bytes)) {
		ring_view_close(&view);
		return;
	}
	for (size_t i = 0; i < p->ring_count; i++)
		if (p->rings[i].view.number == view.number) {
			ring_view_close(&view);
			return;
		}
	if (!vec_reserve(c->mem, p->rings, p->ring_cap, p->ring_count + 1)) {
		ring_view_close(&view);
		return;
	}
	if (c->quota) {
		c->quota->rings++;
		c->quota->bytes += view.bytes;
	}
	/* a ring that another collector read before does not name its thread again */
	p->rings[p->ring_count] =
		(struct ring_seen){ .view = view, .tid = atomic_load(&view.ring->thread) };
	collector_add_place(c, p, &p->rings[p->ring_count++]);
}

/* Receives one packet with its descriptor; false if there is none. */
static bool receive_message(int socket, struct ring_message *message, int *fd, bool *closed)
{
	size_t len = packet_receive(socket, message, sizeof(*message), fd, closed);

	if (!len)
		return false;
	if (len == sizeof(*message) &&
	    memcmp(message->magic, RING_HELLO_MAGIC, sizeof(message->magic)) == 0)
		return true;
	*closed = true; /* no recorder sends this */
	if (*fd >= 0)
		close(*fd);
	return false;
}

void collector_receive_one(struct collector *c, struct collected *p)
{
	struct ring_message message = { 0 };
	bool closed = false;
	int fd;

	while (receive_message(p->fd, &message, &fd, &closed)) {
		if (message.kind == RING_REFUSAL) {
			take_refusal(c, p->pid, p->number, &message);
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

/* Returns whether the process belongs to our user; root accepts all users. */
static bool is_welcome(const struct ucred *peer)
{
	return geteuid() == 0 || peer->uid == geteuid();
}

/* Adds a process; without memory the connection is closed. */
static struct collected *add_process(struct collector *c, int fd, uint32_t pid, uint32_t number)
{
	struct collected *p = mem_zalloc(c->mem, sizeof(*p));

	if (!p || !vec_reserve(c->mem, c->processes, c->cap, c->count + 1)) {
		mem_free(c->mem, p, sizeof(*p));
		close(fd);
		return NULL;
	}
	*p = (struct collected){ .number = number, .fd = fd, .pid = pid };
	c->processes[c->count++] = p;
	if (c->quota)
		c->quota->processes++;
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

static ow_status make_socket(struct collector *c, struct ow_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *base = getenv("XDG_RUNTIME_DIR");

	for (int i = 0; i < 2; i++) {
		const char *where = i == 0 && base && strlen(base) < 64 ? base : "/tmp";

		stale_sockets_remove(where);
		snprintf(c->folder, sizeof(c->folder), "%s/opwatch-XXXXXX", where);
		if (mkdtemp(c->folder))
			break;
		c->folder[0] = '\0';
	}
	if (!c->folder[0])
		return error_errno(err, errno, "cannot make a directory for the socket in /tmp");
	snprintf(c->socket_path, sizeof(c->socket_path), "%s/s", c->folder);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", c->socket_path);
	c->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->listener < 0 ||
	    bind(c->listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    chmod(c->socket_path, 0600) != 0 || listen(c->listener, 1024) != 0)
		return error_errno(err, errno, "%s", c->socket_path);
	return OW_OK;
}

void collector_allow_user(struct collector *c, uid_t user)
{
	if (geteuid() != 0 || user == 0)
		return;
	/* the user may enter the folder, but not list it, and owns the socket */
	if (chmod(c->folder, 0711) != 0 || chown(c->socket_path, user, (gid_t)-1) != 0)
		collector_report(c, "%s: cannot give access to user %u", c->socket_path,
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
			 struct ow_error *err)
{
	ow_status status;

	collector_init(c, mem, recording);
	status = make_socket(c, err);
	if (status != OW_OK)
		collector_remove_socket(c);
	return status;
}
