/* cmd_shell.c: `opwatch shell FILE…`: loads the files and starts the shell (shell/shell.c) on them. */
#include "cli/command.h"
#include "cli/shell/shell.h"

static int run_shell(struct args *args)
{
	struct show show;
	ow_profile *profile;
	int code = EXIT_FAILED;

	if (!output_choose(args))
		return EXIT_USAGE;
	profile = load_advised(args, &code);
	if (!profile)
		return code;
	show_from_args(args, profile, &show);
	args->options.ordered = args_given(args, "order-by");
	if (args->terminal.in)
		printf("Type op, scope, code, lines, advise, …; 'help' lists all commands, Tab "
		       "completes.\n");
	code = shell_run(&show, &args->options);
	ow_profile_free(profile);
	return code;
}

const struct command cmd_shell = {
	.name = "shell",
	.usage = "FILE… [--no-pager]",
	.summary = "load once, then ask many questions",
	.help = "The options become the defaults of the views in the shell.\n",
	.examples = { "opwatch shell run.opw", "opwatch shell run.opw --select micros,bytes" },
	.groups = { &output_options, &part_options, &shown_options, &tree_options, &input_options,
		    &peak_options },
	.run = run_shell,
};
