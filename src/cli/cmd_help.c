/* cmd_help.c: help, made from the tables of commands, views and options. */
#include "cli/command.h"

static void print_overview(void)
{
	struct ow_part_info view;

	printf("opwatch: why is my job slow, and what do I change?\n\n"
	       "  opwatch FILE…                  the overview: what is in here, and what it means\n"
	       "  opwatch COMMAND FILE… [options]\n\n"
	       "FILE is a profile in any known format, a directory, a pattern or - (standard input).\n\n"
	       "Views:\n");
	for (size_t i = 0; ow_view_info(i, &view); i++)
		printf("  %-10s %s\n", view.name, view.summary);
	printf("Commands:\n");
	for (size_t i = 0; i < command_count; i++)
		if (command_table[i] != &cmd_view)
			printf("  %-10s %s\n", command_table[i]->name, command_table[i]->summary);
	args_print_options();
	printf("\n'opwatch help COMMAND' says more. Under the name tfprof the program is a drop-in\n"
	       "replacement of TensorFlow's tfprof.\n");
}

static void print_view_help(const char *name)
{
	struct ow_part_info view;

	for (size_t i = 0; ow_view_info(i, &view); i++)
		if (strcmp(view.name, name) == 0)
			printf("opwatch %s FILE… [options]: %s\n\n", name, view.summary);
	args_print_options();
}

void print_help(const char *topic)
{
	const struct command *command = topic ? command_find(topic) : NULL;

	if (!command || command == &cmd_overview) {
		print_overview();
		return;
	}
	if (command == &cmd_view && strcmp(topic, "view") != 0) {
		print_view_help(topic);
		return;
	}
	printf("opwatch %s %s\n  %s\n", command->name, command->usage, command->summary);
	if (command->help)
		fputs(command->help, stdout);
	putchar('\n');
	args_print_options();
}

static int run(struct args *args)
{
	if (args->file_count && !command_find(args->files[0])) {
		complain("opwatch help: no command is called '%s'\n", args->files[0]);
		return EXIT_USAGE;
	}
	print_help(args->file_count ? args->files[0] : NULL);
	return EXIT_GOOD;
}

const struct command cmd_help = {
	.name = "help",
	.usage = "[COMMAND]",
	.summary = "this, or help on one command",
	.run = run,
};
