/*
 * cmd_path.c: `opwatch path`: what a step spends its time on one after the other, the critical path. The library computes it; here are
 * the options and the lines around the table.
 */
#include "cli/command.h"
#include "cli/text/replay_text.h"
#include "cli/words.h"

#define PATH_ROWS 20

struct path_args {
	const char *by;
};

/* Prints which time the path covers: a step, the recording, or a part of the recording. */
static void print_extent(const ow_result *r, double time_ns)
{
	const char *has_steps = ow_result_extra(r, "has_steps");
	double whole = extra_number(r, "part_of_ns");
	char text[WORDS_NUMBER], of[WORDS_NUMBER];

	words_time(text, time_ns / 1e3);
	if (!isnan(whole))
		printf("The recording (%s) has no steps and many events. Critical path of %s in "
		       "its middle\n(--time-range shows another part)",
		       words_time(of, whole / 1e3), text);
	else if (has_steps && strcmp(has_steps, "true") == 0)
		printf("Critical path of step %.0f: %s", extra_number(r, "step"), text);
	else
		printf("Critical path of the recording: %s", text);
}

/* Prints "Critical path of step 3: 180ms, 0.4 % of it unexplained; the replay predicts other steps within 0.8 %". */
static void print_summary(const ow_result *r)
{
	double step = extra_number(r, "step_ns"), unexplained = extra_number(r, "unexplained_ns");
	double error = extra_number(r, "replay_error");

	if (isnan(step))
		return;
	print_extent(r, step);
	if (step > 0 && unexplained / step >= 0.001)
		printf(", %.1f %% of it unexplained", 100 * unexplained / step);
	if (!isnan(error))
		printf("; the replay predicts other steps within %.1f %%", 100 * error);
	printf("\n");
	print_replayed(r, stdout);
	printf("\n");
}

static ow_status show_path(struct args *args, ow_profile *profile)
{
	const struct path_args *own = args->own;
	bool text = output_is_text(args);
	struct ow_error err = { 0 };
	struct ow_view_options part = part_of_view(args);
	struct show show;
	ow_result *r;
	ow_status status =
		ow_path(profile, &part, own->by ? own->by : (text ? "op" : NULL), &r, &err);

	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return status;
	}
	show_from_args(args, profile, &show);
	if (text && !args->output.file)
		print_summary(r);
	if (text && !args_given(args, "limit"))
		args->options.view.limit = PATH_ROWS;
	status = show_result(&show, r, "path", &args->options);
	ow_result_free(r);
	return status;
}

static int run_path(struct args *args)
{
	ow_profile *profile;
	int code = EXIT_FAILED;

	if (!output_choose(args))
		return EXIT_USAGE;
	profile = load_files(args, &code);
	if (!profile)
		return code;
	code = finish_code(args, profile, show_path(args, profile));
	ow_profile_free(profile);
	return code;
}

static const struct option options[] = {
	{ "by", STORE_TEXT(struct path_args, by), .argument = "WHAT",
	  .help = "add up the path by op (the default for people), line, kind or rank" },
};

const struct command cmd_path = {
	.name = "path",
	.usage = "FILE… [--step N] [--by op|line|kind|rank] [--json]",
	.summary = "show the chain of work that sets the step time",
	.help = "Without --step it shows the steady step nearest the median. The rows sum to the\n"
		"step. With --json and --csv every piece of the path is a row.\n",
	.has_answer = true,
	.examples = { "opwatch path run.opw", "opwatch path run.opw --step 5 --by line" },
	.own = OPTIONS(options),
	.groups = { &output_options, &part_options, &input_options },
	.own_size = sizeof(struct path_args),
	.run = run_path,
};
