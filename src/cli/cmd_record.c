/*
 * cmd_record.c: starts a job under the recorder. The job has the terminal; what is to be said goes to stderr when it
 * has ended, and its exit status becomes ours.
 */
#include "cli/command.h"
#include "cli/recording.h"

static int exit_code(const struct ow_record_summary *s)
{
	return s->exit_signal ? 128 + s->exit_signal : s->exit_code;
}

static int run(struct args *args)
{
	struct ow_record_summary summary = { .size = sizeof(summary) };
	const char *path = args->out_file ? args->out_file : recording_name(args->arena);
	struct ow_error err = { 0 };
	ow_status status;

	if (!args->file_count) {
		complain("opwatch record: which program? opwatch record -o x.opw -- python3 "
			 "train.py\n");
		return EXIT_USAGE;
	}
	if (!path)
		return EXIT_FAILED;
	args->record.memory_limit = args->open.memory_limit;
	args->record.message = recording_message;
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
	.usage = "[-o x.opw] [options] -- PROGRAM [ARGUMENT…]",
	.summary = "run a program and record what it does",
	.help = "The program needs no change: PyTorch's operators, loader and optimizer, files,\n"
		"OpenCL, CUDA, NCCL and socket traffic are recorded in it and in what it starts.\n"
		"The file opens with every command, also while the program runs. The exit status\n"
		"is the program's, or 128 + the signal that ended it.\n",
	.run = run,
};
