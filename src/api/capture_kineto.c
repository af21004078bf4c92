/*
 * capture_kineto.c: the body of ow_capture_kineto: PyTorch jobs write traces when they ask. The protocol is in
 * live/kineto.c.
 */
#include "api/capture_int.h"

#include "base/clock.h"
#include "live/kineto.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>

#define SECOND_NS ((int64_t)1000000000)
#define TURN_MS 100

struct kineto_capture {
	struct kineto kineto;
	const struct ow_capture_options *options;
	const int64_t *pids;
	size_t pid_count;
	char folder[400];
	ow_line_fn message;
	void *message_arg;
	size_t written, gone, waiting;
};

static ow_status make_folder(struct kineto_capture *c, struct error *err)
{
	char *full;

	if (mkdir(c->options->dir, 0777) != 0 && errno != EEXIST)
		return error_errno(err, errno, "%s", c->options->dir);
	full = realpath(c->options->dir, NULL);
	if (!full)
		return error_errno(err, errno, "%s", c->options->dir);
	snprintf(c->folder, sizeof(c->folder), "%s", full);
	if (strlen(full) >= sizeof(c->folder)) {
		free(full);
		return error_set(err, OW_E_USAGE,
				 "the path of the folder is too long for the jobs");
	}
	free(full);
	return OW_OK;
}

static bool is_meant(const struct kineto_capture *c, pid_t pid)
{
	for (size_t i = 0; i < c->pid_count; i++)
		if (c->pids[i] == pid)
			return true;
	return !c->pid_count;
}

static void tell(struct kineto_capture *c, const struct kineto_process *process)
{
	char text[800];
	int len;

	if (process->state == KINETO_WRITTEN)
		len = snprintf(text, sizeof(text), "%s: %" PRIu64 " bytes, process %d",
			       process->found, process->size, (int)process->pid);
	else
		len = snprintf(text, sizeof(text), "process %d ended before it had written a trace",
			       (int)process->pid);
	if (c->message)
		c->message(c->message_arg, text, MIN((size_t)len, sizeof(text) - 1));
}

/* What has come, who is new, and who has done it. */
static ow_status turn(struct kineto_capture *c, enum kineto_state *before, size_t cap,
		      struct error *err)
{
	struct kineto *k = &c->kineto;

	if (!kineto_turn(k, steady_ns()))
		return error_no_memory(err);
	for (size_t i = 0; i < k->count; i++)
		if (k->items[i].state == KINETO_IDLE && is_meant(c, k->items[i].pid))
			kineto_want(&k->items[i], c->folder, c->options->for_ns);
	for (size_t i = 0; i < MIN(k->count, cap); i++)
		before[i] = k->items[i].state;
	kineto_look(k, steady_ns());
	c->waiting = 0;
	for (size_t i = 0; i < MIN(k->count, cap); i++) {
		enum kineto_state state = k->items[i].state;

		c->waiting += state == KINETO_WANTED || state == KINETO_TOLD;
		if (state == before[i] || (state != KINETO_WRITTEN && state != KINETO_GONE))
			continue;
		c->written += state == KINETO_WRITTEN;
		c->gone += state == KINETO_GONE;
		tell(c, &k->items[i]);
	}
	return OW_OK;
}

static bool is_done(const struct kineto_capture *c)
{
	size_t ended = c->written + c->gone;

	return !c->waiting && ended && ended >= c->pid_count;
}

static ow_status judge(const struct kineto_capture *c, struct error *err)
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
			 "no job has asked for work in %.0f s: jobs do so that run PyTorch with "
			 "Kineto and were started with KINETO_USE_DAEMON=1%s",
			 (double)c->options->wait_ns / 1e9,
			 c->kineto.refused ? "; jobs of other users were not listened to" : "");
}

static ow_status run(struct kineto_capture *c, struct error *err)
{
	const struct ow_capture_options *o = c->options;
	int64_t until = steady_ns() + o->wait_ns + o->for_ns;
	enum kineto_state before[1024] = { 0 };

	while (!is_done(c) && steady_ns() < until) {
		struct pollfd wait = { .fd = c->kineto.fd, .events = POLLIN };

		if (o->progress && !o->progress(o->progress_arg))
			return error_set(err, OW_E_INTERRUPTED, "interrupted");
		poll(&wait, 1, TURN_MS);
		OW_TRY(turn(c, before, ARRAY_COUNT(before), err));
	}
	return judge(c, err);
}

/* The socket is taken: by the daemon, maybe, which can be asked for the same. */
static ow_status ask_daemon(struct kineto_capture *c, struct error *err)
{
	struct kineto_request request = { .folder = c->folder,
					  .for_ns = c->options->for_ns,
					  .wait_ns = c->options->wait_ns,
					  .pids = c->pids,
					  .pid_count = c->pid_count,
					  .message = c->message,
					  .message_arg = c->message_arg,
					  .go_on = c->options->progress,
					  .go_on_arg = c->options->progress_arg };
	struct kineto_outcome outcome = { 0 };
	struct error problem = { 0 };
	ow_status status = capture_through_daemon(&request, &outcome, &problem);

	if (status == OW_E_NOT_FOUND || status == OW_E_UNSUPPORTED)
		return OW_E_LIMIT; /* it is dynolog's, as was said */
	if (status != OW_OK) {
		if (err)
			*err = problem;
		return status;
	}
	error_clear(err);
	c->written = outcome.written;
	c->gone = outcome.gone;
	c->waiting = outcome.waiting;
	return judge(c, err);
}

ow_status ow_capture_kineto(const struct ow_capture_options *options, const int64_t *pids,
			    size_t pid_count, ow_line_fn message, void *message_arg,
			    struct error *err)
{
	struct ow_capture_options full;
	struct kineto_capture c = { .options = &full,
				    .pids = pids,
				    .pid_count = pid_count,
				    .message = message,
				    .message_arg = message_arg };
	struct mem mem;
	ow_status status;

	error_clear(err);
	ow_capture_options_init(&full);
	if (options)
		memcpy(&full, options, MIN(options->size, sizeof(full)));
	if (!full.dir || full.for_ns < 1000000 || full.wait_ns < 0)
		return error_set(err, OW_E_USAGE, "a capture needs a folder and a time");
	OW_TRY(make_folder(&c, err));
	mem_init(&mem, (size_t)full.memory_limit);
	status = kineto_open(&c.kineto, &mem, full.socket ? full.socket : KINETO_SOCKET, err);
	if (status == OW_E_LIMIT)
		return ask_daemon(&c, err);
	if (status != OW_OK)
		return status;
	status = run(&c, err);
	kineto_close(&c.kineto);
	return status;
}
