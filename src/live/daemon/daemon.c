/* daemon.c: see daemon.h. The socket and the loop; the parts are in daemon_*.c. */
#include "live/daemon_int.h"

#include "base/clock.h"
#include "live/proc.h"
#include "live/runtime_dir.h"

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
#define WAIT_LEAST_MS 5
#define WAIT_MOST_MS 40
#define WAIT_IDLE_MS 500
#define MEASURE_NS (5 * SECOND_NS)
#define LIMITS_NS (2 * SECOND_NS)
#define OVER_NS (SECOND_NS / 20) /* when there is more on disk than may be */

void daemon_tell(const struct daemon *d, const char *format, ...)
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

/* ---- places ---- */

/* A file that says who is here; whoever has it locked is. */
static ow_status lock(const char *path, const char *what, int *fd, struct error *err)
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
	return error_set(err, OW_E_LIMIT, "process %s is a daemon already that uses %s",
			 text[0] ? text : "of somebody", what);
}

/* Clients are told the path, and are somewhere else. */
static ow_status make_whole(struct daemon *d, struct error *err)
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

static ow_status choose_places(struct daemon *d, struct error *err)
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

static ow_status take_locks(struct daemon *d, struct error *err)
{
	char path[JOBS_PATH + 32];

	snprintf(path, sizeof(path), "%s.lock", d->socket_path);
	OW_TRY(lock(path, d->socket_path, &d->socket_lock, err));
	snprintf(path, sizeof(path), "%s/lock", d->folder);
	return lock(path, d->folder, &d->folder_lock, err);
}

/* Whoever has the lock may replace the socket of one that was killed. */
static ow_status make_socket(struct daemon *d, struct error *err)
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

/* Each process has a connection. */
static void allow_many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)!setrlimit(RLIMIT_NOFILE, &limit);
}

/* ---- opening and closing ---- */

/* What is not there is told; the rest is served. */
static ow_status open_extras(struct daemon *d, struct error *err)
{
	const struct daemon_options *o = d->options;
	struct error problem = { 0 };

	if (o->kineto_socket) {
		d->has_kineto =
			kineto_open(&d->kineto, d->mem, o->kineto_socket, &problem) == OW_OK;
		if (!d->has_kineto)
			daemon_tell(d, "no traces from Kineto: %s", problem.text);
	}
	if (o->metrics_port < 0)
		return OW_OK;
	OW_TRY(metrics_http_open(&d->http, d->mem, (uint32_t)o->metrics_port, err));
	d->http.page = daemon_metrics_page;
	d->http.arg = d;
	d->has_nvml = nvml_open(&d->nvml, NULL);
	return OW_OK;
}

static ow_status daemon_open(struct daemon *d, struct error *err)
{
	d->since_ns = clock_ns(CLOCK_REALTIME);
	if (proc_read(getpid(), "cgroup", d->our_cgroup, sizeof(d->our_cgroup)) < 0)
		d->our_cgroup[0] = '\0';
	allow_many_files();
	OW_TRY(choose_places(d, err));
	OW_TRY(take_locks(d, err));
	OW_TRY(make_socket(d, err)); /* first: who comes while rings are read waits a little */
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
	for (size_t i = 0; i < d->guest_count; i++) {
		close(d->guests[i].fd);
		buf_release(&d->guests[i].out);
	}
	daemon_release_jobs(d);
	metrics_http_close(&d->http);
	if (d->has_kineto)
		kineto_close(&d->kineto);
	if (d->has_nvml)
		nvml_close(&d->nvml);
	mem_free(d->mem, d->fds, d->fd_cap * sizeof(*d->fds));
	close_fd(&d->folder_lock);
	close_fd(&d->socket_lock);
}

/* ---- the loop ---- */

/* How many descriptors there are to wait for; 0 without memory. */
static size_t gather(struct daemon *d)
{
	size_t need = 2 + METRICS_HTTP_FDS + d->guest_count, at = 0;
	void *fds = d->fds;

	for (size_t i = 0; i < d->job_count; i++)
		need += d->jobs[i]->open ? d->jobs[i]->collector.count : 0;
	if (!mem_grow(d->mem, &fds, &d->fd_cap, need, sizeof(*d->fds)))
		return 0;
	d->fds = fds;
	d->fds[at++] = (struct pollfd){ .fd = d->guest_count < DAEMON_GUESTS ? d->listener : -1,
					.events = POLLIN };
	d->fds[at++] = (struct pollfd){ .fd = d->has_kineto ? d->kineto.fd : -1, .events = POLLIN };
	at += metrics_http_poll(&d->http, d->fds + at);
	for (size_t i = 0; i < d->guest_count; i++) {
		const struct guest *guest = &d->guests[i];
		bool waits = guest->sent < guest->out.len;

		d->fds[at++] =
			(struct pollfd){ .fd = guest->fd, .events = waits ? POLLOUT : POLLIN };
	}
	for (size_t i = 0; i < d->job_count; i++)
		if (d->jobs[i]->open) {
			collector_poll(&d->jobs[i]->collector, d->fds + at);
			at += d->jobs[i]->collector.count;
		}
	return at;
}

/* In the order of gather. Jobs come first: what guests bring changes the lists. */
static void hear_all(struct daemon *d, int64_t now)
{
	size_t http = d->http.listener >= 0 ? d->http.count + 1 : 0, guests = d->guest_count;
	size_t at = 2 + http + guests;

	for (size_t i = 0; i < d->job_count; i++) {
		struct collector *c = &d->jobs[i]->collector;
		size_t count = d->jobs[i]->open ? c->count : 0;

		if (count)
			collector_hear(c, d->fds + at, count);
		at += count;
	}
	if (http)
		metrics_http_turn(&d->http, d->fds + 2, http, now);
	if (d->fds[1].revents)
		(void)!kineto_turn(&d->kineto, now);
	daemon_hear_guests(d, d->fds + 2 + http, guests);
	if (d->fds[0].revents)
		daemon_accept(d);
}

/* Rings are looked at more often while one is filling up. */
static void choose_wait(struct daemon *d, unsigned fill, bool open)
{
	if (!open)
		d->wait_ms = WAIT_IDLE_MS;
	else if (fill >= 16 || d->wait_ms < WAIT_LEAST_MS)
		d->wait_ms = WAIT_LEAST_MS;
	else
		d->wait_ms = MIN(d->wait_ms * 2, WAIT_MOST_MS);
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
	if (d->http.listener >= 0 && now - d->meter_ns >= MEASURE_NS) {
		d->meter_ns = now;
		daemon_measure(d);
	}
	if (d->has_kineto && now - d->kineto_look_ns >= SECOND_NS) {
		d->kineto_look_ns = now;
		kineto_look(&d->kineto, now);
	}
	if (now - d->limit_ns >= (bytes > d->rings_limit ? OVER_NS : LIMITS_NS)) {
		d->limit_ns = now;
		daemon_keep_limits(d);
	}
}

/* Until the rings are due, or the next sample. */
static struct timespec patience(const struct daemon *d)
{
	int64_t ns = d->wait_ms * 1000000LL;

	if (d->beat_ns != INT64_MAX)
		ns = MAX(MIN(ns, d->beat_ns - steady_ns()), 0);
	return (struct timespec){ .tv_sec = ns / SECOND_NS, .tv_nsec = ns % SECOND_NS };
}

static void serve(struct daemon *d)
{
	const struct daemon_options *o = d->options;

	while (!o->cancelled || !o->cancelled(o->cancel_arg)) {
		size_t count = gather(d);
		struct timespec wait = patience(d);
		int64_t now;

		if (!count) { /* without memory: what is there is still written */
			usleep(WAIT_MOST_MS * 1000);
			tick_all(d, steady_ns());
			continue;
		}
		if (ppoll(d->fds, count, &wait, NULL) < 0)
			for (size_t i = 0; i < count; i++)
				d->fds[i].revents = 0;
		now = steady_ns();
		hear_all(d, now);
		tick_all(d, now);
	}
}

ow_status daemon_run(const struct daemon_options *options, struct mem *mem, struct error *err)
{
	struct daemon *d = mem_zalloc(mem, sizeof(*d));
	ow_status status;

	if (!d)
		return error_no_memory(err);
	d->options = options;
	d->mem = mem;
	d->beat_ns = INT64_MAX;
	d->listener = d->socket_lock = d->folder_lock = d->http.listener = d->kineto.fd = -1;
	status = daemon_open(d, err);
	if (status == OW_OK) {
		daemon_tell(d, "serving at %s, rings in %s", d->socket_path, d->folder);
		if (d->http.port)
			daemon_tell(d, "metrics at http://127.0.0.1:%u/metrics", d->http.port);
		serve(d);
	}
	daemon_close(d);
	mem_free(mem, d, sizeof(*d));
	return status;
}
