/* cmd_shell.c: `opwatch shell FILE…`. */
#include "cli/command.h"
#include "cli/shell.h"

static int run(struct args *args)
{
	struct show show;
	ow_profile *profile;
	int code = EXIT_FAILED;

	if (!args_choose_output(args))
		return EXIT_USAGE;
	profile = load_files(args, &code);
	if (!profile)
		return code;
	show_from_args(args, profile, &show);
	args->options.ordered = args->order_given;
	if (args->terminal.in)
		printf("op, scope, graph, code, lines, advise …: 'help' lists all, Tab "
		       "completes.\n");
	code = shell_run(&show, &args->options);
	ow_profile_free(profile);
	return code;
}

const struct command cmd_shell = {
	.name = "shell",
	.usage = "FILE… [--no-pager]",
	.summary = "load once, then ask many questions",
	.run = run,
};
