/*
 * jobs.c: the route of the page Jobs: the running jobs of the daemon, as `opwatch top` shows them. The watch is created
 * by the first request; each request reads new records. Only one request is handled at a time.
 */
#include "page/page_int.h"

#include "base/json_escape.h"

#include <math.h>

static void add_text(struct buf *to, const char *key, const char *text)
{
	buf_printf(to, ", \"%s\": ", key);
	json_quote(to, str_from(text ? text : ""));
}

/* Adds a number of nanoseconds; an unknown one is negative in struct ow_job, and null here. */
static void add_ns(struct buf *to, const char *key, int64_t ns)
{
	if (ns < 0)
		buf_printf(to, ", \"%s\": null", key);
	else
		buf_printf(to, ", \"%s\": %lld", key, (long long)ns);
}

static void add_real(struct buf *to, const char *key, double value, bool known)
{
	if (known && isfinite(value))
		buf_printf(to, ", \"%s\": %.6g", key, value);
	else
		buf_printf(to, ", \"%s\": null", key);
}

static void add_phases(struct buf *to, const int64_t phases[OW_PHASES])
{
	const char *name;

	buf_puts(to, ", \"phases\": {");
	for (size_t i = 0; i < OW_PHASES && (name = ow_phase_name(i)) != NULL; i++)
		buf_printf(to, "%s\"%s\": %lld", i ? ", " : "", name, (long long)phases[i]);
	buf_puts(to, "}");
}

static void add_lists(struct buf *to, const struct ow_job *job)
{
	buf_puts(to, ", \"ranks\": [");
	for (size_t i = 0; i < job->rank_count; i++) {
		const struct ow_job_rank *rank = &job->ranks[i];

		buf_printf(to, "%s{\"rank\": %d, \"steps\": %llu", i ? ", " : "", rank->rank,
			   (unsigned long long)rank->steps);
		add_ns(to, "step_ns", rank->step_ns);
		add_ns(to, "last_ns", rank->last_ns);
		add_ns(to, "own_ns", rank->own_ns);
		buf_puts(to, "}");
	}
	buf_puts(to, "], \"ops\": [");
	for (size_t i = 0; i < job->op_count; i++) {
		const struct ow_job_op *op = &job->ops[i];

		buf_printf(to, "%s{\"self_ns\": %lld", i ? ", " : "", (long long)op->self_ns);
		add_text(to, "name", op->name);
		add_real(to, "runs", op->runs, true);
		add_real(to, "percent", 100 * op->share, op->share >= 0);
		buf_puts(to, "}");
	}
	buf_puts(to, "], \"recent\": [");
	for (size_t i = 0; i < job->recent_count; i++)
		buf_printf(to, "%s%lld", i ? ", " : "", (long long)job->recent[i]);
	buf_puts(to, "], \"pids\": [");
	for (size_t i = 0; i < job->pid_count; i++)
		buf_printf(to, "%s%lld", i ? ", " : "", (long long)job->pids[i]);
	buf_puts(to, "]");
}

static void add_job(struct buf *to, const struct ow_job *job)
{
	static const char *const states[] = { "runs", "ended", "lost" };

	buf_printf(to, "{\"state\": \"%s\", \"processes\": %u, \"has_steps\": %s, \"steps\": %llu",
		   states[job->state], job->processes, job->has_steps ? "true" : "false",
		   (unsigned long long)job->steps);
	add_text(to, "name", job->name);
	add_text(to, "path", job->path);
	add_ns(to, "step_ns", job->step_ns);
	add_ns(to, "last_ns", job->last_ns);
	add_ns(to, "since_ns", job->since_ns);
	add_real(to, "trend", job->trend, true);
	add_real(to, "cpu", job->cpu, job->cpu >= 0);
	add_real(to, "device", job->device, job->device >= 0);
	add_real(to, "gpu", job->gpu, job->gpu >= 0);
	buf_printf(
		to,
		", \"slowest_rank\": %d, \"records\": %llu, \"dropped\": %llu, \"damaged\": %llu",
		job->slowest_rank, (unsigned long long)job->records,
		(unsigned long long)job->dropped, (unsigned long long)job->damaged);
	add_real(to, "slowest_by", job->slowest_by, job->slowest_rank >= 0);
	add_phases(to, job->phase_ns);
	add_lists(to, job);
	buf_puts(to, "}");
}

/* Lists the jobs. The caller holds the lock. */
static ow_status list_jobs(struct ow_ui *u, struct buf *to, struct ow_error *err)
{
	struct ow_job job = { .size = sizeof(job) };
	struct ow_error none = { 0 };
	ow_status added;

	if (!u->watch)
		OW_TRY(ow_watch_new(NULL, &u->watch, err));
	/* Without a daemon or jobs, the list is empty and has the reason. */
	added = ow_watch_add_jobs(u->watch, u->daemon_socket, NULL, &none);
	OW_TRY(ow_watch_turn(u->watch, NULL, err));
	buf_puts(to, "{\"why\": ");
	json_quote(to, str_from(added == OW_OK ? "" : none.text));
	buf_puts(to, ", \"jobs\": [");
	for (size_t i = 0; ow_watch_job(u->watch, i, &job); i++) {
		buf_puts(to, i ? ",\n" : "\n");
		add_job(to, &job);
	}
	buf_puts(to, "]}\n");
	return OW_OK;
}

PAGE_HANDLER(jobs)
{
	struct ow_ui *u = ui;
	struct ow_error err = { 0 };
	ow_status status;

	(void)request;
	pthread_mutex_lock(&u->watch_lock);
	status = list_jobs(u, &reply->body, &err);
	pthread_mutex_unlock(&u->watch_lock);
	if (status != OW_OK)
		page_fail(reply, status, &err);
}
