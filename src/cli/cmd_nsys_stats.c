/*
 * cmd_nsys_stats.c: `opwatch nsys-stats REPORT FILE…`: the tables that `nsys stats` prints, with the same columns, for
 * people who know them and for scripts that read them. Without a report it lists them.
 */
#include "base/nearest.h"
#include "cli/command.h"

static bool find_report(const char *name, struct ow_part_info *report)
{
	for (size_t i = 0; ow_nsys_report_info(i, report); i++)
		if (strcmp(report->name, name) == 0 || strcmp(report->detail, name) == 0)
			return true;
	return false;
}

static int list(void)
{
	struct ow_part_info report;

	for (size_t i = 0; ow_nsys_report_info(i, &report); i++)
		printf("  %-22s %s\n", report.name, report.summary);
	printf("\n'opwatch nsys-stats REPORT FILE…' prints one of them.\n");
	return EXIT_GOOD;
}

static int unknown(const char *name)
{
	size_t least = nearest_limit(str_from(name));
	struct ow_part_info report;
	const char *best = NULL;

	for (size_t i = 0; ow_nsys_report_info(i, &report); i++)
		nearest_try(str_from(name), report.name, &best, &least);
	complain("opwatch nsys-stats: no report is called '%s'", name);
	if (best)
		complain("; did you mean %s?", best);
	complain("\n'opwatch nsys-stats' lists them.\n");
	return EXIT_USAGE;
}

static ow_status show_report(const struct args *args, ow_profile *profile,
			     const struct ow_part_info *report)
{
	struct ow_error err;
	ow_result *result;
	struct show show;
	ow_status status = ow_nsys_stats(profile, report->name, &args->options.view, &result, &err);

	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return status;
	}
	show_from_args(args, profile, &show);
	if (!ow_result_rows(result))
		complain("opwatch: nothing of what %s is about was recorded here\n", report->name);
	status = show_result(&show, result, report->name, &args->options);
	ow_result_free(result);
	return status;
}

static int run(struct args *args)
{
	struct ow_part_info report;
	ow_profile *profile;
	int code = EXIT_FAILED;

	if (!args->file_count)
		return list();
	if (!find_report(args->files[0], &report))
		return unknown(args->files[0]);
	args->files++;
	args->file_count--;
	if (!args_choose_output(args))
		return EXIT_USAGE;
	profile = load_files(args, &code);
	if (!profile)
		return code;
	code = finish_code(args, profile, show_report(args, profile, &report));
	ow_profile_free(profile);
	return code;
}

const struct command cmd_nsys_stats = {
	.name = "nsys-stats",
	.usage = "REPORT FILE… [--json|--csv]",
	.summary = "a table as 'nsys stats' of Nsight Systems prints it",
	.help = "Without a report it lists them. Any file with kernels, calls or NVTX ranges\n"
		"will do.\n",
	.run = run,
};
