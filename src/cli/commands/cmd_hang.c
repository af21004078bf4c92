/*
 * cmd_hang.c: `opwatch hang`: which rank blocks a job. The library answers; here are the sentence above the table
 * and what is said about the files.
 */
#include "cli/command.h"
#include "cli/text/answer_text.h"

#define NOTES_SHOWN 5

/* Prints up to five notes. */
static void print_notes(FILE *to, const ow_result *r)
{
	const char *at = ow_result_extra(r, "notes");
	unsigned shown = 0, left = 0;

	while (at && (at = strchr(at, '"'))) {
		const char *end = at + 1;

		while (*end && *end != '"')
			end += *end == '\\' && end[1] ? 2 : 1;
		if (shown < NOTES_SHOWN) {
			fputs("Note: ", to);
			answer_json(to, at + 1, (size_t)(end - at - 1));
			fputs(".\n", to);
			shown++;
		} else {
			left++;
		}
		at = *end ? end + 1 : NULL;
	}
	if (left)
		fprintf(to, "… and %u more notes: --json has them.\n", left);
}

static void print_summary(const ow_result *r, uint32_t width)
{
	const char *certain = ow_result_extra(r, "certain");
	struct answer_text answer;

	answer_open(&answer);
	answer_extra(answer.to, r, "sentence", "", ".\n");
	answer_extra(answer.to, r, "conclusion", "Conclusion: ", "");
	fputs(certain && strcmp(certain, "true") == 0 ? ", certain" : ", not certain", answer.to);
	answer_extra(answer.to, r, "why", ": ", ".\n");
	print_notes(answer.to, r);
	answer_close(&answer, width);
	printf("\n");
}

static int run_hang(struct args *args)
{
	struct ow_hang_options options;
	struct ow_error err = { 0 };
	struct show show;
	ow_result *r;
	ow_status status;

	if (!output_choose(args))
		return EXIT_USAGE;
	if (!args->file_count)
		return missing_file(args);
	ow_hang_options_init(&options);
	options.memory_limit = args->input.open.memory_limit;
	options.redact = args->input.open.redact;
	if (ow_hang(args->files, args->file_count, &options, &r, &err) != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	show_from_args(args, NULL, &show);
	if (output_is_text(args) && !args->output.file)
		print_summary(r, show.terminal.out ? show.terminal.width : 0);
	status = show_result(&show, r, "hang", &args->options);
	ow_result_free(r);
	return status == OW_OK ? EXIT_GOOD : EXIT_FAILED;
}

static const struct option options[] = {
	{ "redact", STORE_FLAG(struct args, input.open.redact),
	  .help = "replace names of files, functions and groups by hashes" },
	OPTION_MEMORY_LIMIT,
};

const struct command cmd_hang = {
	.name = "hang",
	.usage = "FILE… [--json]",
	.summary = "find the rank that blocks a job",
	.help = "Give it the files of a job that hangs, of all ranks at once: dumps of\n"
		"PyTorch's flight recorder (JSON or pickle), logs with lines of the watchdog, of\n"
		"torchrun or of NCCL_DEBUG=INFO, the output of 'py-spy dump', recordings. It\n"
		"follows the waits from rank to rank to the one that is missing, and finds\n"
		"deadlocks, operations that do not match, and processes that ended.\n"
		"\n"
		"An answer exits with 0, also when it is \"cannot_tell\"; unreadable input with "
		"1.\n",
	.has_answer = true,
	.examples = { "opwatch hang dumps/", "opwatch hang dumps/ train.log --json" },
	.own = OPTIONS(options),
	.groups = { &output_options },
	.run = run_hang,
};
