/* args_output.c: where the output of a command goes: --to, --json, --csv and --out together. */
#include "cli/args.h"
#include "cli/piped.h"

#include <errno.h>

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

bool args_redirect(struct args *args)
{
	if (!args->out_file || is_standard_output(args->out_file))
		return true;
	if (!freopen(args->out_file, "w", stdout)) {
		complain("opwatch: %s: %s\n", args->out_file, strerror(errno));
		return false;
	}
	args->terminal.out = args->terminal.colour = false;
	return true;
}
