/*
 * daemon.c: the bodies of ow_daemon and of everything that asks the daemon: lists of jobs, programs that report to it, cuts of
 * their rings. The daemon and the requests to it are in live/daemon.
 */
#include "api/api_int.h"
#include "api/system_keeper.h"
#include "opwatch/live.h"

#include "base/clock.h"
#include "fleet/fleet.h"
#include "live/attach/attach.h"
#include "live/capture/kineto.h"
#include "live/daemon/daemon.h"
#include "live/daemon/job_identity.h"
#include "live/daemon/jobs.h"
#include "live/follow/follow.h"
#include "live/proc/proc.h"
#include "live/record/launch.h"
#include "watch/anomaly.h"

#include "opwatch_config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define MAX_HZ 1000u
#define WRITER "opwatch " OPWATCH_VERSION

void ow_daemon_options_init(struct ow_daemon_options *options)
{
	*options = (struct ow_daemon_options){ .size = sizeof(*options),
					       .job_limit = (uint64_t)512 << 20,
					       .total_limit = (uint64_t)4 << 30,
					       .metrics_port = -1,
					       .push_every_ns = 10000000000 };
}

/* Starts anomaly detection next to the daemon, which does not depend on it. */
static ow_status start_anomalies(const struct ow_daemon_options *o, struct fleet *fleet,
				 struct anomaly_daemon **out, struct ow_error *err)
{
	const struct anomaly_options options = { .slowdown = o->on_slowdown,
						 .stall_ns = o->on_stall_ns,
						 .message = o->message,
						 .message_arg = o->message_arg,
						 .event = fleet ? fleet_event : NULL,
						 .event_arg = fleet,
						 .save_answer = api_save_table,
						 .save = follow_save };

	*out = NULL;
	return o->on_slowdown > 0 || o->on_stall_ns > 0
		       ? anomaly_daemon_start(o->socket, &options, out, err)
		       : OW_OK;
}

#define PASSWORD_MAX 1024

/* Reads a secret from the first line of a file, or from an environment variable. */
static ow_status read_secret(const char *path, const char *variable, char to[PASSWORD_MAX],
			     struct ow_error *err)
{
	const char *given = variable ? getenv(variable) : NULL;
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t len = fd < 0 ? 0 : read(fd, to, PASSWORD_MAX - 1);
	int failed = errno;

	to[MAX(len, (ssize_t)0)] = '\0';
	if (fd >= 0)
		close(fd);
	if (path && (fd < 0 || len < 0))
		return error_errno(err, failed, "%s", path);
	if (!path && given)
		snprintf(to, PASSWORD_MAX, "%s", given);
	to[strcspn(to, "\r\n")] = '\0';
	return OW_OK;
}

/* Starts sending to other systems; *out is NULL if nothing is sent. */
static ow_status start_fleet(const struct ow_daemon_options *o, struct fleet **out,
			     struct ow_error *err)
{
	char password[PASSWORD_MAX] = "", token[PASSWORD_MAX] = "";
	struct fleet_options options = { .socket = o->socket,
					 .push = o->push,
					 .password = password,
					 .otlp = o->otlp,
					 .otlp_token = getenv("OPWATCH_OTLP_TOKEN"),
					 .hook = o->anomaly_post,
					 .hook_token = getenv("OPWATCH_ANOMALY_TOKEN"),
					 .program = o->anomaly_run,
					 .listen = o->listen,
					 .token = token,
					 .redact = o->redact,
					 .every_ns = MAX(o->push_every_ns, (int64_t)1000000000),
					 .message = o->message,
					 .message_arg = o->message_arg };
	ow_status status;

	*out = NULL;
	if (!o->push && !o->otlp && !o->anomaly_post && !o->anomaly_run && !o->listen)
		return OW_OK;
	if ((o->anomaly_post || o->anomaly_run) && o->on_slowdown <= 0 && o->on_stall_ns <= 0)
		return error_set(err, OW_E_USAGE,
				 "give a limit for slow steps or stalls, which defines an "
				 "anomaly (--on-slowdown 20%%, --on-stall 30s)");
	if (o->listen && !o->token_file)
		return error_set(
			err, OW_E_USAGE,
			"--listen needs a token that clients must send: give --token-file");
	status = o->push ? read_secret(o->password_file, "OPWATCH_CLICKHOUSE_PASSWORD", password,
				       err)
			 : OW_OK;
	if (status == OW_OK && o->listen)
		status = read_secret(o->token_file, NULL, token, err);
	if (status == OW_OK)
		status = fleet_start(&options, out, err);
	explicit_bzero(password, sizeof(password));
	explicit_bzero(token, sizeof(token));
	return status;
}

static ow_status run_daemon(const struct ow_daemon_options *full, const struct daemon_options *o,
			    struct ow_error *err)
{
	struct anomaly_daemon *anomalies = NULL;
	struct system_keeper *keeper = NULL;
	struct fleet *fleet;
	struct mem mem;
	ow_status status;

	mem_init(&mem, (size_t)full->memory_limit);
	OW_TRY(start_fleet(full, &fleet, err));
	status = start_anomalies(full, fleet, &anomalies, err);
	if (status == OW_OK && full->system_hz)
		status = system_keeper_start(full, &keeper, err);
	if (status == OW_OK)
		status = daemon_run(o, &mem, err);
	system_keeper_stop(keeper);
	anomaly_daemon_stop(anomalies);
	fleet_stop(fleet);
	return status;
}

ow_status ow_daemon(const struct ow_daemon_options *options, struct ow_error *err)
{
	struct ow_daemon_options full;
	struct daemon_options o;

	error_clear(err);
	ow_daemon_options_init(&full);
	SIZED_IN(&full, options);
	o = (struct daemon_options){
		.socket_path = full.socket,
		.folder = full.dir,
		.job_limit = full.job_limit ? full.job_limit : (uint64_t)512 << 20,
		.total_limit = full.total_limit ? full.total_limit : (uint64_t)4 << 30,
		.all_users = full.all_users,
		.metrics_port = full.metrics_port,
		.metrics_names = full.metrics_names,
		.stacks_hz = full.stacks_hz,
		.version = WRITER,
		.message = full.message,
		.message_arg = full.message_arg,
		.keep_going = full.keep_going,
		.keep_going_arg = full.keep_going_arg
	};
	if (!full.no_kineto)
		o.kineto_socket = full.kineto_socket ? full.kineto_socket : KINETO_SOCKET;
	if (o.job_limit < DAEMON_LIMIT_LEAST || o.total_limit < o.job_limit)
		return error_set(err, OW_E_USAGE,
				 "a ring on disk needs at least 1 MB, and the limit for all rings "
				 "cannot be smaller than one ring");
	if (full.stacks_hz > MAX_HZ)
		return error_set(err, OW_E_USAGE,
				 "the daemon samples stacks at most %u times a second", MAX_HZ);
	if (full.all_users && geteuid() != 0)
		return error_set(err, OW_E_USAGE, "only root can serve all users");
	return run_daemon(&full, &o, err);
}

typedef ow_status (*fill_fn)(const struct jobs *jobs, struct table *r, struct ow_error *err);

static ow_status fill_list(ow_result *list, const char *socket, enum jobs_ask kind,
			   const char *name, fill_fn fill, struct ow_error *err)
{
	struct jobs jobs;
	ow_status status;

	OW_TRY(jobs_ask(&jobs, &list->own, socket, &(struct jobs_request){ .kind = kind }, err));
	list->r = table_new(&list->own, name, err);
	status = list->r ? fill(&jobs, list->r, err) : OW_E_NO_MEMORY;
	jobs_release(&jobs);
	return status;
}

static ow_status make_list(const char *socket, enum jobs_ask kind, const char *name, fill_fn fill,
			   ow_result **result, struct ow_error *err)
{
	ow_result *list = calloc(1, sizeof(*list));
	ow_status status;

	error_clear(err);
	*result = NULL;
	if (!list)
		return error_no_memory(err);
	mem_init(&list->own, 0);
	status = fill_list(list, socket, kind, name, fill, err);
	if (status != OW_OK) {
		table_free(list->r);
		free(list);
		return status;
	}
	*result = list;
	return OW_OK;
}

ow_status ow_jobs(const char *socket, ow_result **result, struct ow_error *err)
{
	return make_list(socket, JOBS_ASK_LIST, "jobs", jobs_fill_table, result, err);
}

ow_status ow_job_anomalies(const char *socket, ow_result **result, struct ow_error *err)
{
	return make_list(socket, JOBS_ASK_ANOMALIES, "anomalies", jobs_fill_anomalies, result, err);
}

#define SECOND_NS ((int64_t)1000000000)
#define TURN_US 100000
#define DETACH_NS (10 * SECOND_NS)
#define STACKS_NS (2 * SECOND_NS) /* stacks are requested again at this interval */
/* longest time that the daemon may delay the start of a program */
#define START_NS (SECOND_NS - SECOND_NS / 10)

static ow_status find_recorder(const struct ow_record_options *options, char *path, size_t size,
			       struct ow_error *err)
{
	if (!options->recorder)
		return recorder_find(path, size, err);
	snprintf(path, size, "%s", options->recorder);
	return OW_OK;
}

static void take_options(struct ow_record_options *to, const struct ow_record_options *from)
{
	ow_record_options_init(to);
	SIZED_IN(to, from);
}

static ow_status find_server(const char *socket, struct mem *mem, struct job_server *server,
			     struct ow_error *err)
{
	struct jobs jobs;

	OW_TRY(jobs_list(&jobs, mem, socket, err));
	*server = jobs.server;
	server->socket_path[sizeof(server->socket_path) - 1] = '\0';
	jobs_release(&jobs);
	return OW_OK;
}

/* Prints one line made of `before`, `what` and `after`. */
static void report(const struct ow_record_options *options, const char *before, const char *what,
		   const char *after)
{
	char text[600];
	int len = snprintf(text, sizeof(text), "%s%s%s", before, what, after);

	if (options->message && len > 0)
		options->message(options->message_arg, text, MIN((size_t)len, sizeof(text) - 1));
}

/* Returns the daemon's socket. A daemon that is missing or does not answer may start later: jobs keep
 * looking for it. */
static ow_status expect_server(const char *socket, struct mem *mem, char path[JOBS_SOCKET_PATH],
			       const struct ow_record_options *options, struct ow_error *err)
{
	const struct jobs_request request = { .kind = JOBS_ASK_LIST };
	struct jobs jobs;
	ow_status status = jobs_ask_within(&jobs, mem, socket, &request, START_NS, path, err);

	if (status == OW_OK) {
		snprintf(path, JOBS_SOCKET_PATH, "%s", jobs.server.socket_path);
		jobs_release(&jobs);
		return OW_OK;
	}
	if (options->must_record || (status != OW_E_NOT_FOUND && status != OW_E_LIMIT))
		return status;
	if (!path[0])
		runtime_usual_socket(path, JOBS_SOCKET_PATH);
	if (status == OW_E_LIMIT)
		report(options, "the daemon at ", path,
		       " does not answer yet; recording starts when it does");
	else
		report(options, "no daemon serves ", path,
		       "; recording starts when one is started");
	error_clear(err);
	return OW_OK;
}

static bool is_there(const char *entry)
{
	for (char **e = environ; *e; e++)
		if (strcmp(*e, entry) == 0)
			return true;
	return false;
}

ow_status ow_job_environment(const char *socket, ow_line_fn line, void *arg, struct ow_error *err)
{
	char recorder[PATH_MAX];
	struct job_server server;
	struct arena arena;
	char *const *env;
	struct mem mem;

	error_clear(err);
	mem_init(&mem, 0);
	OW_TRY(find_server(socket, &mem, &server, err));
	OW_TRY(recorder_find(recorder, sizeof(recorder), err));
	arena_init(&arena, &mem);
	env = environment_make(&arena, recorder, server.socket_path, 0, NULL, false);
	for (size_t i = 0; env && env[i]; i++)
		if (!is_there(env[i]))
			line(arg, env[i], strlen(env[i]));
	arena_release(&arena);
	return env ? OW_OK : error_no_memory(err);
}

static ow_status become(const char *const *argv, char *const *env, struct ow_error *err)
{
	signal(SIGPIPE, SIG_DFL); /* opwatch ignores this signal, but the program must not */
	signal(SIGXFSZ, SIG_DFL);
	execvpe(argv[0], (char *const *)argv, env);
	return error_errno(err, errno, "%s", argv[0]);
}

/* Makes the environment in which a program reports to the daemon. */
static ow_status job_environment(struct arena *arena, const char *socket,
				 const struct ow_record_options *options, char *const **env,
				 struct ow_error *err)
{
	char recorder[PATH_MAX], path[JOBS_SOCKET_PATH];

	OW_TRY(step_marker_check(options->step_marker, err));
	OW_TRY(find_recorder(options, recorder, sizeof(recorder), err));
	OW_TRY(expect_server(socket, arena->mem, path, options, err));
	*env = environment_make(arena, recorder, path, options->ring_records, options->step_marker,
				false);
	return *env ? OW_OK : error_no_memory(err);
}

ow_status ow_record_job(const char *const *argv, const char *socket, const char *job,
			const struct ow_record_options *options, struct ow_error *err)
{
	struct ow_record_options full;
	struct arena arena;
	char *const *env;
	ow_status status;
	struct mem mem;

	error_clear(err);
	take_options(&full, options);
	mem_init(&mem, 0);
	if (job && setenv("OPWATCH_JOB", job, 1) != 0)
		return error_no_memory(err);
	arena_init(&arena, &mem);
	status = job_environment(&arena, socket, &full, &env, err);
	if (status != OW_OK && !full.must_record) {
		report(&full, "", err ? err->text : "the daemon cannot be used",
		       "; the program runs unrecorded (--must-record makes this an error)");
		env = environ;
		status = OW_OK;
	}
	if (status == OW_OK)
		status = become(argv, env, err);
	arena_release(&arena);
	return status;
}

static ow_status expect(const char *socket, struct mem *mem, int pid, const char *job,
			struct ow_error *err)
{
	struct jobs_request request = { .kind = JOBS_ASK_EXPECT, .pid = (uint32_t)pid };
	struct jobs jobs;

	identity_job_name(request.name, str_from(job));
	OW_TRY(jobs_ask(&jobs, mem, socket, &request, err));
	jobs_release(&jobs);
	return OW_OK;
}

ow_status ow_attach_job(const int64_t *pids, size_t count, const char *socket, const char *job,
			const struct ow_record_options *options, struct ow_record_summary *summary,
			struct ow_error *err)
{
	struct ow_record_summary sums = { .size = sizeof(sums) };
	struct ow_record_options full;
	char recorder[PATH_MAX];
	struct job_server server;
	struct mem mem;

	error_clear(err);
	take_options(&full, options);
	OW_TRY(step_marker_check(full.step_marker, err));
	mem_init(&mem, 0);
	OW_TRY(find_server(socket, &mem, &server, err));
	OW_TRY(find_recorder(&full, recorder, sizeof(recorder), err));
	for (size_t i = 0; i < count; i++) {
		struct attach_report report;
		pid_t pid;

		OW_TRY(proc_to_pid(pids[i], &pid, err));
		if (job)
			OW_TRY(expect(socket, &mem, pid, job, err));
		OW_TRY(attach_process(&mem, pid, recorder, server.socket_path, full.step_marker,
				      &report, err));
		if (report.stopped_ns > sums.stopped_ns) {
			sums.stopped_ns = report.stopped_ns;
			sums.waited_ns = report.waited_ns;
		}
		sums.processes++;
		sums.started = true;
		SIZED_OUT(summary, &sums);
	}
	return OW_OK;
}

static ow_status find_job(const char *socket, struct mem *mem, const char *name,
			  struct job_info *job, struct ow_error *err)
{
	const struct job_info *found;
	struct jobs jobs;
	ow_status status;

	OW_TRY(jobs_list(&jobs, mem, socket, err));
	status = jobs_find(&jobs, name, &found, err);
	if (status == OW_OK)
		*job = *found;
	jobs_release(&jobs);
	return status;
}

/* Sends a request about a job and takes the answer. */
static ow_status ask_of_job(const char *socket, struct mem *mem, enum jobs_ask what,
			    struct job_info *job, struct ow_error *err)
{
	struct jobs_request request = { .kind = what, .job = job->id };
	struct jobs jobs;

	OW_TRY(jobs_ask(&jobs, mem, socket, &request, err));
	if (jobs.count)
		*job = jobs.items[0];
	jobs_release(&jobs);
	return OW_OK;
}

static ow_status ask_for_stacks(const char *socket, struct mem *mem, uint32_t hz,
				const struct job_info *job, struct ow_error *err)
{
	struct jobs_request request = {
		.kind = JOBS_ASK_STACKS, .job = job->id, .pid = hz, .ns = STACKS_NS
	};
	struct jobs jobs;

	if (!hz)
		return OW_OK;
	OW_TRY(jobs_ask(&jobs, mem, socket, &request, err));
	jobs_release(&jobs);
	return OW_OK;
}

ow_status ow_detach_job(const char *socket, const char *name, struct ow_error *err)
{
	int64_t end = steady_ns() + DETACH_NS;
	struct job_info job;
	struct mem mem;

	error_clear(err);
	mem_init(&mem, 0);
	OW_TRY(find_job(socket, &mem, name, &job, err));
	OW_TRY(ask_of_job(socket, &mem, JOBS_ASK_STOP, &job, err));
	do {
		OW_TRY(ask_of_job(socket, &mem, JOBS_ASK_FLUSH, &job, err));
		if (!job.processes)
			return OW_OK;
		usleep(TURN_US);
	} while (steady_ns() < end);
	return error_set(err, OW_E_LIMIT,
			 "%u process%s of job %s has not taken the hooks out yet; it will when it "
			 "gets to run",
			 job.processes, job.processes == 1 ? "" : "es", job.name);
}

ow_status ow_job_pids(const char *socket, const char *name, int64_t *pids, size_t cap,
		      size_t *count, struct ow_error *err)
{
	const struct job_info *job;
	struct jobs jobs;
	struct mem mem;
	ow_status status;

	error_clear(err);
	mem_init(&mem, 0);
	*count = 0;
	OW_TRY(jobs_list(&jobs, &mem, socket, err));
	status = jobs_find(&jobs, name, &job, err);
	for (size_t i = 0; status == OW_OK && i < jobs.process_count; i++) {
		if (jobs.processes[i].job != job->id)
			continue;
		if (*count < cap)
			pids[*count] = jobs.processes[i].pid;
		(*count)++;
	}
	if (status == OW_OK && !*count)
		status = error_set(err, OW_E_EMPTY, "job %s has no process that runs", name);
	jobs_release(&jobs);
	return status;
}

static ow_status cut_job(const char *socket, struct mem *mem, struct cut *cut, struct job_info *job,
			 struct ow_cut_summary *summary, struct ow_error *err)
{
	struct ow_cut_summary shown;
	struct cut_summary sums;

	OW_TRY(ask_of_job(socket, mem, JOBS_ASK_FLUSH, job, err));
	cut->job = job;
	OW_TRY(cut_ring(cut, mem, &sums, err));
	shown = (struct ow_cut_summary){ .size = sizeof(shown),
					 .records = sums.records,
					 .processes = sums.processes,
					 .covers_ns = sums.covers_ns,
					 .samples = sums.samples };
	SIZED_OUT(summary, &shown);
	return OW_OK;
}

ow_status ow_job_cut(const char *socket, const char *name, int64_t last_ns, const char *out_path,
		     struct ow_cut_summary *summary, struct ow_error *err)
{
	struct cut cut = { .last_ns = last_ns, .out_path = out_path };
	struct job_info job;
	struct mem mem;

	error_clear(err);
	mem_init(&mem, 0);
	OW_TRY(find_job(socket, &mem, name, &job, err));
	return cut_job(socket, &mem, &cut, &job, summary, err);
}

ow_status ow_job_follow(const char *socket, const char *name, const char *out_path,
			const struct ow_record_options *options, struct ow_cut_summary *summary,
			struct ow_error *err)
{
	struct cut cut = { .from_ns = steady_ns(), .out_path = out_path };
	struct ow_record_options o;
	struct job_info job;
	struct mem mem;

	error_clear(err);
	take_options(&o, options);
	mem_init(&mem, 0);
	OW_TRY(find_job(socket, &mem, name, &job, err));
	while (job.state != JOB_ENDED && (!o.keep_going || o.keep_going(o.keep_going_arg)) &&
	       !(o.duration_ns && steady_ns() - cut.from_ns >= o.duration_ns)) {
		OW_TRY(ask_for_stacks(socket, &mem, o.stacks_hz, &job, err));
		usleep(TURN_US);
		OW_TRY(ask_of_job(socket, &mem, JOBS_ASK_FLUSH, &job, err));
	}
	return cut_job(socket, &mem, &cut, &job, summary, err);
}
