/*
 * cmd_hang.c: `opwatch hang`: which rank blocks a job. The library answers; here are the sentence above the table
 * and what is said about the files.
 */
#include "cli/command.h"

#define NOTES_SHOWN 5

/* A JSON string without its quotes, as text. Escapes of control characters become blanks. */
static void print_json_text(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\\' && i + 1 < len && text[i + 1] == 'u') {
			i += 5;
			putchar(' ');
		} else if (text[i] == '\\' && i + 1 < len) {
			i++;
			putchar(text[i] == 'n' || text[i] == 't' || text[i] == 'r' ? ' ' : text[i]);
		} else {
			putchar(text[i]);
		}
	}
}

static void print_value(const ow_result *r, const char *before, const char *name, const char *after)
{
	const char *text = ow_result_extra(r, name);
	size_t len = text ? strlen(text) : 0;

	if (len < 3 || text[0] != '"')
		return;
	printf("%s", before);
	print_json_text(text + 1, len - 2);
	printf("%s", after);
}

/* Up to five of the list of texts. */
static void print_notes(const ow_result *r)
{
	const char *at = ow_result_extra(r, "notes");
	unsigned shown = 0, left = 0;

	while (at && (at = strchr(at, '"'))) {
		const char *end = at + 1;

		while (*end && *end != '"')
			end += *end == '\\' && end[1] ? 2 : 1;
		if (shown < NOTES_SHOWN) {
			printf("Note: ");
			print_json_text(at + 1, (size_t)(end - at - 1));
			printf(".\n");
			shown++;
		} else {
			left++;
		}
		at = *end ? end + 1 : NULL;
	}
	if (left)
		printf("… and %u more notes: --json has them.\n", left);
}

static void print_summary(const ow_result *r)
{
	const char *certain = ow_result_extra(r, "certain");

	print_value(r, "", "sentence", ".\n");
	print_value(r, "Conclusion: ", "conclusion", "");
	printf(certain && strcmp(certain, "true") == 0 ? ", certain" : ", not certain");
	print_value(r, ": ", "why", ".\n");
	print_notes(r);
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
		print_summary(r);
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
