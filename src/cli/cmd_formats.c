/* cmd_formats.c: what can be opened and what can be written. */
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

static int run(struct args *args)
{
	struct ow_part_info part;

	printf("Formats that can be opened (recognised by content, also inside gzip, zstd, zip\n"
	       "and tar):\n");
	for (size_t i = 0; ow_importer_info(i, &part); i++)
		print_part(args, part.name, part.summary, part.detail);
	printf("Outputs (--to NAME):\n");
	for (size_t i = 0; ow_sink_info(i, &part); i++)
		print_part(args, part.name, part.summary, "");
	return EXIT_GOOD;
}

const struct command cmd_formats = {
	.name = "formats",
	.usage = "",
	.summary = "what can be opened and written",
	.run = run,
};
