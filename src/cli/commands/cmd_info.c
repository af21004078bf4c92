/*
 * cmd_info.c: `opwatch info`: what is in the files: every fact as JSON, or tables for people; the checksums of an opwatch
 * file (--verify); size, events and memory without loading (--estimate). It shows views and does not interpret them.
 */
#include "cli/command.h"
#include "cli/words.h"

struct info_args {
	bool estimate, verify;
};

static ow_status print_json(ow_profile *profile)
{
	static struct output_stream out;
	struct ow_error err;
	ow_status status;

	output_start(&out, false, 0);
	status = ow_info_json(profile, output_write, &out, &err);
	if (!output_end(&out))
		return output_complain();
	if (status == OW_E_INTERRUPTED)
		return OW_OK;
	if (status != OW_OK)
		complain("opwatch: %s\n", err.text);
	return status;
}

static bool has_rows(ow_profile *profile, const char *view)
{
	struct ow_error err;
	ow_result *result = NULL;
	bool any;

	if (ow_view(profile, view, NULL, &result, &err) != OW_OK)
		return true; /* show_view reports the error */
	any = ow_result_rows(result) > 0;
	ow_result_free(result);
	return any;
}

static ow_status print_views(struct args *args, const struct show *show)
{
	static const char *const parts[] = { "sources", "steps", "devices", "notes" };
	struct options options = args->options;
	ow_status status = OW_OK;

	if (!output_is_text(args)) {
		options.output.type = args->output.sink;
		return show_view(show, "sources", &options);
	}
	for (size_t i = 0; status == OW_OK && i < ARRAY_COUNT(parts); i++) {
		if (!has_rows(show->profile, parts[i]))
			continue;
		printf("%s%s\n", i ? "\n" : "", parts[i]);
		fflush(stdout);
		status = show_view(show, parts[i], &options);
	}
	return status;
}

static ow_status verify_checksums(const struct args *args, ow_profile *profile)
{
	struct ow_error err = { 0 };
	uint64_t bytes = 0;
	ow_status status = ow_profile_verify(profile, &bytes, &err);

	if (status != OW_OK)
		complain("opwatch: %s\n", err.text);
	else if (!bytes)
		complain(
			"opwatch: nothing to verify: only opwatch files (.opw) have checksums, and "
			"only when one is opened alone\n");
	else if (output_is_text(args)) {
		words_name(stdout, str_from(args->input.job ? args->input.job : args->files[0]),
			   SIZE_MAX);
		printf(": all checksums of %.1f MB are correct\n\n", (double)bytes / 1e6);
	}
	return status;
}

static void print_estimate_json(const char *path, const struct ow_estimate *e)
{
	printf("{\"path\": ");
	words_json(stdout, path);
	printf(", \"format\": \"%s\", \"container\": \"%s\", \"file_bytes\": %llu, "
	       "\"content_bytes\": %llu, \"events\": %llu, \"memory_bytes\": %llu}",
	       e->format, e->container, (unsigned long long)e->file_bytes,
	       (unsigned long long)e->content_bytes, (unsigned long long)e->events,
	       (unsigned long long)e->memory_bytes);
}

static void print_estimate_csv(const char *path, const struct ow_estimate *e)
{
	words_csv(stdout, path);
	printf(",%s,%s,%llu,%llu,%llu,%llu\r\n", e->format, e->container,
	       (unsigned long long)e->file_bytes, (unsigned long long)e->content_bytes,
	       (unsigned long long)e->events, (unsigned long long)e->memory_bytes);
}

static void print_estimate(const char *path, const struct ow_estimate *e)
{
	char size[WORDS_NUMBER], content[WORDS_NUMBER], events[WORDS_NUMBER], memory[WORDS_NUMBER];

	words_name(stdout, str_from(path), SIZE_MAX);
	printf(": %s, %s", e->format, words_bytes(size, (double)e->file_bytes));
	if (*e->container)
		printf(" (%s of about %s)", e->container,
		       words_bytes(content, (double)e->content_bytes));
	printf("; about %s events, %s of memory to open\n", words_count(events, (double)e->events),
	       words_bytes(memory, (double)e->memory_bytes));
}

/* Prints an object for one file, and an array of objects for several. */
int print_estimates(struct args *args)
{
	bool json = strcmp(args->output.sink, "json") == 0,
	     csv = strcmp(args->output.sink, "csv") == 0;
	bool list = json && args->file_count > 1;
	int code = EXIT_GOOD;
	size_t printed = 0;

	if (!args->file_count)
		return missing_file(args);
	if (!output_redirect(args))
		return EXIT_FAILED;
	if (csv)
		printf("path,format,container,file_bytes,content_bytes,events,memory_bytes\r\n");
	for (size_t i = 0; i < args->file_count; i++) {
		struct ow_estimate e = { .size = sizeof(e) };
		struct ow_error err;

		if (ow_estimate_file(args->files[i], &e, &err) != OW_OK) {
			complain("opwatch: %s\n", err.text);
			code = EXIT_FAILED;
			continue;
		}
		if (list)
			fputs(printed++ ? ",\n" : "[", stdout);
		if (json)
			print_estimate_json(args->files[i], &e);
		else if (csv)
			print_estimate_csv(args->files[i], &e);
		else
			print_estimate(args->files[i], &e);
	}
	if (json)
		fputs(!list ? code == EXIT_GOOD ? "\n" : "" : printed ? "]\n" : "[]\n", stdout);
	return code;
}

/* The JSON describes the files as a whole. */
static bool check_parts(const struct args *args)
{
	const struct ow_view_options *view = &args->options.view;
	const char *given = view->step >= 0   ? "--step"
			    : view->rank >= 0 ? "--rank"
			    : view->metric    ? "--metric"
					      : NULL;

	if (!given || strcmp(args->output.sink, "json") != 0)
		return true;
	return usage_error("info --json describes all of the files: %s is for views, such as "
			   "'opwatch steps'",
			   given);
}

static int run_info(struct args *args)
{
	const struct info_args *own = args->own;
	struct show show;
	ow_profile *profile;
	int code = EXIT_FAILED;
	ow_status status;

	if (!check_parts(args))
		return EXIT_USAGE;
	if (own->estimate)
		return print_estimates(args);
	profile = load_files(args, &code);
	if (!profile)
		return code;
	if (!output_redirect(args)) {
		ow_profile_free(profile);
		return EXIT_FAILED;
	}
	show_from_args(args, profile, &show);
	show.pager = false;
	status = own->verify ? verify_checksums(args, profile) : OW_OK;
	if (status == OW_OK)
		status = strcmp(args->output.sink, "json") == 0 ? print_json(profile)
								: print_views(args, &show);
	code = finish_code(args, profile, status);
	ow_profile_free(profile);
	return code;
}

static const struct option options[] = {
	{ "estimate", STORE_FLAG(struct info_args, estimate),
	  .help = "print size, events and memory without loading the files" },
	{ "verify", STORE_FLAG(struct info_args, verify),
	  .help = "check every checksum of an opwatch file" },
};

const struct command cmd_info = {
	.name = "info",
	.usage = "FILE… [--json] [--estimate] [--verify]",
	.summary = "show what is in the files: formats, steps, devices, damage",
	.help = "--json prints every fact that is known about the files.\n",
	.columns = "source",
	.examples = { "opwatch info run.opw --verify", "opwatch info --estimate trace.json" },
	.own = OPTIONS(options),
	.groups = { &output_options, &input_options, &part_options, &shown_options },
	.own_size = sizeof(struct info_args),
	.run = run_info,
};
