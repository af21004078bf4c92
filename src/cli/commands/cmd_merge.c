/*
 * cmd_merge.c: `opwatch merge`: many Chrome traces into one. Problems of the inputs go to stderr, the sums to stdout (to
 * stderr when the trace goes to stdout). However it ends, it leaves no half-written file.
 */
#include "cli/command.h"

#include <sys/resource.h>

#define NOTES_SHOWN 10

struct merge_args {
	struct ow_merge_options merge;
};

/* Arguments of the callbacks. */
struct merging {
	struct progress_line line;
	bool verbose;
	uint64_t notes;
};

/* Raises the limit of open files, because compressed inputs stay open while they are merged. */
static void allow_many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static bool on_progress(void *arg, const char *file, uint64_t done, uint64_t total)
{
	struct merging *m = arg;

	if (interrupted)
		return false;
	if (!progress_due(&m->line))
		return true;
	if (total)
		progress_show(&m->line, "merging into %.50s: %3.0f %% of %.1f MB", file,
			      100.0 * (double)done / (double)total, (double)total / 1e6);
	else
		progress_show(&m->line, "unpacking");
	return true;
}

static void on_message(void *arg, const char *text, size_t len)
{
	struct merging *m = arg;

	progress_clear(&m->line);
	if (++m->notes <= NOTES_SHOWN || m->verbose)
		complain("opwatch: %.*s\n", (int)MIN(len, (size_t)INT32_MAX), text);
}

static void print_json(FILE *to, const struct ow_merge_summary *s)
{
	const struct {
		const char *name;
		uint64_t value;
	} sums[] = {
		{ "files", s->files },
		{ "skipped_files", s->skipped_files },
		{ "events_in", s->events_in },
		{ "events_out", s->events_out },
		{ "filtered", s->filtered },
		{ "added", s->added },
		{ "repaired", s->repaired },
		{ "others", s->others },
		{ "damaged", s->damaged },
		{ "damaged_bytes", s->damaged_bytes },
		{ "truncated_files", s->truncated_files },
		{ "untimed", s->untimed },
		{ "hidden", s->hidden },
		{ "bytes_in", s->bytes_in },
		{ "bytes_out", s->bytes_out },
	};

	for (size_t i = 0; i < ARRAY_COUNT(sums); i++)
		fprintf(to, "%s\"%s\":%" PRIu64, i ? "," : "{", sums[i].name, sums[i].value);
	fprintf(to, ",\"unrelated_clocks\":%s}\n", s->unrelated_clocks ? "true" : "false");
}

static void print_text(FILE *to, const char *out, const struct ow_merge_summary *s)
{
	fprintf(to, "%s: %" PRIu64 " events of %" PRIu64 " file%s", out, s->events_out, s->files,
		s->files == 1 ? "" : "s");
	if (s->filtered)
		fprintf(to, ", %" PRIu64 " filtered out", s->filtered);
	if (s->added)
		fprintf(to, ", %" PRIu64 " process%s named", s->added, s->added == 1 ? "" : "es");
	if (s->repaired)
		fprintf(to, ", %" PRIu64 " repaired to valid JSON", s->repaired);
	if (s->hidden)
		fprintf(to, ", %" PRIu64 " value%s hidden", s->hidden, s->hidden == 1 ? "" : "s");
	fprintf(to, "\n");
}

static void print_remarks(const struct merging *m, const struct ow_merge_summary *s)
{
	if (m->notes > NOTES_SHOWN && !m->verbose)
		complain("opwatch: … and %" PRIu64 " more; --verbose prints all\n",
			 m->notes - NOTES_SHOWN);
	if (s->unrelated_clocks)
		complain("opwatch: the times of the files are years apart; use --align start or "
			 "--align sequence to see them together\n");
}

static bool is_damaged(const struct ow_merge_summary *s)
{
	return s->skipped_files || s->damaged || s->truncated_files || s->others || s->untimed;
}

static bool to_standard_output(const struct args *args)
{
	return !args->output.file || strcmp(args->output.file, "-") == 0;
}

static bool check_args(const struct args *args)
{
	if (!args->file_count)
		(void)missing_file(args);
	else if (!args->output.file && args->terminal.out)
		complain("opwatch merge: no output given. Use -o all.json (or .json.gz, "
			 ".json.zst).\n");
	else
		return true;
	return false;
}

static void take_options(struct args *args, struct merging *m)
{
	struct ow_merge_options *o = &((struct merge_args *)args->own)->merge;

	o->memory_limit = args->input.open.memory_limit;
	o->progress = on_progress;
	o->progress_arg = m;
	o->message = on_message;
	o->message_arg = m;
	o->keep_from_ns = args->options.view.time_from_ns;
	o->keep_to_ns = args->options.view.time_to_ns;
	if (args->options.view.step >= 0 && o->keep_first_step == INT64_MIN)
		o->keep_first_step = o->keep_last_step = args->options.view.step;
}

static ow_status merge_files(struct args *args, struct ow_merge_summary *summary,
			     struct ow_error *err)
{
	struct ow_merge_options *o = &((struct merge_args *)args->own)->merge;
	static struct output_stream out;
	ow_status status;

	if (!to_standard_output(args))
		return ow_merge(args->files, args->file_count, o, args->output.file, summary, err);
	output_start(&out, false, 0);
	o->write = output_write;
	o->write_arg = &out;
	status = ow_merge(args->files, args->file_count, o, NULL, summary, err);
	if (!output_end(&out))
		return output_failure(err);
	return status == OW_E_INTERRUPTED && !interrupted
		       ? OW_OK
		       : status; /* the reader has closed the pipe */
}

static int run_merge(struct args *args)
{
	struct merging m = { .verbose = args->verbose };
	struct ow_merge_summary summary = { .size = sizeof(summary) };
	FILE *to = to_standard_output(args) ? stderr : stdout;
	struct ow_error err = { 0 };
	ow_status status;

	if (!check_args(args))
		return EXIT_USAGE;
	progress_begin(&m.line, args->terminal.err);
	take_options(args, &m);
	allow_many_files();
	signals_catch();
	status = merge_files(args, &summary, &err);
	progress_clear(&m.line);
	signals_pass_on();
	print_remarks(&m, &summary);
	if (status != OW_OK)
		return report_error(&err, status);
	if (strcmp(args->output.sink, "json") == 0)
		print_json(to, &summary);
	else
		print_text(to, to_standard_output(args) ? "merged" : args->output.file, &summary);
	return args->input.strict && is_damaged(&summary) ? EXIT_DAMAGED : EXIT_GOOD;
}

static bool parse_align(struct args *args, const struct option *option, const char *value)
{
	static const char *const names[] = { [OW_ALIGN_KEEP] = "keep",
					     [OW_ALIGN_START] = "start",
					     [OW_ALIGN_SEQUENCE] = "sequence",
					     [OW_ALIGN_CLOCKS] = "clocks" };
	struct merge_args *own = args->own;

	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (strcmp(value, names[i]) == 0) {
			own->merge.align = (ow_align)i;
			return true;
		}
	return usage_error("--%s takes keep, start, sequence or clocks, not '%s'", option->name,
			   value);
}

/* Parses the steps: 5 or 5-7. */
static bool parse_steps(struct args *args, const struct option *option, const char *value)
{
	struct ow_merge_options *o = &((struct merge_args *)args->own)->merge;
	struct str text = str_from(value);
	size_t dash = str_find_char(str_skip(text, 1), '-');
	struct str last = dash == STR_NONE ? text : str_skip(text, dash + 2);

	text = dash == STR_NONE ? text : str_first(text, dash + 1);
	if (str_to_i64(text, &o->keep_first_step) && str_to_i64(last, &o->keep_last_step) &&
	    o->keep_first_step <= o->keep_last_step)
		return true;
	return usage_error("--%s takes a step or a range such as 5-7, not '%s'", option->name,
			   value);
}

static void init_merge(void *own)
{
	ow_merge_options_init(&((struct merge_args *)own)->merge);
}

static const struct option options[] = {
	OPTION_OUT("write to FILE: .json, .json.gz or .json.zst"),
	{ "align", STORE_PARSED(parse_align), .argument = "HOW",
	  .help = "keep: do not change times; start: every file starts at zero; sequence: one file "
		  "after the other; clocks: ranks of a job on one clock",
	  .usual = "keep" },
	{ "keep-name", STORE_REPEAT(struct merge_args, merge.keep_names), .argument = "REGEX",
	  .help = "keep only events with a matching name (repeatable)" },
	{ "keep-category", STORE_REPEAT(struct merge_args, merge.keep_categories),
	  .argument = "REGEX", .help = "keep only events with a matching category (repeatable)" },
	{ "keep-pid", STORE_LIST(struct merge_args, merge.keep_pids), .argument = "LIST",
	  .help = "keep only events of these pids: 3,7 or a regex" },
	{ "keep-time", STORE_PARSED(parse_time_range), .argument = "A:B",
	  .help = "keep only this time: 100:250 (ms), 1.5s:2s" },
	{ "time-range", STORE_PARSED(parse_time_range), .argument = "A:B",
	  .help = "the same as --keep-time" },
	{ "keep-step", STORE_PARSED(parse_steps), .argument = "N[-M]",
	  .help = "keep only these steps" },
	OPTION_STEP,
	{ "no-labels", STORE_FLAG(struct merge_args, merge.no_labels),
	  .help = "do not add rank, step or file to the names of processes" },
	{ "redact", STORE_FLAG(struct merge_args, merge.redact),
	  .help = "replace names and paths by hashes" },
	{ "json", STORE_WORD(struct args, output.sink), .help = "print the counts as JSON" },
	OPTION_STRICT,
	OPTION_MEMORY_LIMIT,
};

const struct command cmd_merge = {
	.name = "merge",
	.usage = "TRACE… -o all.json[.gz|.zst] [options]",
	.summary = "merge many Chrome traces into one",
	.help = "Every event is copied as it is. Pids and ids that clash get new numbers, and\n"
		"the names of processes get the rank, step or name of their file. Of a\n"
		"truncated or damaged file it merges the readable part. A filter also keeps\n"
		"metadata and the ends of the events that it keeps. The output opens in\n"
		"chrome://tracing and Perfetto.\n",
	.examples = { "opwatch merge rank0.json rank1.json -o all.json.gz",
		      "opwatch merge rank0.json rank1.json --align start -o all.json" },
	.own = OPTIONS(options),
	.own_size = sizeof(struct merge_args),
	.init = init_merge,
	.run = run_merge,
};
