/*
 * cmd_attach.c: `opwatch attach`: records processes that run already, until they end, the time is over, or Ctrl-C; then
 * removes the hooks from them. With --job it follows a job of the daemon, or makes a process report to the daemon.
 */
#include "cli/commands/live.h"

struct attach_args {
	struct live_args live;
	bool detach;
};

/* Saves the activity of a job that reports to the daemon, from now on. */
static int follow_job(struct live_args *live, const char *path, const char *name)
{
	struct ow_cut_summary summary = { .size = sizeof(summary) };
	struct ow_error err = { 0 };
	ow_status status;

	signals_catch();
	status = ow_job_follow(live->socket, live->job, path, &live->record, &summary, &err);
	if (status != OW_OK)
		return report_error(&err, status);
	print_cut(name, "", live->job, &summary);
	if (live->stacks && !summary.samples)
		complain("opwatch: no Python stacks: the daemon may not read the processes of the "
			 "job, or they do not run Python\n");
	return EXIT_GOOD;
}

/* Makes processes report to the daemon from now on. */
static int join_job(const struct args *args, const int64_t *pids)
{
	const struct live_args *live = args->own;
	struct ow_record_summary summary = { .size = sizeof(summary) };
	struct ow_error err = { 0 };
	ow_status status = ow_attach_job(pids, args->file_count, live->socket, live->job,
					 &live->record, &summary, &err);

	if (status != OW_OK)
		return report_error(&err, status);
	complain("opwatch: %u process%s now report%s to the daemon as job %s; 'opwatch attach "
		 "--detach --job %s' ends that\n",
		 summary.processes, summary.processes == 1 ? "" : "es",
		 summary.processes == 1 ? "s" : "", live->job, live->job);
	return EXIT_GOOD;
}

static int detach_job(const struct live_args *live)
{
	struct ow_error err = { 0 };
	ow_status status = ow_detach_job(live->socket, live->job, &err);

	return status == OW_OK ? EXIT_GOOD : report_error(&err, status);
}

/* Refuses options that have no effect with --job, because the daemon records. */
static bool check_options(const struct args *args)
{
	const struct attach_args *own = args->own;
	const struct live_args *live = &own->live;
	bool triggers = live->record.on_slowdown > 0 || live->record.on_stall_ns;

	if (is_standard_output(live->out) && triggers) {
		complain("opwatch attach: --on-slowdown and --on-stall name their files after the "
			 "recording;\ngive it a name: -o x.opw\n");
		return false;
	}
	if (!live->job || own->detach)
		return true;
	if (triggers || (live->stacks && args->file_count)) {
		complain("opwatch attach: with --job the daemon records. Give --on-slowdown and "
			 "--on-stall\nto 'opwatch daemon'; give --stacks to it, too, or use --job "
			 "without a PID\n");
		return false;
	}
	if (args->file_count && (live->out || live->for_ns)) {
		complain("opwatch attach: a PID with --job reports to the daemon from now on, "
			 "without -o\nand --for; leave out --job to record the process, or the PID "
			 "to save job %s\n",
			 live->job);
		return false;
	}
	return true;
}

static int record_pids(const struct args *args, const int64_t *pids, const char *path,
		       const char *name)
{
	struct live_args *live = args->own;
	struct ow_record_summary summary = { .size = sizeof(summary) };
	struct ow_error err = { 0 };
	ow_status status;

	live->record.memory_limit = args->input.open.memory_limit;
	signals_catch();
	status = ow_attach(pids, args->file_count, path, &live->record, &summary, &err);
	if (status != OW_OK)
		return report_error(&err, status);
	print_recording(name, &summary);
	if (args->verbose)
		complain("opwatch: a thread was stopped for %.2f ms, %.2f ms of them waiting for a "
			 "processor\n",
			 (double)summary.stopped_ns / 1e6, (double)summary.waited_ns / 1e6);
	if (summary.hooks_left)
		complain("opwatch: a process still has the hooks; it removes them when it runs "
			 "again\n");
	return EXIT_GOOD;
}

static int run_attach(struct args *args)
{
	const struct attach_args *own = args->own;
	struct live_args *live = args->own;
	const char *path = live->out ? live->out : recording_name(args->arena), *name;
	int64_t *pids = ARENA_ARRAY(args->arena, int64_t, args->file_count + 1);
	struct piped piped;
	int code;

	if (own->detach ? !live->job || args->file_count : !args->file_count && !live->job) {
		complain("opwatch attach: give a process id or --job NAME: opwatch attach 1234 -o "
			 "x.opw\n");
		return EXIT_USAGE;
	}
	if (!path || !pids)
		return EXIT_FAILED;
	if (!live_pids(args, pids) || !check_options(args))
		return EXIT_USAGE;
	if (own->detach)
		return detach_job(live);
	if (live->job && args->file_count)
		return join_job(args, pids);
	code = piped_begin(&piped, args, &path);
	if (code != EXIT_GOOD)
		return code;
	live->record.keep_going = live_keep_going;
	live->record.duration_ns = live->for_ns;
	live->record.stacks_hz =
		live->job ? (live->stacks ? live->stacks_hz : 0) : live_stacks_hz(live);
	name = piped_name(&piped, path);
	code = live->job ? follow_job(live, path, name) : record_pids(args, pids, path, name);
	return piped_end(&piped, code);
}

static const struct option options[] = {
	LIVE_OUT("FILE", "write the recording to FILE (default: opwatch-DATE-TIME.opw)"),
	LIVE_FOR("record for this long: 10s, 500ms, 2m", "until the processes end"),
	LIVE_JOB("save what this job of the daemon does; with a PID: the process joins the job"),
	{ "detach", STORE_FLAG(struct attach_args, detach),
	  .help = "with --job: remove the hooks from the processes of the job" },
	LIVE_STEP_MARKER,
	LIVE_SOCKET,
};

const struct command cmd_attach = {
	.name = "attach",
	.usage = "PID…|--job NAME [-o x.opw] [--for 10s]",
	.summary = "record running processes",
	.help = "Records until the processes end, the time is over, or Ctrl-C, and then removes\n"
		"its hooks from them. One thread is stopped for some milliseconds. You need the\n"
		"right to trace the processes.\n"
		"\n"
		"With --job NAME it saves what a job of the daemon does from now on; --stacks\n"
		"makes the daemon sample its Python stacks meanwhile. With a PID and --job NAME\n"
		"the process reports to the daemon until it ends, or until --detach --job NAME.\n",
	.examples = { "opwatch attach 1234 --for 10s -o x.opw",
		      "opwatch attach --job train --stacks --for 30s -o x.opw" },
	.own = OPTIONS(options),
	.groups = { &recording_options },
	.own_size = sizeof(struct attach_args),
	.init = live_args_init,
	.run = run_attach,
};
