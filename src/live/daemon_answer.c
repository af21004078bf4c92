/* daemon_answer.c: what the daemon is asked for, see jobs.h: lists, and a few things to do. A user is told of own jobs, and
 * may change only these; root all. */
#include "live/daemon_int.h"

#include "base/clock.h"

#include <stdarg.h>
#include <unistd.h>

#define STACKS_HZ_MOST 1000u
#define STACKS_NS_MOST ((int64_t)10000000000)
#define EXPECT_NS ((int64_t)60000000000)

static void say(struct guest *guest, enum jobs_say kind, ow_status status, const void *body,
		size_t size)
{
	struct jobs_head head = { .version = JOBS_VERSION,
				  .kind = kind,
				  .size = (uint32_t)size,
				  .status = (uint32_t)status };

	memcpy(head.magic, JOBS_SAY_MAGIC, sizeof(head.magic));
	buf_add(&guest->out, &head, sizeof(head));
	buf_add(&guest->out, body, size);
}

static void fail(struct guest *guest, ow_status status, const char *format, ...) OW_PRINTF(3, 4);

static void fail(struct guest *guest, ow_status status, const char *format, ...)
{
	char text[512];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	say(guest, JOBS_SAY_FAILED, status, text, MIN((size_t)MAX(len, 0), sizeof(text) - 1));
}

/* ---- lists ---- */

static void say_server(const struct daemon *d, struct guest *guest)
{
	struct job_server server = { .pid = (uint32_t)getpid(),
				     .uid = (uint32_t)geteuid(),
				     .since_ns = d->since_ns,
				     .job_limit = d->options->job_limit,
				     .total_limit = d->options->total_limit,
				     .metrics_port = d->http.port,
				     .has_kineto = d->has_kineto };

	snprintf(server.version, sizeof(server.version), "%s", d->options->version);
	snprintf(server.folder, sizeof(server.folder), "%s", d->folder);
	snprintf(server.socket_path, sizeof(server.socket_path), "%s", d->socket_path);
	say(guest, JOBS_SAY_SERVER, OW_OK, &server, sizeof(server));
}

static void say_processes(struct guest *guest, const struct daemon_job *job)
{
	for (size_t i = 0; job->open && i < job->collector.count; i++) {
		struct collected_info info;
		struct job_process row = { .job = job->info.id };

		if (!collector_info(&job->collector, i, &info))
			continue;
		row.pid = info.pid;
		row.parent = info.parent;
		row.number = info.number;
		row.rank = info.rank;
		row.records = info.records;
		row.steps = step_meter_count(&info.steps);
		row.step_ns = step_meter_median(&info.steps);
		say(guest, JOBS_SAY_PROCESS, OW_OK, &row, sizeof(row));
	}
}

static void answer_list(struct daemon *d, struct guest *guest)
{
	say_server(d, guest);
	for (size_t i = 0; i < d->job_count; i++) {
		struct daemon_job *job = d->jobs[i];

		if (!daemon_may_see(&guest->peer, job->info.uid))
			continue;
		job_describe(job);
		say(guest, JOBS_SAY_JOB, OW_OK, &job->info, sizeof(job->info));
		say_processes(guest, job);
	}
}

/* ---- jobs ---- */

/* The job that is meant, of those that the client may see. */
static struct daemon_job *meant(const struct daemon *d, const struct guest *guest, uint32_t id)
{
	for (size_t i = 0; i < d->job_count; i++)
		if (d->jobs[i]->info.id == id && daemon_may_see(&guest->peer, d->jobs[i]->info.uid))
			return d->jobs[i];
	return NULL;
}

static void answer_flush(struct daemon *d, struct guest *guest, const struct jobs_request *request)
{
	struct daemon_job *job = meant(d, guest, request->job);

	if (!job) {
		fail(guest, OW_E_NOT_FOUND, "there is no job %u", request->job);
		return;
	}
	job_flush(job);
	job_describe(job);
	say(guest, JOBS_SAY_JOB, OW_OK, &job->info, sizeof(job->info));
}

static void answer_stop(struct daemon *d, struct guest *guest, const struct jobs_request *request)
{
	struct daemon_job *job = meant(d, guest, request->job);

	if (!job)
		fail(guest, OW_E_NOT_FOUND, "there is no job %u", request->job);
	else if (job->open)
		collector_ask_stop(&job->collector, request->pid);
}

static void answer_stacks(struct daemon *d, struct guest *guest, const struct jobs_request *request)
{
	struct daemon_job *job = meant(d, guest, request->job);

	if (!job) {
		fail(guest, OW_E_NOT_FOUND, "there is no job %u", request->job);
		return;
	}
	if (!request->pid || request->pid > STACKS_HZ_MOST || request->ns <= 0 ||
	    request->ns > STACKS_NS_MOST) {
		fail(guest, OW_E_USAGE, "the daemon samples stacks 1 to %u times a second",
		     STACKS_HZ_MOST);
		return;
	}
	job_want_stacks(job, request->pid, steady_ns() + request->ns);
}

static void answer_expect(struct daemon *d, struct guest *guest, const struct jobs_request *request)
{
	int64_t now = steady_ns();
	struct expected *to = NULL;

	for (size_t i = 0; i < d->expected_count; i++)
		if (d->expected[i].pid == request->pid || d->expected[i].until_ns <= now)
			to = &d->expected[i];
	if (!to && d->expected_count < DAEMON_EXPECTED)
		to = &d->expected[d->expected_count++];
	if (!to) {
		fail(guest, OW_E_LIMIT, "too many processes are expected already; try again later");
		return;
	}
	*to = (struct expected){ .pid = request->pid,
				 .uid = (uint32_t)guest->peer.uid,
				 .until_ns = now + EXPECT_NS };
	identity_clean_name(to->name, sizeof(to->name), str_from(request->name));
}

/* ---- traces of Kineto ---- */

static bool may_see_pid(const struct guest *guest, pid_t pid)
{
	uid_t uid;

	return guest->peer.uid == 0 ||
	       (proc_owner(pid, &uid) ? uid == guest->peer.uid : guest->peer.uid == geteuid());
}

static void say_kineto(struct guest *guest, const struct kineto_process *process)
{
	struct job_kineto row = { .pid = (uint32_t)process->pid,
				  .state = process->state,
				  .kineto_job = process->job,
				  .size = process->size };

	snprintf(row.path, sizeof(row.path), "%s",
		 process->state == KINETO_WRITTEN ? process->found : process->path);
	say(guest, JOBS_SAY_KINETO, OW_OK, &row, sizeof(row));
}

static void answer_kineto(struct daemon *d, struct guest *guest, const struct jobs_request *request)
{
	if (!d->has_kineto) {
		fail(guest, OW_E_UNSUPPORTED,
		     "the daemon does not have the socket at which jobs ask for work");
		return;
	}
	if (request->path[0] && (request->path[0] != '/' || request->ns < 1000000)) {
		fail(guest, OW_E_USAGE, "a trace needs a folder, by its whole path, and a time");
		return;
	}
	kineto_look(&d->kineto, steady_ns());
	for (size_t i = 0; i < d->kineto.count; i++) {
		struct kineto_process *process = &d->kineto.items[i];

		if ((request->pid && process->pid != (pid_t)request->pid) ||
		    !may_see_pid(guest, process->pid))
			continue;
		if (request->path[0] && process->state != KINETO_WANTED &&
		    process->state != KINETO_TOLD)
			kineto_want(process, request->path, request->ns);
		say_kineto(guest, process);
	}
}

void daemon_answer(struct daemon *d, struct guest *guest, const struct jobs_request *request)
{
	if (request->version != JOBS_VERSION) {
		fail(guest, OW_E_UNSUPPORTED, "the daemon speaks version %u", JOBS_VERSION);
		say(guest, JOBS_SAY_END, OW_OK, "", 0);
		return;
	}
	switch ((enum jobs_ask)request->kind) {
	case JOBS_ASK_LIST:
		answer_list(d, guest);
		break;
	case JOBS_ASK_FLUSH:
		answer_flush(d, guest, request);
		break;
	case JOBS_ASK_EXPECT:
		answer_expect(d, guest, request);
		break;
	case JOBS_ASK_STOP:
		answer_stop(d, guest, request);
		break;
	case JOBS_ASK_KINETO:
		answer_kineto(d, guest, request);
		break;
	case JOBS_ASK_STACKS:
		answer_stacks(d, guest, request);
		break;
	default:
		fail(guest, OW_E_UNSUPPORTED, "the daemon does not know what is asked for");
	}
	say(guest, JOBS_SAY_END, OW_OK, "", 0);
}
