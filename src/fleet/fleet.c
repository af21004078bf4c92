/*
 * fleet.c: the thread that makes roll-ups of all jobs of the daemon, and the destinations that they are sent to. Called
 * by ow_daemon in src/api. Each destination has its own queue and thread (outbox.h), so that none waits for another,
 * and no job waits.
 */
#include "fleet/fleet.h"

#include "base/parallel.h"
#include "base/clock.h"
#include "fleet/hooks.h"
#include "fleet/outbox.h"
#include "fleet/rollup.h"
#include "live/daemon/jobs.h"
#include "live/proc/process_table.h"
#include "push/click.h"
#include "serve/server.h"
#include "watch/watch.h"

#include "base/json_escape.h"

#include <pthread.h>
#include <pwd.h>
#include <unistd.h>

#define TURN_NS 500000000
#define ASK_NS 2000000000
#define QUEUE_BYTES ((size_t)8 << 20)
#define GRACE_NS 5000000000LL
#define MEMORY_LIMIT ((size_t)256 << 20)

/* The ClickHouse server that stores the roll-ups of all hosts. */
struct warehouse {
	struct mem *mem;
	struct arena arena;
	struct click click;
	const volatile bool *stop;
	bool open, created;
};

struct fleet {
	struct mem mem;
	struct fleet_options options;
	char host[64], boot[32];
	uint64_t batches;
	struct warehouse warehouse;
	struct web_hook otlp, hook;
	struct command_hook program;
	struct outbox *to_warehouse, *to_otlp, *to_hook, *to_program;
	/* The thread that makes roll-ups. */
	pthread_t thread;
	bool started;
	volatile bool stop;
	struct watch watch;
	struct process_table table;
	int64_t asked_ns, sent_ns;
	/* The server that answers requests about jobs. */
	struct server *server;
	pthread_mutex_t lock;
	struct buf answer;	 /* the jobs of the last roll-up, one row each */
	struct pseudonyms names; /* used with options.redact, under the lock */
};

static void report(const struct fleet *f, const char *text)
{
	if (f->options.message)
		f->options.message(f->options.message_arg, text, strlen(text));
}

static bool goes_on(void *arg)
{
	const struct warehouse *w = arg;

	return !w->stop || !*w->stop;
}

static ow_status open_warehouse(struct fleet *f, struct ow_error *err)
{
	struct warehouse *w = &f->warehouse;
	struct click_options options = { .http = { .connect_ms = 10000,
						   .silence_ms = 60000,
						   .keep_going = goes_on,
						   .keep_going_arg = w },
					 .password = f->options.password };
	struct address address;

	w->mem = &f->mem;
	arena_init(&w->arena, w->mem);
	OW_TRY(address_parse(&address, &w->arena, str_from(f->options.push), err));
	OW_TRY(click_open(&w->click, w->mem, &address, &options, err));
	w->open = true;
	return OW_OK;
}

static ow_status create_tables(struct warehouse *w, struct ow_error *err)
{
	for (unsigned i = 0; i < ROLLUP_TABLES && !w->created; i++)
		OW_TRY(click_run(&w->click, str_from(rollup_create[i]), CLICK_ONCE, NULL, err));
	w->created = true;
	return OW_OK;
}

/* Sends rows; `kind` is the number of the table. */
static enum outbox_result send_rows(void *arg, uint32_t kind, struct str text,
				    const volatile bool *stop, char why[512])
{
	struct warehouse *w = arg;
	struct ow_error err = { 0 };
	struct buf statement;
	ow_status status;

	w->stop = stop;
	buf_init(&statement, w->mem);
	buf_printf(&statement, "INSERT INTO %s FORMAT JSONEachRow\n", rollup_names[kind]);
	buf_add_str(&statement, text);
	status = create_tables(w, &err);
	if (status == OW_OK)
		status = click_run(&w->click, buf_str(&statement), CLICK_ONCE, NULL, &err);
	buf_release(&statement);
	if (status == OW_OK)
		return OUTBOX_SENT;
	snprintf(why, 512, "%.500s", err.text);
	if (status == OW_E_NOT_FOUND && w->click.code == 60)
		w->created = false; /* the tables were dropped meanwhile */
	return w->click.code && !w->click.transient && w->click.code != 60 &&
			       status != OW_E_PERMISSION && status != OW_E_NOT_FOUND
		       ? OUTBOX_REFUSED
		       : OUTBOX_LATER;
}

static bool is_watched(const struct watch *w, const char *path)
{
	for (size_t i = 0; i < w->count; i++)
		if (strcmp(w->files[i]->follow.path, path) == 0)
			return true;
	return false;
}

/* Adds new jobs of the daemon. A daemon that does not answer is starting or ending. */
static void ask_daemon(struct fleet *f)
{
	struct ow_error err = { 0 };
	struct jobs jobs;
	ow_status status = jobs_list(&jobs, &f->mem, f->options.socket, &err);

	for (size_t i = 0; status == OW_OK && i < jobs.count; i++) {
		const struct job_info *job = &jobs.items[i];

		if (job->state != JOB_RUNNING || !job->folder[0] ||
		    is_watched(&f->watch, job->folder))
			continue;
		if (watch_add(&f->watch, job->folder, &err) == OW_OK)
			snprintf(f->watch.files[f->watch.count - 1]->name,
				 sizeof(f->watch.files[0]->name), "%s", job->name);
	}
	jobs_release(&jobs);
}

/* Sets the user and the resource use of the job's processes. */
static void read_use(struct fleet *f, const struct ow_job *job, struct rollup *r)
{
	r->user = "";
	r->run_wait = r->read_rate = r->write_rate = -1;
	r->memory = -1;
	for (size_t i = 0; i < job->pid_count; i++) {
		const struct process_row *row = process_table_find(&f->table, (pid_t)job->pids[i]);

		if (!row)
			continue;
		r->user = row->user;
		r->memory = MAX(r->memory, (int64_t)0) + MAX(row->memory, (int64_t)0);
		if (row->wait >= 0)
			r->run_wait = MAX(r->run_wait, 0.0) + row->wait;
		if (row->read_rate >= 0)
			r->read_rate = MAX(r->read_rate, 0.0) + row->read_rate;
		if (row->write_rate >= 0)
			r->write_rate = MAX(r->write_rate, 0.0) + row->write_rate;
	}
}

static bool read_processes(struct fleet *f)
{
	struct pid_list pids = { .mem = &f->mem };
	static const pid_t none;
	bool good = true;

	for (size_t i = 0; i < f->watch.job_count; i++)
		for (size_t k = 0; good && k < f->watch.jobs[i].pid_count; k++)
			good = pid_list_add(&pids, (pid_t)f->watch.jobs[i].pids[k]);
	good = good && process_table_turn(&f->table, pids.items ? pids.items : &none, pids.count);
	pid_list_release(&pids);
	return good;
}

static void add(struct outbox *o, uint32_t kind, struct buf *text)
{
	if (o && text->len && !text->failed)
		outbox_add(o, kind, buf_str(text));
	buf_clear(text);
}

static void keep_answer(struct fleet *f, struct str rows)
{
	pthread_mutex_lock(&f->lock);
	buf_clear(&f->answer);
	buf_add_str(&f->answer, rows);
	pthread_mutex_unlock(&f->lock);
}

static void send_all(struct fleet *f)
{
	struct buf tables[ROLLUP_TABLES], otlp;
	struct rollup r = { .host = f->host,
			    .names = f->options.redact ? &f->names : NULL,
			    .time_ns = clock_ns(CLOCK_REALTIME) };
	char batch[128];

	snprintf(batch, sizeof(batch), "%s-%s-%" PRIu64, f->host, f->boot, f->batches++);
	r.batch = batch;
	for (unsigned i = 0; i < ROLLUP_TABLES; i++)
		buf_init(&tables[i], &f->mem);
	buf_init(&otlp, &f->mem);
	if (f->watch.job_count)
		otlp_begin(&otlp, &r);
	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < f->watch.job_count; i++) {
		const struct ow_job *job = &f->watch.jobs[i];

		read_use(f, job, &r);
		rollup_job(&tables[ROLLUP_JOB], &r, job);
		rollup_ranks(&tables[ROLLUP_RANK], &r, job);
		rollup_ops(&tables[ROLLUP_OP], &r, job);
		otlp_job(&otlp, &r, job, i == 0);
	}
	pthread_mutex_unlock(&f->lock);
	if (f->watch.job_count)
		otlp_end(&otlp);
	keep_answer(f, buf_str(&tables[ROLLUP_JOB]));
	for (unsigned i = 0; i < ROLLUP_TABLES; i++) {
		add(f->to_warehouse, i, &tables[i]);
		buf_release(&tables[i]);
	}
	add(f->to_otlp, 0, &otlp);
	buf_release(&otlp);
}

/* Removes jobs that have ended, after they were sent once more. */
static void forget_ended(struct fleet *f)
{
	bool any = false;

	for (size_t i = 0; i < f->watch.job_count; i++)
		any |= f->watch.jobs[i].state != OW_JOB_RUNS;
	if (!any)
		return;
	watch_release(&f->watch);
	watch_init(&f->watch, &f->mem, 0, NULL);
	f->asked_ns = 0;
}

static bool turn(struct fleet *f)
{
	struct ow_error err = { 0 };
	int64_t now = steady_ns();
	bool more;

	if (now - f->asked_ns >= ASK_NS || !f->asked_ns) {
		ask_daemon(f);
		f->asked_ns = now;
	}
	if (watch_turn(&f->watch, &more, &err) != OW_OK ||
	    watch_make_jobs(&f->watch, &err) != OW_OK || !read_processes(f))
		return false;
	if (now - f->sent_ns < f->options.every_ns)
		return true;
	f->sent_ns = now;
	send_all(f);
	forget_ended(f);
	return true;
}

/* The thread's function. If memory runs out it starts over, because the jobs are more important. */
static void *make_rollups(void *arg)
{
	struct fleet *f = arg;

	while (!f->stop) {
		if (!turn(f)) {
			report(f, "roll-ups: out of memory; starting over");
			watch_release(&f->watch);
			watch_init(&f->watch, &f->mem, 0, NULL);
		}
		nanosleep(&(struct timespec){ .tv_nsec = TURN_NS }, NULL);
	}
	return NULL;
}

static void anomaly_json(struct buf *to, const struct rollup *r, const struct anomaly_event *event)
{
	buf_printf(to, "{\"time_ns\": %" PRId64 ", \"host\": ", r->time_ns);
	json_quote(to, str_from(r->host));
	buf_puts(to, ", \"job\": ");
	rollup_name(to, r, event->job ? event->job : "");
	buf_printf(to, ", \"kind\": \"%s\", \"why\": ", event->kind);
	json_quote(to, str_from(r->names ? "" : event->why));
	buf_puts(to, ", \"file\": ");
	if (event->file && !r->names)
		json_quote(to, str_from(event->file));
	else
		buf_puts(to, "null");
	buf_puts(to, "}\n");
}

void fleet_event(void *arg, const struct anomaly_event *event)
{
	struct fleet *f = arg;
	struct rollup r = { .host = f->host,
			    .user = "",
			    .names = f->options.redact ? &f->names : NULL,
			    .batch = "anomaly",
			    .time_ns = clock_ns(CLOCK_REALTIME) };
	/* The program runs on this machine, so it gets the names. */
	struct rollup local = r;
	struct buf row, json, whole;

	local.names = NULL;
	buf_init(&row, &f->mem);
	buf_init(&json, &f->mem);
	buf_init(&whole, &f->mem);
	pthread_mutex_lock(&f->lock);
	rollup_anomaly(&row, &r, event);
	anomaly_json(&json, &r, event);
	pthread_mutex_unlock(&f->lock);
	anomaly_json(&whole, &local, event);
	if (f->to_warehouse && !row.failed)
		outbox_add(f->to_warehouse, ROLLUP_ANOMALY, buf_str(&row));
	if (f->to_hook && !json.failed)
		outbox_add(f->to_hook, 0, buf_str(&json));
	if (f->to_program && !whole.failed)
		outbox_add(f->to_program, 0, buf_str(&whole));
	buf_release(&row);
	buf_release(&json);
	buf_release(&whole);
}

#define TOKEN_LEAST 16u

static void answer_jobs(void *arg, const struct server_request *request, struct server_reply *reply)
{
	struct fleet *f = arg;

	(void)request;
	reply->type = "application/x-ndjson";
	pthread_mutex_lock(&f->lock);
	buf_add_str(&reply->body, buf_str(&f->answer));
	pthread_mutex_unlock(&f->lock);
}

static const struct server_route routes[] = {
	{ .method = SERVER_GET, .path = "/jobs", .handle = answer_jobs },
};

/* Opens the server. Without a token no server is opened, on any address. */
static ow_status open_server(struct fleet *f, struct ow_error *err)
{
	const char *text = f->options.listen, *colon = strrchr(text, ':');
	struct server_options options = { .token = f->options.token,
					  .connection_max = 16,
					  .routes = routes,
					  .route_count = ARRAY_COUNT(routes),
					  .arg = f };
	size_t len = f->options.token ? strlen(f->options.token) : 0;
	char host[256], line[384];
	int64_t port;

	if (!colon || colon == text || !str_to_i64(str_from(colon + 1), &port) || port < 0 ||
	    port > UINT16_MAX || (size_t)(colon - text) >= sizeof(host))
		return error_set(err, OW_E_USAGE, "'%s' is not ADDRESS:PORT", text);
	if (len < TOKEN_LEAST || len >= SERVER_TOKEN_TEXT)
		return error_set(
			err, OW_E_USAGE,
			"the token for requests from other hosts has %zu characters; it must "
			"have %u to %d (--token-file)",
			len, TOKEN_LEAST, SERVER_TOKEN_TEXT - 1);
	snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
	options.listen = host;
	options.port = (uint16_t)port;
	OW_TRY(server_start(&options, &f->mem, &f->server, err));
	snprintf(line, sizeof(line), "answers requests with the token at http://%s:%u/jobs%s", host,
		 server_port(f->server),
		 strncmp(host, "127.", 4) == 0 ? "" : ". The connection is not encrypted");
	report(f, line);
	return OW_OK;
}

static ow_status open_box(struct fleet *f, const char *name, outbox_send_fn send, void *arg,
			  struct outbox **out, struct ow_error *err)
{
	const struct outbox_options options = { .name = name,
						.limit = QUEUE_BYTES,
						.send = send,
						.arg = arg,
						.message = f->options.message,
						.message_arg = f->options.message_arg };

	return outbox_start(&options, out, err);
}

static ow_status open_places(struct fleet *f, struct ow_error *err)
{
	const struct fleet_options *o = &f->options;

	if (o->push) {
		OW_TRY(open_warehouse(f, err));
		OW_TRY(open_box(f, f->warehouse.click.place, send_rows, &f->warehouse,
				&f->to_warehouse, err));
	}
	if (o->otlp) {
		OW_TRY(web_hook_open(&f->otlp, &f->mem, o->otlp, o->otlp_token, err));
		OW_TRY(open_box(f, o->otlp, web_hook_send, &f->otlp, &f->to_otlp, err));
	}
	if (o->hook) {
		OW_TRY(web_hook_open(&f->hook, &f->mem, o->hook, o->hook_token, err));
		OW_TRY(open_box(f, o->hook, web_hook_send, &f->hook, &f->to_hook, err));
	}
	if (o->program) {
		OW_TRY(command_hook_check(o->program, err));
		f->program = (struct command_hook){ o->program, COMMAND_LIMIT_NS };
		OW_TRY(open_box(f, o->program, command_hook_send, &f->program, &f->to_program,
				err));
	}
	return o->listen ? open_server(f, err) : OW_OK;
}

static ow_status start_thread(struct fleet *f, struct ow_error *err)
{
	int failed;

	if (!f->to_warehouse && !f->to_otlp && !f->server)
		return OW_OK;
	failed = background_start(&f->thread, make_rollups, f);
	if (failed)
		return error_errno(err, failed, "cannot start the thread that makes roll-ups");
	f->started = true;
	return OW_OK;
}

/* Replaces the host's name by a pseudonym, which batches contain, too. */
static ow_status hide_host(struct fleet *f, struct ow_error *err)
{
	ow_status status = pseudonyms_init(&f->names, &f->mem, err);
	struct buf hidden;

	buf_init(&hidden, &f->mem);
	if (status == OW_OK)
		pseudonym_path(&f->names, str_from(f->host), &hidden);
	if (status == OW_OK && (f->names.failed || !buf_cstr(&hidden)))
		status = error_no_memory(err);
	if (status == OW_OK)
		snprintf(f->host, sizeof(f->host), "%s", buf_cstr(&hidden));
	buf_release(&hidden);
	return status;
}

ow_status fleet_start(const struct fleet_options *options, struct fleet **out, struct ow_error *err)
{
	struct fleet *f = calloc(1, sizeof(*f));
	ow_status status;

	*out = NULL;
	if (!f)
		return error_no_memory(err);
	mem_init(&f->mem, MEMORY_LIMIT);
	f->options = *options;
	if (gethostname(f->host, sizeof(f->host) - 1) != 0)
		snprintf(f->host, sizeof(f->host), "unknown");
	status = options->redact ? hide_host(f, err) : OW_OK;
	snprintf(f->boot, sizeof(f->boot), "%" PRId64, clock_ns(CLOCK_REALTIME) / 1000000);
	watch_init(&f->watch, &f->mem, 0, NULL);
	process_table_init(&f->table, &f->mem);
	f->sent_ns = steady_ns();
	pthread_mutex_init(&f->lock, NULL);
	buf_init(&f->answer, &f->mem);
	if (status == OW_OK)
		status = open_places(f, err);
	if (status == OW_OK)
		status = start_thread(f, err);
	if (status != OW_OK) {
		fleet_stop(f);
		return status;
	}
	*out = f;
	return OW_OK;
}

void fleet_stop(struct fleet *f)
{
	if (!f)
		return;
	f->stop = true;
	if (f->started)
		pthread_join(f->thread, NULL);
	outbox_stop(f->to_warehouse, GRACE_NS);
	outbox_stop(f->to_otlp, GRACE_NS);
	outbox_stop(f->to_hook, GRACE_NS);
	outbox_stop(f->to_program, GRACE_NS);
	if (f->warehouse.open)
		click_close(&f->warehouse.click);
	if (f->warehouse.mem)
		arena_release(&f->warehouse.arena);
	if (f->server)
		server_stop(f->server);
	buf_release(&f->answer);
	if (f->options.redact)
		pseudonyms_release(&f->names);
	pthread_mutex_destroy(&f->lock);
	web_hook_close(&f->otlp);
	web_hook_close(&f->hook);
	watch_release(&f->watch);
	process_table_release(&f->table);
	free(f);
}
