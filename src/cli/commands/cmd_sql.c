/*
 * cmd_sql.c: `opwatch sql FILE… "SELECT …"`: SQL over one or more runs, or on a ClickHouse server (--on). Finds the query
 * among the words; statements, dot commands and the prompt are in shell/sqlshell.c.
 */
#include "cli/runs.h"
#include "cli/shell/shell.h"

#include <errno.h>
#include <glob.h>
#include <strings.h>
#include <unistd.h>

struct sql_args {
	const char *query_file, *temp_dir;
	uint32_t threads;
	bool allow_io;
};

static bool starts_like_sql(struct str text)
{
	static const char *const words[] = {
		"SELECT", "WITH",      "FROM",	 "SHOW",  "DESCRIBE", "DESC",	"EXPLAIN", "PRAGMA",
		"VALUES", "SUMMARIZE", "CREATE", "PIVOT", "UNPIVOT",  "COPY",	"SET",	   "INSERT",
		"DROP",	  "TABLE",     "ATTACH", "CALL",  "UPDATE",   "DELETE",
	};

	text = str_trim(text);
	if (str_starts(text, STR("--")) || str_starts(text, STR("/*")) ||
	    str_starts(text, STR("%%")) || str_starts(text, STR("(")) ||
	    (str_starts(text, STR("#")) && str_has(text, STR("\n"))))
		return true;
	for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
		size_t len = strlen(words[i]);

		if (text.len > len && strncasecmp(text.ptr, words[i], len) == 0 &&
		    strchr(" \t\r\n(*'\"", text.ptr[len]))
			return true;
	}
	return false;
}

static bool is_query(const char *word)
{
	struct str text = str_from(word);

	return access(word, F_OK) != 0 &&
	       (starts_like_sql(text) || str_eq(text, STR(".tables")) ||
		str_eq(text, STR(".help")) || str_starts(text, STR(".schema")));
}

static bool is_pattern(const char *word)
{
	glob_t found;
	bool any = glob(word, 0, NULL, &found) == 0;

	if (any)
		globfree(&found);
	return any;
}

/* Returns whether words with blanks are a misspelt statement: they stand beside a file and do not name
 * one. DuckDB reports the error. */
static bool may_be_query(const struct args *args, const char *word)
{
	return (args->file_count > 1 || args->run.given.count) && strpbrk(word, " \t\n") &&
	       access(word, F_OK) != 0 && !is_pattern(word);
}

/* Takes the query out of the list of files. A single ".schema" is followed by its table. */
static const char *take_query(struct args *args)
{
	const char *query = NULL, *last = args->file_count ? args->files[args->file_count - 1] : "";
	size_t kept = 0;

	for (size_t i = 0; i < args->file_count; i++) {
		const char *word = args->files[i];

		if (!query && is_query(word)) {
			query = word;
			if (strcmp(word, ".schema") == 0 && i + 1 < args->file_count &&
			    access(args->files[i + 1], F_OK) != 0)
				query = arena_printf(args->arena, ".schema %s", args->files[++i]);
		} else {
			args->files[kept++] = word;
		}
	}
	if (!query && may_be_query(args, last)) {
		query = last;
		kept--;
	}
	args->file_count = kept;
	return query;
}

/* Reads a whole file or standard input. */
static const char *read_text(struct args *args, const char *path)
{
	FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
	struct buf text;
	size_t n = 0;

	if (!file) {
		complain("opwatch: %s: %s\n", path, strerror(errno));
		return NULL;
	}
	buf_init(&text, args->arena->mem);
	do {
		if (!buf_reserve(&text, 65536))
			break;
		n = fread(text.ptr + text.len, 1, 65536, file);
		text.len += n;
	} while (n);
	if (ferror(file))
		complain("opwatch: %s: %s\n", path, strerror(errno));
	if (file != stdin)
		fclose(file);
	path = text.failed ? NULL : arena_cstr(args->arena, buf_str(&text));
	buf_release(&text);
	return path;
}

/* Returns the text of the query. NULL with *ask set: prompt for statements; NULL otherwise: the
 * error was reported. */
static const char *find_query(struct args *args, bool *ask)
{
	const struct sql_args *own = args->own;
	const char *query = own->query_file ? NULL : take_query(args);

	*ask = false;
	if (query)
		return query;
	if (own->query_file)
		return read_text(args, own->query_file);
	/* a dash among files means that the query comes from standard input */
	for (size_t i = 0; i < args->file_count && args->file_count > 1; i++)
		if (strcmp(args->files[i], "-") == 0) {
			memmove(args->files + i, args->files + i + 1,
				(args->file_count - i - 1) * sizeof(*args->files));
			args->file_count--;
			return read_text(args, "-");
		}
	if (args->terminal.in) {
		*ask = true;
		return NULL;
	}
	return read_text(args, "-");
}

static bool is_parquet(const struct args *args)
{
	return strcmp(args->output.sink, "parquet") == 0;
}

static ow_status write_parquet(struct args *args, ow_sql *sql, const char *query)
{
	struct ow_error err = { 0 };
	ow_status status = ow_sql_write_parquet(sql, query, args->output.file, &err);

	if (status != OW_OK)
		complain("opwatch: %s\n", err.text);
	return status;
}

static ow_status run_query(struct args *args, ow_sql *sql, const char *query)
{
	struct sqlshell shell = { .sql = sql,
				  .terminal = args->terminal,
				  .sink = args->output.sink,
				  .limit = args->options.view.limit,
				  .pager = !args->output.no_pager && args->terminal.in };

	if (is_parquet(args))
		return write_parquet(args, sql, query);
	if (query)
		return sqlshell_run(&shell, str_from(query));
	printf("End a statement with ;. '.tables' lists tables, '.schema TABLE' columns; Tab "
	       "completes.\n");
	sqlshell_loop(&shell);
	return OW_OK;
}

static int run_on(struct args *args, const struct runs *runs, const char *query)
{
	const struct sql_args *own = args->own;
	struct ow_sql_options options;
	struct ow_error err = { 0 };
	ow_status status;
	ow_sql *sql;

	ow_sql_options_init(&options);
	options.memory_limit = args->input.open.memory_limit;
	options.temp_dir = own->temp_dir;
	options.threads = own->threads;
	options.allow_io = own->allow_io;
	options.keep_going = sqlshell_go_on;
	status = ow_sql_open(runs->items, runs->count, &options, &sql, &err);
	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	interrupts_catch(true);
	status = run_query(args, sql, query);
	interrupts_catch(false);
	ow_sql_close(sql);
	if (status == OW_E_USAGE)
		return EXIT_FAILED;
	return runs_finish_code(args, runs, status);
}

static bool check_output(const struct args *args)
{
	if (is_parquet(args) && (!args->output.file || strcmp(args->output.file, "-") == 0)) {
		complain("opwatch sql: --parquet needs -o FILE\n");
		return false;
	}
	if (!output_is_table(args)) {
		complain("opwatch sql: cannot write '%s'; the formats are text, json, csv, ndjson, "
			 "arrow, parquet\n",
			 args->output.sink);
		return false;
	}
	return true;
}

static bool check_query(const struct args *args)
{
	const struct sql_args *own = args->own;

	for (size_t i = 0; own->query_file && i < args->file_count; i++)
		if (is_query(args->files[i])) {
			complain("opwatch sql: two queries: give one, with -f %s or as a word\n",
				 own->query_file);
			return false;
		}
	return true;
}

/* Runs the statement, which is in the dialect of the server. */
static int run_remote(struct args *args)
{
	const struct sql_args *own = args->own;
	const char *text = NULL;

	if (own->query_file)
		text = read_text(args, own->query_file);
	else if (args->file_count == 1 && strcmp(args->files[0], "-") != 0)
		text = args->files[0];
	else if (args->file_count || !args->terminal.in)
		text = read_text(args, "-");
	if (text && (own->query_file || args->file_count < 2))
		return remote_run(args, text);
	complain("opwatch sql: --on needs one statement, in quotes or with -f FILE\n");
	return EXIT_USAGE;
}

static int run_sql(struct args *args)
{
	struct runs runs = { 0 };
	const char *query;
	int code = EXIT_FAILED;
	bool ask;

	if (!check_output(args) || !check_query(args))
		return EXIT_USAGE;
	if (args->run.server)
		return run_remote(args);
	query = find_query(args, &ask);
	if (!query && !ask)
		return EXIT_FAILED;
	if (query && sqlshell_is_dot(str_from(query)) &&
	    !str_has(str_trim(str_from(query)), STR("\n")))
		return sqlshell_dot(str_from(query)) == OW_OK ? EXIT_GOOD : EXIT_FAILED;
	if (!args->file_count && !args->run.given.count && query)
		return missing_file(args);
	if (runs_load(args, 0, &runs, &code))
		code = is_parquet(args) || output_redirect(args) ? run_on(args, &runs, query)
								 : EXIT_FAILED;
	runs_free(&runs);
	return code;
}

static const struct option options[] = {
	{ "file", 'f', STORE_TEXT(struct sql_args, query_file), .argument = "FILE",
	  .help = "read the query from FILE; - is standard input" },
	{ "allow-io", STORE_FLAG(struct sql_args, allow_io),
	  .help = "allow queries to read and write files" },
	{ "temp-dir", STORE_TEXT(struct sql_args, temp_dir), .argument = "DIR",
	  .help = "use this folder for data that does not fit in memory" },
	{ "threads", STORE_UINT32(struct sql_args, threads, 1, 1024), .argument = "N",
	  .help = "run a query on N threads", .usual = "all" },
};

const struct command cmd_sql = {
	.name = "sql",
	.usage = "FILE… [\"SELECT …\"] [-f FILE] [--csv|--parquet|…] [-o FILE]",
	.summary = "query in SQL: tables event, op, step, …",
	.help = "'opwatch sql .tables' lists the tables, '.schema TABLE' the columns of one. A\n"
		"query that is not given is read from standard input, or at a prompt. Times are\n"
		"nanoseconds. Queries only read.\n"
		"\n"
		"Several files are several runs, which differ in the column run. A directory or a\n"
		"quoted pattern is one run; so are files whose names differ in numbers only, and\n"
		"a graph with its run metadata.\n"
		"\n"
		"With --on clickhouse://USER@HOST:8123/DATABASE the server runs one statement, in\n"
		"its own dialect; see 'opwatch push --help'.\n",
	.examples = { "opwatch sql run.opw \"SELECT name, count(*) FROM event GROUP BY name\"",
		      "opwatch sql run.opw \"FROM step\" --csv" },
	.own = OPTIONS(options),
	.groups = { &output_options, &run_options, &server_options, &input_options },
	.own_size = sizeof(struct sql_args),
	.run = run_sql,
};
