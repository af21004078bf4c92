/*
 * capture_daemon.c: traces from PyTorch jobs through the daemon, which has the socket at which they ask for work: it is told
 * which ones to ask, and asked what became of it. Used by ow_capture_kineto when the socket is taken.
 */
#include "api/capture_int.h"

#include "base/clock.h"
#include "live/jobs.h"
#include "live/kineto.h"

#include <time.h>
#include <unistd.h>

#define SECOND_NS ((int64_t)1000000000)
#define TURN_US 200000
#define JOBS_MOST 1024

struct asked {
	uint32_t pid;
	bool over; /* has written, or has ended */
};

struct capture {
	const struct kineto_request *request;
	struct mem mem;
	struct asked asked[JOBS_MOST];
	size_t count, over;
	struct kineto_outcome *outcome;
};

static bool is_meant(const struct kineto_request *r, uint32_t pid)
{
	for (size_t i = 0; i < r->pid_count; i++)
		if (r->pids[i] == pid)
			return true;
	return !r->pid_count;
}

static struct asked *find(struct capture *c, uint32_t pid)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->asked[i].pid == pid)
			return &c->asked[i];
	return NULL;
}

static ow_status want(struct capture *c, uint32_t pid, struct error *err)
{
	const struct kineto_request *r = c->request;
	struct jobs_request request = { .kind = JOBS_ASK_KINETO, .pid = pid, .ns = r->for_ns };
	struct jobs jobs;

	if (c->count == JOBS_MOST)
		return OW_OK;
	snprintf(request.path, sizeof(request.path), "%s", r->folder);
	OW_TRY(jobs_ask(&jobs, &c->mem, NULL, &request, err));
	jobs_release(&jobs);
	c->asked[c->count++] = (struct asked){ .pid = pid };
	return OW_OK;
}

static void tell(struct capture *c, const struct job_kineto *row)
{
	char text[800];
	int len;

	if (row->state == KINETO_WRITTEN)
		len = snprintf(text, sizeof(text), "%.600s: %" PRIu64 " bytes, process %u",
			       row->path, row->size, row->pid);
	else
		len = snprintf(text, sizeof(text), "process %u ended before it had written a trace",
			       row->pid);
	if (c->request->message && len > 0)
		c->request->message(c->request->message_arg, text,
				    MIN((size_t)len, sizeof(text) - 1));
}

static ow_status take(struct capture *c, const struct job_kineto *row, struct error *err)
{
	struct asked *asked = find(c, row->pid);

	if (!is_meant(c->request, row->pid))
		return OW_OK;
	if (!asked)
		return want(c, row->pid, err);
	if (asked->over || (row->state != KINETO_WRITTEN && row->state != KINETO_GONE))
		return OW_OK;
	asked->over = true;
	c->over++;
	c->outcome->written += row->state == KINETO_WRITTEN;
	c->outcome->gone += row->state == KINETO_GONE;
	tell(c, row);
	return OW_OK;
}

static ow_status turn(struct capture *c, struct error *err)
{
	struct jobs_request request = { .kind = JOBS_ASK_KINETO };
	ow_status status = OW_OK;
	struct jobs jobs;

	OW_TRY(jobs_ask(&jobs, &c->mem, NULL, &request, err));
	for (size_t i = 0; i < jobs.kineto_count && status == OW_OK; i++)
		status = take(c, &jobs.kinetos[i], err);
	jobs_release(&jobs);
	c->outcome->waiting = c->count - c->over;
	return status;
}

ow_status capture_through_daemon(const struct kineto_request *request,
				 struct kineto_outcome *outcome, struct error *err)
{
	int64_t until = steady_ns() + request->wait_ns + request->for_ns;
	struct capture *c = calloc(1, sizeof(*c));
	ow_status status = OW_OK;

	if (!c)
		return error_no_memory(err);
	c->request = request;
	c->outcome = outcome;
	mem_init(&c->mem, 0);
	while (status == OW_OK && steady_ns() < until) {
		if (request->go_on && !request->go_on(request->go_on_arg))
			status = error_set(err, OW_E_INTERRUPTED, "interrupted");
		if (status == OW_OK)
			status = turn(c, err);
		if (c->count && c->over == c->count && c->over >= request->pid_count)
			break;
		usleep(TURN_US);
	}
	free(c);
	return status;
}
