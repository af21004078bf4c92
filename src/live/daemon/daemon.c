/*
 * daemon.c: the daemon's places (socket, folder, locks), its main loop, and connections that have not said yet
 * what they are. A recorded process goes to its job (daemon_jobs.c), a client gets an answer (daemon_answer.c),
 * anything else is disconnected. One thread, which never blocks; metrics are asked for by other threads (daemon_metrics.c).
 */
#include "live/daemon/daemon_int.h"

#include "base/clock.h"
#include "base/vec.h"
#include "live/daemon/jobs.h"
#include "live/proc/proc.h"
#include "live/record/collector.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS ((int64_t)1000000000)
#define WAIT_MOST_MS 40
#define WAIT_IDLE_MS 500
#define MEASURE_NS (5 * SECOND_NS)
#define LIMITS_NS (2 * SECOND_NS)
#define OVER_NS (SECOND_NS / 20) /* time between two checks while the rings exceed their limit */
#define PATIENCE_NS ((int64_t)30000000000)
#define FIRST_NS SECOND_NS /* how long a connection may take to send its first packet */

void daemon_report(const struct daemon *d, const char *format, ...)
{
	char text[768];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (d->options->message && len > 0)
		d->options->message(d->options->message_arg, text,
				    MIN((size_t)len, sizeof(text) - 1));
}

/* Creates and locks a file with the daemon's pid; a running daemon holds the lock. */
static ow_status lock_file(const char *path, const char *what, int *fd, struct ow_error *err)
{
	char text[32] = "";
	ssize_t len;

	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (*fd < 0)
		return error_errno(err, errno, "%s", path);
	if (flock(*fd, LOCK_EX | LOCK_NB) == 0) {
		snprintf(text, sizeof(text), "%d\n", (int)getpid());
		if (ftruncate(*fd, 0) != 0 ||
		    pwrite(*fd, text, strlen(text), 0) != (ssize_t)strlen(text))
			return error_errno(err, errno, "%s", path);
		return OW_OK;
	}
	len = pread(*fd, text, sizeof(text) - 1, 0);
	text[len > 0 ? strcspn(text, "\n") : 0] = '\0';
	return error_set(err, OW_E_LIMIT, "another daemon (process %s) already uses %s",
			 text[0] ? text : "id unknown", what);
}

/* Makes the path absolute, because clients run in other directories. */
static ow_status make_whole(struct daemon *d, struct ow_error *err)
{
	char *whole = realpath(d->folder, NULL);
	ow_status status = OW_OK;

	if (!whole)
		return error_errno(err, errno, "%s", d->folder);
	if (strlen(whole) < sizeof(d->folder))
		memcpy(d->folder, whole, strlen(whole) + 1);
	else
		status = error_set(err, OW_E_USAGE, "%s: the path is too long", whole);
	free(whole);
	return status;
}

static ow_status choose_places(struct daemon *d, struct ow_error *err)
{
	const struct daemon_options *o = d->options;
	bool shared = o->all_users && geteuid() == 0;
	char folder[96];
	int len;

	if (o->socket_path) {
		char here[JOBS_SOCKET_PATH] = "";

		if (o->socket_path[0] != '/' && !getcwd(here, sizeof(here)))
			return error_errno(err, errno, "%s", o->socket_path);
		len = snprintf(d->socket_path, sizeof(d->socket_path), "%s%s%s", here,
			       here[0] ? "/" : "", o->socket_path);
		if (len >= (int)sizeof(d->socket_path))
			return error_set(err, OW_E_USAGE, "the path of the socket is too long");
	} else {
		runtime_dir(folder, sizeof(folder));
		OW_TRY(runtime_make_dir(folder, shared ? 0755 : 0700, err));
		snprintf(d->socket_path, sizeof(d->socket_path), "%s/socket", folder);
	}
	if (o->folder)
		snprintf(d->folder, sizeof(d->folder), "%s", o->folder);
	else
		runtime_data_dir(d->folder, sizeof(d->folder));
	OW_TRY(runtime_make_dir(d->folder, geteuid() == 0 ? 0711 : 0700, err));
	if (d->folder[0] != '/')
		OW_TRY(make_whole(d, err));
	if (strlen(d->folder) + 64 > sizeof(d->folder))
		return error_set(err, OW_E_USAGE, "%s: the path is too long", d->folder);
	return OW_OK;
}

static ow_status take_locks(struct daemon *d, struct ow_error *err)
{
	char path[JOBS_PATH + 32];

	snprintf(path, sizeof(path), "%s.lock", d->socket_path);
	OW_TRY(lock_file(path, d->socket_path, &d->socket_lock, err));
	snprintf(path, sizeof(path), "%s/lock", d->folder);
	return lock_file(path, d->folder, &d->folder_lock, err);
}

/* Creates the socket. The lock is held, so the socket of a killed daemon may be replaced. */
static ow_status make_socket(struct daemon *d, struct ow_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	bool shared = d->options->all_users && geteuid() == 0;
	mode_t old = umask(0177);
	struct stat st;
	int bound;

	if (lstat(d->socket_path, &st) == 0 && S_ISSOCK(st.st_mode))
		unlink(d->socket_path);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", d->socket_path);
	d->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bound = d->listener < 0 ? -1
				: bind(d->listener, (struct sockaddr *)&address, sizeof(address));
	umask(old);
	if (bound != 0 || chmod(d->socket_path, shared ? 0666 : 0600) != 0 ||
	    listen(d->listener, 1024) != 0)
		return error_errno(err, errno, "%s", d->socket_path);
	return OW_OK;
}

/* Raises the limit of open files, because each process has a connection. */
static void allow_many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)!setrlimit(RLIMIT_NOFILE, &limit);
}

/* Opens optional parts. A part that fails is reported, and the rest works. */
static ow_status open_extras(struct daemon *d, struct ow_error *err)
{
	const struct daemon_options *o = d->options;
	struct ow_error problem = { 0 };

	if (o->kineto_socket) {
		d->has_kineto =
			kineto_open(&d->kineto, d->mem, o->kineto_socket, &problem) == OW_OK;
		if (!d->has_kineto)
			daemon_report(d, "traces from Kineto are not available: %s", problem.text);
	}
	if (o->metrics_port < 0)
		return OW_OK;
	OW_TRY(daemon_metrics_open(d, (uint32_t)o->metrics_port, err));
	d->has_nvml = nvml_open(&d->nvml, NULL);
	return OW_OK;
}

static ow_status daemon_open(struct daemon *d, struct ow_error *err)
{
	d->since_ns = clock_ns(CLOCK_REALTIME);
	if (proc_read(getpid(), "cgroup", d->our_cgroup, sizeof(d->our_cgroup)) < 0)
		d->our_cgroup[0] = '\0';
	allow_many_files();
	OW_TRY(choose_places(d, err));
	OW_TRY(take_locks(d, err));
	/* the socket is created first, so that clients that connect while rings are read only
	 * wait a little */
	OW_TRY(make_socket(d, err));
	OW_TRY(open_extras(d, err));
	return daemon_load_jobs(d, err);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void daemon_close(struct daemon *d)
{
	if (d->listener >= 0)
		unlink(d->socket_path);
	close_fd(&d->listener);
	for (size_t i = 0; i < d->pending_count; i++) {
		close(d->pending[i].fd);
		buf_release(&d->pending[i].out);
	}
	daemon_metrics_close(d);
	daemon_release_jobs(d);
	if (d->has_kineto)
		kineto_close(&d->kineto);
	if (d->has_nvml)
		nvml_close(&d->nvml);
	mem_free(d->mem, d->fds, d->fd_cap * sizeof(*d->fds));
	close_fd(&d->folder_lock);
	close_fd(&d->socket_lock);
}

/* Gathers the descriptors to wait for and returns their number; 0 if memory runs out. */
static size_t gather_descriptors(struct daemon *d)
{
	size_t need = 3 + d->pending_count, at = 0;

	for (size_t i = 0; i < d->job_count; i++)
		need += d->jobs[i]->open ? d->jobs[i]->collector.count : 0;
	if (!vec_reserve(d->mem, d->fds, d->fd_cap, need))
		return 0;
	d->fds[at++] = (struct pollfd){ .fd = d->pending_count < DAEMON_PENDING ? d->listener : -1,
					.events = POLLIN };
	d->fds[at++] = (struct pollfd){ .fd = d->has_kineto ? d->kineto.fd : -1, .events = POLLIN };
	d->fds[at++] = (struct pollfd){ .fd = d->metrics.wake, .events = POLLIN };
	for (size_t i = 0; i < d->pending_count; i++) {
		const struct pending_client *client = &d->pending[i];
		bool waits = client->sent < client->out.len;

		d->fds[at++] =
			(struct pollfd){ .fd = client->fd, .events = waits ? POLLOUT : POLLIN };
	}
	for (size_t i = 0; i < d->job_count; i++)
		if (d->jobs[i]->open) {
			collector_poll(&d->jobs[i]->collector, d->fds + at);
			at += d->jobs[i]->collector.count;
		}
	return at;
}

/* Handles the descriptors in the order of gather_descriptors, but jobs first, because new clients change
 * the lists. */
static void receive_all(struct daemon *d, int64_t now)
{
	size_t pending = d->pending_count, at = 3 + pending;

	for (size_t i = 0; i < d->job_count; i++) {
		struct collector *c = &d->jobs[i]->collector;
		size_t count = d->jobs[i]->open ? c->count : 0;

		if (count)
			collector_receive(c, d->fds + at, count);
		at += count;
	}
	if (d->fds[2].revents)
		daemon_metrics_answer(d);
	if (d->fds[1].revents)
		(void)!kineto_turn(&d->kineto, now);
	daemon_serve_pending(d, d->fds + 3, pending);
	if (d->fds[0].revents)
		daemon_accept(d);
}

/* Chooses how long to wait: rings are read more often while one is filling up. */
static void choose_wait(struct daemon *d, unsigned fill, bool open)
{
	d->wait_ms = open ? collector_next_look_ms(fill, MAX(d->wait_ms, 1)) : WAIT_IDLE_MS;
}

static void tick_all(struct daemon *d, int64_t now)
{
	unsigned fill = 0;
	uint64_t bytes = 0;
	bool open = false;

	d->beat_ns = INT64_MAX;
	for (size_t i = 0; i < d->job_count; i++) {
		struct daemon_job *job = d->jobs[i];

		if (job->open)
			fill = MAX(fill, collector_fill(&job->collector));
		if (d->options->stacks_hz)
			job_want_stacks(job, d->options->stacks_hz, INT64_MAX);
		d->beat_ns = MIN(d->beat_ns, job_tick_stacks(job, now));
		job_tick(job, now);
		bytes += job_bytes(job);
		open |= job->open;
	}
	choose_wait(d, fill, open);
	if (d->metrics.port && now - d->meter_ns >= MEASURE_NS) {
		d->meter_ns = now;
		daemon_measure(d);
	}
	if (d->has_kineto && now - d->kineto_look_ns >= SECOND_NS) {
		d->kineto_look_ns = now;
		kineto_check_files(&d->kineto, now);
	}
	if (now - d->limit_ns >= (bytes > d->rings_limit ? OVER_NS : LIMITS_NS)) {
		d->limit_ns = now;
		daemon_keep_limits(d);
	}
}

/* Returns the time until the rings or the next sample are due. */
static struct timespec time_to_wait(const struct daemon *d)
{
	int64_t ns = d->wait_ms * 1000000LL;

	if (d->beat_ns != INT64_MAX)
		ns = MAX(MIN(ns, d->beat_ns - steady_ns()), 0);
	return (struct timespec){ .tv_sec = ns / SECOND_NS, .tv_nsec = ns % SECOND_NS };
}

static void serve_until_cancelled(struct daemon *d)
{
	const struct daemon_options *o = d->options;

	while (!o->keep_going || o->keep_going(o->keep_going_arg)) {
		size_t count = gather_descriptors(d);
		struct timespec wait = time_to_wait(d);
		int64_t now;

		if (!count) { /* without memory the existing data is still written */
			usleep(WAIT_MOST_MS * 1000);
			tick_all(d, steady_ns());
			continue;
		}
		if (ppoll(d->fds, count, &wait, NULL) < 0)
			for (size_t i = 0; i < count; i++)
				d->fds[i].revents = 0;
		now = steady_ns();
		receive_all(d, now);
		tick_all(d, now);
	}
}

ow_status daemon_run(const struct daemon_options *options, struct mem *mem, struct ow_error *err)
{
	struct daemon *d = mem_zalloc(mem, sizeof(*d));
	ow_status status;

	if (!d)
		return error_no_memory(err);
	d->options = options;
	d->mem = mem;
	d->beat_ns = INT64_MAX;
	d->listener = d->socket_lock = d->folder_lock = d->metrics.wake = d->kineto.fd = -1;
	status = daemon_open(d, err);
	if (status == OW_OK) {
		daemon_report(d, "serving at %s, rings in %s", d->socket_path, d->folder);
		if (d->metrics.port)
			daemon_report(d, "metrics at http://127.0.0.1:%u/metrics", d->metrics.port);
		serve_until_cancelled(d);
	}
	daemon_close(d);
	mem_free(mem, d, sizeof(*d));
	return status;
}

bool daemon_may_see(const struct ucred *peer, uint32_t uid)
{
	return peer->uid == 0 || (uint32_t)peer->uid == uid;
}

/* Returns whether a peer may connect: the user's own processes, root's, and for root all users'. */
static bool is_welcome(const struct ucred *peer)
{
	return geteuid() == 0 || peer->uid == geteuid() || peer->uid == 0;
}

bool daemon_is_owner(const struct ucred *peer)
{
	return peer->uid == 0 || peer->uid == geteuid();
}

/* Returns whether a connection slot is free. Silent connections of one user do not lock out
 * others, and all users together do not lock out the owner. */
static bool has_slot(const struct daemon *d, const struct ucred *peer)
{
	size_t own = 0;

	if (daemon_is_owner(peer))
		return d->pending_count < DAEMON_PENDING;
	for (size_t i = 0; i < d->pending_count; i++)
		own += d->pending[i].peer.uid == peer->uid;
	return own < DAEMON_PENDING_USER && d->pending_count < DAEMON_PENDING - DAEMON_PENDING_KEPT;
}

void daemon_accept(struct daemon *d)
{
	for (;;) {
		int fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct ucred peer;
		socklen_t len = sizeof(peer);
		struct pending_client *client;

		if (fd < 0)
			return;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 ||
		    !is_welcome(&peer) || !has_slot(d, &peer)) {
			close(fd);
			continue;
		}
		client = &d->pending[d->pending_count++];
		*client =
			(struct pending_client){ .fd = fd, .peer = peer, .since_ns = steady_ns() };
		buf_init(&client->out, d->mem);
	}
}

/* Closes a connection that was handed over or has ended. */
static void close_client(struct pending_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	buf_release(&client->out);
	client->fd = -1;
}

static void take_refusal(struct daemon *d, const struct pending_client *client,
			 const struct ring_message *message)
{
	struct daemon_job *job = daemon_job_of(d, &client->peer, (uint32_t)client->peer.pid);

	if (job && job->open)
		collector_refuse(&job->collector, (uint32_t)client->peer.pid, message);
	else if (message->number == RING_NO_MEMORY)
		daemon_report(d, "process %d is not recorded: %s", (int)client->peer.pid,
			      RING_NO_MEMORY_TEXT);
	else
		daemon_report(d,
			      "process %d is not recorded: its recorder has protocol version %u, "
			      "this daemon has %u",
			      (int)client->peer.pid, message->version, RING_VERSION);
}

static void receive_process(struct daemon *d, struct pending_client *client,
			    const struct ring_message *message, int memory)
{
	int fd = client->fd;

	if (message->kind == RING_REFUSAL) {
		take_refusal(d, client, message);
	} else if (message->kind == RING_HELLO && memory >= 0) {
		client->fd = -1;
		daemon_add_process(d, fd, &client->peer, memory);
	}
	close_client(client);
}

static bool is_request(const struct jobs_request *request, size_t len)
{
	return len == sizeof(*request) &&
	       memcmp(request->magic, JOBS_ASK_MAGIC, sizeof(request->magic)) == 0;
}

static void receive_request(struct daemon *d, struct pending_client *client)
{
	union {
		struct ring_message message;
		struct jobs_request request;
	} packet = { 0 };
	bool closed;
	int fd;
	size_t len = packet_receive(client->fd, &packet, sizeof(packet), &fd, &closed);

	client->spoke |= len > 0;
	if (closed) {
		close_client(client);
	} else if (len == sizeof(packet.message) && memcmp(packet.message.magic, RING_HELLO_MAGIC,
							   sizeof(packet.message.magic)) == 0) {
		receive_process(d, client, &packet.message, fd);
	} else if (is_request(&packet.request, len) && client->sent == client->out.len) {
		packet.request.name[JOBS_NAME - 1] = packet.request.path[JOBS_PATH - 1] = '\0';
		buf_clear(&client->out);
		client->sent = 0;
		client->since_ns = steady_ns();
		daemon_answer(d, client, &packet.request);
	} else if (len) {
		close_client(client); /* an unknown packet, or a second request before the answer */
	}
	if (fd >= 0)
		close(fd);
}

static void send_answer(struct pending_client *client)
{
	while (client->fd >= 0 && client->sent < client->out.len) {
		struct jobs_head head;
		size_t len;
		ssize_t n;

		memcpy(&head, client->out.ptr + client->sent, sizeof(head));
		len = sizeof(head) + head.size;
		n = send(client->fd, client->out.ptr + client->sent, len,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0)
			close_client(client);
		else
			client->sent += len;
	}
}

void daemon_serve_pending(struct daemon *d, const struct pollfd *fds, size_t count)
{
	int64_t now = steady_ns();
	size_t kept = 0;

	for (size_t i = 0; i < d->pending_count; i++) {
		struct pending_client *client = &d->pending[i];

		if (i < count && fds[i].revents & ~POLLOUT)
			receive_request(d, client);
		send_answer(client);
		if (client->fd >= 0 &&
		    (client->out.failed ||
		     now - client->since_ns > (client->spoke ? PATIENCE_NS : FIRST_NS)))
			close_client(client);
		if (client->fd >= 0)
			d->pending[kept++] = *client;
	}
	d->pending_count = kept;
}
