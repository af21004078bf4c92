/* cmd_shell.c: `opwatch shell FILE…`. */
#include "cli/command.h"
#include "cli/shell.h"

static int run(struct args *args)
{
	struct show show;
	ow_profile *profile;
	int code = EXIT_FAILED;

	profile = load_files(args, &code);
	if (!profile)
		return code;
	show_from_args(args, profile, &show);
	if (!args->order_given)
		args->options.view.order_by = "micros";
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
