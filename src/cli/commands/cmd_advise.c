/*
 * cmd_advise.c: `opwatch advise`: what the advice rules found. The rules are the library's; findings.c prints them. Settings are
 * read from opwatch.toml in the current folder, here and by other commands that show advice (load_advised).
 */
#include "cli/command.h"

#include <unistd.h>

bool apply_settings(ow_profile *profile, const char *file, const struct ow_list *mute,
		    double medium, int *code)
{
	static const char usual[] = "opwatch.toml";
	struct ow_advice_options options;
	struct ow_error err = { 0 };
	ow_status status;

	ow_advice_options_init(&options);
	options.file = file ? file : access(usual, R_OK) == 0 ? usual : NULL;
	options.medium = medium;
	if (mute)
		options.mute = *mute;
	if (!options.file && !options.mute.count && !(medium > 0))
		return true;
	status = ow_profile_set_advice(profile, &options, &err);
	if (status == OW_OK)
		return true;
	complain("opwatch: %s\n", err.text);
	*code = status == OW_E_USAGE ? EXIT_USAGE : EXIT_FAILED;
	return false;
}

ow_profile *load_advised(struct args *args, int *exit_code)
{
	ow_profile *profile = load_files(args, exit_code);

	if (!profile || apply_settings(profile, NULL, NULL, 0, exit_code))
		return profile;
	ow_profile_free(profile);
	return NULL;
}

struct advise_args {
	const char *settings;
	struct ow_list mute;
	double medium;
};

static int run_advise(struct args *args)
{
	const struct advise_args *own = args->own;
	struct show show;
	ow_profile *profile;
	int code = EXIT_FAILED;

	if (!output_choose(args))
		return EXIT_USAGE;
	profile = load_files(args, &code);
	if (!profile)
		return code;
	if (!apply_settings(profile, own->settings, &own->mute, own->medium, &code)) {
		ow_profile_free(profile);
		return code;
	}
	show_from_args(args, profile, &show);
	code = finish_code(args, profile, show_advice(&show, &args->options));
	ow_profile_free(profile);
	return code;
}

static const struct option options[] = {
	{ "mute", STORE_REPEAT(struct advise_args, mute), .argument = "RULE",
	  .help = "do not run this rule (repeatable)" },
	{ "least", STORE_RATIO(struct advise_args, medium), .argument = "RATIO",
	  .help = "report only findings that save at least this part of a step (0.03)" },
	{ "settings", STORE_NAME(struct advise_args, settings), .argument = "FILE",
	  .help = "read settings from here, not from ./opwatch.toml" },
};

const struct command cmd_advise = {
	.name = "advise",
	.usage = "FILE… [--mute RULE] [--least RATIO] [--json|--csv]",
	.summary = "show what is slow or wasteful, and what to change",
	.columns = "finding",
	.examples = { "opwatch advise run.opw", "opwatch advise run.opw --json" },
	.own = OPTIONS(options),
	.groups = { &output_options, &input_options },
	.own_size = sizeof(struct advise_args),
	.run = run_advise,
};
