/*
 * cmd_attach.c: records processes that run already, until they end, the time is over, or somebody presses ctrl-C; then
 * takes the hooks out again.
 */
#include "cli/command.h"
#include "cli/piped.h"
#include "cli/recording.h"
#include "cli/signals.h"

static bool is_cancelled(void *arg)
{
	(void)arg;
	return signals_caught();
}

static bool parse_pids(const struct args *args, int *pids)
{
	for (size_t i = 0; i < args->file_count; i++) {
		int64_t number;

		if (!str_to_i64(str_from(args->files[i]), &number) || number < 1 ||
		    number > INT32_MAX) {
			complain("opwatch attach: '%s' is no process number\n", args->files[i]);
			return false;
		}
		pids[i] = (int)number;
	}
	return true;
}

static int tell(const struct ow_error *err, ow_status status)
{
	if (status == OW_OK)
		return EXIT_GOOD;
	complain("opwatch: %s\n", err->text);
	return status == OW_E_USAGE ? EXIT_USAGE : EXIT_FAILED;
}

/* A job that reports to the daemon: what it does from now on. */
static int follow(struct args *args, const char *path, const char *name)
{
	struct ow_cut_summary summary = { .size = sizeof(summary) };
	struct ow_error err = { 0 };
	ow_status status;

	args->record.cancelled = is_cancelled;
	args->record.duration_ns = args->stacks.for_ns;
	args->record.stacks_hz = args->record_stacks ? args->stacks.hz : 0;
	signals_catch();
	status = ow_job_follow(args->socket, args->job, path, &args->record, &summary, &err);
	if (status == OW_OK)
		recording_tell_cut(name, "", args->job, &summary);
	if (status == OW_OK && args->record_stacks && !summary.samples)
		complain("opwatch: no Python stacks: the daemon may not read the processes of the "
			 "job, or they run no Python\n");
	return tell(&err, status);
}

/* Processes that report to the daemon from now on. */
static int join(const struct args *args, const int *pids)
{
	struct ow_record_summary summary = { .size = sizeof(summary) };
	struct ow_error err = { 0 };
	ow_status status = ow_attach_job(pids, args->file_count, args->socket, args->job,
					 &args->record, &summary, &err);

	if (status == OW_OK)
		complain("opwatch: %u process%s report%s to the daemon as job %s; 'opwatch attach "
			 "--detach --job %s' ends that\n",
			 summary.processes, summary.processes == 1 ? "" : "es",
			 summary.processes == 1 ? "s" : "", args->job, args->job);
	return tell(&err, status);
}

static int detach(const struct args *args)
{
	struct ow_error err = { 0 };

	return tell(&err, ow_detach_job(args->socket, args->job, &err));
}

/* With --job the daemon records: what it would not heed is wrong. */
static bool check_options(const struct args *args)
{
	if (is_standard_output(args->out_file) &&
	    (args->record.on_slowdown > 0 || args->record.on_stall_ns)) {
		complain("opwatch attach: what --on-slowdown and --on-stall save is called like "
			 "the\nrecording: give it a name, -o x.opw\n");
		return false;
	}
	if (!args->job || args->detach)
		return true;
	if (args->record.on_slowdown > 0 || args->record.on_stall_ns ||
	    (args->record_stacks && args->file_count)) {
		complain("opwatch attach: with --job the daemon records: --on-slowdown and "
			 "--on-stall are\noptions of 'opwatch daemon' then, and --stacks of it, or "
			 "of --job without a PID\n");
		return false;
	}
	if (args->file_count && (args->out_file || args->stacks.for_ns)) {
		complain("opwatch attach: a PID with --job reports to the daemon from now on; -o "
			 "and --for are\nfor one of the two: the process by itself, or 'opwatch "
			 "attach --job %s' then\n",
			 args->job);
		return false;
	}
	return true;
}

static int record(struct args *args, const int *pids, const char *path, const char *name)
{
	struct ow_record_summary summary = { .size = sizeof(summary) };
	struct ow_error err = { 0 };
	ow_status status;

	args->record.memory_limit = args->open.memory_limit;
	args->record.message = recording_message;
	args->record.stacks_hz = args->record_stacks ? args->stacks.hz : 0;
	args->record.cancelled = is_cancelled;
	args->record.duration_ns = args->stacks.for_ns;
	signals_catch();
	status = ow_attach(pids, args->file_count, path, &args->record, &summary, &err);
	if (status != OW_OK)
		return tell(&err, status);
	recording_tell(name, &summary);
	if (args->verbose)
		complain("opwatch: a thread was stopped for %.2f ms; meanwhile it waited %.2f ms "
			 "for a "
			 "processor\n",
			 (double)summary.stopped_ns / 1e6, (double)summary.waited_ns / 1e6);
	if (summary.hooks_left)
		complain("opwatch: a process has not taken the hooks out yet; it will when it gets "
			 "to run\n");
	return EXIT_GOOD;
}

static int run(struct args *args)
{
	const char *path = args->out_file ? args->out_file : recording_name(args->arena);
	int *pids = ARENA_ARRAY(args->arena, int, args->file_count + 1);
	struct piped piped;
	const char *name;
	int code;

	if (args->detach ? !args->job || args->file_count : !args->file_count && !args->job) {
		complain("opwatch attach: which process, or job? opwatch attach 1234 -o x.opw\n");
		return EXIT_USAGE;
	}
	if (!path || !pids)
		return EXIT_FAILED;
	if (!parse_pids(args, pids) || !check_options(args))
		return EXIT_USAGE;
	if (args->detach)
		return detach(args);
	if (args->job && args->file_count)
		return join(args, pids);
	code = piped_begin(&piped, args, &path);
	if (code != EXIT_GOOD)
		return code;
	name = piped_name(&piped, path);
	code = args->job ? follow(args, path, name) : record(args, pids, path, name);
	return piped_end(&piped, code);
}

const struct command cmd_attach = {
	.name = "attach",
	.usage = "PID…|--job NAME [-o x.opw] [--for 10s]",
	.summary = "record processes that run already",
	.help = "Until they end, the time is over, or Ctrl-C; then they are left as they were.\n"
		"One thread is stopped for some milliseconds. You must be allowed to trace them.\n"
		"\n"
		"With --job NAME, what a job of the daemon does from now on; with --stacks, the\n"
		"daemon samples its Python stacks meanwhile. With a PID and --job\n"
		"NAME, the process reports to the daemon until it ends, or --detach --job NAME.\n",
	.flags = "out for stacks max-size on-slowdown on-stall job socket memory-limit",
	.out = "the recording (opwatch-DATE-TIME.opw)",
	.run = run,
	.takes_job = true,
};
