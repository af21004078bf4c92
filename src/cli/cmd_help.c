/* cmd_help.c: help, made from the tables of commands, views and options. */
#include "cli/command.h"

static const char intro[] =
	"opwatch: why is my job slow, and what do I change?\n\n"
	"  opwatch FILE…                    what is in it, where the time goes, advice\n"
	"  opwatch COMMAND FILE… [options]\n\n"
	"FILE is a profile in any known format, a directory, a pattern or - (standard\n"
	"input). 'opwatch formats' lists the formats.\n\n";

static const char *const no_options[] = { "help" };

static void print_overview(FILE *to)
{
	struct ow_part_info view;

	fputs(intro, to);
	fprintf(to, "Commands:\n");
	for (size_t i = 0; i < command_count; i++)
		if (command_table[i] != &cmd_view)
			fprintf(to, "  %-12s %s\n", command_table[i]->name,
				command_table[i]->summary);
	fprintf(to, "Views, which are commands, too:\n");
	for (size_t i = 0; ow_view_info(i, &view); i++)
		fprintf(to, "  %-12s %s\n", view.name, view.summary);
	args_print_options(to, NULL, true);
	fprintf(to, "\n'opwatch help COMMAND' says more. Under the name tfprof the program is a "
		    "drop-in\n"
		    "replacement of TensorFlow's tfprof.\n");
}

/* One name after the other, in lines of 80 columns. */
static void print_name(const char *name, size_t *column)
{
	*column += strlen(name) + 1;
	printf("%s%s", *column > 80 ? "\n          " : " ", name);
	*column = *column > 80 ? 10 + strlen(name) : *column;
}

void print_short_help(void)
{
	struct ow_part_info view;
	size_t column = 10;

	fputs(intro, stdout);
	printf("Commands:");
	for (size_t i = 0; i < command_count; i++)
		if (command_table[i] != &cmd_view)
			print_name(command_table[i]->name, &column);
	printf("\nViews:   ");
	column = 10;
	for (size_t i = 0; ow_view_info(i, &view); i++)
		print_name(view.name, &column);
	printf("\n\n'opwatch --help' says what they do, and lists the options.\n");
}

static void print_view_help(FILE *to, const char *name)
{
	struct ow_part_info view;

	for (size_t i = 0; ow_view_info(i, &view); i++)
		if (strcmp(view.name, name) == 0)
			fprintf(to, "opwatch %s FILE… [options]\n  %s\n\n", name, view.summary);
	args_print_options(to, name, true);
}

static void print_command_help(FILE *to, const struct command *command)
{
	fprintf(to, "opwatch %s%s%s\n  %s\n", command->name, *command->usage ? " " : "",
		command->usage, command->summary);
	if (command->help)
		fputs(command->help, to);
	for (size_t i = 0; i < ARRAY_COUNT(no_options); i++)
		if (strcmp(command->name, no_options[i]) == 0)
			return;
	fputc('\n', to);
	args_print_options(to, command->name,
			   command == &cmd_view || strcmp(command->name, "shell") == 0);
}

int print_help(const struct args *args, const char *topic)
{
	const struct command *command = topic ? command_find(topic) : NULL;
	const struct terminal *terminal = &args->terminal;
	struct page page;
	FILE *to = page_open(&page);

	if (!command || command == &cmd_overview)
		print_overview(to);
	else if (command == &cmd_view && strcmp(topic, "view") != 0)
		print_view_help(to, topic);
	else
		print_command_help(to, command);
	if (page_close(&page, terminal->out && terminal->in && !args->no_pager, terminal->height))
		return EXIT_GOOD;
	(void)output_complain();
	return EXIT_FAILED;
}

static int run(struct args *args)
{
	if (args->file_count && !command_find(args->files[0])) {
		complain("opwatch help: no command is called '%s'\n", args->files[0]);
		return EXIT_USAGE;
	}
	return print_help(args, args->file_count ? args->files[0] : NULL);
}

const struct command cmd_help = {
	.name = "help",
	.usage = "[COMMAND]",
	.summary = "this, or help on one command",
	.run = run,
};
