/* cmd_view.c: every view as a command: `opwatch op FILE…`, also `opwatch view op FILE…`. */
#include "cli/command.h"

/* Where the output goes: --to/--json/--csv with --out, or tfprof's -output. */
static bool choose_output(struct args *args)
{
	struct output *output = &args->options.output;

	if (strcmp(output->type, "stdout") != 0)
		return true; /* -output was given */
	output->outfile = args->out_file;
	if (strcmp(args->sink, "text") == 0 && !args->out_file)
		return true;
	output->type = strcmp(args->sink, "text") == 0 ? "file" : args->sink;
	if ((strcmp(output->type, "timeline") == 0 || strcmp(output->type, "pprof") == 0) &&
	    !output->outfile) {
		complain("opwatch: --to %s needs --out FILE\n", output->type);
		return false;
	}
	return true;
}

/* tfprof shows ten levels and orders by name; people ask what costs most. */
static void friendlier_defaults(struct args *args)
{
	struct ow_view_options *view = &args->options.view;

	if (strcmp(view->order_by, "name") == 0)
		view->order_by = view->select.count ? view->select.items[0] : "micros";
	if (!args->depth_given && strcmp(args->command, "op") == 0)
		view->max_depth = args->limit_given ? INT32_MAX : 29;
}

static int run(struct args *args)
{
	struct show show;
	ow_profile *profile;
	int code = EXIT_FAILED;

	if (strcmp(args->command, "view") == 0) {
		if (!args->file_count) {
			complain("opwatch view: which view? 'opwatch --help' lists them\n");
			return EXIT_USAGE;
		}
		args->command = *args->files++;
		args->file_count--;
	}
	if (!choose_output(args))
		return EXIT_USAGE;
	friendlier_defaults(args);
	profile = load_files(args, &code);
	if (!profile)
		return code;
	show_from_args(args, profile, &show);
	code = finish_code(args, profile, show_view(&show, args->command, &args->options));
	ow_profile_free(profile);
	return code;
}

const struct command cmd_view = {
	.name = "view",
	.usage = "VIEW FILE… [options]",
	.summary = "one view: op, scope, graph, code, steps, …",
	.help = "The word 'view' may be left out: opwatch op FILE --select micros,bytes\n",
	.run = run,
};
