/*
 * cmd_nsys_stats.c: `opwatch nsys-stats`: the tables that `nsys stats` prints, with the same columns, for people who know
 * them and for scripts that read them. Without a file it lists the reports, without a report it prints those that `nsys stats`
 * prints; the library computes them.
 */
#include "base/nearest.h"
#include "cli/command.h"

#include <unistd.h>

static bool find_report(const char *name, struct ow_part_info *report)
{
	for (size_t i = 0; ow_nsys_report_info(i, report); i++)
		if (strcmp(report->name, name) == 0 || strcmp(report->detail, name) == 0)
			return true;
	return false;
}

static int list_reports(void)
{
	struct ow_part_info report = { .size = sizeof(report) };

	for (size_t i = 0; ow_nsys_report_info(i, &report); i++)
		printf("  %-22s %s\n", report.name, report.summary);
	printf("\n'opwatch nsys-stats REPORT FILE…' prints a report.\n");
	return EXIT_GOOD;
}

static int report_unknown_name(const char *name)
{
	size_t least = nearest_limit(str_from(name));
	struct ow_part_info report = { .size = sizeof(report) };
	const char *best = NULL;

	for (size_t i = 0; ow_nsys_report_info(i, &report); i++)
		nearest_try(str_from(name), report.name, &best, &least);
	complain("opwatch nsys-stats: unknown report '%s'", name);
	if (best)
		complain("; did you mean %s?", best);
	complain("\n'opwatch nsys-stats' lists the reports.\n");
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
		complain("opwatch: no data for report %s\n", report->name);
	status = show_result(&show, result, report->name, &args->options);
	ow_result_free(result);
	return status;
}

/* Reports that `nsys stats` prints without --report, as far as they exist here. */
static const char *const usual[] = { "nvtx_sum",
				     "osrt_sum",
				     "cuda_api_sum",
				     "cuda_gpu_kern_sum",
				     "cuda_gpu_mem_time_sum",
				     "cuda_gpu_mem_size_sum" };

/* Prints these reports. JSON documents become one array; CSV tables have an empty line between
 * them. */
static ow_status show_usual(struct args *args, ow_profile *profile)
{
	bool json = strcmp(args->output.sink, "json") == 0,
	     csv = strcmp(args->output.sink, "csv") == 0;
	ow_status status = OW_OK;

	args->output.no_pager = true; /* a pager for all reports would need all of them first */
	for (size_t i = 0; i < ARRAY_COUNT(usual) && status == OW_OK; i++) {
		struct ow_part_info report = { .size = sizeof(report) };

		if (!find_report(usual[i], &report))
			continue;
		if (json)
			fputs(i ? ",\n" : "[", stdout);
		else if (csv)
			fputs(i ? "\n" : "", stdout);
		else
			printf("%s ** %s (%s):\n\n", i ? "\n" : "", report.summary, report.name);
		status = show_report(args, profile, &report);
	}
	if (json)
		fputs("]\n", stdout);
	return status;
}

/* Returns whether the outputs of several reports can follow each other in one file. */
static bool can_show_usual(const struct args *args)
{
	const char *sink = args->output.sink;

	if (args->options.output.outfile ||
	    (!output_is_text(args) && strcmp(sink, "json") != 0 && strcmp(sink, "csv") != 0))
		return usage_error("without a report several are printed, as text, --json or --csv "
				   "to standard output; name one: 'opwatch nsys-stats' lists them");
	return true;
}

static int run_nsys_stats(struct args *args)
{
	struct ow_part_info report = { .size = sizeof(report) };
	bool named = args->file_count && find_report(args->files[0], &report);
	ow_profile *profile;
	int code = EXIT_FAILED;

	if (!args->file_count)
		return list_reports();
	if (!named && access(args->files[0], F_OK) != 0 && strcmp(args->files[0], "-") != 0)
		return report_unknown_name(args->files[0]);
	args->files += named;
	args->file_count -= named;
	if (!output_choose(args) || (!named && !can_show_usual(args)))
		return EXIT_USAGE;
	profile = load_files(args, &code);
	if (!profile)
		return code;
	code = finish_code(args, profile,
			   named ? show_report(args, profile, &report) : show_usual(args, profile));
	ow_profile_free(profile);
	return code;
}

const struct command cmd_nsys_stats = {
	.name = "nsys-stats",
	.usage = "[REPORT] FILE… [--json|--csv]",
	.summary = "print a table as 'nsys stats' of Nsight Systems does",
	.help = "Without a report it prints those that 'nsys stats' prints, without a file it\n"
		"lists them. It works on every file with kernels, calls or NVTX ranges.\n",
	.examples = { "opwatch nsys-stats trace.json",
		      "opwatch nsys-stats cuda_gpu_kern_sum trace.json --csv" },
	.groups = { &output_options, &part_options, &input_options },
	.run = run_nsys_stats,
};
