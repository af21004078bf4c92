/*
 * cmd_jobs.c: `opwatch jobs`: a table of the jobs that the daemon knows, of what it found about them, or the environment that a job
 * needs to report to it.
 */
#include "cli/commands/live.h"

struct jobs_args {
	struct live_args live;
	bool env, anomalies;
};

/* Prints a variable in single quotes, for shells. */
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

static int print_environment(const struct live_args *live)
{
	struct ow_error err = { 0 };

	if (ow_job_environment(live->socket, print_export, NULL, &err) == OW_OK)
		return EXIT_GOOD;
	complain("opwatch: %s\n", err.text);
	return EXIT_FAILED;
}

static int run_jobs(struct args *args)
{
	const struct jobs_args *own = args->own;
	struct ow_error err = { 0 };
	ow_result *jobs;
	struct show show;
	ow_status status;

	if (args->file_count) {
		complain("opwatch jobs: unexpected argument '%s'\n", args->files[0]);
		return EXIT_USAGE;
	}
	if (own->env)
		return print_environment(&own->live);
	if (!output_choose(args))
		return EXIT_USAGE;
	if ((own->anomalies ? ow_job_anomalies : ow_jobs)(own->live.socket, &jobs, &err) != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	show_from_args(args, NULL, &show);
	status = show_result(&show, jobs, own->anomalies ? "anomalies" : "jobs", &args->options);
	if (status == OW_OK && own->anomalies && !ow_result_rows(jobs) && output_is_text(args))
		complain("opwatch: no job became slow or stopped; 'opwatch daemon --on-slowdown "
			 "20%% --on-stall 30s' detects that\n");
	else if (status == OW_OK && !ow_result_rows(jobs) && output_is_text(args))
		complain("opwatch: no job has reported yet; start one with 'opwatch record --job "
			 "NAME "
			 "-- PROGRAM'\n");
	ow_result_free(jobs);
	return status == OW_OK ? EXIT_GOOD : EXIT_FAILED;
}

static const struct option options[] = {
	{ "env", STORE_FLAG(struct jobs_args, env),
	  .help = "print the environment variables that a job needs to report to the daemon" },
	{ "anomalies", STORE_FLAG(struct jobs_args, anomalies),
	  .help = "list what the daemon found with --on-slowdown and --on-stall, and the saved "
		  "minutes" },
	LIVE_SOCKET,
};

const struct command cmd_jobs = {
	.name = "jobs",
	.usage = "[--json|--csv] [--env] [--anomalies]",
	.summary = "list the jobs that the daemon records",
	.help = "Lists your own jobs; root sees all.\n",
	.has_answer = true,
	.examples = { "opwatch jobs --json", "eval \"$(opwatch jobs --env)\"" },
	.own = OPTIONS(options),
	.groups = { &output_options },
	.own_size = sizeof(struct jobs_args),
	.run = run_jobs,
};
