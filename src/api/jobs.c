/* jobs.c: the bodies of the calls that name a job of the daemon: running a program as part of it, joining it, cutting its
 * recent past out. The work is in live/. */
#include "api/api_int.h"

#include "base/clock.h"
#include "live/attach.h"
#include "live/cut.h"
#include "live/environment.h"
#include "live/job_identity.h"
#include "live/jobs.h"
#include "live/launch.h"
#include "live/runtime_dir.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS ((int64_t)1000000000)
#define TURN_US 100000
#define DETACH_NS (10 * SECOND_NS)
#define STACKS_NS (2 * SECOND_NS) /* they are asked for again and again */

static ow_status find_recorder(const struct ow_record_options *options, char *path, size_t size,
			       struct error *err)
{
	if (!options->recorder)
		return recorder_find(path, size, err);
	snprintf(path, size, "%s", options->recorder);
	return OW_OK;
}

static void take_options(struct ow_record_options *to, const struct ow_record_options *from)
{
	ow_record_options_init(to);
	if (from)
		memcpy(to, from, MIN(from->size, sizeof(*to)));
}

static ow_status find_server(const char *socket, struct mem *mem, struct job_server *server,
			     struct error *err)
{
	struct jobs jobs;

	OW_TRY(jobs_list(&jobs, mem, socket, err));
	*server = jobs.server;
	server->socket_path[sizeof(server->socket_path) - 1] = '\0';
	jobs_release(&jobs);
	return OW_OK;
}

/* Where a daemon will be that is not there now: jobs look for it. */
static ow_status expect_server(const char *socket, struct mem *mem, struct job_server *server,
			       const struct ow_record_options *options, struct error *err)
{
	ow_status status = find_server(socket, mem, server, err);
	char text[600];
	int len;

	if (status != OW_E_NOT_FOUND)
		return status;
	if (socket)
		snprintf(server->socket_path, sizeof(server->socket_path), "%s", socket);
	else
		runtime_usual_socket(server->socket_path, sizeof(server->socket_path));
	len = snprintf(text, sizeof(text),
		       "no daemon serves %s: the program is recorded from when there is one",
		       server->socket_path);
	if (options->message && len > 0)
		options->message(options->message_arg, text, MIN((size_t)len, sizeof(text) - 1));
	error_clear(err);
	return OW_OK;
}

/* ---- programs that report to the daemon ---- */

static bool is_there(const char *entry)
{
	for (char **e = environ; *e; e++)
		if (strcmp(*e, entry) == 0)
			return true;
	return false;
}

ow_status ow_job_environment(const char *socket, ow_line_fn line, void *arg, struct error *err)
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
	env = environment_make(&arena, recorder, server.socket_path, 0);
	for (size_t i = 0; env && env[i]; i++)
		if (!is_there(env[i]))
			line(arg, env[i], strlen(env[i]));
	arena_release(&arena);
	return env ? OW_OK : error_no_memory(err);
}

static ow_status become(const char *const *argv, char *const *env, struct error *err)
{
	signal(SIGPIPE, SIG_DFL); /* which the program ignores for itself */
	signal(SIGXFSZ, SIG_DFL);
	execvpe(argv[0], (char *const *)argv, env);
	return error_errno(err, errno, "%s", argv[0]);
}

ow_status ow_record_job(const char *const *argv, const char *socket, const char *job,
			const struct ow_record_options *options, struct error *err)
{
	struct ow_record_options full;
	char recorder[PATH_MAX];
	struct job_server server;
	struct arena arena;
	char *const *env;
	ow_status status;
	struct mem mem;

	error_clear(err);
	take_options(&full, options);
	mem_init(&mem, 0);
	OW_TRY(expect_server(socket, &mem, &server, &full, err));
	OW_TRY(find_recorder(&full, recorder, sizeof(recorder), err));
	if (job && setenv("OPWATCH_JOB", job, 1) != 0)
		return error_no_memory(err);
	arena_init(&arena, &mem);
	env = environment_make(&arena, recorder, server.socket_path, full.ring_records);
	status = env ? become(argv, env, err) : error_no_memory(err);
	arena_release(&arena);
	return status;
}

static ow_status expect(const char *socket, struct mem *mem, int pid, const char *job,
			struct error *err)
{
	struct jobs_request request = { .kind = JOBS_ASK_EXPECT, .pid = (uint32_t)pid };
	struct jobs jobs;

	identity_job_name(request.name, str_from(job));
	OW_TRY(jobs_ask(&jobs, mem, socket, &request, err));
	jobs_release(&jobs);
	return OW_OK;
}

ow_status ow_attach_job(const int *pids, size_t count, const char *socket, const char *job,
			const struct ow_record_options *options, struct ow_record_summary *summary,
			struct error *err)
{
	struct ow_record_options full;
	char recorder[PATH_MAX];
	struct job_server server;
	struct mem mem;

	error_clear(err);
	take_options(&full, options);
	mem_init(&mem, 0);
	OW_TRY(find_server(socket, &mem, &server, err));
	OW_TRY(find_recorder(&full, recorder, sizeof(recorder), err));
	for (size_t i = 0; i < count; i++) {
		struct attach_report report;

		if (job)
			OW_TRY(expect(socket, &mem, pids[i], job, err));
		OW_TRY(attach_process(&mem, pids[i], recorder, server.socket_path, &report, err));
		if (summary) {
			if (report.stopped_ns > summary->stopped_ns) {
				summary->stopped_ns = report.stopped_ns;
				summary->waited_ns = report.waited_ns;
			}
			summary->processes++;
			summary->started = true;
		}
	}
	return OW_OK;
}

/* ---- jobs ---- */

static ow_status find_job(const char *socket, struct mem *mem, const char *name,
			  struct job_info *job, struct error *err)
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

/* Asks for something, and takes what is said of the job. */
static ow_status ask_of_job(const char *socket, struct mem *mem, enum jobs_ask what,
			    struct job_info *job, struct error *err)
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
				const struct job_info *job, struct error *err)
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

ow_status ow_detach_job(const char *socket, const char *name, struct error *err)
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
		      size_t *count, struct error *err)
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
			 struct ow_cut_summary *summary, struct error *err)
{
	struct cut_summary sums;

	OW_TRY(ask_of_job(socket, mem, JOBS_ASK_FLUSH, job, err));
	cut->job = job;
	cut->save = api_save_cut;
	OW_TRY(cut_ring(cut, mem, &sums, err));
	if (summary) {
		summary->records = sums.records;
		summary->processes = sums.processes;
		summary->covers_ns = sums.covers_ns;
		if (summary->size >= sizeof(*summary))
			summary->samples = sums.samples;
	}
	return OW_OK;
}

ow_status ow_job_cut(const char *socket, const char *name, int64_t last_ns, const char *out_path,
		     struct ow_cut_summary *summary, struct error *err)
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
			struct error *err)
{
	struct cut cut = { .from_ns = steady_ns(), .out_path = out_path };
	struct ow_record_options o;
	struct job_info job;
	struct mem mem;

	error_clear(err);
	take_options(&o, options);
	mem_init(&mem, 0);
	OW_TRY(find_job(socket, &mem, name, &job, err));
	while (job.state != JOB_ENDED && !(o.cancelled && o.cancelled(o.cancel_arg)) &&
	       !(o.duration_ns && steady_ns() - cut.from_ns >= o.duration_ns)) {
		OW_TRY(ask_for_stacks(socket, &mem, o.stacks_hz, &job, err));
		usleep(TURN_US);
		OW_TRY(ask_of_job(socket, &mem, JOBS_ASK_FLUSH, &job, err));
	}
	return cut_job(socket, &mem, &cut, &job, summary, err);
}
