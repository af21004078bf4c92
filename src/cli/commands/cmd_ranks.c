/*
 * cmd_ranks.c: `opwatch ranks`: the ranks of a job compared. The library compares; here are the sentences above the table, first what is missing or does not
 * belong, then the map of ranks and steps.
 */
#include "cli/command.h"
#include "cli/text/answer_text.h"
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

static void print_range(FILE *to, const char *before, long first, long last)
{
	if (first == last)
		fprintf(to, "%s%ld", before, first);
	else
		fprintf(to, "%s%ld to %ld", before, first, last);
}

/* Ascending numbers, neighbours as a range: "2, 5 to 127". */
static void print_missing(FILE *to, const ow_result *r)
{
	const char *at = ow_result_extra(r, "missing_ranks");
	long first = -1, last = -1;
	unsigned shown = 0;
	char *end;

	if (!at || strcmp(at, "[]") == 0)
		return;
	fprintf(to, "Missing ranks: ");
	for (at++;; at = end + (*end == ',')) {
		long next = strtol(at, &end, 10);

		if (end != at && last >= 0 && next == last + 1) {
			last = next;
			continue;
		}
		if (first >= 0 && shown++ < 20)
			print_range(to, shown > 1 ? ", " : "", first, last);
		if (end == at)
			break;
		first = last = next;
	}
	fprintf(to, "%s.\n", shown > 20 ? ", …" : "");
}

/* Prints the members "file" of a list of objects, up to five. */
static void print_files(FILE *to, const ow_result *r, const char *name, const char *before)
{
	const char *at = ow_result_extra(r, name), *end;
	unsigned shown = 0;

	while (at && (at = strstr(at, "\"file\": \"")) != NULL) {
		at += strlen("\"file\": \"");
		end = strchr(at, '"');
		if (!end)
			break;
		if (shown++ < 5)
			fprintf(to, "%s%.*s", shown == 1 ? before : ", ", (int)(end - at), at);
		at = end;
	}
	if (shown > 5)
		fprintf(to, " and %u more", shown - 5);
	if (shown)
		fprintf(to, ".\n");
}

static void print_identity(FILE *to, const ow_result *r)
{
	double world = extra_number(r, "world_size");

	answer_extra(to, r, "mixed_why", "These files do not belong to one job: ", ".\n");
	print_files(to, r, "left_out", "Left out: ");
	print_files(to, r, "duplicates", "Copies, which are left out: ");
	print_missing(to, r);
	if (isnan(world))
		fprintf(to, "%u worker%s; the files do not say how many there are.\n",
			ow_result_rows(r), words_plural(ow_result_rows(r)));
	else
		fprintf(to, "%u of %.0f ranks.\n", ow_result_rows(r), world);
}

/* The largest value of a column of numbers, whatever its sign; negative when no row has one. */
static double largest(const ow_result *r, const char *name)
{
	uint32_t column = ow_result_find(r, name);
	double most = -1;

	for (uint32_t row = 0; row < ow_result_rows(r); row++)
		if (ow_result_known(r, row, column))
			most = fmax(most, fabs((double)ow_result_int(r, row, column)));
	return most;
}

static void print_offsets(FILE *to, const ow_result *r)
{
	double offset = largest(r, "clock_offset_ns");
	char text[3][WORDS_NUMBER];

	if (offset < 0)
		return;
	fprintf(to, " The largest offset is %s; offsets are likely within %s and proven within %s.",
		words_time(text[0], offset / 1e3),
		words_time(text[1], largest(r, "clock_likely_ns") / 1e3),
		words_time(text[2], largest(r, "clock_proven_ns") / 1e3));
}

static void print_clock(FILE *to, const ow_result *r)
{
	const char *clock = ow_result_extra(r, "clock");
	bool possible = clock && strcmp(clock, "\"impossible\"") != 0;

	if (!clock)
		return;
	if (strcmp(clock, "\"shared\"") == 0) {
		fputs("All times come from one clock.", to);
	} else if (possible) {
		fputs("Clocks are fitted to the collectives that ranks share.", to);
		print_offsets(to, r);
	} else {
		fputs("The clocks of the ranks cannot be compared.", to);
	}
	answer_extra(to, r, "clock_why", " ", ".");
	if (possible)
		answer_extra(to, r, "wait_why", " Waits are unknown: ", ".");
	fputc('\n', to);
}

static void print_blame(FILE *to, const ow_result *r)
{
	double step = extra_number(r, "step_ns"), slowdown = extra_number(r, "slowdown");
	const char *blame = ow_result_extra(r, "blame"), *blamed = ow_result_extra(r, "blamed");
	char text[WORDS_NUMBER];

	if (!isnan(step))
		fprintf(to, "Median steady step: %s", words_time(text, step / 1e3));
	if (!isnan(step) && !isnan(slowdown))
		fprintf(to, ", %.2f times as long as with every rank like its peers", slowdown);
	if (!isnan(step))
		fputs(".\n", to);
	if (blame && blamed && strcmp(blame, "\"none\"") != 0) {
		answer_extra(to, r, "blame", "Blame: ", "");
		fprintf(to, " %.*s", (int)strlen(blamed) - 2, blamed + 1);
		answer_extra(to, r, "blame_why", ": ", "");
		fputs(".\n", to);
	} else if (!answer_extra(to, r, "blame_why", "No rank is blamed: ", ".\n")) {
		fputs("No straggler: no rank stands out from its peers.\n", to);
	}
}

static void print_bubble(FILE *to, const ow_result *r)
{
	double bubble = extra_number(r, "bubble");

	if (isnan(bubble))
		return;
	fprintf(to,
		"The stages of the pipeline do no own work in %.0f %% of a step; %.0f stages and "
		"%.0f micro-batches cannot avoid %.0f %%.\n",
		100 * bubble, extra_number(r, "stages"), extra_number(r, "micro_batches"),
		100 * extra_number(r, "bubble_ideal"));
}

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

#define MAP_LEFT 7 /* columns before the first step */

/* Reads the ratio at *at, and moves *at after it; NaN for null. */
static double take_ratio(const char **at)
{
	double ratio;
	char *end;

	*at += strlen(", ");
	if (strncmp(*at, "null", 4) == 0) {
		*at += 4;
		return (double)NAN;
	}
	ratio = strtod(*at, &end);
	*at = end;
	return ratio;
}

/* Prints one row "[rank, ratio, …]": a mark for every `each` steps, chosen by the largest ratio. Returns the text
 * after the row. */
static const char *print_map_row(const char *at, unsigned each)
{
	char *end;

	printf("%*.0f ", MAP_LEFT - 1, strtod(at + 1, &end));
	for (at = end; *at == ',';) {
		double most = (double)NAN;

		for (unsigned n = 0; n < each && *at == ','; n++)
			most = fmax(most, take_ratio(&at)); /* fmax prefers numbers to NaN */
		fputs(isnan(most) ? " " : shade(most), stdout);
	}
	printf("\n");
	at += *at == ']';
	return at + (*at == ',' ? 2 : 0);
}

static unsigned count_commas(const char *at, char until)
{
	unsigned count = 0;

	for (; *at && *at != until; at++)
		count += *at == ',';
	return count;
}

/* {"steps": […], "rows": [[rank, ratio, …], …]} */
static void print_map(const ow_result *r, uint32_t width)
{
	const char *map = ow_result_extra(r, "map"), *at = map ? strstr(map, "\"rows\": [[") : NULL;
	double grouped = extra_number(r, "map_steps_each"); /* steps of one ratio */
	unsigned rows = 0, steps, room = width > MAP_LEFT ? width - MAP_LEFT : UINT_MAX, each;

	if (!at)
		return;
	steps = count_commas(map, ']') + 1;
	each = steps / room + (steps % room != 0);
	printf("\nOwn work by rank (down) and steady step (across), against the peers' median:\n");
	for (at += strlen("\"rows\": ["); *at == '['; rows++)
		at = print_map_row(at, each);
	printf("%*s· like the peers  ░ 3 %%  ▒ 10 %%  ▓ 20 %%  █ 50 %% more\n", MAP_LEFT, "");
	if (each * grouped > 1)
		printf("%*sEach mark is the slowest of %.0f steps.\n", MAP_LEFT, "",
		       each * grouped);
	if (rows < ow_result_rows(r))
		printf("%*s%u of %u ranks are shown; stragglers are among them.\n", MAP_LEFT, "",
		       rows, ow_result_rows(r));
	printf("\n");
}

static int show_ranks(struct args *args, ow_result *r)
{
	struct show show;

	show_from_args(args, NULL, &show);
	if (output_is_text(args) && !args->output.file) {
		uint32_t width = show.terminal.out ? show.terminal.width : 0;
		struct answer_text answer;

		answer_open(&answer);
		print_identity(answer.to, r);
		print_clock(answer.to, r);
		print_blame(answer.to, r);
		print_bubble(answer.to, r);
		answer_close(&answer, width);
		print_map(r, width);
	}
	return show_result(&show, r, "ranks", &args->options) == OW_OK ? EXIT_GOOD : EXIT_FAILED;
}

/* Compares runs on a server; the words are names of runs. */
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
