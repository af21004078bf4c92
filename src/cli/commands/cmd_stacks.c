/*
 * cmd_stacks.c: where running Python jobs are: their stacks as they are now, or sampled for some time, into a file or
 * a view. The job is not stopped, and needs no preparation.
 */
#include "cli/command.h"
#include "cli/piped.h"
#include "cli/progress.h"
#include "cli/signals.h"

struct pids {
	int64_t *items;
	size_t count;
};

/* ---- now ---- */

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
	struct ow_error err = { 0 };
	ow_result *result;
	ow_status status;

	status = ow_stacks_now(pids->items, pids->count, &args->stacks, &result, &err);
	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	if (strcmp(args->sink, "text") == 0)
		print_stacks(result);
	else
		status = ow_result_write(result, args->sink, NULL, to_stdout, NULL, &err);
	if (!ow_result_rows(result))
		complain("opwatch: no thread runs Python code at the moment\n");
	ow_result_free(result);
	if (status != OW_OK)
		complain("opwatch: %s\n", err.text);
	return status == OW_OK ? EXIT_GOOD : EXIT_FAILED;
}

/* ---- for some time ---- */

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

static void tell(const struct ow_stacks_summary *s)
{
	complain("opwatch: %" PRIu64 " stacks of %u process%s in %.1f s; looking took %.2f %% of a "
		 "processor",
		 s->samples, s->processes, s->processes == 1 ? "" : "es",
		 (double)s->elapsed_ns / 1e9,
		 s->elapsed_ns ? 100.0 * (double)s->cpu_ns / (double)s->elapsed_ns : 0.0);
	if (s->torn)
		complain("; %" PRIu64 " dropped: they changed while they were read", s->torn);
	if (s->left_out)
		complain("; %" PRIu64 " left out: looking takes no more of a processor",
			 s->left_out);
	if (s->late_ticks)
		complain("; %" PRIu64 " not taken in time: the machine was busy", s->late_ticks);
	complain("\n");
}

/* There is nothing to show. */
static int tell_none(const struct ow_stacks_summary *s)
{
	if (s->torn)
		complain("opwatch: no stack held still for as long as it takes to read it; try a "
			 "longer time, such as --for 60s\n");
	else
		complain("opwatch: no thread ran Python code in that time\n");
	return EXIT_FAILED;
}

static bool to_own_file(const struct args *args)
{
	return args->out_file &&
	       (strcmp(args->sink, "text") == 0 || strcmp(args->sink, "opw") == 0);
}

/* Folded stacks and flame graphs are made of whole stacks. */
static bool is_table(const char *sink)
{
	return strcmp(sink, "text") == 0 || strcmp(sink, "json") == 0 || strcmp(sink, "csv") == 0;
}

static int keep(struct args *args, ow_profile *profile, const char *path)
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
		status = show_view(&show, is_table(args->sink) ? "functions" : "code",
				   &args->options);
	}
	return finish_code(args, profile, status);
}

static int record_to(struct args *args, const struct pids *pids, const char *path)
{
	struct ow_stacks_summary summary = { .size = sizeof(summary) };
	struct progress_line line;
	struct ow_error err = { 0 };
	ow_profile *profile;
	ow_status status;
	int code;

	progress_begin(&line, args->terminal.err);
	args->stacks.memory_limit = args->open.memory_limit;
	args->stacks.progress = on_progress;
	args->stacks.progress_arg = &line;
	signals_catch();
	status =
		ow_stacks_record(pids->items, pids->count, &args->stacks, &profile, &summary, &err);
	progress_clear(&line);
	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	tell(&summary);
	code = summary.samples || to_own_file(args) ? keep(args, profile, path)
						    : tell_none(&summary);
	ow_profile_free(profile);
	return code;
}

static int record(struct args *args, const struct pids *pids)
{
	const char *path = args->out_file;
	struct piped piped = { 0 };
	int code;

	if (!to_own_file(args) && !args_choose_output(args))
		return EXIT_USAGE;
	code = to_own_file(args) ? piped_begin(&piped, args, &path) : EXIT_GOOD;
	if (code != EXIT_GOOD)
		return code;
	return piped_end(&piped, record_to(args, pids, path));
}

/* ---- the command ---- */

#define PIDS_MOST 4096 /* of a job */

/* Those of a job of the daemon. */
static int find_pids(const struct args *args, struct pids *pids)
{
	struct ow_error err = { 0 };

	pids->items = ARENA_ARRAY(args->arena, int64_t, PIDS_MOST);
	if (!pids->items)
		return EXIT_FAILED;
	if (ow_job_pids(args->socket, args->job, pids->items, PIDS_MOST, &pids->count, &err) !=
	    OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	pids->count = MIN(pids->count, (size_t)PIDS_MOST);
	return EXIT_GOOD;
}

static int parse_pids(const struct args *args, struct pids *pids)
{
	pids->items = ARENA_ARRAY(args->arena, int64_t, args->file_count);
	for (size_t i = 0; pids->items && i < args->file_count; i++)
		if (!str_to_i64(str_from(args->files[i]), &pids->items[i]) || pids->items[i] <= 0) {
			complain("opwatch stacks: '%s' is no process id\n", args->files[i]);
			return EXIT_USAGE;
		}
	pids->count = args->file_count;
	return pids->items ? EXIT_GOOD : EXIT_FAILED;
}

static int run(struct args *args)
{
	struct pids pids = { 0 };
	int code;

	if (!args->file_count == !args->job) {
		complain("opwatch stacks: of which processes, or which job? Try 'opwatch help "
			 "stacks'.\n");
		return EXIT_USAGE;
	}
	code = args->job ? find_pids(args, &pids) : parse_pids(args, &pids);
	if (code != EXIT_GOOD)
		return code;
	if (args->stacks.native && !args->stacks.for_ns && !args->out_file) {
		complain("opwatch stacks: --native samples for some time: add --for 10s, or -o "
			 "x.opw\n");
		return EXIT_USAGE;
	}
	return args->stacks.for_ns || args->out_file ? record(args, &pids) : show_now(args, &pids);
}

const struct command cmd_stacks = {
	.name = "stacks",
	.usage = "PID…|--job NAME [--for 10s] [--hz 100] [-o x.opw]",
	.summary = "where running Python jobs are, now or over some time",
	.help = "Reads the Python stacks of all threads from outside (CPython 3.8 to 3.13): the\n"
		"job goes on, needs no preparation and is not changed. Processes that it starts,\n"
		"such as loader workers, are followed.\n"
		"\n"
		"  opwatch stacks PID                   the stacks as they are now\n"
		"  opwatch stacks PID --for 10s         the code view of the next ten seconds\n"
		"  opwatch stacks PID -o x.opw          until the job ends, or Ctrl-C\n"
		"  opwatch stacks --job train --for 10s of a job of the daemon\n"
		"  opwatch stacks PID --for 10s --to flamegraph -o x.svg\n"
		"  opwatch stacks PID --for 10s --native      C and C++, too, of any program\n",
	.flags = "json csv to out limit for time-range metric style memory-limit job socket",
	.run = run,
	.takes_job = true,
};
