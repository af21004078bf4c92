/*
 * daemon_answer.c: what the daemon answers to requests of clients over its socket (jobs.h). Users see and change only their own
 * jobs, root all of them. Nothing here blocks; daemon.c calls it from its loop.
 */
#include "live/daemon/daemon_int.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#define STACKS_HZ_MOST 1000u
#define STACKS_NS_MOST ((int64_t)10000000000)
#define EXPECT_NS ((int64_t)60000000000)

static void add_packet(struct pending_client *client, enum jobs_say kind, ow_status status,
		       const void *body, size_t size)
{
	struct jobs_head head = { .version = JOBS_VERSION,
				  .kind = kind,
				  .size = (uint32_t)size,
				  .status = (uint32_t)status };

	memcpy(head.magic, JOBS_SAY_MAGIC, sizeof(head.magic));
	buf_add(&client->out, &head, sizeof(head));
	buf_add(&client->out, body, size);
}

static void add_failure(struct pending_client *client, ow_status status, const char *format, ...)
	OW_PRINTF(3, 4);

static void add_failure(struct pending_client *client, ow_status status, const char *format, ...)
{
	char text[512];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	add_packet(client, JOBS_SAY_FAILED, status, text,
		   MIN((size_t)MAX(len, 0), sizeof(text) - 1));
}

static void add_server(const struct daemon *d, struct pending_client *client)
{
	struct job_server server = { .pid = (uint32_t)getpid(),
				     .uid = (uint32_t)geteuid(),
				     .since_ns = d->since_ns,
				     .job_limit = d->options->job_limit,
				     .total_limit = d->options->total_limit,
				     .metrics_port = d->metrics.port,
				     .has_kineto = d->has_kineto };

	snprintf(server.version, sizeof(server.version), "%s", d->options->version);
	snprintf(server.folder, sizeof(server.folder), "%s", d->folder);
	snprintf(server.socket_path, sizeof(server.socket_path), "%s", d->socket_path);
	add_packet(client, JOBS_SAY_SERVER, OW_OK, &server, sizeof(server));
}

static void add_processes(struct pending_client *client, const struct daemon_job *job)
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
		add_packet(client, JOBS_SAY_PROCESS, OW_OK, &row, sizeof(row));
	}
}

static void answer_list(struct daemon *d, struct pending_client *client)
{
	add_server(d, client);
	for (size_t i = 0; i < d->job_count; i++) {
		struct daemon_job *job = d->jobs[i];

		if (!daemon_may_see(&client->peer, job->info.uid))
			continue;
		job_describe(job);
		add_packet(client, JOBS_SAY_JOB, OW_OK, &job->info, sizeof(job->info));
		add_processes(client, job);
	}
}

/* Finds the named job among those that the client may see. */
static struct daemon_job *find_job_for(const struct daemon *d, const struct pending_client *client,
				       uint32_t id)
{
	for (size_t i = 0; i < d->job_count; i++)
		if (d->jobs[i]->info.id == id &&
		    daemon_may_see(&client->peer, d->jobs[i]->info.uid))
			return d->jobs[i];
	return NULL;
}

static void answer_flush(struct daemon *d, struct pending_client *client,
			 const struct jobs_request *request)
{
	struct daemon_job *job = find_job_for(d, client, request->job);

	if (!job) {
		add_failure(client, OW_E_NOT_FOUND, "there is no job %u", request->job);
		return;
	}
	job_flush(job);
	job_describe(job);
	add_packet(client, JOBS_SAY_JOB, OW_OK, &job->info, sizeof(job->info));
}

static void answer_stop(struct daemon *d, struct pending_client *client,
			const struct jobs_request *request)
{
	struct daemon_job *job = find_job_for(d, client, request->job);

	if (!job)
		add_failure(client, OW_E_NOT_FOUND, "there is no job %u", request->job);
	else if (job->open)
		collector_ask_stop(&job->collector, request->pid);
}

static void answer_stacks(struct daemon *d, struct pending_client *client,
			  const struct jobs_request *request)
{
	struct daemon_job *job = find_job_for(d, client, request->job);

	if (!job) {
		add_failure(client, OW_E_NOT_FOUND, "there is no job %u", request->job);
		return;
	}
	if (!request->pid || request->pid > STACKS_HZ_MOST || request->ns <= 0 ||
	    request->ns > STACKS_NS_MOST) {
		add_failure(
			client, OW_E_USAGE,
			"the daemon can sample stacks 1 to %u times a second, for at most 10 s per "
			"request",
			STACKS_HZ_MOST);
		return;
	}
	job_want_stacks(job, request->pid, steady_ns() + request->ns);
}

static bool may_see_pid(const struct pending_client *client, pid_t pid)
{
	uid_t uid;

	return client->peer.uid == 0 ||
	       (proc_owner(pid, &uid) ? uid == client->peer.uid : client->peer.uid == geteuid());
}

/* Returns the entry of that process, or a free one; NULL if the user, or all users together, have too
 * many. */
static struct expected *find_expected(struct daemon *d, const struct ucred *peer, uint32_t pid,
				      int64_t now)
{
	bool owner = daemon_is_owner(peer);
	size_t most = owner ? DAEMON_EXPECTED : DAEMON_EXPECTED - DAEMON_EXPECTED_KEPT;
	size_t own = 0, used = 0;
	struct expected *free = NULL;

	for (size_t i = 0; i < d->expected_count; i++) {
		struct expected *e = &d->expected[i];

		if (e->until_ns <= now) {
			free = e;
			continue;
		}
		if (e->pid == pid) /* an entry that root made stays */
			return e->uid == 0 && peer->uid != 0 ? NULL : e;
		used++;
		own += e->uid == (uint32_t)peer->uid;
	}
	if (used >= most || (!owner && own >= DAEMON_EXPECTED_USER))
		return NULL;
	if (!free && d->expected_count < DAEMON_EXPECTED)
		free = &d->expected[d->expected_count++];
	return free;
}

static void answer_expect(struct daemon *d, struct pending_client *client,
			  const struct jobs_request *request)
{
	int64_t now = steady_ns();
	struct expected *to;

	if (!may_see_pid(client, (pid_t)request->pid)) {
		add_failure(client, OW_E_PERMISSION, "process %u belongs to another user",
			    request->pid);
		return;
	}
	to = find_expected(d, &client->peer, request->pid, now);
	if (!to) {
		add_failure(client, OW_E_LIMIT,
			    "too many processes are about to join already; try again later");
		return;
	}
	*to = (struct expected){ .pid = request->pid,
				 .uid = (uint32_t)client->peer.uid,
				 .until_ns = now + EXPECT_NS };
	identity_clean_name(to->name, sizeof(to->name), str_from(request->name));
}

static void add_kineto_process(struct pending_client *client, const struct kineto_process *process)
{
	struct job_kineto row = { .pid = (uint32_t)process->pid,
				  .state = process->state,
				  .kineto_job = process->job,
				  .size = process->size };

	snprintf(row.path, sizeof(row.path), "%s",
		 process->state == KINETO_WRITTEN ? process->found : process->path);
	add_packet(client, JOBS_SAY_KINETO, OW_OK, &row, sizeof(row));
}

static void answer_kineto(struct daemon *d, struct pending_client *client,
			  const struct jobs_request *request)
{
	if (!d->has_kineto) {
		add_failure(client, OW_E_UNSUPPORTED,
			    "the daemon does not have the socket that PyTorch's profiler (Kineto) "
			    "connects to");
		return;
	}
	if (request->path[0] && (request->path[0] != '/' || request->ns < 1000000)) {
		add_failure(
			client, OW_E_USAGE,
			"a trace needs the absolute path of a folder, and a duration of at least 1 "
			"ms");
		return;
	}
	kineto_check_files(&d->kineto, steady_ns());
	for (size_t i = 0; i < d->kineto.count; i++) {
		struct kineto_process *process = &d->kineto.items[i];

		if ((request->pid && process->pid != (pid_t)request->pid) ||
		    !may_see_pid(client, process->pid))
			continue;
		if (request->path[0] && process->state != KINETO_WANTED &&
		    process->state != KINETO_REQUESTED)
			kineto_want(process, request->path, request->ns);
		add_kineto_process(client, process);
	}
}

#define ANOMALIES_SHOWN 100u
#define WHY_SUFFIX ".why.txt"

static const struct incident_file *find_incident(const struct saved_incidents *saved,
						 struct str stem, const char *suffix)
{
	for (size_t i = saved->count; i-- > 0;) {
		struct str name = str_from(saved->items[i].name);

		if (name.len == stem.len + strlen(suffix) && str_starts(name, stem) &&
		    str_ends(name, str_from(suffix)))
			return &saved->items[i];
	}
	return NULL;
}

static void read_why(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, to, size - 1);

	to[MAX(n, 0)] = '\0';
	while (n > 0 && to[n - 1] == '\n')
		to[--n] = '\0';
	if (fd >= 0)
		close(fd);
}

/* Adds the anomaly that a file named NAME-ID-slow-120304 belongs to, with its minute once that
 * is over. */
static void add_anomaly(const struct daemon *d, struct pending_client *client,
			const struct saved_incidents *saved, const struct incident_file *file,
			struct str stem, const struct incident_file *why)
{
	const struct incident_file *minute = find_incident(saved, stem, ".opw");
	struct job_anomaly row = { .job = file->job,
				   .saved = minute != NULL,
				   .time_ns = file->modified_ns,
				   .bytes = minute ? minute->bytes : 0 };
	char path[sizeof(row.path) + 16];
	struct str name = stem;

	for (unsigned i = 0; i < 3; i++) { /* the parts are the time, the kind and the number */
		size_t dash = str_rfind_char(name, '-');

		if (i == 1)
			snprintf(row.kind, sizeof(row.kind), "%.*s",
				 STR_ARG(str_skip(name, dash + 1)));
		name = str_first(name, dash);
	}
	snprintf(row.name, sizeof(row.name), "%.*s", STR_ARG(name));
	snprintf(row.path, sizeof(row.path), "%s/%.*s.opw", d->folder, STR_ARG(stem));
	snprintf(path, sizeof(path), "%s/%.*s" WHY_SUFFIX, d->folder, STR_ARG(stem));
	if (why)
		read_why(path, row.why, sizeof(row.why));
	add_packet(client, JOBS_SAY_ANOMALY, OW_OK, &row, sizeof(row));
}

static void answer_anomalies(struct daemon *d, struct pending_client *client)
{
	struct saved_incidents saved;
	struct ow_error problem = { 0 };
	unsigned shown = 0;

	if (incidents_find(&saved, d->mem, d->folder, &problem) != OW_OK) {
		add_failure(client, OW_E_NO_MEMORY, "the daemon has no memory for the list");
		return;
	}
	for (size_t i = saved.count; i-- > 0 && shown < ANOMALIES_SHOWN;) {
		const struct incident_file *file = &saved.items[i];
		struct str name = str_from(file->name);
		bool is_why = str_ends(name, STR(WHY_SUFFIX)),
		     is_minute = str_ends(name, STR(".opw"));
		struct str stem = str_first(name, name.len - (is_why ? strlen(WHY_SUFFIX) : 4));
		const struct incident_file *why =
			is_why ? file : find_incident(&saved, stem, WHY_SUFFIX);

		/* an anomaly with both files is listed once, with its sentence */
		if ((!is_why && !is_minute) || (is_minute && why) ||
		    !daemon_may_see(&client->peer, file->uid))
			continue;
		add_anomaly(d, client, &saved, file, stem, why);
		shown++;
	}
	incidents_release(&saved);
}

void daemon_answer(struct daemon *d, struct pending_client *client,
		   const struct jobs_request *request)
{
	if (request->version != JOBS_VERSION) {
		add_failure(client, OW_E_UNSUPPORTED,
			    "the daemon has protocol version %u: use the opwatch of the same "
			    "installation",
			    JOBS_VERSION);
		add_packet(client, JOBS_SAY_END, OW_OK, "", 0);
		return;
	}
	switch ((enum jobs_ask)request->kind) {
	case JOBS_ASK_LIST:
		answer_list(d, client);
		break;
	case JOBS_ASK_FLUSH:
		answer_flush(d, client, request);
		break;
	case JOBS_ASK_EXPECT:
		answer_expect(d, client, request);
		break;
	case JOBS_ASK_STOP:
		answer_stop(d, client, request);
		break;
	case JOBS_ASK_KINETO:
		answer_kineto(d, client, request);
		break;
	case JOBS_ASK_STACKS:
		answer_stacks(d, client, request);
		break;
	case JOBS_ASK_ANOMALIES:
		answer_anomalies(d, client);
		break;
	default:
		add_failure(client, OW_E_UNSUPPORTED, "the daemon does not know this request");
	}
	add_packet(client, JOBS_SAY_END, OW_OK, "", 0);
}
