/*
 * cmd_help.c: `opwatch help`, --help and the short help, made from the tables of commands, views and options and from the
 * columns of the library's tables. All of it fits 80 columns.
 */
#include "cli/command.h"
#include "cli/words.h"

#define WIDTH 80
#define HELP_COLUMN 34 /* column at which the sentences on options and columns begin */

static const char intro[] =
	"opwatch: why is my job slow, and what do I change?\n\n"
	"  opwatch FILE…                    what is in it, where the time goes, advice\n"
	"  opwatch COMMAND FILE… [options]\n\n"
	"FILE is a profile in any known format, a directory, a pattern or - (standard\n"
	"input). 'opwatch formats' lists the formats.\n\n";

static void print_all(FILE *to)
{
	struct ow_part_info view = { .size = sizeof(view) };

	fputs(intro, to);
	fprintf(to, "Commands:\n");
	for (size_t i = 0; i < command_count; i++)
		if (command_table[i] != &cmd_view)
			fprintf(to, "  %-12s %s\n", command_table[i]->name,
				command_table[i]->summary);
	fprintf(to, "Views, which are also commands:\n");
	for (size_t i = 0; ow_view_info(i, &view); i++)
		fprintf(to, "  %-12s %s\n", view.name, view.summary);
	fprintf(to,
		"\n'opwatch COMMAND --help' lists the options and columns of a command or view.\n"
		"Under the name tfprof the program is a drop-in replacement of TensorFlow's\n"
		"tfprof.\n");
}

/* Prints names one after the other, in lines of 80 columns. */
static void print_name(const char *name, size_t *column)
{
	*column += strlen(name) + 1;
	printf("%s%s", *column > WIDTH ? "\n          " : " ", name);
	*column = *column > WIDTH ? 10 + strlen(name) : *column;
}

void print_short_help(void)
{
	struct ow_part_info view = { .size = sizeof(view) };
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
	printf("\n\n'opwatch --help' describes them.\n");
}

/* Prints the left text, then the sentence in its column; on the next line if the left text is too long. */
static void print_row(FILE *to, const char *left, const char *sentence)
{
	char mark[HELP_COLUMN * 4];

	if (utf8_width(str_from(left)) + 1 > HELP_COLUMN) {
		fprintf(to, "%s\n", left);
		left = "";
	}
	snprintf(mark, sizeof(mark), "%s", left);
	words_wrap(to, mark, sentence, HELP_COLUMN, WIDTH);
}

static void print_option(FILE *to, const struct option *option)
{
	char name[64], left[160], sentence[512], letter[8] = "    ";

	option_spell(name, sizeof(name), option->name);
	if (option->letter)
		snprintf(letter, sizeof(letter), "-%c, ", option->letter);
	snprintf(left, sizeof(left), "  %s%s%s%s", letter, name,
		 option->argument && option->argument[0] != '[' ? " " : "",
		 option->argument ? option->argument : "");
	snprintf(sentence, sizeof(sentence), "%s%s%s%s", option->help,
		 option->usual ? " (default: " : "", option->usual ? option->usual : "",
		 option->usual ? ")" : "");
	print_row(to, left, sentence);
}

static void print_column(void *arg, const struct ow_relation_column *column)
{
	char left[96], sentence[512];

	if (strcmp(column->name, "run") == 0)
		return; /* only SQL tables have columns here */
	snprintf(left, sizeof(left), "  %s", column->name);
	snprintf(sentence, sizeof(sentence), "%s%s%s%s", column->doc, *column->unit ? " (" : "",
		 column->unit, *column->unit ? ")" : "");
	print_row(arg, left, sentence);
}

static void print_columns(FILE *to, const char *table)
{
	struct ow_error err = { 0 };

	fprintf(to, "\nColumns:\n");
	if (ow_relation_columns(table, print_column, to, &err) != OW_OK)
		fprintf(to, "  %s\n", err.text);
}

static void print_answer(FILE *to, const char *command)
{
	struct ow_error err = { 0 };

	fprintf(to, "\nColumns:\n");
	if (ow_answer_columns(command, print_column, to, &err) != OW_OK)
		fprintf(to, "  %s\n", err.text);
}

static void print_options(FILE *to, const struct command *command, const char *word)
{
	const struct option *list[OPTIONS_MOST];
	size_t count = command_options(command, word, list);

	fprintf(to, "\nOptions:\n");
	for (size_t i = 0; i < count; i++)
		print_option(to, list[i]);
}

static void print_view_help(FILE *to, const char *name)
{
	struct ow_part_info view = { .size = sizeof(view), .summary = "" };
	char table[96];

	for (size_t i = 0; ow_view_info(i, &view) && strcmp(view.name, name) != 0; i++)
		;
	fprintf(to, "opwatch %s FILE… [options]\n  %s\n", name, view.summary);
	print_options(to, &cmd_view, name);
	snprintf(table, sizeof(table), "%s_view", name);
	print_columns(to, table);
	fprintf(to, "\nExamples:\n  opwatch %s run.opw\n  opwatch %s run.opw %s\n", name, name,
		view_example(name));
}

static void print_command_help(FILE *to, const struct command *command)
{
	fprintf(to, "opwatch %s%s%s\n  %s\n", command->name, *command->usage ? " " : "",
		command->usage, command->summary);
	if (command->help)
		fprintf(to, "\n%s", command->help);
	print_options(to, command, command->name);
	if (command->columns)
		print_columns(to, command->columns);
	if (command->has_answer)
		print_answer(to, command->name);
	fprintf(to, "\nExamples:\n");
	for (size_t i = 0; i < ARRAY_COUNT(command->examples) && command->examples[i]; i++)
		fprintf(to, "  %s\n", command->examples[i]);
}

int print_help(const struct args *args, const char *topic)
{
	const struct command *command = topic ? command_find(topic) : NULL;
	struct page page;
	FILE *to = page_open(&page);

	if (!command)
		print_all(to);
	else if (command == &cmd_view && strcmp(topic, "view") != 0)
		print_view_help(to, topic);
	else
		print_command_help(to, command);
	if (page_close(&page, output_paged(args), args->terminal.height))
		return EXIT_GOOD;
	(void)output_complain();
	return EXIT_FAILED;
}

static int run_help(struct args *args)
{
	if (args->file_count && !command_find(args->files[0])) {
		complain(
			"opwatch help: unknown command '%s'; 'opwatch --help' lists the commands\n",
			args->files[0]);
		return EXIT_USAGE;
	}
	return print_help(args, args->file_count ? args->files[0] : NULL);
}

const struct command cmd_help = {
	.name = "help",
	.usage = "[COMMAND]",
	.summary = "describe all commands, or one command",
	.examples = { "opwatch help", "opwatch help op" },
	.run = run_help,
};
