/*
 * cmd_push.c: runs into the tables of a ClickHouse server or cluster. What a run is, is told by runs.h; one
 * without a name of its own is called by its files and the beginning of their content's hash, so that runs of
 * many people do not meet.
 */
#include "cli/progress.h"
#include "cli/remote.h"
#include "cli/runs.h"

/* What the callbacks need. */
struct pushing {
	struct progress_line line;
	const char *run;
};

/* ---- progress ---- */

static bool on_progress(void *arg, uint64_t done, uint64_t total)
{
	struct pushing *p = arg;

	if (interrupted)
		return false;
	if (total && progress_due(&p->line))
		progress_show(&p->line, "pushing %.40s: %3.0f %% of %.2f million rows, %.0f s",
			      p->run, 100.0 * (double)done / (double)total, (double)total / 1e6,
			      progress_seconds(&p->line));
	return true;
}

static void on_message(void *arg, const char *text, size_t len)
{
	struct pushing *p = arg;

	progress_clear(&p->line);
	complain("opwatch: %.*s\n", (int)len, text);
}

/* ---- what is told ---- */

static void print_json(const char *run, const struct ow_push_summary *s)
{
	printf("{\"run\":\"");
	for (; *run; run++)
		printf(*run == '"' || *run == '\\' ? "\\%c"
		       : (unsigned char)*run < 32  ? "\\u%04x"
						   : "%c",
		       (unsigned char)*run);
	printf("\",\"rows\":%" PRIu64 ",\"sent\":%" PRIu64
	       ",\"tables\":%u,\"batches\":%u,\"batches_found\":%u,\"repeats\":%u,\"nodes\":%u,"
	       "\"shards\":%u,\"published_before\":%s,\"replaced\":%s}\n",
	       s->rows, s->sent, s->tables, s->batches, s->batches_found, s->repeats, s->nodes,
	       s->shards, s->published_before ? "true" : "false", s->replaced ? "true" : "false");
}

static void print_text(const char *run, const struct ow_push_summary *s)
{
	printf("%s: %" PRIu64 " rows in %u tables", run, s->rows, s->tables);
	if (s->shards > 1)
		printf(" on %u shards", s->shards);
	if (s->published_before)
		printf(", all there already");
	else if (s->batches_found)
		printf("; %u of %u batches were there already", s->batches_found, s->batches);
	if (s->repeats)
		printf("; %u sent again", s->repeats);
	if (s->replaced)
		printf("; the older run of that name is gone");
	printf("\n");
}

/* ---- one run ---- */

static ow_status push_profile(struct args *args, ow_remote *remote, ow_profile *profile,
			      const char *name, const char *content, struct ow_error *err)
{
	struct pushing pushing = { .run = name };
	struct ow_push_summary summary = { .size = sizeof(summary) };
	struct ow_push_options options = args->push;
	ow_status status;

	options.content = content;
	options.tables = args->export.tables;
	options.name = name;
	options.progress = on_progress;
	options.message = on_message;
	options.progress_arg = options.message_arg = &pushing;
	progress_begin(&pushing.line, args->terminal.err);
	status = ow_push(profile, remote, &options, &summary, err);
	progress_clear(&pushing.line);
	if (status != OW_OK)
		return status;
	if (strcmp(args->sink, "json") == 0)
		print_json(options.name, &summary);
	else
		print_text(options.name, &summary);
	return OW_OK;
}

static const char *name_run(struct args *args, const struct run_files *files, bool named,
			    const char *content)
{
	return named ? files->name : arena_printf(args->arena, "%.200s-%.8s", files->name, content);
}

static int push_files(struct args *args, ow_remote *remote, const struct run_files *files,
		      bool named)
{
	char content[OW_CONTENT_TEXT];
	struct ow_error err = { 0 };
	int code = EXIT_FAILED;
	ow_profile *profile;
	ow_status status;

	status = ow_content_hash(files->paths, files->count, content, &err);
	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return status == OW_E_USAGE ? EXIT_USAGE : EXIT_FAILED;
	}
	args->files = files->paths;
	args->file_count = files->count;
	profile = load_files(args, &code);
	if (!profile)
		return code;
	status = push_profile(args, remote, profile, name_run(args, files, named, content), content,
			      &err);
	code = finish_code(args, profile, status);
	ow_profile_free(profile);
	if (status != OW_OK)
		complain("opwatch: %s\n", err.text);
	return code;
}

/* ---- the command ---- */

static bool check(const struct args *args)
{
	if (!args->file_count && !args->given_runs.count)
		complain("opwatch push: which files? Try 'opwatch help push'.\n");
	else if (!args->push_to)
		complain(
			"opwatch push: where to? Give --to clickhouse://USER@HOST:8123/DATABASE\n");
	else if (args->push.nodes.count && !args->push.cluster)
		complain("opwatch push: --nodes are those of a cluster; give --cluster, too\n");
	else
		return true;
	return false;
}

/* A wrong address or password is told before files are read. */
static bool greet(ow_remote *remote)
{
	struct ow_error err = { 0 };
	ow_result *answer;

	if (ow_remote_query(remote, "SELECT 1", &answer, &err) != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return false;
	}
	ow_result_free(answer);
	return true;
}

static int push_runs(struct args *args, ow_remote *remote, const struct run_files *runs,
		     size_t count)
{
	size_t first_given = count - args->given_runs.count;
	int worst = EXIT_GOOD;

	for (size_t i = 0; i < count && !interrupted; i++) {
		bool named = i < args->names.count || i >= first_given;
		int code = push_files(args, remote, &runs[i], named);

		worst = MAX(worst, code);
	}
	return worst;
}

static int run(struct args *args)
{
	struct run_files *runs;
	ow_remote *remote;
	int code = EXIT_FAILED;
	size_t count;

	if (!check(args) || !runs_group(args, &runs, &count))
		return EXIT_USAGE;
	remote = remote_open(args, args->push_to, &code);
	if (!remote)
		return code;
	if (greet(remote))
		code = push_runs(args, remote, runs, count);
	ow_remote_free(remote);
	return code;
}

const struct command cmd_push = {
	.name = "push",
	.usage = "FILE… --to clickhouse://USER@HOST:8123/DATABASE [options]",
	.summary = "put runs into the tables of a ClickHouse server or cluster",
	.help = "Tables and views are made when they are missing: event, op, step, … as in\n"
		"'opwatch sql'. A run becomes visible as a whole, at the end. Pushing again\n"
		"goes on where an earlier push was stopped, and does nothing when all is there.\n\n"
		"Several files are several runs, as in 'opwatch sql'; --name NAME makes one of\n"
		"all.\n"
		"The password is taken from OPWATCH_CLICKHOUSE_PASSWORD or --password-file.\n",
	.run = run,
};
