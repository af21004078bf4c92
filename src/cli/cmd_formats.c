/* cmd_formats.c: what can be opened and what can be written. */
#include "cli/command.h"

static int run(struct args *args)
{
	struct ow_part_info part;

	(void)args;
	printf("Formats that can be opened (recognised by content, also inside gzip and zstd):\n");
	for (size_t i = 0; ow_importer_info(i, &part); i++)
		printf("  %-12s %s%s%s%s\n", part.name, part.summary, *part.detail ? " (" : "",
		       part.detail, *part.detail ? ")" : "");
	printf("Outputs (--to NAME):\n");
	for (size_t i = 0; ow_sink_info(i, &part); i++)
		printf("  %-12s %s\n", part.name, part.summary);
	return EXIT_GOOD;
}

const struct command cmd_formats = {
	.name = "formats",
	.usage = "",
	.summary = "what can be opened and written",
	.run = run,
};
