/*
 * cmd_report.c: `opwatch report FILE… -o report.html`: the web page as one HTML file, for readers without opwatch: what CI
 * attaches and people mail. The library makes it.
 */
#include "cli/command.h"
#include "cli/commands/diff_show.h"

#include <opwatch/ui.h>

struct report_args {
	uint64_t size;
	const char *title;
	struct ow_list base;
};

/* The two sides of a comparison: the files of --base as one profile, and, if there are several, each file of both
 * sides as a separate run. */
struct comparison {
	ow_profile *base;
	/* profiles of the runs, the base's first; NULL if each side is one run */
	ow_profile **runs;
	size_t base_count, run_count;
};

static void free_comparison(struct comparison *c)
{
	for (size_t i = 0; c->runs && i < c->run_count; i++)
		ow_profile_free(c->runs[i]);
	ow_profile_free(c->base);
}

static ow_profile *load_base(struct args *args, const struct ow_list *base, int *code)
{
	const char **files = args->files;
	size_t count = args->file_count;
	ow_profile *profile;

	args->files = (const char **)(uintptr_t)base->items;
	args->file_count = base->count;
	profile = load_files(args, code);
	args->files = files;
	args->file_count = count;
	return profile;
}

static bool load_comparison(struct args *args, struct comparison *c, int *code)
{
	const struct ow_list *base = &((const struct report_args *)args->own)->base;

	if (!base->count)
		return true;
	c->base = load_base(args, base, code);
	if (!c->base)
		return false;
	c->base_count = base->count;
	c->run_count = base->count + args->file_count;
	if (c->run_count == 2)
		return true;
	c->runs = ARENA_ARRAY(args->arena, ow_profile *, c->run_count);
	*code = c->runs ? EXIT_GOOD : EXIT_FAILED;
	for (size_t i = 0; i < c->run_count && *code == EXIT_GOOD; i++)
		c->runs[i] = diff_load(
			args, i < base->count ? base->items[i] : args->files[i - base->count],
			code);
	return *code == EXIT_GOOD;
}

static int run_report(struct args *args)
{
	const struct report_args *own = args->own;
	bool to_stdout = is_standard_output(args->output.file);
	struct comparison comparison = { 0 };
	struct ow_report_options options;
	struct output_stream out;
	struct ow_error err = { 0 };
	ow_profile *profile;
	ow_status status;
	const char *why;
	int code = EXIT_FAILED;

	if (!ow_ui_available(&why)) {
		complain("opwatch: %s\n", why);
		return EXIT_FAILED;
	}
	if (!args->output.file || (to_stdout && args->terminal.out)) {
		complain("opwatch report: no output given. Use -o report.html\n");
		return EXIT_USAGE;
	}
	if (overwrites_input(args, args->output.file))
		return EXIT_USAGE;
	profile = load_advised(args, &code);
	if (!profile)
		return code;
	if (!load_comparison(args, &comparison, &code)) {
		free_comparison(&comparison);
		ow_profile_free(profile);
		return code == EXIT_GOOD ? EXIT_FAILED : code;
	}
	ow_report_options_init(&options);
	options.base = comparison.base;
	options.runs = comparison.runs;
	options.base_runs = comparison.base_count;
	options.new_runs = comparison.run_count - comparison.base_count;
	options.max_bytes = own->size;
	options.title = own->title;
	if (to_stdout) {
		output_start(&out, false, 0);
		status = ow_report_write(profile, &options, output_write, &out, &err);
		if (!output_end(&out))
			status = output_failure(&err);
	} else {
		status = ow_report_write_file(profile, &options, args->output.file, &err);
	}
	code = status == OW_OK ? finish_code(args, profile, status) : report_error(&err, status);
	free_comparison(&comparison);
	ow_profile_free(profile);
	return code;
}

static const struct option options[] = {
	OPTION_OUT("write the report to FILE"),
	{ "base", STORE_REPEAT(struct report_args, base), .argument = "FILE",
	  .help = "add the page Compare: against this run; repeatable, each file is a run" },
	{ "size", STORE_SIZE(struct report_args, size, 1 << 20), .argument = "SIZE",
	  .help = "make it at most this large: 5M, 20M; what does not fit is left out",
	  .usual = "5M" },
	{ "title", STORE_TEXT(struct report_args, title), .argument = "TEXT",
	  .help = "set the title", .usual = "the first file" },
};

const struct command cmd_report = {
	.name = "report",
	.usage = "FILE… -o report.html [--base FILE] [--size 5M] [--redact]",
	.summary = "write the web page as one HTML file, to attach or mail",
	.help = "The report opens from disk in any browser, without opwatch or a network: start,\n"
		"advice, a coarse timeline, operations, flame graph, memory, files. Names and\n"
		"paths are in it; --redact replaces them by hashes.\n",
	.examples = { "opwatch report run.opw -o report.html",
		      "opwatch report run.opw -o report.html --redact --size 2M" },
	.own = OPTIONS(options),
	.groups = { &input_options },
	.own_size = sizeof(struct report_args),
	.run = run_report,
};
