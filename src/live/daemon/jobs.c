/* jobs.c: see jobs.h. */
#include "live/jobs.h"

#include "base/str.h"
#include "live/job_identity.h"
#include "live/runtime_dir.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_MS 60000 /* it may wait for a disk */

/* ---- connecting ---- */

static int dial(const char *path)
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

static ow_status connect_to(const char *path, int *fd, struct error *err)
{
	*fd = dial(path);
	if (*fd >= 0)
		return OW_OK;
	if (errno == ENOENT || errno == ECONNREFUSED)
		return error_set(err, OW_E_NOT_FOUND,
				 "no daemon serves %s: start one with 'opwatch daemon'", path);
	if (errno == EACCES || errno == EPERM)
		return error_set(err, OW_E_PERMISSION, "%s: the daemon is another user's", path);
	if (errno == EPROTOTYPE)
		return error_set(err, OW_E_FORMAT, "%s: is no socket of an opwatch daemon", path);
	return error_errno(err, errno, "%s", path);
}

ow_status jobs_connect(const char *socket_path, int *fd, struct error *err)
{
	char path[JOBS_SOCKET_PATH];
	struct error first = { 0 };

	*fd = -1;
	if (socket_path)
		return connect_to(socket_path, fd, err);
	for (unsigned i = 0; runtime_socket(i, path, sizeof(path)); i++) {
		struct error problem = { 0 };

		if (!path[0])
			continue;
		if (connect_to(path, fd, &problem) == OW_OK)
			return OW_OK;
		if (problem.status != OW_E_NOT_FOUND && first.status == OW_OK)
			first = problem;
	}
	if (first.status != OW_OK) {
		if (err)
			*err = first;
		return first.status;
	}
	return error_set(err, OW_E_NOT_FOUND, "no daemon runs: start one with 'opwatch daemon'");
}

/* ---- answers ---- */

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

/* OW_E_FORMAT: no row of this version. */
static ow_status take(struct jobs *jobs, const struct jobs_head *head, const void *body,
		      struct error *err)
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

static ow_status receive(int fd, struct jobs_head *head, void *body, size_t room, struct error *err)
{
	struct iovec parts[2] = { { head, sizeof(*head) }, { body, room } };
	struct msghdr packet = { .msg_iov = parts, .msg_iovlen = 2 };
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	ssize_t n;
	int ready;

	do
		ready = poll(&wait, 1, PATIENCE_MS);
	while (ready < 0 && errno == EINTR);
	if (ready == 0)
		return error_set(err, OW_E_IO, "the daemon does not answer");
	n = ready < 0 ? -1 : recvmsg(fd, &packet, 0);
	if (n < 0)
		return error_errno(err, errno, "the daemon");
	if (n == 0)
		return error_set(err, OW_E_IO, "the daemon has ended, or does not know this user");
	if (n < (ssize_t)sizeof(*head) ||
	    memcmp(head->magic, JOBS_SAY_MAGIC, sizeof(head->magic)) != 0 ||
	    head->size != (size_t)n - sizeof(*head) || head->version != JOBS_VERSION)
		return OW_E_FORMAT;
	return OW_OK;
}

static ow_status converse(struct jobs *jobs, int fd, const struct jobs_request *request,
			  struct error *err)
{
	struct jobs_request message = *request;
	struct jobs_head head = { 0 };
	char body[1024];

	memcpy(message.magic, JOBS_ASK_MAGIC, sizeof(message.magic));
	message.version = JOBS_VERSION;
	if (send(fd, &message, sizeof(message), MSG_NOSIGNAL) != (ssize_t)sizeof(message))
		return error_errno(err, errno, "the daemon");
	do {
		OW_TRY(receive(fd, &head, body, sizeof(body), err));
		OW_TRY(take(jobs, &head, body, err));
	} while (head.kind != JOBS_SAY_END);
	return OW_OK;
}

ow_status jobs_ask(struct jobs *jobs, struct mem *mem, const char *socket_path,
		   const struct jobs_request *request, struct error *err)
{
	ow_status status;
	int fd;

	*jobs = (struct jobs){ .mem = mem };
	OW_TRY(jobs_connect(socket_path, &fd, err));
	status = converse(jobs, fd, request, err);
	close(fd);
	if (status == OW_E_FORMAT)
		error_set(err, OW_E_FORMAT,
			  "the daemon is of another version: end it, and start that of this "
			  "installation");
	if (status != OW_OK)
		jobs_release(jobs);
	return status;
}

ow_status jobs_list(struct jobs *jobs, struct mem *mem, const char *socket_path, struct error *err)
{
	return jobs_ask(jobs, mem, socket_path, &(struct jobs_request){ .kind = JOBS_ASK_LIST },
			err);
}

void jobs_release(struct jobs *jobs)
{
	mem_free(jobs->mem, jobs->items, jobs->cap * sizeof(*jobs->items));
	mem_free(jobs->mem, jobs->processes, jobs->process_cap * sizeof(*jobs->processes));
	mem_free(jobs->mem, jobs->kinetos, jobs->kineto_cap * sizeof(*jobs->kinetos));
	*jobs = (struct jobs){ .mem = jobs->mem };
}

/* ---- finding ---- */

static bool is_better(const struct job_info *job, const struct job_info *than)
{
	if (!than)
		return true;
	if ((job->state == JOB_ENDED) != (than->state == JOB_ENDED))
		return than->state == JOB_ENDED;
	return job->since_ns > than->since_ns;
}

ow_status jobs_find(const struct jobs *jobs, const char *name, const struct job_info **job,
		    struct error *err)
{
	char clean[JOBS_NAME]; /* as the daemon keeps it: not too long, no folders */
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
		return error_set(err, OW_E_NOT_FOUND, "no job is called '%s': the daemon has none",
				 name);
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
