/*
 * main.c: one program, two names: `tfprof` is the drop-in replacement (shell/tfprof.c), `opwatch` everything. Finds the
 * command and runs it; what the commands do is in commands/.
 */
#include "cli/command.h"

#include "commit.h"

#include <signal.h>

static int print_version(void)
{
	struct ow_part_info part = { .size = sizeof(part) };

	printf("opwatch %s%s%s%s\n", ow_version(), *OPWATCH_COMMIT ? " (commit " : "",
	       OPWATCH_COMMIT, *OPWATCH_COMMIT ? ")" : "");
	for (size_t i = 0; ow_build_part(i, &part); i++)
		printf("  %-20s %s\n", part.name, part.summary);
	return EXIT_GOOD;
}

static void init_args(struct args *args, struct arena *arena)
{
	*args = (struct args){ .arena = arena, .output.sink = "text" };
	options_init(&args->options, true);
	ow_open_options_init(&args->input.open);
	terminal_look(&args->terminal);
}

static int run_command(struct args *args, int argc, char **argv)
{
	if (!args_parse(args, argc, argv))
		return EXIT_USAGE;
	if (args->version)
		return print_version();
	if (args->help)
		return print_help(args, args->named ? args->command : NULL);
	if (overwrites_input(args, args->output.file) ||
	    overwrites_input(args, args->options.output.outfile))
		return EXIT_USAGE;
	if (args->input.job && !job_file_make(args))
		return EXIT_FAILED;
	return args->chosen->run(args);
}

static int opwatch_main(int argc, char **argv)
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
	code = run_command(&args, argc - 1, argv + 1);
	job_file_drop(&args);
	code = output_finish(&args, code);
	arena_release(&arena);
	return code;
}

int main(int argc, char **argv)
{
	const char *slash = argc ? strrchr(argv[0], '/') : NULL;
	const char *name = slash ? slash + 1 : argc ? argv[0] : "opwatch";

	/* a closed pipe ends the output, not the program; a file that may not grow is reported
	 * as an error */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (strcmp(name, "tfprof") == 0)
		return tfprof_main(argc, argv);
	return opwatch_main(argc, argv);
}
