/* cmd_view.c: every view as a command: `opwatch op FILE…`, also `opwatch view op FILE…`. */
#include "cli/command.h"

#define OP_ROWS 30
#define CODE_LEVELS 100 /* the first ten are often those of a framework */

/* Outputs for other programs have whole stacks. */
static bool writes_stacks(const struct args *args)
{
	static const char *const sinks[] = { "folded", "flamegraph", "pprof" };

	for (size_t i = 0; i < ARRAY_COUNT(sinks); i++)
		if (args->sink && strcmp(args->sink, sinks[i]) == 0)
			return true;
	return false;
}

/* tfprof shows ten levels and orders by name; people ask what costs most, and want to see what they
 * order by. */
static void friendlier_defaults(struct args *args)
{
	struct ow_view_options *view = &args->options.view;
	const char *metric = main_metric(&view->select);

	if (args->order_given && !args->select_given && strcmp(view->order_by, "name") != 0)
		view->select = (struct ow_list){ &view->order_by, 1 };
	if (!args->order_given)
		view->order_by = metric ? metric : "micros";
	if (args->depth_given)
		return;
	if (strcmp(args->command, "op") == 0)
		view->max_depth = args->limit_given ? INT32_MAX : OP_ROWS - 1;
	if (strcmp(args->command, "code") == 0)
		view->max_depth = writes_stacks(args) ? INT32_MAX : CODE_LEVELS;
	else if (
		writes_stacks(
			args)) /* graphs may be chains of any length, each row with all before it */
		view->max_depth = strcmp(args->command, "graph") == 0 ? CODE_LEVELS : INT32_MAX;
}

/* A graph that never ran has no times to show, but work and weights. */
static void look_at_work(struct args *args, ow_profile *profile)
{
	static const char *const work[] = { "float_ops", "occurrence", "params" };
	struct ow_view_options *view = &args->options.view;
	struct ow_error err;
	ow_result *tracks;
	bool timed;

	if (args->select_given || args->order_given || ow_profile_steps(profile, NULL, 0) ||
	    ow_view(profile, "tracks", NULL, &tracks, &err) != OW_OK)
		return;
	timed = ow_result_rows(tracks) > 0;
	ow_result_free(tracks);
	if (timed)
		return;
	view->select = (struct ow_list){ work, ARRAY_COUNT(work) };
	view->order_by = "float_ops";
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
	if (!args_choose_output(args))
		return EXIT_USAGE;
	friendlier_defaults(args);
	profile = load_files(args, &code);
	if (!profile)
		return code;
	look_at_work(args, profile);
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
