/*
 * cmd_push.c: `opwatch push`: runs into the tables of a ClickHouse server or cluster. runs.c decides which files are one run;
 * a run without a name is named after its files and the beginning of the hash of their content, so that runs of different
 * people do not collide.
 */
#include "cli/runs.h"
#include "cli/words.h"

struct push_args {
	struct ow_push_options push;
	const char *address;
	struct ow_list tables;
	uint32_t retry_seconds;
};

/* Arguments of the callbacks. */
struct pushing {
	struct progress_line line;
	const char *run;
};

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

static void print_json(const char *run, const struct ow_push_summary *s)
{
	printf("{\"run\":");
	words_json(stdout, run);
	printf(",\"rows\":%" PRIu64 ",\"sent\":%" PRIu64
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
		printf(", all of them already there");
	else if (s->batches_found)
		printf("; %u of %u batches already there", s->batches_found, s->batches);
	if (s->repeats)
		printf("; %u sent again", s->repeats);
	if (s->replaced)
		printf("; replaced the older run of that name");
	printf("\n");
}

static ow_status push_profile(struct args *args, ow_remote *remote, ow_profile *profile,
			      const char *name, const char *content, struct ow_error *err)
{
	struct pushing pushing = { .run = name };
	struct ow_push_summary summary = { .size = sizeof(summary) };
	const struct push_args *own = args->own;
	struct ow_push_options options = own->push;
	ow_status status;

	options.content = content;
	options.tables = own->tables;
	if (own->retry_seconds)
		options.retry_ms = own->retry_seconds * 1000;
	options.await_server =
		own->retry_seconds > 0; /* without retries a wrong address is reported at once */
	options.name = name;
	options.progress = on_progress;
	options.message = on_message;
	options.progress_arg = options.message_arg = &pushing;
	progress_begin(&pushing.line, args->terminal.err);
	status = ow_push(profile, remote, &options, &summary, err);
	progress_clear(&pushing.line);
	if (status != OW_OK)
		return status;
	if (strcmp(args->output.sink, "json") == 0)
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
	if (status != OW_OK)
		return report_error(&err, status);
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

static bool check_args(const struct args *args)
{
	const struct push_args *own = args->own;

	if (!args->file_count && !args->run.given.count)
		(void)missing_file(args);
	else if (!own->address || !strstr(own->address, "://"))
		complain("opwatch push: no server given. Use --to "
			 "clickhouse://USER@HOST:8123/DATABASE\n");
	else if (own->push.nodes.count && !own->push.cluster)
		complain("opwatch push: --nodes needs --cluster NAME\n");
	else
		return true;
	return false;
}

/* Reports a wrong address or password before files are read. With --retry-for, the push waits for a server
 * that does not answer. */
static bool check_server(const struct push_args *own, ow_remote *remote)
{
	struct ow_error err = { 0 };
	ow_status status;
	ow_result *answer;

	status = ow_remote_query(remote, "SELECT 1", &answer, &err);
	if (status == OW_E_IO && own->retry_seconds)
		return true;
	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return false;
	}
	ow_result_free(answer);
	return true;
}

static int push_runs(struct args *args, ow_remote *remote, const struct run_files *runs,
		     size_t count)
{
	size_t first_given = count - args->run.given.count;
	int worst = EXIT_GOOD;

	for (size_t i = 0; i < count && !interrupted; i++) {
		bool named = i < args->run.names.count || i >= first_given;
		int code = push_files(args, remote, &runs[i], named);

		worst = MAX(worst, code);
	}
	return worst;
}

static int run_push(struct args *args)
{
	const struct push_args *own = args->own;
	struct run_files *runs;
	ow_remote *remote;
	int code = EXIT_FAILED;
	size_t count;

	if (!check_args(args) || !runs_group(args, &runs, &count))
		return EXIT_USAGE;
	remote = remote_open(args, own->address, &code);
	if (!remote)
		return code;
	if (check_server(own, remote))
		code = push_runs(args, remote, runs, count);
	ow_remote_free(remote);
	return code;
}

static void init_push(void *own)
{
	ow_push_options_init(&((struct push_args *)own)->push);
}

static const struct option options[] = {
	{ "to", 't', STORE_TEXT(struct push_args, address), .argument = "ADDRESS",
	  .help = "clickhouse://USER@HOST:8123/DATABASE" },
	{ "password-file", STORE_TEXT(struct args, run.password_file), .argument = "FILE",
	  .help = "read the password of the server from this file" },
	{ "table", STORE_LIST(struct push_args, tables), .argument = "LIST",
	  .help = "push only these tables: event,op", .usual = "all" },
	{ "cluster", STORE_TEXT(struct push_args, push.cluster), .argument = "NAME",
	  .help = "spread the rows over all shards of this cluster" },
	{ "nodes", STORE_LIST(struct push_args, push.nodes), .argument = "LIST",
	  .help = "the nodes of the cluster: HOST[:PORT],…", .usual = "as the server says" },
	{ "replace", STORE_FLAG(struct push_args, push.replace),
	  .help = "replace a run of the same name and other content" },
	{ "connections", STORE_UINT32(struct push_args, push.connections, 1, 32), .argument = "N",
	  .help = "use N connections at once", .usual = "4" },
	{ "batch-rows", STORE_UINT32(struct push_args, push.batch_rows, 1, 100000000),
	  .argument = "N", .help = "send N rows at once", .usual = "1000000" },
	{ "retry-for", STORE_UINT32(struct push_args, retry_seconds, 1, 1000000),
	  .argument = "SECONDS", .help = "keep trying to reach a node for this long",
	  .usual = "120" },
	{ "json", STORE_WORD(struct args, output.sink), .help = "print the summary as JSON" },
};

const struct command cmd_push = {
	.name = "push",
	.usage = "FILE… --to clickhouse://USER@HOST:8123/DATABASE [options]",
	.summary = "put runs into the tables of a ClickHouse server or cluster",
	.help = "Missing tables and views are created: event, op, step, … as in 'opwatch sql'. A\n"
		"run becomes visible as a whole, at the end. A second push continues where an\n"
		"earlier one was stopped, and does nothing when all rows are there. Several files\n"
		"are several runs, as in 'opwatch sql'; --name NAME makes one run of all. The\n"
		"password is read from OPWATCH_CLICKHOUSE_PASSWORD or --password-file.\n",
	.examples = { "opwatch push run.opw --to clickhouse://me@localhost:8123/profiles",
		      "opwatch push run.opw --name nightly --to clickhouse://localhost/profiles" },
	.own = OPTIONS(options),
	.groups = { &run_options, &input_options },
	.own_size = sizeof(struct push_args),
	.init = init_push,
	.run = run_push,
};
