/*
 * daemon_metrics.c: GET /metrics on the loopback address, for Prometheus: what the host and the jobs use, as OpenMetrics text. The server
 * (serve/server.h) answers each connection on a thread of its own, and the jobs belong to the daemon's loop. So a request waits in a
 * list, the loop is woken and writes the page, and no lock is held while records are read.
 */
#include "live/daemon/daemon_int.h"

#include "base/clock.h"
#include "base/parallel.h"
#include "live/proc/metrics.h"
#include "serve/server.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PATIENCE_NS ((int64_t)10000000000)
#define CONNECTIONS 16u
#define HEAD_BYTES 8192u
#define STATUS_MISDIRECTED 421u
#define STATUS_UNAVAILABLE 503u

/*
 * Measures a job. Sums begin with the first measurement; frequent measurements lose little when a process
 * ends.
 */

static void measure_job(struct daemon *d, struct daemon_job *job)
{
	struct pid_list pids = { .mem = d->mem };
	bool good = true;

	for (size_t i = 0; job->open && good && i < job->collector.count; i++) {
		struct collected_info info;

		if (collector_info(&job->collector, i, &info) &&
		    !pid_list_has(&pids, (pid_t)info.pid))
			good = pid_list_add(&pids, (pid_t)info.pid);
	}
	if (good)
		(void)!job_meter_read(&job->meter, pids.items, pids.count);
	pid_list_release(&pids);
}

void daemon_measure(struct daemon *d)
{
	host_meter_read(&d->host);
	if (d->has_nvml)
		nvml_read(&d->nvml);
	for (size_t i = 0; i < d->job_count; i++)
		if (d->jobs[i]->open)
			measure_job(d, d->jobs[i]);
}

/* Size of the name of a job for users who may not see it. */
#define HIDDEN_NAME 48

static const char *shown_name(const struct daemon *d, const struct daemon_job *job, uint32_t uid,
			      char hidden[HIDDEN_NAME])
{
	if (d->options->metrics_names ||
	    daemon_may_see(&(struct ucred){ .uid = uid }, job->info.uid))
		return job->info.name;
	snprintf(hidden, HIDDEN_NAME, "job %u of user %u", job->info.id, job->info.uid);
	return hidden;
}

static bool make_page(struct daemon *d, uint32_t uid, struct buf *page)
{
	size_t bytes = (d->job_count + 1) *
		       (sizeof(struct job_text) + sizeof(struct job_counts) + HIDDEN_NAME);
	struct job_text *texts = mem_zalloc(d->mem, bytes);
	struct job_counts *counts = texts ? (struct job_counts *)(texts + d->job_count + 1) : NULL;
	char(*hidden)[HIDDEN_NAME];
	size_t count = 0;

	if (!texts)
		return false;
	hidden = (char(*)[HIDDEN_NAME])(counts + d->job_count + 1);
	daemon_measure(d);
	for (size_t i = 0; i < d->job_count; i++) {
		struct daemon_job *job = d->jobs[i];

		if (!job->open)
			continue;
		job_describe(job);
		counts[count] = (struct job_counts){ .records = job->info.records,
						     .dropped = job->info.dropped,
						     .steps = job->info.steps,
						     .disk_bytes = job->info.disk_bytes,
						     .step_ns = job->info.step_ns };
		texts[count] = (struct job_text){ .name = shown_name(d, job, uid, hidden[count]),
						  .values = job->meter.values,
						  .counts = &counts[count] };
		count++;
	}
	metrics_text(page, &d->host, texts, count, d->has_nvml ? &d->nvml : NULL);
	mem_free(d->mem, texts, bytes);
	return !page->failed;
}

/* A request of a connection's thread, which waits for the answer. */
struct metrics_question {
	uint32_t uid;
	struct buf *page;
	bool answered, good;
	struct metrics_question *next;
};

static void remove_question(struct metrics_server *m, const struct metrics_question *question)
{
	for (struct metrics_question **at = &m->first; *at; at = &(*at)->next)
		if (*at == question) {
			*at = question->next;
			return;
		}
}

/* Handles a request; runs on a connection's thread. */
static void answer_metrics(void *arg, const struct server_request *request,
			   struct server_reply *reply)
{
	struct metrics_server *m = arg;
	struct metrics_question question = { .uid = server_user(request), .page = &reply->body };
	int64_t until = steady_ns() + PATIENCE_NS;
	struct timespec deadline = { .tv_sec = until / 1000000000, .tv_nsec = until % 1000000000 };
	uint64_t one = 1;
	int waited = 0;

	reply->type = METRICS_CONTENT_TYPE;
	pthread_mutex_lock(&m->lock);
	question.next = m->first;
	m->first = &question;
	(void)!write(m->wake, &one, sizeof(one));
	while (!question.answered && !m->closing && waited == 0)
		waited = pthread_cond_timedwait(&m->answered, &m->lock, &deadline);
	if (!question.answered)
		remove_question(m, &question);
	pthread_mutex_unlock(&m->lock);
	if (!question.answered)
		server_fail(reply, STATUS_UNAVAILABLE, "the daemon is busy or ends; ask again");
	else if (!question.good)
		server_fail(reply, STATUS_UNAVAILABLE, "not enough memory for the answer");
}

void daemon_metrics_answer(struct daemon *d)
{
	struct metrics_server *m = &d->metrics;
	uint64_t count;

	(void)!read(m->wake, &count, sizeof(count));
	pthread_mutex_lock(&m->lock);
	while (m->first) {
		struct metrics_question *question = m->first;

		m->first = question->next;
		question->good = make_page(d, question->uid, question->page);
		question->answered = true;
	}
	pthread_cond_broadcast(&m->answered);
	pthread_mutex_unlock(&m->lock);
}

ow_status daemon_metrics_open(struct daemon *d, uint32_t port, struct ow_error *err)
{
	static const struct server_route routes[] = {
		{ .method = SERVER_GET,
		  .path = "/metrics",
		  .open = true,
		  .handle = answer_metrics },
	};
	struct metrics_server *m = &d->metrics;
	const struct server_options options = { .port = (uint16_t)port,
						.head_max = HEAD_BYTES,
						.connection_max = CONNECTIONS,
						.wrong_host = STATUS_MISDIRECTED,
						.routes = routes,
						.route_count = ARRAY_COUNT(routes),
						.arg = m };
	ow_status status;

	m->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (m->wake < 0)
		return error_errno(err, errno, "no file descriptor for requests of metrics");
	pthread_mutex_init(&m->lock, NULL);
	background_cond_init(&m->answered);
	status = server_start(&options, d->mem, &m->server, err);
	if (status == OW_OK)
		m->port = server_port(m->server);
	else
		daemon_metrics_close(d);
	return status;
}

void daemon_metrics_close(struct daemon *d)
{
	struct metrics_server *m = &d->metrics;

	if (m->wake < 0)
		return;
	pthread_mutex_lock(&m->lock);
	m->closing = true;
	pthread_cond_broadcast(&m->answered);
	pthread_mutex_unlock(&m->lock);
	server_stop(m->server);
	pthread_cond_destroy(&m->answered);
	pthread_mutex_destroy(&m->lock);
	close(m->wake);
	m->wake = -1;
	m->port = 0;
}
