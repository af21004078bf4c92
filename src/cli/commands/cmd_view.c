/*
 * cmd_view.c: every view as a command: `opwatch op FILE…`, also `opwatch view op FILE…`. The library has the views; here are
 * the defaults that suit people, and which view takes which options. show.c runs a view and sends its table to the output.
 */
#include "cli/command.h"

#define OP_ROWS 30
/* default depth of the code view, because the first ten levels often belong to a framework */
#define CODE_LEVELS 100

/* Returns whether the output is for other programs, which need whole stacks. */
static bool writes_stacks(const struct args *args)
{
	static const char *const sinks[] = { "folded", "flamegraph", "pprof" };

	for (size_t i = 0; i < ARRAY_COUNT(sinks); i++)
		if (strcmp(args->output.sink, sinks[i]) == 0)
			return true;
	return false;
}

/* Sets the defaults. tfprof shows ten levels ordered by name; opwatch orders by cost and shows
 * the column that it orders by. */
static void set_defaults(struct args *args)
{
	struct ow_view_options *view = &args->options.view;
	const char *metric = main_metric(&view->select);

	if (args_given(args, "order-by") && !args_given(args, "select") &&
	    strcmp(view->order_by, "name") != 0)
		view->select = (struct ow_list){ &view->order_by, 1 };
	if (!args_given(args, "order-by"))
		view->order_by = metric ? metric : "micros";
	if (args_given(args, "max-depth"))
		return;
	if (strcmp(args->command, "op") == 0)
		view->max_depth = args_given(args, "limit") ? INT32_MAX : OP_ROWS - 1;
	if (strcmp(args->command, "code") == 0)
		view->max_depth = writes_stacks(args) ? INT32_MAX : CODE_LEVELS;
	/* a graph may be a long chain, and each of its rows contains all rows before it */
	else if (writes_stacks(args))
		view->max_depth = strcmp(args->command, "graph") == 0 ? CODE_LEVELS : INT32_MAX;
}

/* Selects float operations and parameters for a graph that never ran, because it has no times. */
static void select_work(struct args *args, ow_profile *profile)
{
	static const char *const work[] = { "float_ops", "occurrence", "params" };
	struct ow_view_options *view = &args->options.view;
	struct ow_error err;
	ow_result *tracks;
	size_t steps;
	bool timed;

	if (args_given(args, "select") || args_given(args, "order-by") ||
	    ow_profile_steps(profile, NULL, 0, &steps, &err) != OW_OK || steps ||
	    ow_view(profile, "tracks", NULL, &tracks, &err) != OW_OK)
		return;
	timed = ow_result_rows(tracks) > 0;
	ow_result_free(tracks);
	if (timed)
		return;
	view->select = (struct ow_list){ work, ARRAY_COUNT(work) };
	view->order_by = "float_ops";
}

/* Returns whether the profile has sampled functions and no operations, so that op and code show
 * functions. */
static bool is_sampled(ow_profile *profile)
{
	struct ow_view_options options;
	struct ow_error err;
	ow_result *r = NULL;
	bool found;

	ow_view_options_init(&options);
	options.limit = 1;
	if (ow_view(profile, "op", &options, &r, &err) != OW_OK)
		return false;
	found = ow_result_find(r, "self") != UINT32_MAX;
	ow_result_free(r);
	return found;
}

/* Refuses options of operations that do not apply to functions. */
static bool check_options(const struct args *args, ow_profile *profile)
{
	static const char *const names[] = { "select", "order-by", "max-depth" };
	bool list = strcmp(args->command, "op") == 0, tree = strcmp(args->command, "code") == 0;

	for (size_t i = 0; (list || tree) && i < ARRAY_COUNT(names); i++) {
		if (!args_given(args, names[i]) || (tree && strcmp(names[i], "max-depth") == 0) ||
		    !is_sampled(profile))
			continue;
		complain("opwatch: --%s is for operations, and this profile has sampled functions; "
			 "--metric chooses what is shown%s\n",
			 names[i], list ? ", --limit cuts the list" : "");
		return false;
	}
	return true;
}

static int run_view(struct args *args)
{
	struct show show;
	ow_profile *profile;
	int code = EXIT_FAILED;

	if (strcmp(args->command, "view") == 0) {
		if (!args->file_count) {
			complain("opwatch view: no view given; 'opwatch --help' lists the views\n");
			return EXIT_USAGE;
		}
		args->command = *args->files++;
		args->file_count--;
	}
	if (!output_choose(args))
		return EXIT_USAGE;
	set_defaults(args);
	profile = strcmp(args->command, "verdict") == 0 ? load_advised(args, &code)
							: load_files(args, &code);
	if (!profile)
		return code;
	if (!check_options(args, profile)) {
		ow_profile_free(profile);
		return EXIT_USAGE;
	}
	select_work(args, profile);
	show_from_args(args, profile, &show);
	code = finish_code(args, profile, show_view(&show, args->command, &args->options));
	ow_profile_free(profile);
	return code;
}

/* Returns whether a view accepts an option: tfprof's options are for its own views; others
 * accept only -output. */
static bool takes_option(const char *view, const struct option *option)
{
	static const char *const trees[] = { "view", "op", "scope", "graph", "code" };
	bool tfprof = option >= option_table && option < option_table + OPTION_COUNT;

	if (option == peak_options.options)
		return strcmp(view, "roofline") == 0 || strcmp(view, "view") == 0;
	for (size_t i = 0; i < ARRAY_COUNT(trees); i++)
		if (strcmp(view, trees[i]) == 0)
			return true;
	return !tfprof || option->kind == OPTION_TFPROF_OUTPUT;
}

const char *view_example(const char *view)
{
	static const struct {
		const char *view, *options;
	} examples[] = {
		{ "op", "--select micros,bytes --limit 10" },
		{ "scope", "--max-depth 3 --order-by micros" },
		{ "graph", "--start-name-regexes .*conv.* --max-depth 4" },
		{ "code", "--to flamegraph -o code.svg" },
		{ "roofline", "--peak A100" },
		{ "functions", "--limit 20" },
		{ "lines", "--limit 20" },
		{ "work", "--step 0" },
		{ "memory_time", "--to svg -o memory.svg" },
	};

	for (size_t i = 0; i < ARRAY_COUNT(examples); i++)
		if (strcmp(examples[i].view, view) == 0)
			return examples[i].options;
	return "--json";
}

const struct command cmd_view = {
	.name = "view",
	.usage = "VIEW FILE… [options]",
	.summary = "show one view: op, scope, graph, code, steps, …",
	.help = "The word 'view' may be left out: opwatch op FILE --select micros,bytes\n",
	.examples = { "opwatch view op run.opw --limit 10", "opwatch view steps run.opw" },
	.groups = { &output_options, &part_options, &shown_options, &tree_options, &peak_options,
		    &input_options },
	.takes = takes_option,
	.run = run_view,
};
