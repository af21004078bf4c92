/*
 * cmd_convert.c: `opwatch convert`: files in one form into another: our own file (.opw), a timeline for chrome://tracing and
 * Perfetto, folded stacks, a flame graph, pprof, TensorFlow's ProfileProto and OpLogProto. --to or the name of the output
 * selects the form; the library writes it.
 */
#include "cli/command.h"

#include <sys/stat.h>

struct convert_args {
	bool show_dataflow, show_memory, show_path; /* options of timelines */
};

/* Outputs by the ending of the file name; the first match counts. */
static const struct {
	const char *end, *to;
} endings[] = {
	{ ".opw", "opw" },	     { ".svg", "flamegraph" },	 { ".html", "flamegraph" },
	{ ".folded", "folded" },     { ".collapsed", "folded" }, { ".pprof", "pprof" },
	{ ".pb.gz", "pprof" },	     { ".json", "timeline" },	 { ".json.gz", "timeline" },
	{ ".trace.gz", "timeline" }, { ".profile", "profile" },
};

static bool is(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static bool ends_with(const char *name, const char *end)
{
	return str_ends(str_from(name), str_from(end));
}

static const char *target(const struct args *args)
{
	if (!output_is_text(args))
		return args->output.sink;
	for (size_t i = 0; args->output.file && i < ARRAY_COUNT(endings); i++)
		if (ends_with(args->output.file, endings[i].end))
			return endings[i].to;
	return NULL;
}

static bool to_standard_output(const struct args *args)
{
	return !args->output.file || is(args->output.file, "-");
}

static bool on_progress(void *arg, const char *file, uint64_t done, uint64_t total)
{
	struct progress_line *line = arg;

	if (interrupted)
		return false;
	if (total && progress_due(line))
		progress_show(line, "writing %.50s: %3.0f %% of %.1f MB", file,
			      100.0 * (double)done / (double)total, (double)total / 1e6);
	return true;
}

static ow_status save_opw(struct args *args, ow_profile *profile, struct ow_error *err)
{
	struct ow_save_options options;
	struct progress_line line;
	ow_status status;

	progress_begin(&line, args->terminal.err);
	ow_save_options_init(&options);
	options.progress = on_progress;
	options.progress_arg = &line;
	status = ow_profile_save(profile, args->output.file, &options, err);
	progress_clear(&line);
	return status;
}

/* Prints messages about data that the output leaves out. */
static void print_messages(const ow_result *result)
{
	const char *line;

	for (uint32_t i = 0; (line = ow_result_message(result, i)); i++)
		if (strcmp(line, "Incomplete shape.") != 0)
			complain("%s\n", line);
}

/* Writes the code view if the profile has lines of code, else scopes; all levels. */
static ow_status write_tree(struct args *args, ow_profile *profile, const char *sink,
			    struct ow_error *err)
{
	static struct output_stream out;
	const char *view = ow_profile_has_code(profile) ? "code" : "scope";
	struct ow_view_options *options = &args->options.view, asked;
	struct ow_write_options write;
	ow_result *result;
	ow_status status;

	if (!args_given(args, "max-depth"))
		options->max_depth = INT32_MAX / 2;
	options_asked(&args->options, &asked);
	OW_TRY(ow_view_options_check(profile, view, &asked, err));
	ow_view_options_drop(profile, view, options);
	OW_TRY(ow_view(profile, view, options, &result, err));
	print_messages(result);
	ow_write_options_init(&write);
	write.metric = options->select.count ? options->select.items[0] : NULL;
	if (!to_standard_output(args)) {
		status = ow_result_write_file(result, sink, &write, args->output.file, err);
	} else {
		output_start(&out, false, 0);
		status = ow_result_write(result, sink, &write, output_write, &out, err);
		if (!output_end(&out))
			status = output_failure(err);
	}
	ow_result_free(result);
	return status;
}

static ow_status write_timeline(struct args *args, ow_profile *profile, struct ow_error *err)
{
	const struct convert_args *own = args->own;
	static struct output_stream out;
	struct ow_timeline_options options;
	ow_status status;

	ow_timeline_options_init(&options);
	options.show_dataflow = own->show_dataflow;
	options.show_memory = own->show_memory;
	options.show_path = own->show_path;
	options.step = args->options.view.step;
	options.rank = args->options.view.rank;
	options.time_from_ns = args->options.view.time_from_ns;
	options.time_to_ns = args->options.view.time_to_ns;
	options.metric = args->options.view.metric;
	if (!to_standard_output(args)) {
		options.gzip = ends_with(args->output.file, ".gz");
		return ow_timeline_write_file(profile, &options, args->output.file, err);
	}
	output_start(&out, false, 0);
	status = ow_timeline_write(profile, &options, output_write, &out, err);
	return output_end(&out) ? status : output_failure(err);
}

static ow_status write_message(struct args *args, ow_profile *profile, bool log,
			       struct ow_error *err)
{
	static struct output_stream out;
	ow_status status;

	if (!to_standard_output(args))
		return log ? ow_tf_op_log_write_file(profile, args->output.file, err)
			   : ow_tf_profile_write_file(profile, args->output.file, err);
	output_start(&out, false, 0);
	status = log ? ow_tf_op_log_write(profile, output_write, &out, err)
		     : ow_tf_profile_write(profile, output_write, &out, err);
	return output_end(&out) ? status : output_failure(err);
}

static void print_next_step(const struct args *args, const char *to)
{
	struct stat st;

	if (to_standard_output(args))
		return;
	if (is(to, "timeline"))
		printf("%s: open it in chrome://tracing or Perfetto\n", args->output.file);
	else if (is(to, "pprof"))
		printf("%s: open it with go tool pprof\n", args->output.file);
	else if (is(to, "profile"))
		printf("%s: open it with tfprof --profile_path\n", args->output.file);
	else if (is(to, "opw") && stat(args->output.file, &st) == 0)
		printf("%s: %.1f %s\n", args->output.file,
		       (double)st.st_size / (st.st_size < 1000000 ? 1e3 : 1e6),
		       st.st_size < 1000000 ? "kB" : "MB");
}

static int write_output(struct args *args, ow_profile *profile, const char *to)
{
	struct ow_error err = { 0 };
	ow_status status;

	if (is(to, "opw"))
		status = save_opw(args, profile, &err);
	else if (is(to, "timeline"))
		status = write_timeline(args, profile, &err);
	else if (is(to, "profile") || is(to, "oplog"))
		status = write_message(args, profile, is(to, "oplog"), &err);
	else
		status = write_tree(args, profile, to, &err);
	if (status == OW_E_INTERRUPTED && to_standard_output(args) && !interrupted)
		status = OW_OK; /* the reader has closed the pipe */
	if (status != OW_OK)
		complain("opwatch: %s\n", err.text);
	else
		print_next_step(args, to);
	return finish_code(args, profile, status);
}

static bool check_target(const struct args *args, const char *to)
{
	static const struct {
		const char *name;
		bool binary;
	} outputs[] = { { "opw", true },	 { "timeline", false }, { "folded", false },
			{ "flamegraph", false }, { "pprof", true },	{ "profile", true },
			{ "oplog", true } };

	if (!to) {
		complain("opwatch convert: no output given. Use -o run.opw, or --to opw, timeline, "
			 "folded, flamegraph, pprof, profile or oplog.\n");
		return false;
	}
	for (size_t i = 0; i < ARRAY_COUNT(outputs); i++) {
		if (!is(to, outputs[i].name))
			continue;
		if (to_standard_output(args) &&
		    (is(to, "opw") || (outputs[i].binary && args->terminal.out))) {
			complain("opwatch convert: --to %s needs -o FILE\n", to);
			return false;
		}
		return true;
	}
	complain("opwatch convert: unknown output '%s'; the outputs are opw, timeline, folded, "
		 "flamegraph, pprof, profile, oplog\n",
		 to);
	return false;
}

static int run_convert(struct args *args)
{
	const char *to = target(args);
	ow_profile *profile;
	int code = EXIT_FAILED;

	if (!check_target(args, to))
		return EXIT_USAGE;
	profile = load_files(args, &code);
	if (!profile)
		return code;
	interrupts_catch(true); /* so that a half-written file is removed */
	code = write_output(args, profile, to);
	interrupts_catch(false);
	ow_profile_free(profile);
	return code;
}

static void init_convert(void *own)
{
	((struct convert_args *)own)->show_dataflow = true;
}

static const struct option options[] = {
	{ "to", 't', STORE_TEXT(struct args, output.sink), .argument = "OUTPUT",
	  .help = "opw, timeline, folded, flamegraph, pprof, profile or oplog",
	  .usual = "by the name of --out" },
	OPTION_OUT("write to FILE; a name that ends in .gz is compressed"),
	{ "show-dataflow", STORE_BOOL(struct convert_args, show_dataflow),
	  .help = "timelines: draw arrows to consumers", .usual = "true" },
	{ "show-memory", STORE_BOOL(struct convert_args, show_memory),
	  .help = "timelines: show tensors and memory", .usual = "false" },
	{ "show-path", STORE_BOOL(struct convert_args, show_path),
	  .help = "timelines: add the critical path of a step as a track", .usual = "false" },
};

const struct command cmd_convert = {
	.name = "convert",
	.usage = "FILE… -o run.opw | --to OUTPUT [-o FILE]",
	.summary = "save as an opwatch file, a timeline, a flame graph, …",
	.help = "An opwatch file (.opw) holds everything, so the originals may be deleted, and\n"
		"opens in milliseconds. A timeline of RunMetadata files is what TensorFlow's\n"
		"Timeline class makes of them, all steps in one file; of anything else it is a\n"
		"Chrome trace of its events. Flame graphs, folded stacks and pprof show lines of\n"
		"code, or scopes when the profile has no code.\n",
	.examples = { "opwatch convert trace.json -o trace.opw",
		      "opwatch convert run.opw --to flamegraph -o run.svg" },
	.own = OPTIONS(options),
	.groups = { &input_options, &part_options, &shown_options, &tree_options },
	.own_size = sizeof(struct convert_args),
	.init = init_convert,
	.run = run_convert,
};
