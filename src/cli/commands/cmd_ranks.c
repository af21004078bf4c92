/*
 * cmd_ranks.c: `opwatch ranks`: the ranks of a job compared. The library compares; here are the sentences above the table, first what is missing or does not
 * belong, then the map of ranks and steps.
 */
#include "cli/command.h"
#include "cli/text/replay_text.h"
#include "cli/runs.h"
#include "cli/words.h"

#include <opwatch/ranks.h>

static bool on_progress(void *arg, const char *file, uint64_t done, uint64_t total)
{
	struct progress_line *line = arg;

	if (interrupted)
		return false;
	if (progress_due(line))
		progress_show(line, "reading file %.0f of %.0f: %.50s",
			      fmin(floor((double)done / 1e3) + 1, (double)total / 1e3),
			      (double)total / 1e3, file);
	return true;
}

/* A text beside the rows without its quotes; false when it is null. */
static bool extra_text(const ow_result *r, const char *name, const char **text, int *len)
{
	const char *json = ow_result_extra(r, name);

	if (!json || *json != '"')
		return false;
	*text = json + 1;
	*len = (int)strlen(json) - 2;
	return true;
}

static void print_range(const char *before, long first, long last)
{
	if (first == last)
		printf("%s%ld", before, first);
	else
		printf("%s%ld to %ld", before, first, last);
}

/* Ascending numbers, neighbours as a range: "2, 5 to 127". */
static void print_missing(const ow_result *r)
{
	const char *at = ow_result_extra(r, "missing_ranks");
	long first = -1, last = -1;
	unsigned shown = 0;
	char *end;

	if (!at || strcmp(at, "[]") == 0)
		return;
	printf("Missing ranks: ");
	for (at++;; at = end + (*end == ',')) {
		long next = strtol(at, &end, 10);

		if (end != at && last >= 0 && next == last + 1) {
			last = next;
			continue;
		}
		if (first >= 0 && shown++ < 20)
			print_range(shown > 1 ? ", " : "", first, last);
		if (end == at)
			break;
		first = last = next;
	}
	printf("%s.\n", shown > 20 ? ", …" : "");
}

/* The files of a list of objects. */
static void print_files(const ow_result *r, const char *name, const char *before)
{
	const char *at = ow_result_extra(r, name), *end;
	unsigned shown = 0;

	while (at && (at = strstr(at, "\"file\": \"")) != NULL) {
		at += strlen("\"file\": \"");
		end = strchr(at, '"');
		if (!end)
			break;
		if (shown++ < 5)
			printf("%s%.*s", shown == 1 ? before : ", ", (int)(end - at), at);
		at = end;
	}
	if (shown > 5)
		printf(" and %u more", shown - 5);
	if (shown)
		printf(".\n");
}

static void print_identity(const ow_result *r)
{
	double world = extra_number(r, "world_size");
	const char *why;
	int len;

	if (extra_text(r, "mixed_why", &why, &len))
		printf("These files do not belong to one job: %.*s.\n", len, why);
	print_files(r, "left_out", "Left out: ");
	print_files(r, "duplicates", "Copies, which are left out: ");
	print_missing(r);
	if (isnan(world))
		printf("%u worker%s; the files do not say how many there are.\n", ow_result_rows(r),
		       ow_result_rows(r) == 1 ? "" : "s");
	else
		printf("%u of %.0f ranks.\n", ow_result_rows(r), world);
}

static void print_clock(const ow_result *r)
{
	const char *clock, *why;
	int len, why_len;

	if (!extra_text(r, "clock", &clock, &len))
		return;
	if (strncmp(clock, "shared", 6) == 0)
		printf("All times come from one clock.");
	else if (strncmp(clock, "fitted", 6) == 0)
		printf("Clocks are fitted to the collectives that ranks share.");
	else
		printf("The clocks of the ranks cannot be compared.");
	if (extra_text(r, "clock_why", &why, &why_len))
		printf(" %.*s.", why_len, why);
	if (strncmp(clock, "impossible", 10) != 0 && extra_text(r, "wait_why", &why, &why_len))
		printf(" Waits are unknown: %.*s.", why_len, why);
	printf("\n");
}

static void print_blame(const ow_result *r)
{
	double step = extra_number(r, "step_ns"), slowdown = extra_number(r, "slowdown");
	const char *blame = NULL, *why = NULL, *blamed = ow_result_extra(r, "blamed");
	int len = 0, why_len = 0;
	char text[WORDS_NUMBER];

	if (!isnan(step))
		printf("Median steady step: %s", words_time(text, step / 1e3));
	if (!isnan(step) && !isnan(slowdown))
		printf(", %.2f times as long as with every rank like its peers", slowdown);
	if (!isnan(step))
		printf(".\n");
	extra_text(r, "blame", &blame, &len);
	extra_text(r, "blame_why", &why, &why_len);
	if (blame && strncmp(blame, "none", 4) != 0 && blamed)
		printf("Blame: %.*s %.*s: %.*s.\n", len, blame, (int)strlen(blamed) - 2, blamed + 1,
		       why_len, why ? why : "");
	else if (why)
		printf("No rank is blamed: %.*s.\n", why_len, why);
	else
		printf("No straggler: no rank stands out from its peers.\n");
}

static void print_bubble(const ow_result *r)
{
	double bubble = extra_number(r, "bubble");

	if (isnan(bubble))
		return;
	printf("The stages of the pipeline do no own work in %.0f %% of a step; %.0f stages and "
	       "%.0f "
	       "micro-batches cannot avoid %.0f %%.\n",
	       100 * bubble, extra_number(r, "stages"), extra_number(r, "micro_batches"),
	       100 * extra_number(r, "bubble_ideal"));
}

/* ---- the map: a line per rank, a character per step ---- */

static const char *shade(double ratio)
{
	static const struct {
		double from;
		const char *mark;
	} shades[] = { { 1.5, "█" }, { 1.2, "▓" }, { 1.1, "▒" }, { 1.03, "░" } };

	for (size_t i = 0; i < ARRAY_COUNT(shades); i++)
		if (ratio >= shades[i].from)
			return shades[i].mark;
	return "·";
}

/* {"steps": […], "rows": [[rank, ratio, …], …]} */
static void print_map(const ow_result *r)
{
	const char *at = ow_result_extra(r, "map");
	unsigned rows = 0;

	at = at ? strstr(at, "\"rows\": [[") : NULL;
	if (!at)
		return;
	printf("\nOwn work by rank (down) and steady step (across), against the median of the "
	       "peers:\n");
	for (at += strlen("\"rows\": ["); *at == '['; rows++) {
		char *end;

		printf("%6.0f ", strtod(at + 1, &end));
		for (at = end; *at == ',';) {
			at += 2;
			if (strncmp(at, "null", 4) == 0) {
				printf(" ");
				at += 4;
			} else {
				printf("%s", shade(strtod(at, &end)));
				at = end;
			}
		}
		printf("\n");
		at += *at == ']';
		at += *at == ',' ? 2 : 0;
	}
	printf("       · like the peers  ░ 3 %%  ▒ 10 %%  ▓ 20 %%  █ 50 %% more\n\n");
}

static int show_ranks(struct args *args, ow_result *r)
{
	struct show show;

	show_from_args(args, NULL, &show);
	if (output_is_text(args) && !args->output.file) {
		print_identity(r);
		print_clock(r);
		print_blame(r);
		print_bubble(r);
		print_map(r);
	}
	return show_result(&show, r, "ranks", &args->options) == OW_OK ? EXIT_GOOD : EXIT_FAILED;
}

/* The words are names of runs. */
static int run_server(struct args *args)
{
	struct ow_ranks_options options;
	struct ow_error err = { 0 };
	int code = EXIT_FAILED;
	ow_remote *remote;
	ow_status status;
	ow_result *r;

	if (args->input.open.redact)
		return usage_error("ranks: --redact is for files; names on the server are as they "
				   "were pushed")
			       ? EXIT_GOOD
			       : EXIT_USAGE;
	remote = remote_open(args, args->run.server, &code);
	if (!remote)
		return code;
	ow_ranks_options_init(&options);
	options.memory_limit = args->input.open.memory_limit;
	status = ow_ranks_remote(remote, args->files, args->file_count, &options, &r, &err);
	ow_remote_free(remote);
	if (status != OW_OK)
		return report_error(&err, status);
	code = show_ranks(args, r);
	ow_result_free(r);
	return code;
}

static int run_ranks(struct args *args)
{
	struct ow_ranks_options options;
	struct progress_line line;
	struct ow_error err = { 0 };
	ow_status status;
	ow_result *r;
	int code;

	if (!output_choose(args))
		return EXIT_USAGE;
	if (args->run.server)
		return run_server(args);
	if (!args->file_count)
		return missing_file(args);
	ow_ranks_options_init(&options);
	options.memory_limit = args->input.open.memory_limit;
	options.redact = args->input.open.redact;
	progress_begin(&line, args->terminal.err);
	options.progress = on_progress;
	options.progress_arg = &line;
	status = ow_ranks(args->files, args->file_count, &options, &r, &err);
	progress_clear(&line);
	if (status != OW_OK)
		return report_error(&err, status);
	code = show_ranks(args, r);
	ow_result_free(r);
	return code;
}

static const struct option options[] = {
	{ "redact", STORE_FLAG(struct args, input.open.redact),
	  .help = "replace names and paths by hashes" },
	OPTION_MEMORY_LIMIT,
};

const struct command cmd_ranks = {
	.name = "ranks",
	.usage = "FILE… | --on ADDRESS [RUN…] [--json]",
	.summary = "compare the ranks of a job: clocks, waits, stragglers",
	.help = "Reads the traces of a job's ranks, one after the other, from files or folders.\n"
		"Ranks come from the content of the files, never from their names. Collectives\n"
		"that several ranks took part in say how far their clocks are apart; a clock that\n"
		"cannot be fitted is an answer, too. A rank is a straggler if it does more own\n"
		"work than ranks of the same role, step after step.\n"
		"\n"
		"With --on it reads recordings that 'opwatch push' sent to a ClickHouse server;\n"
		"the arguments are names of runs, and * matches anything.\n",
	.has_answer = true,
	.examples = { "opwatch ranks rank*.json", "opwatch ranks rank*.json --json" },
	.own = OPTIONS(options),
	.groups = { &output_options, &server_options },
	.run = run_ranks,
};
