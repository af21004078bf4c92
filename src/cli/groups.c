/*
 * groups.c: the options that several commands share, as tables that the commands list, and what the output options do:
 * where a command writes (--to, --json, --csv, --out). How files are read is in load.c, which files are one run in runs.c;
 * tfprof's options are in tfprof_options.c.
 */
#include "cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static const struct option general_table[] = {
	{ "verbose", 'v', STORE_FLAG(struct args, verbose), .help = "print every note" },
	{ "version", 'V', STORE_FLAG(struct args, version),
	  .help = "print the version and the optional parts of this build" },
	{ "help", 'h', STORE_FLAG(struct args, help), .help = "print this help" },
};

static bool parse_align(struct args *args, const struct option *option, const char *value)
{
	args->input.open.align_clocks = strcmp(value, "clocks") == 0;
	return args->input.open.align_clocks || strcmp(value, "keep") == 0 ||
	       usage_error("--%s takes keep or clocks, not '%s'", option->name, value);
}

static const struct option input_table[] = {
	{ "format", STORE_TEXT(struct args, input.format), .argument = "NAME",
	  .help = "read all files as this format; 'opwatch formats' lists them" },
	OPTION_STEP_MARKER,
	{ "checkpoint", STORE_TEXT(struct args, input.checkpoint), .argument = "PREFIX",
	  .help = "read variables from this TensorFlow checkpoint, for --select tensor_value" },
	{ "input-shape", STORE_REPEAT(struct args, input.open.input_shapes),
	  .argument = "NAME=100x784", .help = "set the shape of a placeholder (repeatable)" },
	{ "no-infer", STORE_FLAG_OFF(struct args, input.open.infer),
	  .help = "do not compute missing shapes and float operations" },
	{ "redact", STORE_FLAG(struct args, input.open.redact),
	  .help = "replace names and paths by hashes" },
	{ "align", STORE_PARSED(parse_align), .argument = "HOW",
	  .help = "keep: times as recorded; clocks: the ranks of a job on one clock",
	  .usual = "keep" },
	OPTION_MEMORY_LIMIT,
	OPTION_STRICT,
	{ "job", STORE_NAME(struct args, input.job), .argument = "NAME",
	  .help = "read this job of the daemon instead of a file" },
	{ "last", STORE_TIME(struct args, input.last_ns), .argument = "TIME",
	  .help = "with --job: only the last seconds, such as 60s" },
	{ "socket", STORE_TEXT(struct args, input.socket), .argument = "PATH",
	  .help = "with --job: the socket of the daemon" },
};

static const struct option output_table[] = {
	OPTION_JSON,
	OPTION_CSV,
	OPTIONS_FOR_PROGRAMS,
	{ "to", 't', STORE_TEXT(struct args, output.sink), .argument = "OUTPUT",
	  .help = "write another output; 'opwatch formats' lists them" },
	OPTION_OUT("write to FILE instead of standard output"),
	OPTION_LIMIT,
	{ "no-pager", STORE_FLAG(struct args, output.no_pager), .help = "never start a pager" },
};

bool parse_time_range(struct args *args, const struct option *option, const char *value)
{
	return value_time_range(str_from(value), &args->options.view.time_from_ns,
				&args->options.view.time_to_ns) ||
	       usage_error("--%s takes a begin and an end such as 100:250 (ms), 1.5s:2s or 300us:, "
			   "not '%s'",
			   option->name, value);
}

/* Parses the style words of views and sinks; each of them uses the words that it knows. */
bool parse_style(struct args *args, const struct option *option, const char *value)
{
	static const char *const words[] = { "pid",	     "tid",   "kernel",	  "jit",
					     "all",	     "addrs", "lines",	  "total",
					     "icicle",	     "flame", "inverted", "left-heavy",
					     "stackcollapse" };
	struct str rest = str_from(value), word;

	while (str_split(&rest, ',', &word)) {
		bool known = false;

		for (size_t i = 0; i < ARRAY_COUNT(words); i++)
			known = known || str_eq(word, str_from(words[i]));
		if (!known)
			return usage_error("--%s takes pid, tid, kernel, jit, all, addrs, lines, "
					   "total, stackcollapse, icicle, flame, inverted and "
					   "left-heavy, not '%.*s'",
					   option->name, STR_ARG(word));
	}
	args->options.view.style = value;
	return true;
}

static const struct option part_table[] = {
	OPTION_STEP,
	OPTION_TIME_RANGE,
	{ "rank", STORE_INT32(struct args, options.view.rank, 0, INT32_MAX), .argument = "N",
	  .help = "show only what this rank recorded" },
};

static const struct option shown_table[] = {
	{ "full-names", STORE_FLAG(struct args, options.view.full_names),
	  .help = "show the whole names of kernels" },
	OPTION_METRIC,
	OPTION_STYLE,
};

struct ow_view_options part_of_view(const struct args *args)
{
	const struct ow_view_options *given = &args->options.view;
	struct ow_view_options part;

	ow_view_options_init(&part);
	part.step = given->step;
	part.rank = given->rank;
	part.time_from_ns = given->time_from_ns;
	part.time_to_ns = given->time_to_ns;
	part.full_names = given->full_names;
	part.metric = given->metric;
	part.style = given->style;
	part.limit = given->limit;
	return part;
}

static const struct option peak_table[] = {
	{ "peak", STORE_TEXT(struct args, options.view.peak), .argument = "PEAK",
	  .help = "roofline: what the device can do at most: A100, or 312T:2.04T" },
};

static const struct option run_table[] = {
	{ "name", STORE_REPEAT(struct args, run.names), .argument = "NAME",
	  .help = "name the run of all files; repeated: name each run in order" },
	{ "run", STORE_REPEAT(struct args, run.given), .argument = "NAME=PATH,…",
	  .help = "these files are one run (repeatable)" },
	{ "one-run", STORE_FLAG(struct args, run.one), .help = "all files are one run" },
};

static const struct option server_table[] = {
	{ "on", STORE_TEXT(struct args, run.server), .argument = "ADDRESS",
	  .help = "query runs on this ClickHouse server instead of files" },
	{ "password-file", STORE_TEXT(struct args, run.password_file), .argument = "FILE",
	  .help = "read the password of the server from this file" },
};

const struct option_group general_options = OPTIONS(general_table);
const struct option_group input_options = OPTIONS(input_table);
const struct option_group output_options = OPTIONS(output_table);
const struct option_group part_options = OPTIONS(part_table);
const struct option_group shown_options = OPTIONS(shown_table);
const struct option_group tree_options = OPTIONS(option_table);
const struct option_group peak_options = OPTIONS(peak_table);
const struct option_group run_options = OPTIONS(run_table);
const struct option_group server_options = OPTIONS(server_table);

bool output_is_text(const struct args *args)
{
	return strcmp(args->output.sink, "text") == 0;
}

bool output_is_table(const struct args *args)
{
	static const char *const tables[] = { "text", "json", "csv", "ndjson", "arrow", "parquet" };

	for (size_t i = 0; i < ARRAY_COUNT(tables); i++)
		if (strcmp(args->output.sink, tables[i]) == 0)
			return true;
	return false;
}

bool output_paged(const struct args *args)
{
	return args->terminal.out && args->terminal.in && !args->output.no_pager;
}

static bool check_sink(const char *name)
{
	struct ow_part_info sink = { .size = sizeof(sink) };

	if (strstr(name, "://"))
		return usage_error("only 'opwatch push' writes to a server");
	for (size_t i = 0; ow_sink_info(i, &sink); i++)
		if (strcmp(sink.name, name) == 0)
			return true;
	if (strcmp(name, "none") == 0)
		return true;
	complain("opwatch: unknown output '%s'; the outputs are", name);
	for (size_t i = 0; ow_sink_info(i, &sink); i++)
		complain("%s %s", i ? "," : "", sink.name);
	complain("\n");
	return false;
}

bool output_choose(struct args *args)
{
	struct output *output = &args->options.output;
	const char *sink = args->output.sink;

	if (!check_sink(sink))
		return false;
	if (strcmp(output->type, "stdout") != 0)
		return true; /* the option -output was given */
	output->outfile = is_standard_output(args->output.file) ? NULL : args->output.file;
	if (output_is_text(args) && !output->outfile)
		return true;
	output->type = output_is_text(args) ? "file" : sink;
	if ((strcmp(sink, "timeline") == 0 || strcmp(sink, "pprof") == 0) && !output->outfile)
		return usage_error("--to %s needs --out FILE", sink);
	if ((strcmp(sink, "arrow") == 0 || strcmp(sink, "parquet") == 0) && !output->outfile &&
	    args->terminal.out)
		return usage_error("--%s is not for a terminal; add --out FILE", sink);
	return true;
}

/* Opens a temporary file next to the target; scratch.c removes it if a signal ends the program. */
static int open_part(struct args *args, struct ow_error *err)
{
	struct atomic_path *part = arena_push(args->arena, sizeof(*part));
	int fd;

	if (!part) {
		error_no_memory(err);
		return -1;
	}
	if (atomic_path_find(part, args->output.file, err) != OW_OK)
		return -1;
	fd = atomic_path_open(part, O_WRONLY, 0666);
	if (fd < 0)
		error_errno(err, errno, "%s", args->output.file);
	else if (!part->direct) {
		args->output.part = part;
		signals_guard_cut(args->output.file, NULL);
	}
	return fd;
}

bool output_redirect(struct args *args)
{
	struct ow_error err = { 0 };
	int fd;

	if (!args->output.file || is_standard_output(args->output.file))
		return true;
	fflush(stdout);
	fd = open_part(args, &err);
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0) {
		complain("opwatch: %s\n", fd < 0 ? err.text : strerror(errno));
		return false;
	}
	close(fd);
	output_is(args->output.file);
	args->terminal.out = args->terminal.colour = false;
	return true;
}

int output_finish(struct args *args, int code)
{
	bool good = code == EXIT_GOOD || code == EXIT_DAMAGED;
	struct ow_error err = { 0 };

	if (fflush(stdout) != 0 && errno != EPIPE && good) {
		(void)output_complain();
		code = EXIT_FAILED;
		good = false;
	}
	if (!args->output.part)
		return code;
	if (good && atomic_path_publish(args->output.part, &err) != OW_OK) {
		complain("opwatch: %s\n", err.text);
		code = EXIT_FAILED;
		good = false;
	}
	if (!good)
		atomic_path_discard(args->output.part);
	signals_guard_end();
	return code;
}

void show_from_args(const struct args *args, ow_profile *profile, struct show *show)
{
	*show = (struct show){ .profile = profile,
			       .args = args,
			       .terminal = args->terminal,
			       .pager = !args->output.no_pager && args->terminal.in };
}

int report_error(const struct ow_error *err, ow_status status)
{
	complain("opwatch: %s\n", err->text);
	return status == OW_E_USAGE ? EXIT_USAGE : EXIT_FAILED;
}
