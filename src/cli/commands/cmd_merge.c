/*
 * cmd_merge.c: many traces into one. What is wrong with the inputs goes to stderr, the sums to stdout (to
 * stderr when that is where the trace goes). Whatever ends it early, no half-written file stays behind.
 */
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/signals.h"

#include <sys/resource.h>

#define NOTES_SHOWN 10

/* What the callbacks need. */
struct merging {
	struct progress_line line;
	bool verbose;
	uint64_t notes;
};

/* Compressed inputs stay open while they are merged. */
static void allow_many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* ---- progress and notes ---- */

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

/* ---- the sums ---- */

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
		fprintf(to, ", %" PRIu64 " made valid JSON", s->repaired);
	if (s->hidden)
		fprintf(to, ", %" PRIu64 " value%s hidden", s->hidden, s->hidden == 1 ? "" : "s");
	fprintf(to, "\n");
}

static void tell_rest(const struct merging *m, const struct ow_merge_summary *s)
{
	if (m->notes > NOTES_SHOWN && !m->verbose)
		complain("opwatch: and %" PRIu64 " more like these; --verbose shows all\n",
			 m->notes - NOTES_SHOWN);
	if (s->unrelated_clocks)
		complain("opwatch: the times of the files are years apart; to see them together, "
			 "merge with "
			 "--align start or --align sequence\n");
}

static bool is_damaged(const struct ow_merge_summary *s)
{
	return s->skipped_files || s->damaged || s->truncated_files || s->others || s->untimed;
}

/* ---- the command ---- */

static bool to_standard_output(const struct args *args)
{
	return !args->out_file || strcmp(args->out_file, "-") == 0;
}

static bool check(const struct args *args)
{
	if (!args->file_count)
		complain("opwatch merge: which files? Try 'opwatch help merge'.\n");
	else if (!args->out_file && args->terminal.out)
		complain("opwatch merge: into what? Give -o all.json (or .json.gz, .json.zst).\n");
	else if (args->open.redact)
		complain("opwatch merge: events are copied as they are; --redact does not work "
			 "here\n");
	else
		return true;
	return false;
}

static void take_options(struct args *args, struct merging *m)
{
	struct ow_merge_options *o = &args->merge;

	o->memory_limit = args->open.memory_limit;
	o->progress = on_progress;
	o->progress_arg = m;
	o->message = on_message;
	o->message_arg = m;
	o->keep_from_ns = args->options.view.time_from_ns;
	o->keep_to_ns = args->options.view.time_to_ns;
	if (args->options.view.step >= 0 && o->keep_first_step == INT64_MIN)
		o->keep_first_step = o->keep_last_step = args->options.view.step;
}

static ow_status merge(struct args *args, struct ow_merge_summary *summary, struct ow_error *err)
{
	static struct output_stream out;
	ow_status status;

	if (!to_standard_output(args))
		return ow_merge(args->files, args->file_count, &args->merge, args->out_file,
				summary, err);
	output_start(&out, false, 0);
	args->merge.write = output_write;
	args->merge.write_arg = &out;
	status = ow_merge(args->files, args->file_count, &args->merge, NULL, summary, err);
	if (!output_end(&out))
		return output_failure(err);
	return status == OW_E_INTERRUPTED && !interrupted ? OW_OK : status; /* nobody reads on */
}

static int run(struct args *args)
{
	struct merging m = { .verbose = args->verbose };
	struct ow_merge_summary summary = { .size = sizeof(summary) };
	FILE *to = to_standard_output(args) ? stderr : stdout;
	struct ow_error err = { 0 };
	ow_status status;

	if (!check(args))
		return EXIT_USAGE;
	progress_begin(&m.line, args->terminal.err);
	take_options(args, &m);
	allow_many_files();
	signals_catch();
	status = merge(args, &summary, &err);
	progress_clear(&m.line);
	signals_pass_on();
	tell_rest(&m, &summary);
	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return status == OW_E_USAGE ? EXIT_USAGE : EXIT_FAILED;
	}
	if (strcmp(args->sink, "json") == 0)
		print_json(to, &summary);
	else
		print_text(to, to_standard_output(args) ? "merged" : args->out_file, &summary);
	return args->strict && is_damaged(&summary) ? EXIT_DAMAGED : EXIT_GOOD;
}

const struct command cmd_merge = {
	.name = "merge",
	.usage = "TRACE… -o all.json[.gz|.zst] [options]",
	.summary = "put many Chrome traces together in one",
	.help = "Every event is copied as it is; pids and ids that clash get new numbers, and\n"
		"processes the rank, step or name of their file. Cut and damaged files give\n"
		"what is readable. The output opens in chrome://tracing and Perfetto.\n\n"
		"  --align keep       times stay as they are (default)\n"
		"  --align start      every file starts at zero\n"
		"  --align sequence   one file after the other\n\n"
		"  --keep-name, --keep-category, --keep-pid, --keep-time, --keep-step choose\n"
		"  events; metadata and the ends of what was begun are kept with them.\n",
	.run = run,
};
