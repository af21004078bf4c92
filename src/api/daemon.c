/* daemon.c: the bodies of ow_daemon and ow_jobs; the work is in live/. */
#include "api/api_int.h"

#include "live/daemon.h"
#include "live/jobs.h"
#include "live/kineto.h"
#include "watch/attend.h"

#include "opwatch_config.h"

#include <pwd.h>
#include <time.h>
#include <unistd.h>

#define MAX_HZ 1000u
#define WRITER "opwatch " OPWATCH_VERSION

/* ---- serving ---- */

void ow_daemon_options_init(struct ow_daemon_options *options)
{
	*options = (struct ow_daemon_options){ .size = sizeof(*options),
					       .job_limit = (uint64_t)512 << 20,
					       .total_limit = (uint64_t)4 << 30,
					       .metrics_port = -1 };
}

/* Beside the daemon, which knows nothing of it. */
static ow_status attend(const struct ow_daemon_options *o, struct attend **out, struct error *err)
{
	const struct attention_options options = { .slowdown = o->on_slowdown,
						   .stall_ns = o->on_stall_ns,
						   .message = o->message,
						   .message_arg = o->message_arg,
						   .save = api_save_cut };

	*out = NULL;
	return o->on_slowdown > 0 || o->on_stall_ns > 0
		       ? attend_start(o->socket, &options, out, err)
		       : OW_OK;
}

ow_status ow_daemon(const struct ow_daemon_options *options, struct error *err)
{
	struct attend *attending;
	ow_status status;
	struct ow_daemon_options full;
	struct daemon_options o;
	struct mem mem;

	error_clear(err);
	ow_daemon_options_init(&full);
	if (options)
		memcpy(&full, options, MIN(options->size, sizeof(full)));
	o = (struct daemon_options){
		.socket_path = full.socket,
		.folder = full.dir,
		.job_limit = full.job_limit ? full.job_limit : (uint64_t)512 << 20,
		.total_limit = full.total_limit ? full.total_limit : (uint64_t)4 << 30,
		.all_users = full.all_users,
		.metrics_port = full.metrics_port,
		.stacks_hz = full.stacks_hz,
		.version = WRITER,
		.message = full.message,
		.message_arg = full.message_arg,
		.cancelled = full.cancelled,
		.cancel_arg = full.cancel_arg
	};
	if (!full.no_kineto)
		o.kineto_socket = full.kineto_socket ? full.kineto_socket : KINETO_SOCKET;
	if (o.job_limit < DAEMON_LIMIT_LEAST || o.total_limit < o.job_limit)
		return error_set(err, OW_E_USAGE,
				 "a ring on disk needs 1 MB at least, and all of them no less than "
				 "one");
	if (full.stacks_hz > MAX_HZ)
		return error_set(err, OW_E_USAGE,
				 "the daemon samples stacks %u times a second at most", MAX_HZ);
	if (full.all_users && geteuid() != 0)
		return error_set(err, OW_E_USAGE, "only root can serve all users");
	mem_init(&mem, (size_t)full.memory_limit);
	OW_TRY(attend(&full, &attending, err));
	status = daemon_run(&o, &mem, err);
	attend_stop(attending);
	return status;
}

/* ---- lists ---- */

static void user_name(uint32_t uid, char *to, size_t size)
{
	struct passwd entry, *found = NULL;
	char room[4096];

	if (getpwuid_r(uid, &entry, room, sizeof(room), &found) == 0 && found)
		snprintf(to, size, "%s", entry.pw_name);
	else
		snprintf(to, size, "%u", uid);
}

static void pids_text(const struct jobs *jobs, uint32_t job, struct buf *to)
{
	buf_clear(to);
	for (size_t i = 0; i < jobs->process_count; i++)
		if (jobs->processes[i].job == job)
			buf_printf(to, "%s%u", to->len ? "," : "", jobs->processes[i].pid);
}

enum {
	COLUMN_JOB,
	COLUMN_ID,
	COLUMN_RANKS,
	COLUMN_PIDS,
	COLUMN_USER,
	COLUMN_FRAMEWORK,
	COLUMN_SINCE,
	COLUMN_STEPS,
	COLUMN_STEP_NS,
	COLUMN_EVENTS,
	COLUMN_DROPS,
	COLUMN_DISK,
	COLUMN_SAVED,
	COLUMN_STATE,
	COLUMN_IDENTITY,
	COLUMN_RING
};

static void add_columns(struct result *r)
{
	result_column(r, "job", "job", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "id", "id", RESULT_INT, RESULT_PLAIN);
	result_column(r, "ranks", "ranks", RESULT_INT, RESULT_PLAIN);
	result_column(r, "pids", "pids", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "user", "user", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "framework", "framework", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "since", "since", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "steps", "steps", RESULT_INT, RESULT_PLAIN);
	result_column(r, "step_ns", "step", RESULT_INT, RESULT_NS);
	result_column(r, "events", "events", RESULT_INT, RESULT_COUNT);
	result_column(r, "drops", "drops", RESULT_INT, RESULT_COUNT);
	result_column(r, "disk_bytes", "on disk", RESULT_INT, RESULT_BYTES);
	result_column(r, "saved_bytes", "saved", RESULT_INT, RESULT_BYTES);
	result_column(r, "state", "state", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "identity", "known by", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "ring", "ring", RESULT_TEXT, RESULT_PLAIN);
	r->columns[COLUMN_IDENTITY].for_programs = r->columns[COLUMN_RING].for_programs = true;
	r->columns[COLUMN_ID].for_programs = true;
}

static void since_text(int64_t ns, char *to, size_t size)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm tm;

	to[0] = '\0';
	if (localtime_r(&seconds, &tm))
		(void)!strftime(to, size, "%Y-%m-%d %H:%M:%S", &tm);
}

static void add_job(struct result *r, const struct jobs *jobs, const struct job_info *job,
		    struct buf *pids)
{
	uint32_t row = result_row(r, 0);
	char text[64];

	if (row == UINT32_MAX)
		return;
	pids_text(jobs, job->id, pids);
	result_set_text(r, row, COLUMN_JOB, str_from(job->name));
	result_set_int(r, row, COLUMN_ID, job->id);
	result_set_int(r, row, COLUMN_RANKS, job->ranks);
	result_set_text(r, row, COLUMN_PIDS, buf_str(pids));
	user_name(job->uid, text, sizeof(text));
	result_set_text(r, row, COLUMN_USER, str_from(text));
	result_set_text(r, row, COLUMN_FRAMEWORK, str_from(job->framework));
	since_text(job->since_ns, text, sizeof(text));
	result_set_text(r, row, COLUMN_SINCE, str_from(text));
	result_set_int(r, row, COLUMN_STEPS, (int64_t)job->steps);
	if (job->step_ns)
		result_set_int(r, row, COLUMN_STEP_NS, job->step_ns);
	else
		result_set_unknown(r, row, COLUMN_STEP_NS);
	result_set_int(r, row, COLUMN_EVENTS, (int64_t)job->records);
	result_set_int(r, row, COLUMN_DROPS, (int64_t)job->dropped);
	result_set_int(r, row, COLUMN_DISK, (int64_t)job->disk_bytes);
	result_set_int(r, row, COLUMN_SAVED, (int64_t)job->saved_bytes);
	result_set_text(r, row, COLUMN_STATE, str_from(job_state_name(job->state)));
	result_set_text(r, row, COLUMN_IDENTITY, str_from(job->identity));
	result_set_text(r, row, COLUMN_RING, str_from(job->folder));
}

static ow_status list_jobs(ow_result *list, const char *socket, struct error *err)
{
	struct jobs jobs;
	struct buf pids;
	ow_status status;

	OW_TRY(jobs_list(&jobs, &list->own, socket, err));
	buf_init(&pids, &list->own);
	list->r = result_new(&list->own, "jobs", err);
	status = list->r ? OW_OK : OW_E_NO_MEMORY;
	if (status == OW_OK) {
		add_columns(list->r);
		for (size_t i = 0; i < jobs.count; i++)
			add_job(list->r, &jobs, &jobs.items[i], &pids);
		if (list->r->status != OW_OK || pids.failed)
			status = error_no_memory(err);
	}
	buf_release(&pids);
	jobs_release(&jobs);
	return status;
}

ow_status ow_jobs(const char *socket, ow_result **result, struct error *err)
{
	ow_result *list = calloc(1, sizeof(*list));
	ow_status status;

	error_clear(err);
	*result = NULL;
	if (!list)
		return error_no_memory(err);
	mem_init(&list->own, 0);
	status = list_jobs(list, socket, err);
	if (status != OW_OK) {
		result_free(list->r);
		free(list);
		return status;
	}
	*result = list;
	return OW_OK;
}
