/*
 * cmd_stacks.c: `opwatch stacks`: where running Python jobs are: their stacks as they are now, or sampled for some time,
 * into a file or a view. It reads the processes from outside; they are not stopped and need no preparation.
 */
#include "cli/commands/live.h"

struct stacks_args {
	struct live_args live;
	struct ow_stacks_options stacks;
};

struct pids {
	int64_t *items;
	size_t count;
};

enum {
	COLUMN_PID,
	COLUMN_PROCESS,
	COLUMN_TID,
	COLUMN_THREAD,
	COLUMN_DEPTH,
	COLUMN_FUNCTION,
	COLUMN_FILE,
	COLUMN_LINE
};

static void print_stacks(const ow_result *r)
{
	for (uint32_t i = 0; i < ow_result_rows(r); i++) {
		if (!ow_result_int(r, i, COLUMN_DEPTH))
			printf("%sprocess %" PRId64 " (%s), thread %" PRId64 " %s\n", i ? "\n" : "",
			       ow_result_int(r, i, COLUMN_PID),
			       ow_result_text(r, i, COLUMN_PROCESS, NULL),
			       ow_result_int(r, i, COLUMN_TID),
			       ow_result_text(r, i, COLUMN_THREAD, NULL));
		printf("  %s (%s:%" PRId64 ")\n", ow_result_text(r, i, COLUMN_FUNCTION, NULL),
		       ow_result_text(r, i, COLUMN_FILE, NULL), ow_result_int(r, i, COLUMN_LINE));
	}
}

static bool to_stdout(void *arg, const void *bytes, size_t len)
{
	(void)arg;
	return fwrite(bytes, 1, len, stdout) == len;
}

static int show_now(const struct args *args, const struct pids *pids)
{
	const struct stacks_args *own = args->own;
	struct ow_error err = { 0 };
	ow_result *result;
	ow_status status;

	status = ow_stacks_now(pids->items, pids->count, &own->stacks, &result, &err);
	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	if (output_is_text(args))
		print_stacks(result);
	else
		status = ow_result_write(result, args->output.sink, NULL, to_stdout, NULL, &err);
	if (!ow_result_rows(result))
		complain("opwatch: no thread runs Python code now\n");
	ow_result_free(result);
	if (status != OW_OK)
		complain("opwatch: %s\n", err.text);
	return status == OW_OK ? EXIT_GOOD : EXIT_FAILED;
}

static bool on_progress(void *arg, const struct ow_stacks_summary *s)
{
	struct progress_line *line = arg;

	if (interrupted)
		return false;
	if (progress_due(line))
		progress_show(line, "sampling %u process%s: %" PRIu64 " stacks, %.0f s", s->alive,
			      s->alive == 1 ? "" : "es", s->samples, progress_seconds(line));
	return true;
}

static void print_summary(const struct ow_stacks_summary *s)
{
	complain("opwatch: %" PRIu64 " stacks of %u process%s in %.1f s; sampling used %.2f %% of "
		 "one CPU",
		 s->samples, s->processes, s->processes == 1 ? "" : "es",
		 (double)s->elapsed_ns / 1e9,
		 s->elapsed_ns ? 100.0 * (double)s->cpu_ns / (double)s->elapsed_ns : 0.0);
	if (s->torn)
		complain("; %" PRIu64 " dropped because they changed while they were read",
			 s->torn);
	if (s->left_out)
		complain("; %" PRIu64 " skipped to limit the CPU time of sampling", s->left_out);
	if (s->late_ticks)
		complain("; %" PRIu64 " missed because the machine was busy", s->late_ticks);
	complain("\n");
}

static int report_no_stacks(const struct ow_stacks_summary *s)
{
	if (s->torn)
		complain("opwatch: every stack changed while it was read; sample for longer, such "
			 "as --for 60s\n");
	else
		complain("opwatch: no thread ran Python code in that time\n");
	return EXIT_FAILED;
}

static bool to_own_file(const struct args *args)
{
	return args->output.file && (output_is_text(args) || strcmp(args->output.sink, "opw") == 0);
}

/* Writes the profile. Folded stacks and flame graphs need whole stacks. */
static int write_profile(struct args *args, ow_profile *profile, const char *path)
{
	struct ow_error err = { 0 };
	struct show show;
	ow_status status;

	if (to_own_file(args)) {
		status = ow_profile_save(profile, path, NULL, &err);
		if (status != OW_OK)
			complain("opwatch: %s\n", err.text);
	} else {
		show_from_args(args, profile, &show);
		status = show_view(&show, output_is_table(args) ? "functions" : "code",
				   &args->options);
	}
	return finish_code(args, profile, status);
}

static int record_to(struct args *args, const struct pids *pids, const char *path)
{
	struct stacks_args *own = args->own;
	struct ow_stacks_summary summary = { .size = sizeof(summary) };
	struct progress_line line;
	struct ow_error err = { 0 };
	ow_profile *profile;
	ow_status status;
	int code;

	progress_begin(&line, args->terminal.err);
	own->stacks.memory_limit = args->input.open.memory_limit;
	own->stacks.progress = on_progress;
	own->stacks.progress_arg = &line;
	own->stacks.for_ns = own->live.for_ns;
	signals_catch();
	status = ow_stacks_record(pids->items, pids->count, &own->stacks, &profile, &summary, &err);
	progress_clear(&line);
	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	print_summary(&summary);
	code = summary.samples || to_own_file(args) ? write_profile(args, profile, path)
						    : report_no_stacks(&summary);
	ow_profile_free(profile);
	return code;
}

static int record_stacks(struct args *args, const struct pids *pids)
{
	const char *path = args->output.file;
	struct piped piped = { 0 };
	int code;

	if (!to_own_file(args) && !output_choose(args))
		return EXIT_USAGE;
	code = to_own_file(args) ? piped_begin(&piped, args, &path) : EXIT_GOOD;
	if (code != EXIT_GOOD)
		return code;
	return piped_end(&piped, record_to(args, pids, path));
}

#define PIDS_MOST 4096 /* largest number of processes of a job */

/* Finds the processes of a job of the daemon. */
static int find_job_pids(const struct live_args *live, struct pids *pids)
{
	struct ow_error err = { 0 };

	if (ow_job_pids(live->socket, live->job, pids->items, PIDS_MOST, &pids->count, &err) !=
	    OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	pids->count = MIN(pids->count, (size_t)PIDS_MOST);
	return EXIT_GOOD;
}

static int run_stacks(struct args *args)
{
	const struct stacks_args *own = args->own;
	const struct live_args *live = &own->live;
	struct pids pids = { .count = args->file_count };
	int code = EXIT_GOOD;

	if (!args->file_count == !live->job) {
		complain("opwatch stacks: give process ids or --job NAME. Try 'opwatch stacks "
			 "--help'.\n");
		return EXIT_USAGE;
	}
	pids.items = ARENA_ARRAY(args->arena, int64_t, MAX(args->file_count, (size_t)PIDS_MOST));
	if (!pids.items)
		return EXIT_FAILED;
	if (live->job)
		code = find_job_pids(live, &pids);
	else if (!live_pids(args, pids.items))
		code = EXIT_USAGE;
	if (code != EXIT_GOOD)
		return code;
	if (own->stacks.native && !live->for_ns && !args->output.file) {
		complain("opwatch stacks: --native samples for some time; add --for 10s or -o "
			 "x.opw\n");
		return EXIT_USAGE;
	}
	return live->for_ns || args->output.file ? record_stacks(args, &pids)
						 : show_now(args, &pids);
}

static void init_stacks(void *own)
{
	ow_stacks_options_init(&((struct stacks_args *)own)->stacks);
}

static const struct option options[] = {
	LIVE_FOR("sample for this long: 10s, 500ms, 2m",
		 "print the stacks once; with -o, until the job ends"),
	{ "hz", STORE_UINT32(struct stacks_args, stacks.hz, 1, 10000), .argument = "N",
	  .help = "sample N times a second", .usual = "100" },
	{ "native", STORE_FLAG(struct stacks_args, stacks.native),
	  .help = "also sample native stacks, of any program" },
	{ "no-children", STORE_FLAG(struct stacks_args, stacks.no_children),
	  .help = "do not follow processes that the job starts" },
	OPTION_OUT("write the profile, or what --to names, to FILE"),
	LIVE_JOB("sample the processes of this job of the daemon"),
	LIVE_SOCKET,
	OPTION_TIME_RANGE,
	OPTION_METRIC,
	OPTION_STYLE,
	OPTION_MEMORY_LIMIT,
};

const struct command cmd_stacks = {
	.name = "stacks",
	.usage = "PID…|--job NAME [--for 10s] [--hz 100] [-o x.opw]",
	.summary = "print or sample the Python stacks of running jobs",
	.help = "Reads the Python stacks of all threads from outside (CPython 3.8 to 3.13). The\n"
		"job goes on, needs no preparation and is not changed. Processes that it starts,\n"
		"such as loader workers, are followed.\n"
		"\n"
		"  opwatch stacks PID                     the stacks as they are now\n"
		"  opwatch stacks PID --for 10s           functions of the next ten seconds\n"
		"  opwatch stacks PID -o x.opw            until the job ends, or Ctrl-C\n"
		"  opwatch stacks PID --for 10s --native  also C and C++, of any program\n",
	.columns = "functions_view",
	.examples = { "opwatch stacks --job train --for 10s",
		      "opwatch stacks 1234 --for 10s --to flamegraph -o x.svg" },
	.own = OPTIONS(options),
	.groups = { &output_options },
	.own_size = sizeof(struct stacks_args),
	.init = init_stacks,
	.run = run_stacks,
};
