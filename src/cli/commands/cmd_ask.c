/*
 * cmd_ask.c: `opwatch ask`: named queries. Without a name it lists them, with --show it prints one, else it runs one on the
 * files, or on a server. Options that are not opwatch's own are parameters of the query: --limit 5, --device gpu.
 */
#include "base/nearest.h"
#include "cli/runs.h"
#include "cli/words.h"

#include <errno.h>
#include <unistd.h>

struct ask_args {
	struct ow_list params, dirs;
	const char *temp_dir;
	bool show;
};

/* Finds folders with queries of the user: the usual one, then those of --queries. */
static bool find_dirs(struct args *args, struct ow_list *dirs)
{
	const struct ask_args *own = args->own;
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	const char **items = ARENA_ARRAY(args->arena, const char *, own->dirs.count + 1);
	size_t count = 0;

	if (!items)
		return false;
	if (config && *config)
		items[count++] = arena_printf(args->arena, "%s/opwatch/queries", config);
	else if (home && *home)
		items[count++] = arena_printf(args->arena, "%s/.config/opwatch/queries", home);
	for (size_t i = 0; i < own->dirs.count; i++) {
		items[count++] = own->dirs.items[i];
		if (access(own->dirs.items[i], F_OK) != 0) {
			complain("opwatch ask: --queries %s: %s\n", own->dirs.items[i],
				 strerror(errno));
			return false;
		}
	}
	*dirs = (struct ow_list){ items, count };
	return count == 0 || items[0];
}

static void put_params_json(FILE *to, const ow_queries *queries, const char *name)
{
	struct ow_query_param param = { .size = sizeof(param) };

	for (size_t i = 0; ow_queries_param(queries, name, i, &param); i++) {
		fprintf(to, "%s{\"name\":\"%s\",\"type\":\"%s\",\"default\":", i ? "," : "",
			param.name, param.type);
		words_json(to, param.usual);
		fprintf(to, ",\"doc\":");
		words_json(to, param.doc);
		fputc('}', to);
	}
}

static void list_csv(FILE *to, const ow_queries *queries, size_t most)
{
	struct ow_query_info info = { .size = sizeof(info) };

	fputs("name,title,doc\r\n", to);
	for (size_t i = 0; i < most && ow_queries_at(queries, i, &info); i++) {
		words_csv(to, info.name);
		fputc(',', to);
		words_csv(to, info.title);
		fputc(',', to);
		words_csv(to, info.doc);
		fputs("\r\n", to);
	}
}

static void list_json(FILE *to, const ow_queries *queries, size_t most)
{
	struct ow_query_info info = { .size = sizeof(info) };

	fprintf(to, "[");
	for (size_t i = 0; i < most && ow_queries_at(queries, i, &info); i++) {
		fprintf(to, "%s{\"name\":", i ? ",\n" : "\n");
		words_json(to, info.name);
		fprintf(to, ",\"title\":");
		words_json(to, info.title);
		fprintf(to, ",\"doc\":");
		words_json(to, info.doc);
		fprintf(to, ",\"clickhouse\":%s,\"params\":[", info.clickhouse ? "true" : "false");
		put_params_json(to, queries, info.name);
		fprintf(to, "]}");
	}
	fprintf(to, "\n]\n");
}

static int list_queries(struct args *args, const ow_queries *queries)
{
	struct ow_query_info info = { .size = sizeof(info) };
	size_t most = args->options.view.limit ? args->options.view.limit : SIZE_MAX;
	struct page page;
	FILE *to;

	if (!output_redirect(args))
		return EXIT_FAILED;
	to = page_open(&page);
	if (strcmp(args->output.sink, "json") == 0) {
		list_json(to, queries, most);
	} else if (strcmp(args->output.sink, "csv") == 0) {
		list_csv(to, queries, most);
	} else {
		for (size_t i = 0; i < most && ow_queries_at(queries, i, &info); i++)
			fprintf(to, "  %-18s %s\n", info.name, info.title);
		fprintf(to, "\n'opwatch ask NAME FILE…' runs a query, 'opwatch ask NAME --show' "
			    "prints it.\n");
	}
	if (page_close(&page, output_paged(args), args->terminal.height))
		return EXIT_GOOD;
	(void)output_complain();
	return EXIT_FAILED;
}

static int report_unknown_query(const ow_queries *queries, const char *name)
{
	struct ow_query_info info = { .size = sizeof(info) };
	size_t least = nearest_limit(str_from(name));
	const char *best = NULL;

	for (size_t i = 0; ow_queries_at(queries, i, &info); i++)
		nearest_try(str_from(name), info.name, &best, &least);
	complain("opwatch ask: unknown query '%s'", name);
	if (best)
		complain("; did you mean %s?", best);
	complain("\n'opwatch ask' lists the queries.\n");
	return EXIT_USAGE;
}

static void put_comment(const char *text)
{
	printf("--");
	for (size_t column = 2; *text;) {
		size_t len = strcspn(text, " ");

		if (column + len > 98) {
			printf("\n--");
			column = 2;
		}
		printf(" %.*s", (int)len, text);
		column += len + 1;
		text += len + (text[len] == ' ');
	}
	printf("\n");
}

static int show_sql(const ow_queries *queries, const struct ow_query_info *info)
{
	struct ow_query_param param = { .size = sizeof(param) };

	printf("-- title: %s\n", info->title);
	if (*info->doc)
		put_comment(info->doc);
	for (size_t i = 0; ow_queries_param(queries, info->name, i, &param); i++) {
		bool text = strcmp(param.type, "text") == 0;

		printf("-- param %s %s %s%s%s: %s\n", param.name, param.type, text ? "'" : "",
		       param.usual, text ? "'" : "", param.doc);
	}
	printf("%s\n", info->sql);
	if (info->clickhouse && strcmp(info->clickhouse, info->sql) == 0)
		printf("-- clickhouse: same\n");
	else if (info->clickhouse)
		printf("-- clickhouse:\n%s\n", info->clickhouse);
	return EXIT_GOOD;
}

static bool has_param(const ow_queries *queries, const char *name, const char *param)
{
	struct ow_query_param info = { .size = sizeof(info) };

	for (size_t i = 0; ow_queries_param(queries, name, i, &info); i++)
		if (strcmp(info.name, param) == 0)
			return true;
	return false;
}

/* Uses -n as the parameter `limit` of a query that has one. */
static bool take_limit(struct args *args, const ow_queries *queries, const char *name,
		       struct ow_list *params)
{
	const struct ask_args *own = args->own;
	const char **items = ARENA_ARRAY(args->arena, const char *, own->params.count + 1);

	if (!items)
		return false;
	*params = own->params;
	if (!args_given(args, "limit") || !has_param(queries, name, "limit"))
		return true;
	if (params->count)
		memcpy(items, params->items, params->count * sizeof(*items));
	items[params->count] = arena_printf(args->arena, "limit=%u", args->options.view.limit);
	params->items = items;
	return items[params->count++] != NULL;
}

static ow_status print_result(struct args *args, ow_result *result, struct ow_error *err)
{
	static struct output_stream out;
	struct ow_write_options write;
	ow_status status;

	ow_write_options_init(&write);
	write.limit = args->options.view.limit;
	write.short_names = output_is_text(args);
	if (args->output.file && strcmp(args->output.file, "-") != 0)
		return ow_result_write_file(result, args->output.sink, &write, args->output.file,
					    err);
	write.width = args->terminal.out ? args->terminal.width : 0;
	write.colour = args->terminal.colour;
	output_start(&out,
		     output_is_text(args) && args->terminal.out && args->terminal.in &&
			     !args->output.no_pager,
		     args->terminal.height);
	status = ow_result_write(result, args->output.sink, &write, output_write, &out, err);
	if (!output_end(&out))
		return output_failure(err);
	return status == OW_E_INTERRUPTED && !interrupted
		       ? OW_OK
		       : status; /* the reader has closed the pipe */
}

static bool keep_going(void *arg)
{
	(void)arg;
	return !interrupted;
}

static ow_status ask_files(struct args *args, const ow_queries *queries, const char *name,
			   const struct runs *runs, const struct ow_list *params,
			   struct ow_error *err)
{
	struct ow_ask_options options;
	ow_result *result;
	ow_status status;

	ow_ask_options_init(&options);
	options.params = *params;
	options.memory_limit = args->input.open.memory_limit;
	options.temp_dir = ((const struct ask_args *)args->own)->temp_dir;
	options.keep_going = keep_going;
	OW_TRY(ow_ask(queries, name, runs->items, runs->count, &options, &result, err));
	status = print_result(args, result, err);
	ow_result_free(result);
	return status;
}

static int ask_runs(struct args *args, const ow_queries *queries, const char *name)
{
	struct ow_error err = { 0 };
	struct ow_list params;
	struct runs runs;
	ow_status status;
	int code;

	if (!take_limit(args, queries, name, &params))
		return EXIT_FAILED;
	if (!runs_load(args, 1, &runs, &code))
		return code;
	interrupts_catch(true);
	status = ask_files(args, queries, name, &runs, &params, &err);
	interrupts_catch(false);
	if (status != OW_OK)
		complain("opwatch: %s\n", err.text);
	code = runs_finish_code(args, &runs, status);
	runs_free(&runs);
	return code;
}

static bool add_text(void *arg, const void *bytes, size_t len)
{
	struct buf *text = arg;

	buf_add(text, bytes, len);
	return !text->failed;
}

/* Asks a server about the runs that were pushed there; files are not read. */
static int ask_server(struct args *args, const ow_queries *queries, const char *name)
{
	struct ow_error err = { 0 };
	struct ow_list params;
	struct buf text;
	ow_status status;
	int code;

	if (args->file_count > 1) {
		complain("opwatch ask: --on queries the runs of the server, not files; leave out "
			 "'%s'\n",
			 args->files[1]);
		return EXIT_USAGE;
	}
	if (!take_limit(args, queries, name, &params))
		return EXIT_FAILED;
	buf_init(&text, args->arena->mem);
	status = ow_ask_text(queries, name, &params, add_text, &text, &err);
	if (status == OW_OK && buf_cstr(&text)) {
		code = remote_run(args, text.ptr);
	} else {
		code = report_error(&err, status);
	}
	buf_release(&text);
	return code;
}

/* Moves the name of the query to the front; it may stand behind the files. When no word is a query, the first word that is
 * not a file either was meant as one. */
static bool find_name(struct args *args, const ow_queries *queries, struct ow_query_info *info)
{
	const char **words = args->files;
	size_t at = 0;

	while (at < args->file_count && !ow_queries_find(queries, words[at], info))
		at++;
	for (size_t i = 0; at == args->file_count && i < at; i++)
		if (access(words[i], F_OK) != 0) {
			words[0] = words[i];
			return false;
		}
	if (at == args->file_count)
		return false;
	memmove(words + 1, words, at * sizeof(*words));
	words[0] = info->name;
	return true;
}

static bool take_param(struct args *args, struct str name, const char *value)
{
	struct ask_args *own = args->own;
	const char *text = arena_printf(args->arena, "%.*s=%s", STR_ARG(name), value);

	return text && value_word(args->arena, &own->params, text);
}

static int run_ask(struct args *args)
{
	const struct ask_args *own = args->own;
	struct ow_query_info info = { .size = sizeof(info) };
	struct ow_error err = { 0 };
	struct ow_list dirs;
	ow_queries *queries;
	int code;

	if (!output_is_table(args)) {
		complain("opwatch ask: cannot write '%s'; the formats are text, json, csv, ndjson, "
			 "arrow, parquet\n",
			 args->output.sink);
		return EXIT_USAGE;
	}
	if (!find_dirs(args, &dirs))
		return EXIT_USAGE;
	if (ow_queries_open(&dirs, &queries, &err) != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	if (!args->file_count)
		code = list_queries(args, queries);
	else if (!find_name(args, queries, &info))
		code = report_unknown_query(queries, args->files[0]);
	else if (own->show)
		code = show_sql(queries, &info);
	else {
		args->run.each = str_starts(str_from(info.name), STR("compare_"));
		code = args->run.server ? ask_server(args, queries, info.name)
					: ask_runs(args, queries, info.name);
	}
	ow_queries_free(queries);
	return code;
}

static const struct option options[] = {
	{ "param", STORE_REPEAT(struct ask_args, params), .argument = "NAME=VALUE",
	  .help = "set a parameter of the query (repeatable); --NAME VALUE does the same" },
	{ "queries", STORE_REPEAT(struct ask_args, dirs), .argument = "DIR",
	  .help = "look for queries in this folder, too: a file NAME.sql each" },
	{ "show", STORE_FLAG(struct ask_args, show),
	  .help = "print the query instead of running it" },
	{ "temp-dir", STORE_TEXT(struct ask_args, temp_dir), .argument = "DIR",
	  .help = "use this folder for data that does not fit in memory" },
};

const struct command cmd_ask = {
	.name = "ask",
	.usage = "[NAME FILE… [--PARAMETER VALUE]]",
	.summary = "run a named query: answers to common questions",
	.help = "Without a name it lists the queries. Options that are not listed below are\n"
		"parameters of the query: --min_us 5 is the same as --param min_us=5.\n"
		"\n"
		"Put your own queries into files NAME.sql in $XDG_CONFIG_HOME/opwatch/queries,\n"
		"or in a folder that --queries names.\n",
	.examples = { "opwatch ask top_ops run.opw --limit 5",
		      "opwatch ask compare_steps run.opw other.opw" },
	.own = OPTIONS(options),
	.groups = { &output_options, &run_options, &server_options, &input_options },
	.own_size = sizeof(struct ask_args),
	.take_other = take_param,
	.run = run_ask,
};
