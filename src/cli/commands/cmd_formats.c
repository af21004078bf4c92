/*
 * cmd_formats.c: `opwatch formats`: lists the formats that can be opened and the outputs that can be written, from the
 * library's tables.
 */
#include "cli/command.h"
#include "cli/words.h"

#define INDENT 15

static void print_part(const struct args *args, const char *name, const char *summary,
		       const char *detail)
{
	char mark[64], text[512];

	snprintf(mark, sizeof(mark), "  %-12s ", name);
	snprintf(text, sizeof(text), "%s%s%s%s", summary, *detail ? " (" : "", detail,
		 *detail ? ")" : "");
	words_wrap(stdout, mark, text, INDENT, args->terminal.out ? args->terminal.width : 80);
}

static void print_text(const struct args *args)
{
	struct ow_part_info part = { .size = sizeof(part) };

	printf("Formats that can be opened (recognised by content, also inside gzip, zstd, zip\n"
	       "and tar):\n");
	for (size_t i = 0; ow_importer_info(i, &part); i++)
		print_part(args, part.name, part.summary, part.detail);
	printf("Outputs (--to NAME):\n");
	for (size_t i = 0; ow_sink_info(i, &part); i++)
		print_part(args, part.name, part.summary, "");
}

static void print_row(bool json, size_t row, const char *kind, const struct ow_part_info *part)
{
	const char *const texts[] = { kind, part->name, part->summary, part->detail };
	static const char *const names[] = { "kind", "name", "summary", "detail" };

	printf("%s", !json ? "" : row ? ",\n{" : "\n{");
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
		printf(json ? "%s\"%s\": " : "%s", i ? (json ? ", " : ",") : "", names[i]);
		(json ? words_json : words_csv)(stdout, texts[i]);
	}
	fputs(json ? "}" : "\r\n", stdout);
}

/* Prints formats and outputs as one table, for programs. */
static void print_rows(const struct args *args, bool json)
{
	size_t most = args->options.view.limit ? args->options.view.limit : SIZE_MAX, row = 0;
	struct ow_part_info part = { .size = sizeof(part) };

	fputs(json ? "{\"schema_version\": 1, \"rows\": [" : "kind,name,summary,detail\r\n",
	      stdout);
	for (size_t i = 0; row < most && ow_importer_info(i, &part); i++)
		print_row(json, row++, "format", &part);
	for (size_t i = 0; row < most && ow_sink_info(i, &part); i++)
		print_row(json, row++, "output", &part);
	fputs(json ? "\n]}\n" : "", stdout);
}

static int run_formats(struct args *args)
{
	bool json = strcmp(args->output.sink, "json") == 0;

	if (!output_redirect(args))
		return EXIT_FAILED;
	if (json || strcmp(args->output.sink, "csv") == 0)
		print_rows(args, json);
	else
		print_text(args);
	return EXIT_GOOD;
}

static const struct option options[] = {
	OPTION_JSON,
	OPTION_CSV,
	OPTION_OUT("write to FILE instead of standard output"),
	OPTION_LIMIT,
};

const struct command cmd_formats = {
	.name = "formats",
	.usage = "[--json|--csv]",
	.summary = "list what can be opened and written",
	.examples = { "opwatch formats", "opwatch formats --csv" },
	.own = OPTIONS(options),
	.run = run_formats,
};
