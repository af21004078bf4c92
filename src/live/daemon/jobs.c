/*
 * jobs.c: the client's side of the daemon's socket: where it is, connecting, asking, reading the answer, and
 * finding a job by name. Used by the commands that name a job; the server's side is daemon_answer.c.
 */
#include "live/daemon/jobs.h"

#include "base/clock.h"
#include "base/str.h"
#include "live/daemon/job_identity.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ROOT_DIR "/run/opwatch"
#define SOCKET_NAME "socket"

/*
 * Returns the runtime folder. Every user can create folders below /tmp, so one is used only if it belongs to
 * this user and is closed to others.
 */

void runtime_dir(char *to, size_t size)
{
	const char *base = getenv("XDG_RUNTIME_DIR");

	if (geteuid() == 0)
		snprintf(to, size, ROOT_DIR);
	else if (base && base[0] == '/' && strlen(base) < 80)
		snprintf(to, size, "%s/opwatch", base);
	else
		snprintf(to, size, "/tmp/opwatch-%u", (unsigned)geteuid());
}

/* Returns whether only that owner can have created the folder. */
static bool is_ours(const char *path, uid_t owner)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == owner &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

bool runtime_socket(unsigned index, char *to, size_t size)
{
	const char *named = getenv("OPWATCH_SOCKET");
	char folder[96];

	if (named && *named) {
		snprintf(to, size, "%s", named);
		return index == 0;
	}
	switch (index) {
	case 0:
		runtime_dir(folder, sizeof(folder));
		break;
	case 1: /* socket of a daemon that was started without XDG_RUNTIME_DIR */
		snprintf(folder, sizeof(folder), "/tmp/opwatch-%u", (unsigned)geteuid());
		break;
	case 2:
		snprintf(folder, sizeof(folder), ROOT_DIR);
		break;
	default:
		return false;
	}
	to[0] = '\0';
	if (is_ours(folder, index == 2 ? 0 : geteuid()))
		snprintf(to, size, "%s/%s", folder, SOCKET_NAME);
	return true;
}

void runtime_usual_socket(char *to, size_t size)
{
	const char *named = getenv("OPWATCH_SOCKET");
	char folder[96];

	runtime_dir(folder, sizeof(folder));
	if (named && *named)
		snprintf(to, size, "%s", named);
	else
		snprintf(to, size, "%s/%s", folder, SOCKET_NAME);
}

void runtime_data_dir(char *to, size_t size)
{
	if (geteuid() == 0)
		snprintf(to, size, "/var/lib/opwatch");
	else
		snprintf(to, size, "/var/tmp/opwatch-%u", (unsigned)geteuid());
}

ow_status runtime_make_dir(const char *path, mode_t mode, struct ow_error *err)
{
	struct stat st;

	if (mkdir(path, mode) == 0)
		return OW_OK;
	if (errno != EEXIST)
		return error_errno(err, errno, "%s", path);
	if (lstat(path, &st) != 0)
		return error_errno(err, errno, "%s", path);
	if (!S_ISDIR(st.st_mode))
		return error_set(err, OW_E_PERMISSION, "%s: not a folder", path);
	if (st.st_uid != geteuid())
		return error_set(
			err, OW_E_PERMISSION,
			"%s: belongs to another user; choose another place with --dir and --socket",
			path);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return error_set(err, OW_E_PERMISSION,
				 "%s: other users may write there; run chmod 700 on it, or choose "
				 "another place",
				 path);
	return OW_OK;
}

static int connect_socket(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, code;

	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		code = errno;
		close(fd);
		errno = code;
		return -1;
	}
	return fd;
}

static ow_status connect_to(const char *path, int *fd, struct ow_error *err)
{
	*fd = connect_socket(path);
	if (*fd >= 0)
		return OW_OK;
	if (errno == ENOENT || errno == ECONNREFUSED)
		return error_set(err, OW_E_NOT_FOUND,
				 "no daemon listens at %s: start one with 'opwatch daemon'", path);
	if (errno == EACCES || errno == EPERM)
		return error_set(err, OW_E_PERMISSION, "%s: the daemon belongs to another user",
				 path);
	if (errno == EAGAIN)
		return error_set(err, OW_E_LIMIT,
				 "the daemon at %s does not answer: its queue is full", path);
	if (errno == EPROTOTYPE)
		return error_set(err, OW_E_FORMAT, "%s: not the socket of an opwatch daemon", path);
	return error_errno(err, errno, "%s", path);
}

/* Connects to the daemon; `asked` becomes the socket that answered or refused. */
static ow_status jobs_connect(const char *socket_path, int *fd, char asked[JOBS_SOCKET_PATH],
			      struct ow_error *err)
{
	char path[JOBS_SOCKET_PATH];
	struct ow_error first = { 0 };

	*fd = -1;
	asked[0] = '\0';
	if (socket_path) {
		snprintf(asked, JOBS_SOCKET_PATH, "%s", socket_path);
		return connect_to(socket_path, fd, err);
	}
	for (unsigned i = 0; runtime_socket(i, path, sizeof(path)); i++) {
		struct ow_error problem = { 0 };

		if (!path[0])
			continue;
		if (connect_to(path, fd, &problem) == OW_OK) {
			memcpy(asked, path, sizeof(path));
			return OW_OK;
		}
		if (problem.status != OW_E_NOT_FOUND && first.status == OW_OK) {
			memcpy(asked, path, sizeof(path));
			first = problem;
		}
	}
	if (first.status != OW_OK) {
		if (err)
			*err = first;
		return first.status;
	}
	return error_set(err, OW_E_NOT_FOUND,
			 "no daemon is running: start one with 'opwatch daemon'");
}

/* Adds one row of a list. */
static bool add_row(struct mem *mem, void **items, size_t *count, size_t *cap, size_t size,
		    const void *row)
{
	if (!mem_grow(mem, items, cap, *count + 1, size))
		return false;
	memcpy((char *)*items + *count * size, row, size);
	++*count;
	return true;
}

#define ADD(jobs, list, count_, cap_, body)                                                        \
	({                                                                                         \
		void *items_ = (jobs)->list;                                                       \
		bool good_ = add_row((jobs)->mem, &items_, &(jobs)->count_, &(jobs)->cap_,         \
				     sizeof(*(jobs)->list), body);                                 \
		(jobs)->list = items_;                                                             \
		good_;                                                                             \
	})

static bool is_size(const struct jobs_head *head, size_t size)
{
	return head->size == size;
}

/* Adds one packet of an answer; OW_E_FORMAT: not a row of this version. */
static ow_status add_answer(struct jobs *jobs, const struct jobs_head *head, const void *body,
			    struct ow_error *err)
{
	bool good = true;

	switch ((enum jobs_say)head->kind) {
	case JOBS_SAY_SERVER:
		if (!is_size(head, sizeof(jobs->server)))
			return OW_E_FORMAT;
		memcpy(&jobs->server, body, sizeof(jobs->server));
		return OW_OK;
	case JOBS_SAY_JOB:
		if (!is_size(head, sizeof(*jobs->items)))
			return OW_E_FORMAT;
		good = ADD(jobs, items, count, cap, body);
		break;
	case JOBS_SAY_PROCESS:
		if (!is_size(head, sizeof(*jobs->processes)))
			return OW_E_FORMAT;
		good = ADD(jobs, processes, process_count, process_cap, body);
		break;
	case JOBS_SAY_KINETO:
		if (!is_size(head, sizeof(*jobs->kinetos)))
			return OW_E_FORMAT;
		good = ADD(jobs, kinetos, kineto_count, kineto_cap, body);
		break;
	case JOBS_SAY_ANOMALY:
		if (!is_size(head, sizeof(*jobs->anomalies)))
			return OW_E_FORMAT;
		good = ADD(jobs, anomalies, anomaly_count, anomaly_cap, body);
		break;
	case JOBS_SAY_FAILED:
		return error_set(err,
				 head->status > OW_OK && head->status <= OW_E_INTERNAL
					 ? (ow_status)head->status
					 : OW_E_INTERNAL,
				 "%.*s", (int)head->size, (const char *)body);
	case JOBS_SAY_END:
		break;
	}
	return good ? OW_OK : error_no_memory(err);
}

static ow_status receive_answer(int fd, int64_t until_ns, struct jobs_head *head, void *body,
				size_t room, struct ow_error *err)
{
	struct iovec parts[2] = { { head, sizeof(*head) }, { body, room } };
	struct msghdr packet = { .msg_iov = parts, .msg_iovlen = 2 };
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	ssize_t n;
	int ready;

	do
		ready = poll(&wait, 1, (int)(MAX(until_ns - steady_ns(), 0) / 1000000));
	while (ready < 0 && errno == EINTR);
	if (ready == 0)
		return error_set(err, OW_E_LIMIT, "the daemon does not answer");
	n = ready < 0 ? -1 : recvmsg(fd, &packet, 0);
	if (n < 0)
		return error_errno(err, errno, "the daemon");
	if (n == 0)
		return error_set(err, OW_E_IO,
				 "the daemon closed the connection: it has ended, or does not "
				 "serve this user");
	if (n < (ssize_t)sizeof(*head) ||
	    memcmp(head->magic, JOBS_SAY_MAGIC, sizeof(head->magic)) != 0 ||
	    head->size != (size_t)n - sizeof(*head) || head->version != JOBS_VERSION)
		return OW_E_FORMAT;
	return OW_OK;
}

static ow_status exchange_packets(struct jobs *jobs, int fd, const struct jobs_request *request,
				  int64_t patience_ns, struct ow_error *err)
{
	int64_t until = steady_ns() + patience_ns;
	struct jobs_request message = *request;
	struct jobs_head head = { 0 };
	char body[1024];

	memcpy(message.magic, JOBS_ASK_MAGIC, sizeof(message.magic));
	message.version = JOBS_VERSION;
	if (send(fd, &message, sizeof(message), MSG_NOSIGNAL) != (ssize_t)sizeof(message))
		return error_errno(err, errno, "the daemon");
	do {
		OW_TRY(receive_answer(fd, until, &head, body, sizeof(body), err));
		OW_TRY(add_answer(jobs, &head, body, err));
	} while (head.kind != JOBS_SAY_END);
	return OW_OK;
}

ow_status jobs_ask_within(struct jobs *jobs, struct mem *mem, const char *socket_path,
			  const struct jobs_request *request, int64_t patience_ns,
			  char asked[JOBS_SOCKET_PATH], struct ow_error *err)
{
	char path[JOBS_SOCKET_PATH];
	ow_status status;
	int fd;

	*jobs = (struct jobs){ .mem = mem };
	OW_TRY(jobs_connect(socket_path, &fd, asked ? asked : path, err));
	status = exchange_packets(jobs, fd, request, patience_ns, err);
	close(fd);
	if (status == OW_E_FORMAT)
		error_set(err, OW_E_FORMAT,
			  "the daemon has another version: stop it, and start the one of this "
			  "installation");
	if (status != OW_OK)
		jobs_release(jobs);
	return status;
}

ow_status jobs_ask(struct jobs *jobs, struct mem *mem, const char *socket_path,
		   const struct jobs_request *request, struct ow_error *err)
{
	return jobs_ask_within(jobs, mem, socket_path, request, JOBS_PATIENCE_NS, NULL, err);
}

ow_status jobs_list(struct jobs *jobs, struct mem *mem, const char *socket_path,
		    struct ow_error *err)
{
	return jobs_ask(jobs, mem, socket_path, &(struct jobs_request){ .kind = JOBS_ASK_LIST },
			err);
}

void jobs_release(struct jobs *jobs)
{
	mem_free(jobs->mem, jobs->items, jobs->cap * sizeof(*jobs->items));
	mem_free(jobs->mem, jobs->processes, jobs->process_cap * sizeof(*jobs->processes));
	mem_free(jobs->mem, jobs->kinetos, jobs->kineto_cap * sizeof(*jobs->kinetos));
	mem_free(jobs->mem, jobs->anomalies, jobs->anomaly_cap * sizeof(*jobs->anomalies));
	*jobs = (struct jobs){ .mem = jobs->mem };
}

static bool is_better(const struct job_info *job, const struct job_info *than)
{
	if (!than)
		return true;
	if ((job->state == JOB_ENDED) != (than->state == JOB_ENDED))
		return than->state == JOB_ENDED;
	return job->since_ns > than->since_ns;
}

ow_status jobs_find(const struct jobs *jobs, const char *name, const struct job_info **job,
		    struct ow_error *err)
{
	char clean[JOBS_NAME]; /* name as the daemon stores it: limited length, no slashes */
	int64_t number;

	*job = NULL;
	identity_job_name(clean, str_from(name));
	for (size_t i = 0; i < jobs->count; i++)
		if (strcmp(jobs->items[i].name, clean) == 0 && is_better(&jobs->items[i], *job))
			*job = &jobs->items[i];
	if (!*job && str_to_i64(str_from(name), &number))
		for (size_t i = 0; i < jobs->count; i++)
			if (jobs->items[i].id == number)
				*job = &jobs->items[i];
	if (*job)
		return OW_OK;
	if (!jobs->count)
		return error_set(err, OW_E_NOT_FOUND,
				 "no job is called '%s': the daemon has no jobs", name);
	return error_set(err, OW_E_NOT_FOUND, "no job is called '%s'; see 'opwatch jobs'", name);
}

void job_file_path(const struct job_info *job, uint32_t number, char *path, size_t size)
{
	snprintf(path, size, "%s/%06u.opw", job->folder, number);
}

const char *job_state_name(uint32_t state)
{
	switch (state) {
	case JOB_RUNNING:
		return "running";
	case JOB_AWAITED:
		return "awaited";
	default:
		return "ended";
	}
}
