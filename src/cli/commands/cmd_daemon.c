/*
 * cmd_daemon.c: `opwatch daemon`: records the jobs of this host, in the foreground, until a signal ends it. A service
 * manager starts it and restarts it; it does not fork.
 */
#include "cli/commands/live.h"

struct daemon_args {
	struct live_args live;
	struct ow_daemon_options daemon;
};

static void init_daemon(void *own)
{
	live_args_init(own);
	ow_daemon_options_init(&((struct daemon_args *)own)->daemon);
}

static int run_daemon(struct args *args)
{
	struct daemon_args *own = args->own;
	const struct live_args *live = &own->live;
	struct ow_daemon_options *o = &own->daemon;
	struct ow_error err = { 0 };
	ow_status status;

	if (args->file_count) {
		complain("opwatch daemon: unexpected argument '%s'; jobs connect by themselves\n",
			 args->files[0]);
		return EXIT_USAGE;
	}
	o->memory_limit = args->input.open.memory_limit;
	if (live->record.file_limit)
		o->job_limit = live->record.file_limit;
	if (o->total_limit < o->job_limit)
		o->total_limit = o->job_limit;
	o->socket = live->socket;
	o->on_slowdown = live->record.on_slowdown;
	o->on_stall_ns = live->record.on_stall_ns;
	o->stacks_hz = live->stacks ? live->stacks_hz : 0;
	o->message = live_message;
	o->keep_going = live_keep_going;
	signals_catch();
	status = ow_daemon(o, &err);
	return status == OW_OK ? EXIT_GOOD : report_error(&err, status);
}

static const struct option options[] = {
	LIVE_SOCKET,
	{ "dir", STORE_TEXT(struct daemon_args, daemon.dir), .argument = "DIR",
	  .help = "keep the rings of the jobs in this folder" },
	{ "total-size", STORE_SIZE(struct daemon_args, daemon.total_limit, 1), .argument = "SIZE",
	  .help = "limit the size of all rings together", .usual = "4G" },
	{ "metrics", STORE_INT32(struct daemon_args, daemon.metrics_port, 0, 65535),
	  .argument = "PORT", .help = "serve http://127.0.0.1:PORT/metrics" },
	{ "metrics-names", STORE_FLAG(struct daemon_args, daemon.metrics_names),
	  .help = "in /metrics, show the names of jobs to all users, not only to root and the "
		  "owner" },
	{ "all-users", STORE_FLAG(struct daemon_args, daemon.all_users),
	  .help = "as root: serve all users; each sees only their own jobs" },
	{ "push", STORE_TEXT(struct daemon_args, daemon.push), .argument = "ADDRESS",
	  .help = "send roll-ups and anomalies of all jobs to clickhouse://USER@HOST:PORT/DB" },
	{ "push-every", STORE_TIME(struct daemon_args, daemon.push_every_ns), .argument = "TIME",
	  .help = "how often roll-ups are sent", .usual = "10s" },
	{ "password-file", STORE_TEXT(struct daemon_args, daemon.password_file), .argument = "FILE",
	  .help = "read that server's password from this file, not from "
		  "OPWATCH_CLICKHOUSE_PASSWORD" },
	{ "otlp", STORE_TEXT(struct daemon_args, daemon.otlp), .argument = "URL",
	  .help = "send metrics to OpenTelemetry: http://HOST:4318/v1/metrics" },
	{ "anomaly-post", STORE_TEXT(struct daemon_args, daemon.anomaly_post), .argument = "URL",
	  .help = "post each slowdown and stall to this address, as JSON" },
	{ "anomaly-run", STORE_TEXT(struct daemon_args, daemon.anomaly_run), .argument = "PROGRAM",
	  .help = "start this program for each slowdown and stall, with JSON on its standard "
		  "input" },
	{ "listen", STORE_TEXT(struct daemon_args, daemon.listen), .argument = "ADDRESS:PORT",
	  .help = "answer GET /jobs at this address, for clients with the token" },
	{ "token-file", STORE_TEXT(struct daemon_args, daemon.token_file), .argument = "FILE",
	  .help = "read the token for --listen from the first line of this file" },
	{ "system-hz", STORE_UINT32(struct daemon_args, daemon.system_hz, 1, 1000),
	  .argument = "HZ", .help = "sample the whole host HZ times a second, into DIR/system" },
	{ "redact", STORE_FLAG(struct daemon_args, daemon.redact),
	  .help = "send pseudonyms instead of names of jobs, users, hosts and operators" },
	{ "no-kineto", STORE_FLAG(struct daemon_args, daemon.no_kineto),
	  .help = "do not take the socket that PyTorch jobs use to reach dynolog" },
};

const struct command cmd_daemon = {
	.name = "daemon",
	.usage = "[--socket PATH] [--dir DIR] [--max-size 512M] [--metrics PORT]",
	.summary = "record all jobs of this host",
	.help = "Jobs report to the daemon when they are started with 'opwatch record --job NAME\n"
		"-- PROGRAM', or with the environment that 'opwatch jobs --env' prints. For each\n"
		"job it keeps a ring on disk of what the job did last. Read it with 'opwatch\n"
		"jobs', any view with --job NAME, and 'opwatch record --last 60s --job NAME'.\n"
		"Jobs survive a restart of the daemon. With --stacks the rings also hold the\n"
		"Python stacks of all jobs. With --push a ClickHouse server has the jobs of all\n"
		"hosts: 'opwatch top --on clickhouse://…' shows them. Without --listen, nothing\n"
		"accepts connections from other hosts.\n",
	.examples = { "opwatch daemon --metrics 9464",
		      "opwatch daemon --stacks --max-size 2G --on-slowdown 20%" },
	.own = OPTIONS(options),
	.groups = { &recording_options },
	.own_size = sizeof(struct daemon_args),
	.init = init_daemon,
	.run = run_daemon,
};
