/*
 * cmd_diff.c: `opwatch diff`: compares the steps of runs before and after a change, and fails if a limit is exceeded. The library compares;
 * diff_show.c shows the answer; here are the sides of the command line.
 */
#include "cli/command.h"
#include "cli/commands/diff_show.h"

struct diff_args {
	struct ow_list fail_if;
	bool frames, findings;
	bool sides; /* --base or --new was given */
	size_t inserted;
	size_t base_first, base_end, new_first, new_end;
};

/* Reads --base A1 A2 … --new B1 B2 …: the arguments after an option, up to the next one, are the files of its side.
 * The first file, which is the value of the option, is put back among the others. */
static bool begin_side(struct args *args, const struct option *option, const char *value)
{
	struct diff_args *own = args->own;
	bool is_base = strcmp(option->name, "base") == 0;
	size_t at = args->files_before + own->inserted++;

	memmove(args->files + at + 1, args->files + at,
		(args->file_count - at) * sizeof(*args->files));
	args->files[at] = value;
	args->file_count++;
	if (own->inserted > 1)
		*(is_base ? &own->new_end : &own->base_end) = at;
	own->sides = true;
	*(is_base ? &own->base_first : &own->new_first) = at;
	return true;
}

/* Finds the files of each side: [first, end). */
static bool find_sides(struct args *args)
{
	struct diff_args *own = args->own;

	if (!own->sides) {
		if (args->file_count != 2)
			return usage_error("diff compares two files, or --base FILE… --new FILE…");
		own->base_end = own->new_first = 1;
		own->new_end = 2;
		return true;
	}
	own->base_end = own->base_end ? own->base_end : args->file_count;
	own->new_end = own->new_end ? own->new_end : args->file_count;
	if (own->base_first >= own->base_end || own->new_first >= own->new_end ||
	    !args_given(args, "base") || !args_given(args, "new"))
		return usage_error("diff needs both sides: --base FILE… --new FILE…");
	return true;
}

/* Each word of the command line is a run: a file, or a folder with the files of its ranks. */
static int run_diff(struct args *args)
{
	const struct diff_args *own = args->own;
	ow_profile **profiles = ARENA_ARRAY(args->arena, ow_profile *, args->file_count + 1);
	const char **files = args->files;
	size_t count = args->file_count;
	struct ow_diff_options options;
	int code = EXIT_GOOD;

	ow_diff_options_init(&options);
	options.fail_if = own->fail_if;
	options.frames = own->frames;
	options.findings = own->findings;
	if (!output_choose(args) || !find_sides(args))
		return EXIT_USAGE;
	if (args->options.view.style && strcmp(args->output.sink, "flamegraph") != 0) {
		(void)usage_error("--style is for --to flamegraph here");
		return EXIT_USAGE;
	}
	if (!profiles)
		return EXIT_FAILED;
	for (size_t i = 0; i < count && code == EXIT_GOOD; i++)
		profiles[i] = diff_load(args, files[i], &code);
	if (code == EXIT_GOOD)
		code = diff_show(args, profiles + own->base_first, own->base_end - own->base_first,
				 profiles + own->new_first, own->new_end - own->new_first,
				 &options);
	for (size_t i = 0; i < count; i++)
		ow_profile_free(profiles[i]);
	return code;
}

static const struct option options[] = {
	{ "base", STORE_PARSED(begin_side), .argument = "FILE…",
	  .help = "runs before the change; up to the next option" },
	{ "new", STORE_PARSED(begin_side), .argument = "FILE…", .help = "runs after the change" },
	{ "fail-if", STORE_REPEAT(struct diff_args, fail_if), .argument = "LIMIT",
	  .help = "exit with 5 if the limit is certainly exceeded, with 6 if that is uncertain" },
	{ "frames", STORE_FLAG(struct diff_args, frames),
	  .help = "show a tree: call stacks of samples, or phases, lines, ops and kernels" },
	{ "findings", STORE_FLAG(struct diff_args, findings),
	  .help = "also compare the advice of recordings with more than a million events" },
	OPTION_METRIC,
	OPTION_STYLE,
};

const struct command cmd_diff = {
	.name = "diff",
	.usage = "BASE NEW | --base FILE… --new FILE… [--fail-if LIMIT] [--json]",
	.summary = "compare runs before and after a change",
	.help = "Each file or folder is one run. Every instant of a steady step belongs to one\n"
		"phase, op and line, so the rows and the unexplained rest sum to the difference.\n"
		"With 4 runs a side or more it also says whether that is more than chance.\n"
		"\n"
		"Limits: step_time, peak_memory, launches, op:NAME and phase:NAME, as in\n"
		"'step_time > 3%' or 'op:aten::conv2d > 1ms'. Exit codes: 0 within the limits,\n"
		"5 beyond, 6 inconclusive, 4 not comparable (other device or world size).\n",
	.has_answer = true,
	.examples = { "opwatch diff before.json after.json",
		      "opwatch diff before.json after.json --to flamegraph --out diff.svg" },
	.own = OPTIONS(options),
	.groups = { &output_options, &input_options },
	.own_size = sizeof(struct diff_args),
	.run = run_diff,
};
