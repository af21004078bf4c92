/* cmd_sql.c: `opwatch sql FILE… "SELECT …"`: questions in SQL over one or more runs. */
#include "cli/command.h"
#include "cli/remote.h"
#include "cli/runs.h"
#include "cli/sqlshell.h"

#include <errno.h>
#include <glob.h>
#include <strings.h>
#include <unistd.h>

/* ---- which word is the query ---- */

static bool starts_like_sql(struct str text)
{
	static const char *const words[] = {
		"SELECT", "WITH",      "FROM",	 "SHOW",  "DESCRIBE", "DESC",	"EXPLAIN", "PRAGMA",
		"VALUES", "SUMMARIZE", "CREATE", "PIVOT", "UNPIVOT",  "COPY",	"SET",	   "INSERT",
		"DROP",	  "TABLE",     "ATTACH", "CALL",  "UPDATE",   "DELETE",
	};

	text = str_trim(text);
	if (str_starts(text, STR("--")) || str_starts(text, STR("/*")) ||
	    str_starts(text, STR("%%")) || str_starts(text, STR("(")))
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

/* Words with blanks between them that are no file, beside one: a misspelt statement, of which DuckDB says what is wrong. */
static bool may_be_query(const struct args *args, const char *word)
{
	return (args->file_count > 1 || args->given_runs.count) && strpbrk(word, " \t\n") &&
	       access(word, F_OK) != 0 && !is_pattern(word);
}

/* Takes the query out of the files. A lone ".schema" is followed by its table. */
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

/* All of a file, or of standard input. */
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

/* The text of the query; NULL with *ask set: there is a person to ask, else it was said what is wrong. */
static const char *find_query(struct args *args, bool *ask)
{
	const char *query = args->query_file ? NULL : take_query(args);

	*ask = false;
	if (query)
		return query;
	if (args->query_file)
		return read_text(args, args->query_file);
	/* A dash among files is where the query comes from. */
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

/* ---- running it ---- */

static ow_status write_parquet(struct args *args, ow_sql *sql, const char *query)
{
	struct ow_error err = { 0 };
	ow_status status = ow_sql_write_parquet(sql, query, args->out_file, &err);

	if (status != OW_OK)
		complain("opwatch: %s\n", err.text);
	return status;
}

static ow_status answer(struct args *args, ow_sql *sql, const char *query)
{
	struct sqlshell shell = { .sql = sql,
				  .terminal = args->terminal,
				  .sink = args->sink,
				  .limit = args->options.view.limit,
				  .pager = !args->no_pager && args->terminal.in };

	if (args->parquet)
		return write_parquet(args, sql, query);
	if (query)
		return sqlshell_run(&shell, str_from(query));
	printf("A statement ends with ;. '.tables' and '.schema TABLE' tell what there is, Tab "
	       "completes.\n");
	sqlshell_loop(&shell);
	return OW_OK;
}

static int run_on(struct args *args, const struct runs *runs, const char *query)
{
	struct ow_sql_options options;
	struct ow_error err = { 0 };
	ow_status status;
	ow_sql *sql;

	ow_sql_options_init(&options);
	options.memory_limit = args->open.memory_limit;
	options.temp_dir = args->temp_dir;
	options.threads = args->threads;
	options.allow_io = args->allow_io;
	options.progress = sqlshell_go_on;
	status = ow_sql_open(runs->items, runs->count, &options, &sql, &err);
	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	interrupts_catch(true);
	status = answer(args, sql, query);
	interrupts_catch(false);
	ow_sql_close(sql);
	return status == OW_OK ? runs_finish_code(args, runs, status) : EXIT_FAILED;
}

static bool check_output(const struct args *args)
{
	if (args->parquet && (!args->out_file || strcmp(args->out_file, "-") == 0)) {
		complain("opwatch sql: --parquet needs -o FILE\n");
		return false;
	}
	if (strcmp(args->sink, "text") != 0 && strcmp(args->sink, "json") != 0 &&
	    strcmp(args->sink, "csv") != 0) {
		complain("opwatch sql: results are written as text, json, csv or --parquet, not as "
			 "'%s'\n",
			 args->sink);
		return false;
	}
	return true;
}

static bool check_query(const struct args *args)
{
	for (size_t i = 0; args->query_file && i < args->file_count; i++)
		if (is_query(args->files[i])) {
			complain("opwatch sql: give the query once: with -f %s, or as a word\n",
				 args->query_file);
			return false;
		}
	return true;
}

/* The one word is the text, in whatever dialect the server speaks. */
static int run_remote(struct args *args)
{
	const char *text = NULL;

	if (args->query_file)
		text = read_text(args, args->query_file);
	else if (args->file_count == 1 && strcmp(args->files[0], "-") != 0)
		text = args->files[0];
	else if (args->file_count || !args->terminal.in)
		text = read_text(args, "-");
	if (text && (args->query_file || args->file_count < 2))
		return remote_run(args, text);
	complain("opwatch sql: with --on give one statement, in quotes or with -f FILE\n");
	return EXIT_USAGE;
}

static int run(struct args *args)
{
	struct runs runs = { 0 };
	const char *query;
	int code = EXIT_FAILED;
	bool ask;

	if (!check_output(args) || !check_query(args))
		return EXIT_USAGE;
	if (args->on)
		return run_remote(args);
	query = find_query(args, &ask);
	if (!query && !ask)
		return EXIT_FAILED;
	if (query && sqlshell_is_dot(str_from(query)) &&
	    !str_has(str_trim(str_from(query)), STR("\n")))
		return sqlshell_dot(str_from(query)) == OW_OK ? EXIT_GOOD : EXIT_FAILED;
	if (!args->file_count && !args->given_runs.count && query) {
		complain("opwatch sql: which file? Try 'opwatch help sql'.\n");
		return EXIT_USAGE;
	}
	if (runs_load(args, 0, &runs, &code))
		code = args->parquet || args_redirect(args) ? run_on(args, &runs, query)
							    : EXIT_FAILED;
	runs_free(&runs);
	return code;
}

const struct command cmd_sql = {
	.name = "sql",
	.usage = "FILE… [\"SELECT …\"] [-f FILE] [--json|--csv|--parquet -o FILE]",
	.summary = "ask in SQL: tables event, op, step, …",
	.help = "'opwatch sql .tables' lists the tables, '.schema TABLE' its columns. Without a\n"
		"query it is read from standard input, or asked for at a prompt. Several files\n"
		"are several runs, told apart by the column run: a directory or a quoted pattern\n"
		"is one run, files whose names differ in numbers only are one run, and so are a\n"
		"graph and its run metadata. Times are nanoseconds. Queries only read.\n\n"
		"With --on clickhouse://USER@HOST:8123/DATABASE one statement goes to a server as\n"
		"it is, in the server's dialect; see 'opwatch help push'.\n",
	.run = run,
};
