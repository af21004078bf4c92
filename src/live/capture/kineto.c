/*
 * kineto.c: the server side of Kineto's on-demand profiling: answers the datagrams of PyTorch jobs, says
 * which trace to write, and checks the trace files. The protocol is in kineto.h. It never blocks and does not read
 * the traces.
 */
#include "live/capture/kineto.h"

#include "base/clock.h"
#include "base/input.h"
#include "live/proc/side_thread.h"
#include "base/str.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define STILL_NS ((int64_t)500000000)
#define SECOND_NS ((int64_t)1000000000)
#define FORGET_NS (60 * SECOND_NS)
#define PATIENCE_NS (SECOND_NS / 10)
#define LOST_NS (5 * SECOND_NS)
#define HEADER_BYTES 40
#define TYPE_BYTES 32
#define MAX_PIDS 64
/* request kind for traces; kind 1 requests counters, which opwatch does not use */
#define KIND_ACTIVITIES 2

void kineto_want(struct kineto_process *process, const char *folder, int64_t for_ns)
{
	process->state = KINETO_WANTED;
	process->found[0] = 0;
	process->size = 0;
	process->for_ms = MAX(for_ns / 1000000, 1);
	process->grown_ns = 0;
	snprintf(process->path, sizeof(process->path), "%s/kineto_%d.json", folder,
		 (int)process->pid);
}

/* Finds the file of a trace. Jobs insert their pid and sometimes a number into the name, so any
 * file that begins with it counts. */
static bool find_file(struct kineto_process *process)
{
	struct str path = str_from(process->path);
	size_t slash = str_rfind_char(path, '/');
	struct str stem = str_skip(str_first(path, path.len - strlen(".json")), slash + 1);
	const struct dirent *entry;
	char folder[512];
	DIR *dir;

	snprintf(folder, sizeof(folder), "%.*s", (int)slash, process->path);
	dir = opendir(folder);
	while (dir && !process->found[0] && (entry = readdir(dir))) {
		struct str name = str_from(entry->d_name);

		if (str_starts(name, stem) &&
		    (str_ends(name, STR(".json")) || str_ends(name, STR(".json.gz"))))
			snprintf(process->found, sizeof(process->found), "%s/%.80s", folder,
				 entry->d_name);
	}
	if (dir)
		closedir(dir);
	return process->found[0];
}

/* Returns whether a trace is complete: a JSON object, whose last character except blanks ends
 * it. */
static bool is_whole(const char *path, uint64_t size)
{
	int fd = open_regular_file(path);
	char tail[16] = { 0 };
	size_t len = (size_t)MIN(size, (uint64_t)sizeof(tail));
	bool whole = false;

	if (fd < 0)
		return false;
	if (len && pread(fd, tail, len, (off_t)(size - len)) == (ssize_t)len) {
		struct str end = str_trim(str_make(tail, len));

		whole = end.len && end.ptr[end.len - 1] == '}';
	}
	close(fd);
	return whole;
}

static void check_file(struct kineto_process *process, int64_t now_ns)
{
	struct stat st;
	bool gone = kill(process->pid, 0) != 0 && errno == ESRCH;

	if ((process->found[0] || find_file(process)) && stat(process->found, &st) == 0) {
		if ((uint64_t)st.st_size != process->size) {
			process->size = (uint64_t)st.st_size;
			process->grown_ns = now_ns;
		} else if (process->size && now_ns - process->grown_ns >= STILL_NS &&
			   (is_whole(process->found, process->size) || gone ||
			    str_ends(str_from(process->found), STR(".gz")))) {
			process->state = KINETO_WRITTEN;
		}
		return;
	}
	if (gone)
		process->state = KINETO_GONE;
}

/* Copies of the processes whose files the side thread examines. */
struct kineto_look {
	struct side_thread *thread;
	struct kineto_process *items;
	size_t count, cap;
	atomic_size_t at; /* index of the process that is examined */
	int64_t begin_ns;
};

/* Examines the files; runs on the side thread. */
static void look_at_files(void *arg)
{
	struct kineto_look *look = arg;

	for (size_t i = 0; i < look->count; i++) {
		atomic_store(&look->at, i);
		check_file(&look->items[i], look->begin_ns);
	}
}

/* Releases a look. If the side thread does not return, its memory stays allocated. */
static void end_look(struct kineto *k)
{
	struct kineto_look *look = k->look;

	k->look = NULL;
	if (!look || !side_thread_close(look->thread))
		return;
	mem_free(side_mem(), look->items, look->cap * sizeof(*look->items));
	mem_free(side_mem(), look, sizeof(*look));
}

static bool start_look(struct kineto *k)
{
	struct kineto_look *look;

	if (k->look)
		return true;
	look = mem_zalloc(side_mem(), sizeof(*look));
	if (!look)
		return false;
	look->thread = side_thread_start();
	if (!look->thread)
		mem_free(side_mem(), look, sizeof(*look));
	else
		k->look = look;
	return k->look;
}

/* Copies results of the side thread to processes whose request has not changed in the meantime. */
static void take_results(struct kineto *k)
{
	const struct kineto_look *look = k->look;

	for (size_t i = 0; i < look->count; i++)
		for (size_t n = 0; n < k->count; n++)
			if (k->items[n].pid == look->items[i].pid &&
			    k->items[n].state == KINETO_REQUESTED &&
			    strcmp(k->items[n].path, look->items[i].path) == 0)
				k->items[n] = look->items[i];
}

/* Returns whether the side thread is free. A hanging thread is replaced, and its request counts
 * as lost. */
static bool is_ready(struct kineto *k, int64_t now_ns)
{
	size_t at;

	if (!start_look(k))
		return false;
	if (!side_thread_is_busy(k->look->thread))
		return true;
	if (now_ns - k->look->begin_ns < LOST_NS)
		return false;
	at = atomic_load(&k->look->at);
	for (size_t n = 0; n < k->count; n++)
		if (k->items[n].pid == k->look->items[at].pid)
			k->items[n].state = KINETO_GONE;
	end_look(k);
	return start_look(k);
}

void kineto_check_files(struct kineto *k, int64_t now_ns)
{
	struct kineto_look *look;

	for (size_t i = 0; i < k->count; i++)
		if (k->items[i].state == KINETO_WANTED && kill(k->items[i].pid, 0) != 0 &&
		    errno == ESRCH)
			k->items[i].state = KINETO_GONE;
	if (!is_ready(k, now_ns))
		return;
	look = k->look;
	take_results(k); /* takes results of a look that took longer than one turn */
	look->count = 0;
	for (size_t i = 0; i < k->count; i++)
		if (k->items[i].state == KINETO_REQUESTED &&
		    !vec_push(side_mem(), look->items, look->count, look->cap, k->items[i]))
			return;
	look->begin_ns = now_ns;
	if (!look->count || !side_thread_run(look->thread, look_at_files, look, PATIENCE_NS))
		return;
	take_results(k);
	look->count = 0;
}

/* Message in the layout of the wire. */
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

ow_status kineto_open(struct kineto *k, struct mem *mem, const char *name, struct ow_error *err)
{
	struct sockaddr_un where = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	int code;

	*k = (struct kineto){ .mem = mem, .fd = -1 };
	if (len + 2 > sizeof(where.sun_path))
		return error_set(err, OW_E_USAGE, "the socket name is too long");
	memcpy(where.sun_path + 1, name, len); /* clients also send the NUL behind the name */
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
		return error_set(
			err, OW_E_LIMIT,
			"the socket '%s' is in use by another program: dynolog, or another opwatch",
			name);
	return error_errno(err, code, "socket '%s'", name);
}

void kineto_close(struct kineto *k)
{
	if (k->fd >= 0)
		close(k->fd);
	end_look(k);
	mem_free(k->mem, k->items, k->cap * sizeof(*k->items));
	*k = (struct kineto){ .mem = k->mem, .fd = -1 };
}

/* Receives a datagram. Returns the length of its body, -1 if none is left, -2 if it should be
 * ignored. */
static ssize_t receive_datagram(struct kineto *k, struct message *m, struct sender *from)
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

/* Sends an answer. A job that cannot receive it now will ask again. */
static void send_answer(struct kineto *k, const struct sender *to, const char *type,
			const void *body, size_t len)
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

static struct kineto_process *find_process(struct kineto *k, pid_t pid)
{
	for (size_t i = 0; i < k->count; i++)
		if (k->items[i].pid == pid)
			return &k->items[i];
	return NULL;
}

static struct kineto_process *find_or_add_process(struct kineto *k, pid_t pid, int64_t now_ns)
{
	struct kineto_process *process = find_process(k, pid);

	if (!process) {
		if (!vec_reserve(k->mem, k->items, k->cap, k->count + 1)) {
			k->no_memory = true;
			return NULL;
		}
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
		if (k->items[i].state == KINETO_REQUESTED ||
		    now_ns - k->items[i].seen_ns < FORGET_NS)
			k->items[kept++] = k->items[i];
	k->count = kept;
}

static int32_t int_at(const struct message *m, size_t offset)
{
	int32_t value;

	memcpy(&value, m->body + offset, sizeof(value));
	return value;
}

/* Returns the sender's pid from the kernel, which is right in containers, too. */
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
	process = find_or_add_process(k, pid_of(from, int_at(m, 4)), now_ns);
	if (!process)
		return;
	process->gpu = int_at(m, 0);
	memcpy(&process->job, m->body + 8, sizeof(process->job));
	for (size_t i = 0; i < k->count; i++)
		number += k->items[i].job == process->job;
	send_answer(k, from, "ctxt", &number, sizeof(number));
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
	process = find_or_add_process(k, pid_of(from, int_at(m, 4) ? int_at(m, 16) : 0), now_ns);
	if (!process)
		return;
	if (process->state != KINETO_WANTED || !(int_at(m, 0) & KIND_ACTIVITIES)) {
		send_answer(k, from, "req", "", 0);
		return;
	}
	snprintf(config, sizeof(config),
		 "PROFILE_START_TIME=0\nACTIVITIES_LOG_FILE=%s\n"
		 "ACTIVITIES_DURATION_MSECS=%" PRId64 "\n",
		 process->path, process->for_ms);
	process->state = KINETO_REQUESTED;
	process->requested_ns = now_ns;
	send_answer(k, from, "req", config, strlen(config));
}

bool kineto_turn(struct kineto *k, int64_t now_ns)
{
	struct sender from = { 0 };
	struct message m = { 0 };
	ssize_t len;

	while ((len = receive_datagram(k, &m, &from)) != -1 && !k->no_memory) {
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
