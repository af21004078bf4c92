/*
 * cmd_what_if.c: `opwatch what-if`: what a step would take if something were faster or gone. Words of the command line that are changes
 * are known from files by their form. The library predicts; here is the text.
 */
#include "cli/command.h"
#include "cli/text/replay_text.h"
#include "cli/words.h"

static bool is_change(const char *word)
{
	static const char *const begins[] = {
		"op:",	 "kernel:", "fuse:",	 "rank:", "input=",
		"sync=", "launch=", "transfer=", "host=", "network*"
	};

	for (size_t i = 0; i < ARRAY_COUNT(begins); i++)
		if (strncmp(word, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

/* Moves the changes out of the list of files. */
static ow_status split_words(struct args *args, struct ow_list *changes)
{
	const char **list = ARENA_ARRAY(args->arena, const char *, args->file_count + 1);
	size_t files = 0;

	if (!list)
		return OW_E_NO_MEMORY;
	*changes = (struct ow_list){ list, 0 };
	for (size_t i = 0; i < args->file_count; i++)
		if (is_change(args->files[i]))
			list[changes->count++] = args->files[i];
		else
			args->files[files++] = args->files[i];
	args->file_count = files;
	return OW_OK;
}

static void print_text(const ow_result *r)
{
	double base = extra_number(r, "base_step_ns"), fresh = extra_number(r, "new_step_ns");
	char was[WORDS_NUMBER], now[WORDS_NUMBER], low[WORDS_NUMBER], high[WORDS_NUMBER];

	if (!isnan(base))
		printf("The median step takes %s.\n", words_time(was, base / 1e3));
	if (isnan(fresh)) {
		print_extra(r, "refused", "No prediction: ", stdout);
		return;
	}
	printf("With the change: %s (90 %%: %s to %s), %.1f %% %s.\n", words_time(now, fresh / 1e3),
	       words_time(low, extra_number(r, "new_low_ns") / 1e3),
	       words_time(high, extra_number(r, "new_high_ns") / 1e3),
	       base > 0 ? 100 * fabs(base - fresh) / base : 0.0, fresh <= base ? "less" : "more");
	print_replayed(r, stdout);
	print_extra(r, "calibration", "Calibration: ", stdout);
	printf("Not modelled: contention for memory, caches, clock frequency, limits of the launch "
	       "queue.\n");
}

static ow_status show_what_if(struct args *args, ow_profile *profile, const struct ow_list *changes)
{
	struct ow_error err = { 0 };
	struct ow_view_options part = part_of_view(args);
	struct show show;
	ow_result *r;
	ow_status status = ow_what_if(profile, changes, &part, &r, &err);

	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return status;
	}
	show_from_args(args, profile, &show);
	if (output_is_text(args) && !args->output.file)
		print_text(r);
	else
		status = show_result(&show, r, "what-if", &args->options);
	ow_result_free(r);
	return status;
}

static int run_what_if(struct args *args)
{
	struct ow_list changes;
	ow_profile *profile;
	int code = EXIT_FAILED;

	if (!output_choose(args))
		return EXIT_USAGE;
	if (split_words(args, &changes) != OW_OK)
		return EXIT_FAILED;
	if (!changes.count) {
		complain("opwatch what-if: no change is given; 'opwatch what-if --help' lists "
			 "them\n");
		return EXIT_USAGE;
	}
	profile = load_files(args, &code);
	if (!profile)
		return code;
	code = finish_code(args, profile, show_what_if(args, profile, &changes));
	ow_profile_free(profile);
	return code;
}

const struct command cmd_what_if = {
	.name = "what-if",
	.usage = "FILE… CHANGE… [--json]",
	.summary = "predict the step time after a change",
	.help = "Changes; several apply together. A factor multiplies the time:\n"
		"  op:REGEX*0.5    an operator's host time and its kernels\n"
		"  kernel:REGEX*0  kernels and copies on the device\n"
		"  input=0         no wait for input\n"
		"  transfer=async  copies overlap with other work and block no thread\n"
		"  sync=0          no synchronising calls\n"
		"  launch=0        launching costs nothing\n"
		"  host=0          no host code but calls of the device's runtime\n"
		"  network*2       communication twice as fast\n"
		"  rank:3=median   rank 3 as fast as its peers\n"
		"  fuse:REGEX      each run of such kernels becomes one\n",
	.has_answer = true,
	.examples = { "opwatch what-if run.opw input=0",
		      "opwatch what-if run.opw 'kernel:.*gemm*0.5' sync=0" },
	.groups = { &output_options, &part_options, &input_options },
	.run = run_what_if,
};
