/*
 * cmd_record.c: starts a job under the recorder. The job has the terminal; what is to be said goes to stderr when it
 * has ended, and its exit status becomes ours.
 */
#include "cli/command.h"

#include <time.h>
#include <unistd.h>

static void on_message(void *arg, const char *text, size_t len)
{
	(void)arg;
	complain("opwatch: %.*s\n", (int)MIN(len, (size_t)INT32_MAX), text);
}

/* opwatch-20261116-030405.opw, here. */
static const char *default_name(struct arena *arena)
{
	time_t now = time(NULL);
	struct tm tm;
	char text[32];

	if (!localtime_r(&now, &tm) || !strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &tm))
		return "opwatch-recording.opw";
	return arena_printf(arena, "opwatch-%s.opw", text);
}

static void tell_summary(const char *path, const struct ow_record_summary *s)
{
	complain("opwatch: %s: %" PRIu64 " records of %u process%s", path, s->records, s->processes,
		 s->processes == 1 ? "" : "es");
	if (s->dropped)
		complain("; %" PRIu64
			 " more were dropped, since they came faster than they could be "
			 "written: a larger --ring helps",
			 s->dropped);
	if (s->unnamed)
		complain("; %" PRIu64 " names or threads had no room", s->unnamed);
	if (s->refused_processes)
		complain("; %u process%s refused", s->refused_processes,
			 s->refused_processes == 1 ? "" : "es");
	complain("\n");
	if (!s->processes && !s->refused_processes)
		complain("opwatch: nothing reported: the program is linked statically, dropped its "
			 "environment, is set-user-ID, or may not make files of a megabyte (ulimit "
			 "-f)\n");
}

static int exit_code(const struct ow_record_summary *s)
{
	return s->exit_signal ? 128 + s->exit_signal : s->exit_code;
}

static int run(struct args *args)
{
	struct ow_record_summary summary = { .size = sizeof(summary) };
	const char *path = args->out_file ? args->out_file : default_name(args->arena);
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
	args->record.message = on_message;
	status = ow_record(args->files, path, &args->record, &summary, &err);
	if (status != OW_OK)
		complain("opwatch: %s\n", err.text);
	if (summary.exit_code < 0 && !summary.exit_signal)
		return status == OW_E_USAGE ? EXIT_USAGE : EXIT_FAILED;
	if (!summary.started)
		return summary.exit_code;
	tell_summary(path, &summary);
	return exit_code(&summary);
}

const struct command cmd_record = {
	.name = "record",
	.usage = "[-o x.opw] [options] -- PROGRAM [ARGUMENT…]",
	.summary = "run a program and record what it does",
	.help = "The program needs no change: PyTorch's operators, loader and optimizer, files,\n"
		"OpenCL commands and socket traffic are recorded in it and in what it starts.\n"
		"The file opens with every command, also while the program runs. The exit status\n"
		"is the program's, or 128 + the signal that ended it.\n",
	.run = run,
};
