/* kineto.c: see kineto.h. */
#include "live/kineto.h"

#include "base/str.h"

#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND_NS ((int64_t)1000000000)
#define FORGET_NS (60 * SECOND_NS)
#define HEADER_BYTES 40
#define TYPE_BYTES 32
#define MAX_PIDS 64
#define KIND_ACTIVITIES 2 /* traces; 1 are counters, which we never ask for */

/* Laid out as on the wire. */
struct message {
	uint64_t size;
	char type[TYPE_BYTES];
	unsigned char body[4096];
};
_Static_assert(offsetof(struct message, body) == HEADER_BYTES, "header");

struct sender {
	struct sockaddr_un address;
	socklen_t len;
	struct ucred who;
};

/* ---- the socket ---- */

ow_status kineto_open(struct kineto *k, struct mem *mem, const char *name, struct error *err)
{
	struct sockaddr_un where = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	int code;

	*k = (struct kineto){ .mem = mem, .fd = -1 };
	if (len + 2 > sizeof(where.sun_path))
		return error_set(err, OW_E_USAGE, "the name of a socket is too long");
	memcpy(where.sun_path + 1, name, len); /* clients also send the NUL behind it */
	k->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (k->fd < 0)
		return error_errno(err, errno, "socket");
	if (setsockopt(k->fd, SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int)) == 0 &&
	    bind(k->fd, (struct sockaddr *)&where,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 2)) == 0)
		return OW_OK;
	code = errno;
	close(k->fd);
	k->fd = -1;
	if (code == EADDRINUSE)
		return error_set(err, OW_E_LIMIT,
				 "another program has the socket '%s': dynolog, or another opwatch",
				 name);
	return error_errno(err, code, "socket '%s'", name);
}

void kineto_close(struct kineto *k)
{
	if (k->fd >= 0)
		close(k->fd);
	mem_free(k->mem, k->items, k->cap * sizeof(*k->items));
	*k = (struct kineto){ .mem = k->mem, .fd = -1 };
}

/* Length of the body, or -1 when nothing is there any more; -2: to be passed over. */
static ssize_t receive(struct kineto *k, struct message *m, struct sender *from)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec part = { m, sizeof(*m) };
	struct msghdr head = { .msg_name = &from->address,
			       .msg_namelen = sizeof(from->address),
			       .msg_iov = &part,
			       .msg_iovlen = 1,
			       .msg_control = &control,
			       .msg_controllen = sizeof(control) };
	ssize_t got = recvmsg(k->fd, &head, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = got < 0 ? NULL : CMSG_FIRSTHDR(&head);

	if (got < 0)
		return errno == EINTR ? -2 : -1;
	from->len = head.msg_namelen;
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS) {
		k->refused++;
		return -2;
	}
	memcpy(&from->who, CMSG_DATA(c), sizeof(from->who));
	if (geteuid() != 0 && from->who.uid != geteuid()) {
		k->refused++;
		return -2;
	}
	if (got < HEADER_BYTES || head.msg_flags & MSG_TRUNC ||
	    m->size > (uint64_t)(got - HEADER_BYTES) || !memchr(m->type, 0, TYPE_BYTES)) {
		k->damaged++;
		return -2;
	}
	return got - HEADER_BYTES;
}

/* What cannot be taken now will be asked for again. */
static void answer(struct kineto *k, const struct sender *to, const char *type, const void *body,
		   size_t len)
{
	struct message m = { .size = len };

	OW_ASSERT(len <= sizeof(m.body));
	snprintf(m.type, sizeof(m.type), "%s", type);
	memcpy(m.body, body, len);
	while (sendto(k->fd, &m, HEADER_BYTES + len, MSG_DONTWAIT | MSG_NOSIGNAL,
		      (const struct sockaddr *)&to->address, to->len) < 0 &&
	       errno == EINTR)
		;
}

/* ---- processes ---- */

static struct kineto_process *find(struct kineto *k, pid_t pid)
{
	for (size_t i = 0; i < k->count; i++)
		if (k->items[i].pid == pid)
			return &k->items[i];
	return NULL;
}

static struct kineto_process *meet(struct kineto *k, pid_t pid, int64_t now_ns)
{
	struct kineto_process *process = find(k, pid);
	void *items = k->items;

	if (!process) {
		if (!mem_grow(k->mem, &items, &k->cap, k->count + 1, sizeof(*process))) {
			k->no_memory = true;
			return NULL;
		}
		k->items = items;
		process = &k->items[k->count++];
		*process = (struct kineto_process){ .pid = pid };
	}
	process->seen_ns = now_ns;
	return process;
}

static void forget_silent(struct kineto *k, int64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < k->count; i++)
		if (k->items[i].state == KINETO_TOLD || now_ns - k->items[i].seen_ns < FORGET_NS)
			k->items[kept++] = k->items[i];
	k->count = kept;
}

/* ---- what they say ---- */

static int32_t int_at(const struct message *m, size_t offset)
{
	int32_t value;

	memcpy(&value, m->body + offset, sizeof(value));
	return value;
}

/* The kernel's number, which is right in containers, too. */
static pid_t pid_of(const struct sender *from, int32_t said)
{
	return from->who.pid > 0 ? from->who.pid : said;
}

static void on_context(struct kineto *k, const struct message *m, size_t len,
		       const struct sender *from, int64_t now_ns)
{
	struct kineto_process *process;
	int32_t number = 0;

	if (len < 16) {
		k->damaged++;
		return;
	}
	process = meet(k, pid_of(from, int_at(m, 4)), now_ns);
	if (!process)
		return;
	process->gpu = int_at(m, 0);
	memcpy(&process->job, m->body + 8, sizeof(process->job));
	for (size_t i = 0; i < k->count; i++)
		number += k->items[i].job == process->job;
	answer(k, from, "ctxt", &number, sizeof(number));
}

static void on_request(struct kineto *k, const struct message *m, size_t len,
		       const struct sender *from, int64_t now_ns)
{
	struct kineto_process *process;
	char config[1024];

	if (len < 16 || int_at(m, 4) < 0 || int_at(m, 4) > MAX_PIDS ||
	    len - 16 < (size_t)int_at(m, 4) * 4) {
		k->damaged++;
		return;
	}
	process = meet(k, pid_of(from, int_at(m, 4) ? int_at(m, 16) : 0), now_ns);
	if (!process)
		return;
	if (process->state != KINETO_WANTED || !(int_at(m, 0) & KIND_ACTIVITIES)) {
		answer(k, from, "req", "", 0);
		return;
	}
	snprintf(config, sizeof(config),
		 "PROFILE_START_TIME=0\nACTIVITIES_LOG_FILE=%s\n"
		 "ACTIVITIES_DURATION_MSECS=%" PRId64 "\n",
		 process->path, process->for_ms);
	process->state = KINETO_TOLD;
	process->told_ns = now_ns;
	answer(k, from, "req", config, strlen(config));
}

bool kineto_turn(struct kineto *k, int64_t now_ns)
{
	struct sender from = { 0 };
	struct message m = { 0 };
	ssize_t len;

	while ((len = receive(k, &m, &from)) != -1 && !k->no_memory) {
		if (len < 0)
			continue;
		if (strcmp(m.type, "ctxt") == 0)
			on_context(k, &m, (size_t)len, &from, now_ns);
		else if (strcmp(m.type, "req") == 0)
			on_request(k, &m, (size_t)len, &from, now_ns);
		else
			k->damaged++;
	}
	forget_silent(k, now_ns);
	return !k->no_memory;
}
