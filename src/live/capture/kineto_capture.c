/*
 * kineto_capture.c: asks PyTorch jobs for traces and waits until they have written them. Opens the socket that the jobs poll
 * or, if the daemon has that socket, lets the daemon ask the jobs. The protocol of the jobs is in kineto.c. Called by
 * ow_capture_kineto.
 */
#include "live/capture/kineto.h"

#include "base/clock.h"
#include "live/daemon/jobs.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TURN_MS 100
#define DAEMON_TURN_US 200000
#define JOBS_MOST 1024

struct asked {
	uint32_t pid;
	bool ended; /* the job has written its trace, or has ended without one */
};

struct kineto_capture {
	const struct ow_capture_options *options;
	const struct kineto_choice *choice;
	char folder[400];
	size_t written, gone, waiting;
	struct kineto kineto; /* used with our own socket */
	struct mem mem;
	struct asked asked[JOBS_MOST]; /* jobs that the daemon asks for us */
	size_t asked_count, ended_count;
};

static ow_status make_folder(struct kineto_capture *c, struct ow_error *err)
{
	bool fits;
	char *full;

	if (mkdir(c->options->dir, 0777) != 0 && errno != EEXIST)
		return error_errno(err, errno, "%s", c->options->dir);
	full = realpath(c->options->dir, NULL);
	if (!full)
		return error_errno(err, errno, "%s", c->options->dir);
	fits = strlen(full) < sizeof(c->folder);
	snprintf(c->folder, sizeof(c->folder), "%s", full);
	free(full);
	return fits ? OW_OK
		    : error_set(err, OW_E_USAGE, "the path of the folder is too long for the jobs");
}

static bool is_chosen(const struct kineto_capture *c, int64_t pid)
{
	for (size_t i = 0; i < c->choice->pid_count; i++)
		if (c->choice->pids[i] == pid)
			return true;
	return !c->choice->pid_count;
}

static void count_ended(struct kineto_capture *c, int64_t pid, enum kineto_state state,
			const char *path, uint64_t size)
{
	char text[800];
	int len;

	c->written += state == KINETO_WRITTEN;
	c->gone += state == KINETO_GONE;
	if (!c->choice->message)
		return;
	if (state == KINETO_WRITTEN)
		len = snprintf(text, sizeof(text), "%.600s: %" PRIu64 " bytes, process %" PRId64,
			       path, size, pid);
	else
		len = snprintf(text, sizeof(text),
			       "process %" PRId64 " ended before it had written a trace", pid);
	c->choice->message(c->choice->message_arg, text, MIN((size_t)len, sizeof(text) - 1));
}

static ow_status judge_outcome(const struct kineto_capture *c, struct ow_error *err)
{
	if (c->written && !c->waiting)
		return OW_OK;
	if (c->waiting)
		return error_set(
			err, OW_E_IO,
			"%zu of %zu jobs have not written their trace in time; it may still "
			"come into %s",
			c->waiting, c->waiting + c->written + c->gone, c->folder);
	if (c->gone)
		return error_set(err, OW_E_NOT_FOUND, "no job has written a trace");
	return error_set(err, OW_E_NOT_FOUND,
			 "no job has asked for work in %.0f s; only jobs that run PyTorch with "
			 "Kineto and were started with KINETO_USE_DAEMON=1 do%s",
			 (double)c->options->wait_ns / 1e9,
			 c->kineto.refused ? "; requests of other users' jobs were ignored" : "");
}

static bool is_interrupted(const struct kineto_capture *c)
{
	return c->options->keep_going && !c->options->keep_going(c->options->keep_going_arg);
}

/* Answers jobs, sends requests to new ones, and counts jobs that have written their trace. */
static ow_status serve_jobs(struct kineto_capture *c, enum kineto_state *before, size_t cap,
			    struct ow_error *err)
{
	struct kineto *k = &c->kineto;

	if (!kineto_turn(k, steady_ns()))
		return error_no_memory(err);
	for (size_t i = 0; i < k->count; i++)
		if (k->items[i].state == KINETO_IDLE && is_chosen(c, k->items[i].pid))
			kineto_want(&k->items[i], c->folder, c->options->for_ns);
	for (size_t i = 0; i < MIN(k->count, cap); i++)
		before[i] = k->items[i].state;
	kineto_check_files(k, steady_ns());
	c->waiting = 0;
	for (size_t i = 0; i < MIN(k->count, cap); i++) {
		const struct kineto_process *p = &k->items[i];

		c->waiting += p->state == KINETO_WANTED || p->state == KINETO_REQUESTED;
		if (p->state != before[i] &&
		    (p->state == KINETO_WRITTEN || p->state == KINETO_GONE))
			count_ended(c, p->pid, p->state, p->found, p->size);
	}
	return OW_OK;
}

static ow_status wait_for_jobs(struct kineto_capture *c, struct ow_error *err)
{
	int64_t until = steady_ns() + c->options->wait_ns + c->options->for_ns;
	enum kineto_state before[JOBS_MOST] = { 0 };
	size_t ended = 0;

	while (steady_ns() < until && (c->waiting || !ended || ended < c->choice->pid_count)) {
		struct pollfd wait = { .fd = c->kineto.fd, .events = POLLIN };

		if (is_interrupted(c))
			return error_set(err, OW_E_INTERRUPTED, "interrupted");
		poll(&wait, 1, TURN_MS);
		OW_TRY(serve_jobs(c, before, ARRAY_COUNT(before), err));
		ended = c->written + c->gone;
	}
	return judge_outcome(c, err);
}

/* Makes the daemon request a trace from a job. */
static ow_status ask_for_trace(struct kineto_capture *c, uint32_t pid, struct ow_error *err)
{
	struct jobs_request request = { .kind = JOBS_ASK_KINETO,
					.pid = pid,
					.ns = c->options->for_ns };
	struct jobs jobs;

	if (c->asked_count == JOBS_MOST)
		return OW_OK;
	if (strlen(c->folder) >= sizeof(request.path))
		return error_set(err, OW_E_USAGE,
				 "the path of the folder is too long for the jobs");
	memcpy(request.path, c->folder, strlen(c->folder) + 1);
	OW_TRY(jobs_ask(&jobs, &c->mem, NULL, &request, err));
	jobs_release(&jobs);
	c->asked[c->asked_count++] = (struct asked){ .pid = pid };
	return OW_OK;
}

static ow_status follow_job(struct kineto_capture *c, const struct job_kineto *row,
			    struct ow_error *err)
{
	struct asked *asked = NULL;

	if (!is_chosen(c, row->pid))
		return OW_OK;
	for (size_t i = 0; i < c->asked_count && !asked; i++)
		if (c->asked[i].pid == row->pid)
			asked = &c->asked[i];
	if (!asked)
		return ask_for_trace(c, row->pid, err);
	if (asked->ended || (row->state != KINETO_WRITTEN && row->state != KINETO_GONE))
		return OW_OK;
	asked->ended = true;
	c->ended_count++;
	count_ended(c, row->pid, (enum kineto_state)row->state, row->path, row->size);
	return OW_OK;
}

static ow_status ask_daemon_once(struct kineto_capture *c, struct ow_error *err)
{
	struct jobs_request request = { .kind = JOBS_ASK_KINETO };
	ow_status status = OW_OK;
	struct jobs jobs;

	OW_TRY(jobs_ask(&jobs, &c->mem, NULL, &request, err));
	for (size_t i = 0; i < jobs.kineto_count && status == OW_OK; i++)
		status = follow_job(c, &jobs.kinetos[i], err);
	jobs_release(&jobs);
	c->waiting = c->asked_count - c->ended_count;
	return status;
}

static ow_status wait_for_daemon(struct kineto_capture *c, struct ow_error *err)
{
	int64_t until = steady_ns() + c->options->wait_ns + c->options->for_ns;

	while (steady_ns() < until) {
		if (is_interrupted(c))
			return error_set(err, OW_E_INTERRUPTED, "interrupted");
		OW_TRY(ask_daemon_once(c, err));
		if (c->asked_count && c->ended_count == c->asked_count &&
		    c->ended_count >= c->choice->pid_count)
			break;
		usleep(DAEMON_TURN_US);
	}
	return OW_OK;
}

/* Captures through the daemon, if it owns the socket. Otherwise the error of kineto_open stays: dynolog
 * owns it. */
static ow_status capture_through_daemon(struct kineto_capture *c, struct ow_error *err)
{
	struct ow_error problem = { 0 };
	ow_status status = wait_for_daemon(c, &problem);

	if (status == OW_E_NOT_FOUND || status == OW_E_UNSUPPORTED)
		return OW_E_LIMIT;
	if (status != OW_OK) {
		if (err)
			*err = problem;
		return status;
	}
	error_clear(err);
	return judge_outcome(c, err);
}

ow_status kineto_capture(const struct ow_capture_options *options,
			 const struct kineto_choice *choice, struct ow_error *err)
{
	struct kineto_capture *c = calloc(1, sizeof(*c));
	ow_status status;

	if (!c)
		return error_no_memory(err);
	c->options = options;
	c->choice = choice;
	mem_init(&c->mem, (size_t)options->memory_limit);
	status = make_folder(c, err);
	if (status == OW_OK) {
		status = kineto_open(&c->kineto, &c->mem,
				     options->socket ? options->socket : KINETO_SOCKET, err);
		if (status == OW_E_LIMIT) {
			status = capture_through_daemon(c, err);
		} else if (status == OW_OK) {
			status = wait_for_jobs(c, err);
			kineto_close(&c->kineto);
		}
	}
	free(c);
	return status;
}
