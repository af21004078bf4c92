/* cmd_jobs.c: the jobs that the daemon knows, or what a job needs in its environment to report to it. */
#include "cli/command.h"

/* In single quotes, as shells read it. */
static void print_export(void *arg, const char *line, size_t len)
{
	const char *equals = memchr(line, '=', len);

	(void)arg;
	printf("export %.*s='", (int)(equals - line), line);
	for (const char *at = equals + 1; at < line + len; at++)
		if (*at == '\'')
			printf("'\\''");
		else
			putchar(*at);
	printf("'\n");
}

static int print_environment(const struct args *args)
{
	struct ow_error err = { 0 };

	if (ow_job_environment(args->socket, print_export, NULL, &err) == OW_OK)
		return EXIT_GOOD;
	complain("opwatch: %s\n", err.text);
	return EXIT_FAILED;
}

static int run(struct args *args)
{
	struct ow_error err = { 0 };
	ow_result *jobs;
	struct show show;
	ow_status status;

	if (args->file_count) {
		complain("opwatch jobs: '%s' is too much\n", args->files[0]);
		return EXIT_USAGE;
	}
	if (args->env)
		return print_environment(args);
	if (!args_choose_output(args))
		return EXIT_USAGE;
	if (ow_jobs(args->socket, &jobs, &err) != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	show_from_args(args, NULL, &show);
	status = show_result(&show, jobs, "jobs", &args->options);
	if (status == OW_OK && !ow_result_rows(jobs) && strcmp(args->sink, "text") == 0)
		complain(
			"opwatch: no job has reported yet: opwatch record --job NAME -- PROGRAM\n");
	ow_result_free(jobs);
	return status == OW_OK ? EXIT_GOOD : EXIT_FAILED;
}

const struct command cmd_jobs = {
	.name = "jobs",
	.usage = "[--json|--csv] [--env]",
	.summary = "the jobs that the daemon records",
	.help = "Own ones, or as root all. With --env, what a job needs in its environment to\n"
		"report to the daemon: eval \"$(opwatch jobs --env)\"\n",
	.flags = "json csv to out limit socket",
	.run = run,
	.takes_job = true,
};
