/*
 * cmd_record.c: starts a job under the recorder. The job has the terminal; what is to be said goes to stderr when it
 * has ended, and its exit status becomes ours.
 */
#include "cli/command.h"
#include "cli/piped.h"
#include "cli/recording.h"
#include "cli/signals.h"

static int exit_code(const struct ow_record_summary *s)
{
	return s->exit_signal ? 128 + s->exit_signal : s->exit_code;
}

static int cut_to(const struct args *args, const char *path, const char *name)
{
	struct ow_cut_summary summary = { .size = sizeof(summary) };
	struct ow_error err = { 0 };
	ow_status status = ow_job_cut(args->socket, args->job, args->last_ns, path, &summary, &err);

	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	recording_tell_cut(name, "the last ", args->job, &summary);
	return EXIT_GOOD;
}

/* What a job did last, out of the ring that the daemon keeps. */
static int cut(const struct args *args, const char *path)
{
	struct piped piped;
	int code;

	if (!args->job || args->file_count) {
		complain(
			"opwatch record: --last takes what is past of a job: opwatch record --last "
			"60s --job NAME -o x.opw\n");
		return EXIT_USAGE;
	}
	if (!path)
		return EXIT_FAILED;
	code = piped_begin(&piped, args, &path);
	if (code != EXIT_GOOD)
		return code;
	if (!piped.file.path)
		signals_guard_cut(path, NULL);
	code = cut_to(args, path, piped_name(&piped, path));
	if (!piped.file.path)
		signals_guard_end();
	return piped_end(&piped, code);
}

/* Under the daemon: this process becomes the program. */
static int run_under_daemon(struct args *args)
{
	struct ow_error err = { 0 };
	ow_status status;

	if (args->record.on_slowdown > 0 || args->record.on_stall_ns || args->record_stacks ||
	    args->record.wait_children) {
		complain("opwatch record: with --job, and without -o, the daemon records: "
			 "--on-slowdown,\n--on-stall and --stacks are options of 'opwatch daemon' "
			 "then, and what a program\nleaves running is recorded anyway: no "
			 "--wait-children\n");
		return EXIT_USAGE;
	}
	args->record.message = recording_message;
	status = ow_record_job(args->files, args->socket, args->job, &args->record, &err);
	complain("opwatch: %s\n", err.text);
	if (strncmp(err.text, args->files[0], strlen(args->files[0])) == 0)
		return status == OW_E_NOT_FOUND ? 127 : 126; /* as shells do */
	return EXIT_FAILED;
}

static int run(struct args *args)
{
	struct ow_record_summary summary = { .size = sizeof(summary) };
	const char *path = args->out_file ? args->out_file : recording_name(args->arena);
	struct ow_error err = { 0 };
	ow_status status;

	if (args->last_ns)
		return cut(args, path);
	if (!args->file_count) {
		complain("opwatch record: which program? opwatch record -o x.opw -- python3 "
			 "train.py\n");
		return EXIT_USAGE;
	}
	if ((args->job || args->socket) && !args->out_file)
		return run_under_daemon(args);
	if (is_standard_output(path)) {
		complain("opwatch record: standard output is the program's: give the recording a "
			 "name, -o x.opw\n");
		return EXIT_USAGE;
	}
	if (!path || (args->job && setenv("OPWATCH_JOB", args->job, 1) != 0))
		return EXIT_FAILED;
	args->record.memory_limit = args->open.memory_limit;
	args->record.message = recording_message;
	args->record.stacks_hz = args->record_stacks ? args->stacks.hz : 0;
	status = ow_record(args->files, path, &args->record, &summary, &err);
	if (status != OW_OK)
		complain("opwatch: %s\n", err.text);
	if (summary.exit_code < 0 && !summary.exit_signal)
		return status == OW_E_USAGE ? EXIT_USAGE : EXIT_FAILED;
	if (!summary.started)
		return summary.exit_code;
	recording_tell(path, &summary);
	return exit_code(&summary);
}

const struct command cmd_record = {
	.name = "record",
	.usage = "[-o x.opw|--job NAME] [options] -- PROGRAM [ARGUMENT…]",
	.summary = "run a program and record what it does",
	.help = "The program needs no change: PyTorch's operators, loader and optimizer, files,\n"
		"OpenCL, CUDA, NCCL and socket traffic are recorded in it and in what it starts.\n"
		"--stacks adds Python stacks, read from outside, to the same timeline.\n"
		"The file opens with every command, also while the program runs. The exit status\n"
		"is the program's, or 128 + the signal that ended it. What the program leaves\n"
		"running is told, and with --wait-children recorded until it ends, or Ctrl-C.\n"
		"\n"
		"With --job, and without -o, the program reports to the daemon, which keeps a\n"
		"ring of what it did last on disk:\n"
		"\n"
		"  opwatch record --job train -- python3 train.py\n"
		"  opwatch record --last 60s --job train -o slow.opw\n",
	.flags = "out last stacks max-size on-slowdown on-stall job socket memory-limit",
	.out = "the recording (opwatch-DATE-TIME.opw)",
	.run = run,
	.takes_job = true,
};
