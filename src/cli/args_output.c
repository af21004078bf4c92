/* args_output.c: where the output of a command goes: --to, --json, --csv and --out together. */
#include "cli/args.h"
#include "cli/piped.h"
#include "cli/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_sink(const char *name)
{
	struct ow_part_info sink;

	for (size_t i = 0; ow_sink_info(i, &sink); i++)
		if (strcmp(sink.name, name) == 0)
			return true;
	return strcmp(name, "none") == 0;
}

static bool unknown_sink(const char *name)
{
	struct ow_part_info sink;

	complain("opwatch: no output is called '%s'; there are", name);
	for (size_t i = 0; ow_sink_info(i, &sink); i++)
		complain("%s %s", i ? "," : "", sink.name);
	complain("\n");
	return false;
}

bool args_choose_output(struct args *args)
{
	struct output *output = &args->options.output;

	if (args->push_to)
		return usage_error("only 'opwatch push' writes to a server");
	if (!is_sink(args->sink))
		return unknown_sink(args->sink);
	if (strcmp(output->type, "stdout") != 0)
		return true; /* -output was given */
	output->outfile = is_standard_output(args->out_file) ? NULL : args->out_file;
	if (strcmp(args->sink, "text") == 0 && !output->outfile)
		return true;
	output->type = strcmp(args->sink, "text") == 0 ? "file" : args->sink;
	if ((strcmp(output->type, "timeline") == 0 || strcmp(output->type, "pprof") == 0) &&
	    !output->outfile)
		return usage_error("--to %s needs --out FILE", output->type);
	return true;
}

/* Regular files are written beside where they belong; signals.c knows the name, too. */
static int open_part(struct args *args)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	struct stat st;
	char *part;
	int fd;

	if (stat(args->out_file, &st) == 0 && !S_ISREG(st.st_mode))
		return open(args->out_file, O_WRONLY | O_CLOEXEC);
	part = arena_printf(args->arena, "%s.tmp%d", args->out_file, (int)getpid());
	if (!part) {
		errno = ENOMEM;
		return -1;
	}
	fd = open(part, flags, 0666);
	if (fd < 0 && errno == EEXIST && unlink(part) == 0)
		fd = open(part, flags, 0666);
	if (fd >= 0) {
		args->out_part = part;
		signals_guard_cut(args->out_file, NULL);
	}
	return fd;
}

bool args_redirect(struct args *args)
{
	int fd;

	if (!args->out_file || is_standard_output(args->out_file))
		return true;
	fflush(stdout);
	fd = open_part(args);
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0) {
		complain("opwatch: %s: %s\n", args->out_file, strerror(errno));
		return false;
	}
	close(fd);
	output_is(args->out_file);
	args->terminal.out = args->terminal.colour = false;
	return true;
}

int args_finish_output(struct args *args, int code)
{
	bool good = code == EXIT_GOOD || code == EXIT_DAMAGED;

	if (fflush(stdout) != 0 && errno != EPIPE && good) {
		(void)output_complain();
		code = EXIT_FAILED;
		good = false;
	}
	if (!args->out_part)
		return code;
	if (good && rename(args->out_part, args->out_file) < 0) {
		(void)output_complain();
		code = EXIT_FAILED;
		good = false;
	}
	if (!good)
		unlink(args->out_part);
	signals_guard_end();
	return code;
}
