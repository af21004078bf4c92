/*
 * questions.c: the routes of the pages SQL and Compare: statements of the user, named queries, and the tables that they
 * can use. Each request has its own session that can only read the tables; time, memory and the size of the answer are
 * limited.
 */
#include "page/page_int.h"

#include "base/clock.h"
#include "base/json_escape.h"
#include "opwatch/sql.h"

#include <errno.h>
#include <unistd.h>

#define SECONDS_MOST 60
#define ANSWER_MOST ((size_t)48 << 20)
#define MEMORY_MOST ((uint64_t)4 << 30)
#define PARAMS_MOST 32

/* Makes runs from the profile and the profile that it is compared with. */
static size_t make_runs(const struct ow_ui *ui, struct ow_run runs[2])
{
	size_t count = 0;

	if (ui->base)
		runs[count++] = (struct ow_run){ ui->base, "base" };
	runs[count++] = (struct ow_run){ ui->profile, ui->base ? "new" : "run" };
	return count;
}

struct limits {
	const struct ow_ui *ui; /* queries are cancelled when this page closes */
	int64_t deadline_ns;
	struct buf *to;
	bool too_long, too_large;
};

static struct limits limits_of(const struct ow_ui *ui, struct buf *to)
{
	return (struct limits){ .ui = ui,
				.deadline_ns = steady_ns() + (int64_t)SECONDS_MOST * 1000000000,
				.to = to };
}

static bool keep_going(void *arg)
{
	struct limits *limits = arg;

	limits->too_long |= steady_ns() > limits->deadline_ns;
	return !limits->too_long && !atomic_load(&limits->ui->cancelled);
}

static bool write_limited(void *arg, const void *bytes, size_t len)
{
	struct limits *limits = arg;

	limits->too_large |= limits->to->len + len > ANSWER_MOST;
	return !limits->too_large && page_write(limits->to, bytes, len);
}

static void answer_status(struct server_reply *reply, ow_status status, const struct limits *limits,
			  const struct ow_error *err)
{
	if (limits->too_long)
		server_fail(reply, 408, "the query took more than %d seconds and was cancelled",
			    SECONDS_MOST);
	else if (limits->too_large)
		server_fail(reply, 413, "the answer is larger than %zu MB: add a LIMIT",
			    ANSWER_MOST >> 20);
	else if (status != OW_OK) /* an error in the statement is the user's */
		page_fail(reply, status == OW_E_UNSUPPORTED ? status : OW_E_USAGE, err);
}

/* Writes the answer as a Parquet file. DuckDB writes to a path, so a temporary folder is used that only this user
 * can enter. */
static ow_status write_parquet(ow_sql *sql, const char *text, struct server_reply *reply,
			       struct ow_error *err)
{
	const char *parent = getenv("TMPDIR");
	char folder[512], path[sizeof(folder) + 16];
	ow_status status;

	if (!parent || !*parent || strlen(parent) > sizeof(folder) - 64)
		parent = "/tmp";
	(void)snprintf(folder, sizeof(folder), "%s/opwatch-sql-XXXXXX", parent);
	if (!mkdtemp(folder))
		return error_errno(err, errno, "%s", folder);
	(void)snprintf(path, sizeof(path), "%s/answer.parquet", folder);
	status = ow_sql_write_parquet(sql, text, path, err);
	if (status == OW_OK && !page_send_file(reply, path))
		status = error_errno(err, errno, "%s", path);
	(void)unlink(path);
	(void)rmdir(folder);
	return status;
}

/* With ?format=csv or parquet the answer is a file to save; without it, JSON for the page. */
PAGE_HANDLER(sql)
{
	const char *format = server_param(request, "format");
	struct ow_ui *u = ui;
	struct limits limits = limits_of(u, &reply->body);
	struct ow_sql_options options;
	struct ow_write_options write;
	struct ow_error err = { 0 };
	struct ow_run runs[2];
	struct arena arena;
	const char *text;
	ow_sql *sql = NULL;
	ow_status status;

	if (!page_ready(u, reply))
		return;
	arena_init(&arena, &u->mem);
	text = arena_cstr(&arena, request->body);
	ow_sql_options_init(&options);
	ow_write_options_init(&write);
	options.memory_limit = MEMORY_MOST;
	options.keep_going = keep_going;
	options.keep_going_arg = &limits;
	status = text ? ow_sql_open(runs, make_runs(u, runs), &options, &sql, &err)
		      : error_no_memory(&err);
	if (status == OW_OK && format && strcmp(format, "parquet") == 0) {
		status = write_parquet(sql, text, reply, &err);
	} else if (status == OW_OK && format && strcmp(format, "csv") == 0) {
		reply->type = "text/csv; charset=utf-8";
		status = ow_sql_write(sql, text, "csv", &write, write_limited, &limits, &err);
	} else if (status == OW_OK) {
		status = ow_sql_write(sql, text, "json", &write, write_limited, &limits, &err);
	}
	answer_status(reply, status, &limits, &err);
	ow_sql_close(sql);
	arena_release(&arena);
}

struct listing {
	struct buf *to;
	bool first;
};

static void add_column(void *arg, const struct ow_relation_column *column)
{
	struct listing *listing = arg;

	buf_puts(listing->to, listing->first ? "" : ", ");
	listing->first = false;
	buf_puts(listing->to, "{\"name\": ");
	json_quote(listing->to, str_from(column->name));
	buf_puts(listing->to, ", \"type\": ");
	json_quote(listing->to, str_from(column->type));
	buf_puts(listing->to, ", \"doc\": ");
	json_quote(listing->to, str_from(column->doc));
	buf_puts(listing->to, "}");
}

PAGE_HANDLER(tables)
{
	struct ow_part_info info = { .size = sizeof(info) };
	struct buf *to = &reply->body;
	struct ow_error err = { 0 };

	(void)ui;
	(void)request;
	buf_puts(to, "[");
	for (size_t i = 0; ow_relation_info(i, &info); i++) {
		struct listing listing = { to, true };

		buf_puts(to, i ? ",\n{\"name\": " : "\n{\"name\": ");
		json_quote(to, str_from(info.name));
		buf_puts(to, ", \"doc\": ");
		json_quote(to, str_from(info.summary));
		buf_puts(to, ", \"columns\": [");
		(void)!ow_relation_columns(info.name, add_column, &listing, &err);
		buf_puts(to, "]}");
	}
	buf_puts(to, "]\n");
}

static void add_params(struct buf *to, const ow_queries *queries, const struct ow_query_info *query)
{
	struct ow_query_param param = { .size = sizeof(param) };

	for (size_t i = 0; ow_queries_param(queries, query->name, i, &param); i++) {
		buf_puts(to, i ? ", {\"name\": " : "{\"name\": ");
		json_quote(to, str_from(param.name));
		buf_puts(to, ", \"type\": ");
		json_quote(to, str_from(param.type));
		buf_puts(to, ", \"usual\": ");
		json_quote(to, str_from(param.usual));
		buf_puts(to, ", \"doc\": ");
		json_quote(to, str_from(param.doc));
		buf_puts(to, "}");
	}
}

PAGE_HANDLER(queries)
{
	struct ow_query_info info = { .size = sizeof(info) };
	struct buf *to = &reply->body;
	struct ow_error err = { 0 };
	ow_queries *queries = NULL;
	ow_status status = ow_queries_open(NULL, &queries, &err);

	(void)ui;
	(void)request;
	if (status != OW_OK) {
		page_fail(reply, status, &err);
		return;
	}
	buf_puts(to, "[");
	for (size_t i = 0; ow_queries_at(queries, i, &info); i++) {
		buf_puts(to, i ? ",\n{\"name\": " : "\n{\"name\": ");
		json_quote(to, str_from(info.name));
		buf_puts(to, ", \"title\": ");
		json_quote(to, str_from(info.title));
		buf_puts(to, ", \"doc\": ");
		json_quote(to, str_from(info.doc ? info.doc : ""));
		buf_puts(to, ", \"sql\": ");
		json_quote(to, str_from(info.sql));
		buf_puts(to, ", \"params\": [");
		add_params(to, queries, &info);
		buf_puts(to, "]}");
	}
	buf_puts(to, "]\n");
	ow_queries_free(queries);
}

/* The body of the request: the name of a query, then a line name=value for each parameter that differs from its
 * default. */
PAGE_HANDLER(ask)
{
	struct ow_ui *u = ui;
	struct limits limits = limits_of(u, &reply->body);
	const char *params[PARAMS_MOST];
	struct str rest = request->body, line;
	struct ow_ask_options options;
	struct ow_write_options write;
	struct ow_error err = { 0 };
	struct ow_run runs[2];
	struct arena arena;
	const char *name = NULL;
	ow_queries *queries = NULL;
	ow_result *result = NULL;
	size_t count = 0;
	ow_status status;

	if (!page_ready(u, reply))
		return;
	arena_init(&arena, &u->mem);
	ow_ask_options_init(&options);
	ow_write_options_init(&write);
	if (str_split(&rest, '\n', &line))
		name = arena_cstr(&arena, line);
	while (count < PARAMS_MOST && str_split(&rest, '\n', &line)) {
		params[count] = line.len ? arena_cstr(&arena, line) : NULL;
		count += params[count] != NULL;
	}
	options.params = (struct ow_list){ params, count };
	options.memory_limit = MEMORY_MOST;
	options.keep_going = keep_going;
	options.keep_going_arg = &limits;
	status = ow_queries_open(NULL, &queries, &err);
	if (status == OW_OK)
		status = ow_ask(queries, name ? name : "", runs, make_runs(u, runs), &options,
				&result, &err);
	if (status == OW_OK)
		status = ow_result_write(result, "json", &write, write_limited, &limits, &err);
	answer_status(reply, status, &limits, &err);
	ow_result_free(result);
	ow_queries_free(queries);
	arena_release(&arena);
}
