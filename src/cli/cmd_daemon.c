/* cmd_daemon.c: serves the jobs of this host, in the foreground, until a signal ends it: whoever starts services can do
 * the rest. */
#include "cli/command.h"
#include "cli/recording.h"
#include "cli/signals.h"

static bool is_cancelled(void *arg)
{
	(void)arg;
	return signals_caught();
}

static int run(struct args *args)
{
	struct ow_daemon_options *o = &args->daemon;
	struct ow_error err = { 0 };
	ow_status status;

	if (args->file_count) {
		complain("opwatch daemon: '%s' is too much; jobs come by themselves\n",
			 args->files[0]);
		return EXIT_USAGE;
	}
	o->memory_limit = args->open.memory_limit;
	if (args->record.file_limit)
		o->job_limit = args->record.file_limit;
	if (o->total_limit < o->job_limit)
		o->total_limit = o->job_limit;
	o->on_slowdown = args->record.on_slowdown;
	o->on_stall_ns = args->record.on_stall_ns;
	o->stacks_hz = args->record_stacks ? args->stacks.hz : 0;
	o->message = recording_message;
	o->cancelled = is_cancelled;
	signals_catch();
	status = ow_daemon(o, &err);
	if (status == OW_OK)
		return EXIT_GOOD;
	complain("opwatch: %s\n", err.text);
	return status == OW_E_USAGE ? EXIT_USAGE : EXIT_FAILED;
}

const struct command cmd_daemon = {
	.name = "daemon",
	.usage = "[--socket PATH] [--dir DIR] [--max-size 512M] [--metrics PORT]",
	.summary = "serve all jobs of this host",
	.help = "Jobs report to it that were started with 'opwatch record --job NAME -- PROGRAM',\n"
		"or with what 'opwatch jobs --env' prints in their environment. A ring of what\n"
		"each did last is kept on disk: see 'opwatch jobs', any view with --job NAME, and\n"
		"'opwatch record --last 60s --job NAME'. It may be killed and started anew: jobs\n"
		"go on. With --stacks, the Python stacks of all jobs are in their rings, too.\n",
	.flags = "stacks max-size on-slowdown on-stall socket memory-limit",
	.run = run,
	.takes_job = true,
};
