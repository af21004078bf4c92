/* daemon_guest.c: connections to the daemon, until they have said what they are: recorded processes go to their job, clients
 * get their answer, others are sent away. Nobody is waited for. */
#include "live/daemon_int.h"

#include "base/clock.h"
#include "live/packet.h"

#include <errno.h>
#include <unistd.h>

#define PATIENCE_NS ((int64_t)30000000000)

bool daemon_may_see(const struct ucred *peer, uint32_t uid)
{
	return peer->uid == 0 || (uint32_t)peer->uid == uid;
}

/* Own processes, those of root, and for root everybody's. */
static bool is_welcome(const struct ucred *peer)
{
	return geteuid() == 0 || peer->uid == geteuid() || peer->uid == 0;
}

void daemon_accept(struct daemon *d)
{
	for (;;) {
		int fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct ucred peer;
		socklen_t len = sizeof(peer);
		struct guest *guest;

		if (fd < 0)
			return;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 ||
		    !is_welcome(&peer) || d->guest_count == DAEMON_GUESTS) {
			close(fd);
			continue;
		}
		guest = &d->guests[d->guest_count++];
		*guest = (struct guest){ .fd = fd, .peer = peer, .since_ns = steady_ns() };
		buf_init(&guest->out, d->mem);
	}
}

/* The connection is given away, or over. */
static void let_go(struct guest *guest)
{
	if (guest->fd >= 0)
		close(guest->fd);
	buf_release(&guest->out);
	guest->fd = -1;
}

static void refuse(struct daemon *d, const struct guest *guest, uint32_t version)
{
	struct daemon_job *job = daemon_job_of(d, &guest->peer, (uint32_t)guest->peer.pid);

	if (job && job->open)
		collector_refuse(&job->collector, (uint32_t)guest->peer.pid, version);
	else
		daemon_tell(d,
			    "process %d: its recorder speaks version %u, this daemon %u; nothing "
			    "of it is recorded",
			    (int)guest->peer.pid, version, RING_VERSION);
}

static void hear_process(struct daemon *d, struct guest *guest, const struct ring_message *message,
			 int memory)
{
	int fd = guest->fd;

	if (message->kind == RING_REFUSAL) {
		refuse(d, guest, message->version);
	} else if (message->kind == RING_HELLO && memory >= 0) {
		guest->fd = -1;
		daemon_welcome(d, fd, &guest->peer, memory);
	}
	let_go(guest);
}

static bool is_request(const struct jobs_request *request, size_t len)
{
	return len == sizeof(*request) &&
	       memcmp(request->magic, JOBS_ASK_MAGIC, sizeof(request->magic)) == 0;
}

static void hear(struct daemon *d, struct guest *guest)
{
	union {
		struct ring_message message;
		struct jobs_request request;
	} packet = { 0 };
	bool closed;
	int fd;
	size_t len = packet_receive(guest->fd, &packet, sizeof(packet), &fd, &closed);

	if (closed) {
		let_go(guest);
	} else if (len == sizeof(packet.message) && memcmp(packet.message.magic, RING_HELLO_MAGIC,
							   sizeof(packet.message.magic)) == 0) {
		hear_process(d, guest, &packet.message, fd);
	} else if (is_request(&packet.request, len) && guest->sent == guest->out.len) {
		packet.request.name[JOBS_NAME - 1] = packet.request.path[JOBS_PATH - 1] = '\0';
		buf_clear(&guest->out);
		guest->sent = 0;
		guest->since_ns = steady_ns();
		daemon_answer(d, guest, &packet.request);
	} else if (len) {
		let_go(guest); /* nobody talks like that, or without waiting for the answer */
	}
	if (fd >= 0)
		close(fd);
}

static void send_answer(struct guest *guest)
{
	while (guest->fd >= 0 && guest->sent < guest->out.len) {
		struct jobs_head head;
		size_t len;
		ssize_t n;

		memcpy(&head, guest->out.ptr + guest->sent, sizeof(head));
		len = sizeof(head) + head.size;
		n = send(guest->fd, guest->out.ptr + guest->sent, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0)
			let_go(guest);
		else
			guest->sent += len;
	}
}

void daemon_hear_guests(struct daemon *d, const struct pollfd *fds, size_t count)
{
	int64_t now = steady_ns();
	size_t kept = 0;

	for (size_t i = 0; i < d->guest_count; i++) {
		struct guest *guest = &d->guests[i];

		if (i < count && fds[i].revents & ~POLLOUT)
			hear(d, guest);
		send_answer(guest);
		if (guest->fd >= 0 && (guest->out.failed || now - guest->since_ns > PATIENCE_NS))
			let_go(guest);
		if (guest->fd >= 0)
			d->guests[kept++] = *guest;
	}
	d->guest_count = kept;
}
