/* cmd_advise.c: what to look at first. */
#include "cli/command.h"

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
	code = finish_code(args, profile, show_advice(&show, &args->options));
	ow_profile_free(profile);
	return code;
}

const struct command cmd_advise = {
	.name = "advise",
	.usage = "FILE… [--json|--csv]",
	.summary = "what is slow or wasteful, and what to change",
	.run = run,
};
