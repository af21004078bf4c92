/*
 * tfprof.c: the program under the name `tfprof`: the original's flags, start-up sequence and texts.
 * Where the original aborts or prints nonsense we say what is wrong and exit with 1.
 */
#include "cli/command.h"
#include "cli/shell/shell.h"
#include "cli/terminal/show.h"

#include <signal.h>

static const char help_text[] =
	"See "
	"https://github.com/tensorflow/tensorflow/tree/master/tensorflow/core/profiler/README.md "
	"for profiler tutorial.\n"
	"See https://github.com/tensorflow/tensorflow/tree/master/tensorflow/core/profiler/g3doc/"
	"command_line.md for command line tool tutorial.\n"
	"profiler --profile_path=<ProfileProto binary file> # required\n"
	"\n"
	"Or:\n"
	"\n"
	"profiler --graph_path=<GraphDef proto file>  # Contains model graph info (no needed for "
	"eager "
	"execution)\n"
	"         --run_meta_path=<RunMetadata proto file>  # Contains runtime info. Optional.\n"
	"         --run_log_path=<OpLogProto proto file>  # Contains extra source code, flops, "
	"custom "
	"type info. Optional\n"
	"\n"
	"\n"
	"To skip interactive mode, append one of the following commands:\n"
	"  scope: Organize profiles based on name scopes.\n"
	"  graph: Organize profiles based on graph node input/output.\n"
	"  op: Organize profiles based on operation type.\n"
	"  code: Organize profiles based on python codes (need op_log_path).\n"
	"  advise: Auto-profile and advise. (experimental)\n"
	"  set: Set options that will be default for follow up commands.\n"
	"  help: Show helps.\n";

void tfprof_print_help(void)
{
	fputs(help_text, stdout);
	fflush(stdout);
}

/* Flags of tfprof's usage text, with its types and texts, including odd ones. */
static const struct {
	const char *name, *value, *type, *text;
} usage_lines[] = {
	{ "profile_path", "\"\"", "string", "Profile binary file name." },
	{ "graph_path", "\"\"", "string", "GraphDef proto text file name" },
	{ "run_meta_path", "\"\"", "string",
	  "Comma-separated list of RunMetadata proto binary files. Each file is given step number "
	  "0,1,2,etc" },
	{ "op_log_path", "\"\"", "string",
	  "tensorflow::tfprof::OpLogProto proto binary file name" },
	{ "checkpoint_path", "\"\"", "string", "TensorFlow Checkpoint file name" },
	{ "max_depth", "10", "int32", "max depth" },
	{ "min_bytes", "0", "int64", "min_bytes" },
	{ "min_peak_bytes", "0", "int64", "min_peak_bytes" },
	{ "min_residual_bytes", "0", "int64", "min_residual_bytes" },
	{ "min_output_bytes", "0", "int64", "min_output_bytes" },
	{ "min_micros", "0", "int64", "min micros" },
	{ "min_accelerator_micros", "0", "int64", "min accelerator_micros" },
	{ "min_cpu_micros", "0", "int64", "min_cpu_micros" },
	{ "min_params", "0", "int64", "min params" },
	{ "min_float_ops", "0", "int64", "min float ops" },
	{ "min_occurrence", "0", "int64", "min occurrence" },
	{ "step", "-1", "int64", "The stats of which step to use. By default average" },
	{ "order_by", "\"name\"", "string", "order by" },
	{ "account_type_regexes", "\".*\"", "string", "start name regexes" },
	{ "trim_name_regexes", "\"\"", "string", "trim name regexes" },
	{ "show_name_regexes", "\".*\"", "string", "show name regexes" },
	{ "hide_name_regexes", "\"\"", "string", "hide name regexes" },
	{ "account_displayed_op_only", "false", "bool", "account displayed op only" },
	{ "select", "\"micros\"", "string", "select" },
	{ "output", "\"\"", "string", "output" },
};

static int print_usage(const char *program)
{
	printf("usage: %s\nFlags:\n", program);
	for (size_t i = 0; i < ARRAY_COUNT(usage_lines); i++) {
		char flag[128];

		snprintf(flag, sizeof(flag), "--%s=%s", usage_lines[i].name, usage_lines[i].value);
		printf("\t%-33s\t%s\t%s\n", flag, usage_lines[i].type, usage_lines[i].text);
	}
	return 2;
}

struct flags {
	struct arena *arena;
	struct options options;
	const char *profile_path, *graph_path, *run_meta_path, *op_log_path, *checkpoint_path;
	const char *output;
	const char **positional;
	size_t positional_count;
	bool bad;
};

static void bad_flag(struct flags *flags, struct str value, const char *name)
{
	complain("Couldn't interpret value %.*s for flag %s.\n", STR_ARG(value), name);
	flags->bad = true;
}

static bool path_flag(struct flags *flags, struct str name, const char *value)
{
	struct {
		const char *name, **to;
	} paths[] = {
		{ "profile_path", &flags->profile_path },
		{ "graph_path", &flags->graph_path },
		{ "run_meta_path", &flags->run_meta_path },
		{ "op_log_path", &flags->op_log_path },
		{ "checkpoint_path", &flags->checkpoint_path },
		{ "output", &flags->output },
	};

	for (size_t i = 0; i < ARRAY_COUNT(paths); i++)
		if (str_eq(name, str_from(paths[i].name))) {
			*paths[i].to = value;
			return true;
		}
	return false;
}

/* Parses a boolean flag; tfprof matches its name as a prefix. */
static bool bool_flag(struct flags *flags, struct str text)
{
	const char *name = "account_displayed_op_only";
	struct str rest;

	if (!str_starts(text, str_from(name)))
		return false;
	rest = str_skip(text, strlen(name));
	if (!rest.len || str_eq(rest, STR("=true")))
		flags->options.view.account_displayed_op_only = true;
	else if (str_eq(rest, STR("=false")))
		flags->options.view.account_displayed_op_only = false;
	else
		bad_flag(flags, rest, name);
	return true;
}

/* Parses a flag; false if the word is not a flag but a positional argument. */
static bool parse_flag(struct flags *flags, const char *word)
{
	struct str text = str_from(word), name, value;
	const struct option *option;
	size_t equals;

	if (!str_starts(text, STR("--")))
		return false;
	text = str_skip(text, 2);
	if (bool_flag(flags, text))
		return true;
	equals = str_find_char(text, '=');
	if (equals == STR_NONE)
		return false;
	name = str_first(text, equals);
	value = str_skip(text, equals + 1);
	if (path_flag(flags, name, value.ptr))
		return true;
	option = option_find(name);
	if (!option)
		return false;
	if (!option_parse_flag(&flags->options, flags->arena, option, value))
		bad_flag(flags, value, option->name);
	return true;
}

static void parse_flags(struct flags *flags, int argc, char **argv)
{
	bool ended = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0)
			ended = true;
		if (ended || !parse_flag(flags, argv[i]))
			flags->positional[flags->positional_count++] = argv[i];
	}
}

static bool given(const char *path)
{
	return path && *path;
}

/* Prints an error as TensorFlow writes it: "Not found: d/x; No such…". */
static void complain_status(const char *before, const char *path, const struct ow_error *err)
{
	size_t len = strlen(path);
	bool named = strncmp(err->text, path, len) == 0 && strncmp(err->text + len, ": ", 2) == 0;
	const char *code = err->status == OW_E_NOT_FOUND    ? "Not found"
			   : err->status == OW_E_PERMISSION ? "Permission denied"
			   : err->status == OW_E_CORRUPT    ? "Data loss"
			   : err->status == OW_E_NO_MEMORY  ? "Resource exhausted"
							    : "Invalid argument";

	if (named && (err->status == OW_E_NOT_FOUND || err->status == OW_E_PERMISSION))
		complain("%s%s: %s; %s\n", before, code, path, err->text + len + 2);
	else
		complain("%s%s: %s\n", before, code, err->text);
}

static bool add(ow_profile *profile, const char *path, const char *format, int64_t step,
		const char *what, struct ow_file_info *info)
{
	struct ow_file_options options = { .size = sizeof(options),
					   .format = format,
					   .step = step };
	struct ow_error err;

	if (ow_profile_add_file(profile, path, &options, info, &err) == OW_OK)
		return true;
	/* empty files are valid empty messages */
	if (err.status == OW_E_EMPTY)
		return true;
	complain_status(what, path, &err);
	return false;
}

static bool add_run_metadata(ow_profile *profile, struct arena *arena, const char *paths)
{
	struct ow_list list;
	char what[4096];

	if (!list_parse(&list, arena, str_from(paths)))
		return false;
	for (size_t i = 0; i < list.count; i++) {
		struct ow_file_info info = { .size = sizeof(info) };

		snprintf(what, sizeof(what),
			 "Failed to read run_meta_path %s. Status: ", list.items[i]);
		if (!add(profile, list.items[i], "runmeta", (int64_t)i, what, &info))
			return false;
		if (info.missing_step_stats || !info.format)
			complain("Invalid RunMetadata for step %zu\n", i);
		printf("run graph coverage: %.2f\n", info.coverage);
	}
	return true;
}

static bool set_checkpoint(ow_profile *profile, const char *path)
{
	struct ow_error err;

	if (!given(path) || ow_profile_set_checkpoint(profile, path, &err) == OW_OK)
		return true;
	complain("%s\n", err.text);
	return false;
}

/* For a file that is not a profile the shell prints an error and goes on without one, as the original does;
 * anything else ends the program. */
static bool load_profile(ow_profile **profile, const struct ow_open_options *open, const char *path,
			 bool one_shot)
{
	struct ow_file_options options = { .size = sizeof(options),
					   .format = "profile",
					   .step = INT64_MIN };
	struct ow_error err;
	ow_status status = ow_profile_add_file(*profile, path, &options, NULL, &err);

	if (status == OW_OK)
		return true;
	complain_status("Failed to read profile: ", path, &err);
	if (one_shot || (status != OW_E_CORRUPT && status != OW_E_FORMAT))
		return false;
	ow_profile_free(*profile);
	*profile = NULL;
	return ow_profile_new(open, profile, &err) == OW_OK;
}

static bool freeze(ow_profile *profile)
{
	struct ow_error err;

	if (ow_profile_freeze(profile, &err) == OW_OK)
		return true;
	complain("%s\n", err.text);
	return false;
}

static bool load_parts(struct flags *flags, ow_profile *profile)
{
	printf("Try to use a single --profile_path instead of "
	       "graph_path,op_log_path,run_meta_path\n");
	if (given(flags->graph_path) && !add(profile, flags->graph_path, "graphdef", INT64_MIN,
					     "Failed to read graph_path: ", NULL))
		return false;
	if (given(flags->op_log_path) && !add(profile, flags->op_log_path, "oplog", INT64_MIN,
					      "Failed to read op_log_path: ", NULL))
		return false;
	printf("Parsing Inputs...\n");
	/* marks the variables again: there are ops now; ops of the run metadata come later and
	 * stay unmarked */
	if (!set_checkpoint(profile, flags->checkpoint_path))
		return false;
	return !given(flags->run_meta_path) ||
	       add_run_metadata(profile, flags->arena, flags->run_meta_path);
}

static bool load(struct flags *flags, ow_profile **profile, const struct ow_open_options *open,
		 bool one_shot)
{
	printf("Reading Files...\n");
	if (!set_checkpoint(*profile, flags->checkpoint_path))
		return false;
	if (!given(flags->profile_path))
		return load_parts(flags, *profile) && freeze(*profile);
	if (!load_profile(profile, open, flags->profile_path, one_shot) || !*profile)
		return false;
	return freeze(*profile);
}

static bool is_one_shot(const char *word)
{
	static const char *const commands[] = { "scope", "graph", "code", "op", "advise" };

	if (!word)
		return false;
	for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
		if (strcmp(word, commands[i]) == 0)
			return true;
	return false;
}

static int run_command(struct flags *flags, ow_profile **profile,
		       const struct ow_open_options *open, const char *command)
{
	struct show show = { .tfprof = true };

	if (!load(flags, profile, open, is_one_shot(command))) {
		fflush(stdout);
		return EXIT_FAILED;
	}
	fflush(stdout);
	show.profile = *profile;
	terminal_look(&show.terminal);
	if (!command || !is_one_shot(command)) {
		show.pager = show.terminal.in;
		return shell_run(&show, &flags->options);
	}
	/* tfprof exits with 0 whatever the view reports */
	if (strcmp(command, "advise") == 0)
		(void)show_advice(&show, &flags->options);
	else
		(void)show_view(&show, command, &flags->options);
	return EXIT_GOOD;
}

static int check_and_run(struct flags *flags, const char *program)
{
	const char *command = flags->positional_count ? flags->positional[0] : NULL;
	struct ow_open_options open;
	ow_profile *profile;
	struct ow_error err = { 0 };
	int code;

	if (flags->bad || (command && strcmp(command, "--help") == 0))
		return print_usage(program);
	if (given(flags->profile_path) &&
	    (given(flags->graph_path) || given(flags->run_meta_path))) {
		complain("--profile_path is set, do not set --graph_path or --run_meta_path\n");
		return 1;
	}
	if (!output_parse(&flags->options.output, false, flags->arena,
			  str_from(flags->output ? flags->output : ""), &err)) {
		complain("Invalid argument: %s\n", err.text);
		return 1;
	}
	if ((!command && !given(flags->graph_path) && !given(flags->profile_path) &&
	     !given(flags->run_meta_path)) ||
	    (command && strcmp(command, "help") == 0)) {
		tfprof_print_help();
		return 0;
	}
	ow_open_options_init(&open);
	open.infer = false; /* tfprof computes no missing values */
	open.strict_proto = true;
	if (ow_profile_new(&open, &profile, &err) != OW_OK) {
		complain("%s\n", err.text);
		return 1;
	}
	code = run_command(flags, &profile, &open, command);
	ow_profile_free(profile);
	return code;
}

int tfprof_main(int argc, char **argv)
{
	struct flags flags = { 0 };
	struct arena arena;
	struct mem mem;
	int code = 1;

	mem_init(&mem, 0);
	arena_init(&arena, &mem);
	flags.arena = &arena;
	options_init(&flags.options, false);
	flags.positional = ARENA_ARRAY(&arena, const char *, (size_t)argc + 1);
	if (flags.positional) {
		parse_flags(&flags, argc, argv);
		code = check_and_run(&flags, argv[0]);
	}
	fflush(stdout);
	arena_release(&arena);
	return code;
}
