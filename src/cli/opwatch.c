/* opwatch.c: the program under its own name: finds the command and runs it. */
#include "base/nearest.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/job_file.h"

#include <unistd.h>

#define COMMAND(name) &cmd_##name,
const struct command *const command_table[] = {
#include "cli/commands.def"
};
#undef COMMAND
const size_t command_count = ARRAY_COUNT(command_table);

const struct command *command_find(const char *name)
{
	struct ow_part_info view;

	for (size_t i = 0; i < command_count; i++)
		if (strcmp(command_table[i]->name, name) == 0)
			return command_table[i];
	for (size_t i = 0; ow_view_info(i, &view); i++)
		if (strcmp(view.name, name) == 0)
			return &cmd_view;
	return NULL;
}

static int print_version(void)
{
	struct ow_part_info part;

	printf("opwatch %s\n", ow_version());
	for (size_t i = 0; ow_build_part(i, &part); i++)
		printf("  %-20s %s\n", part.name, part.summary);
	return EXIT_GOOD;
}

static void init_args(struct args *args, struct arena *arena)
{
	*args = (struct args){ .arena = arena, .sink = "text", .command = "overview" };
	options_init(&args->options, true);
	ow_open_options_init(&args->open);
	ow_merge_options_init(&args->merge);
	ow_export_options_init(&args->export);
	ow_push_options_init(&args->push);
	ow_record_options_init(&args->record);
	ow_daemon_options_init(&args->daemon);
	ow_stacks_options_init(&args->stacks);
	ow_capture_options_init(&args->capture);
	terminal_look(&args->terminal);
}

/* A word that is neither a file nor a command was most likely meant to be one. */
static bool mistyped_command(const struct args *args)
{
	const char *word = args->files[0], *best = NULL;
	size_t least = nearest_limit(str_from(word));
	struct ow_part_info view;

	if (strpbrk(word, "/.*?[") || access(word, F_OK) == 0 || strcmp(word, "-") == 0)
		return false;
	for (size_t i = 0; i < command_count; i++)
		nearest_try(str_from(word), command_table[i]->name, &best, &least);
	for (size_t i = 0; ow_view_info(i, &view); i++)
		nearest_try(str_from(word), view.name, &best, &least);
	/* A word alone is rather the name of a file. */
	if (args->file_count < 2 && !best)
		return false;
	complain("opwatch: '%s' is neither a command nor a file", word);
	if (best)
		complain("; did you mean '%s'?", best);
	complain("\nTry 'opwatch --help'.\n");
	return true;
}

static int run(struct args *args, int argc, char **argv)
{
	const struct command *command = &cmd_overview;

	if (!args_parse(args, argc, argv))
		return EXIT_USAGE;
	/* The command is the first word, unless a file of that name is meant by ./word. */
	if (args->file_count && command_find(args->files[0])) {
		args->command = args->files[0];
		command = command_find(args->command);
		args->files++;
		args->file_count--;
	}
	if (args->version)
		return print_version();
	if (args->help)
		return print_help(args, args->command);
	if (command == &cmd_overview && args->file_count && mistyped_command(args))
		return EXIT_USAGE;
	if (!args_check_given(args))
		return EXIT_USAGE;
	if (args->estimate && (command == &cmd_overview || command == &cmd_info))
		return print_estimates(args);
	/* The words of `record` are a program, not files. */
	if (command != &cmd_record && (overwrites_input(args, args->out_file) ||
				       overwrites_input(args, args->options.output.outfile)))
		return EXIT_USAGE;
	if (!args->job || command->takes_job)
		return command->run(args);
	return job_file_make(args) ? command->run(args) : EXIT_FAILED;
}

int opwatch_main(int argc, char **argv)
{
	struct arena arena;
	struct args args;
	struct mem mem;
	int code;

	if (argc < 2) {
		print_short_help();
		return EXIT_USAGE;
	}
	mem_init(&mem, 0);
	arena_init(&arena, &mem);
	init_args(&args, &arena);
	code = run(&args, argc - 1, argv + 1);
	job_file_drop(&args);
	code = args_finish_output(&args, code);
	arena_release(&arena);
	return code;
}
