/*
 * session.c: opens, locks down and closes a database in memory that contains the relations and nothing else, and
 * converts DuckDB's messages to ours.
 */
#include "opwatch_config.h"

#if OPWATCH_HAVE_DUCKDB

#include "base/nearest.h"
#include "sql/bigquery.h"
#include "sql/sql_int.h"

static const struct {
	const char *begin;
	ow_status status;
} kinds[] = {
	{ "INTERRUPT Error", OW_E_INTERRUPTED },
	{ "Out of Memory Error", OW_E_NO_MEMORY },
	{ "Permission Error", OW_E_PERMISSION },
	{ "Catalog Error", OW_E_NOT_FOUND },
	{ "IO Error", OW_E_IO },
	{ "INTERNAL Error", OW_E_INTERNAL },
	{ "FATAL Error", OW_E_INTERNAL },
};

/* The column of any of our tables whose name is most similar, or NULL. */
static const char *nearest_column(const struct sql *sql, struct str name)
{
	size_t least = nearest_limit(name);
	const char *best = NULL;

	for (const struct sql_table *table = sql->tables; table; table = table->next)
		for (uint32_t i = 0; i < table->t->column_count; i++)
			nearest_try(name, table->t->columns[i].name, &best, &least);
	return best;
}

/* For the errors "Scalar Function with name timestamp_diff does not exist!" and "… with name "host" is not in the catalog, but …": what to
 * write instead, or NULL. *known becomes the part of the text that names the function. */
static const char *instead_of(struct str text, struct str *known)
{
	static const struct str begin = STR("Function with name "),
				ends[] = { STR(" does not exist!"), STR(" is not in the "
									"catalog") };
	size_t at = str_find(text, begin);

	for (size_t i = 0; at != STR_NONE && i < ARRAY_COUNT(ends); i++) {
		struct str name = str_skip(text, at + begin.len);
		size_t length = str_find(name, ends[i]);

		if (length == STR_NONE)
			continue;
		*known = str_first(text, at + begin.len + length);
		name = str_trim(str_first(name, length));
		if (name.len > 2 && name.ptr[0] == '"')
			name = str_make(name.ptr + 1, name.len - 2);
		return bigquery_instead(name);
	}
	return NULL;
}

/* Converts a message. For an unknown column under a table's alias (e.nme) DuckDB does not list candidates, because
 * our tables are views; this adds the nearest one. */
static ow_status explain_error(const struct sql *sql, ow_status status, struct str text,
			       struct ow_error *err)
{
	static const struct str no_column = STR(" does not have a column named \"");
	size_t at = str_find(text, no_column);
	struct str rest, known = { 0 };
	const char *nearest = NULL, *instead = instead_of(text, &known);

	if (instead && !*instead)
		return error_set(err, status,
				 "%.*s does not exist!\nIt is a function of BigQuery, and DuckDB "
				 "has nothing like "
				 "it.",
				 STR_ARG(known));
	if (instead)
		return error_set(
			err, status,
			"%.*s does not exist!\nIt is a function of BigQuery; write %s instead.",
			STR_ARG(known), instead);
	if (str_has(text, STR("\"SAFE\"")) && str_has(text, STR("Referenced ")))
		return error_set(err, status,
				 "%.*s\nFor a function that fails, write TRY(F(X)) instead of "
				 "BigQuery's SAFE.F(X).",
				 STR_ARG(text));
	if (at != STR_NONE && !str_has(text, STR("Candidate"))) {
		rest = str_skip(text, at + no_column.len);
		at = str_find_char(rest, '"');
		nearest = nearest_column(sql, str_first(rest, at));
	}
	if (!nearest)
		return error_set(err, status, "%.*s", STR_ARG(text));
	rest = str_skip(rest, at + 1);
	return error_set(err, status, "%.*s\nDid you mean \"%s\"?%.*s",
			 STR_ARG(str_first(text, text.len - rest.len)), nearest, STR_ARG(rest));
}

ow_status sql_error(struct sql *sql, const char *message, struct ow_error *err)
{
	struct str text = str_trim(str_from(message ? message : ""));
	ow_status status = sql_streams_error(sql, err);

	if (status != OW_OK)
		return status;
	status = OW_E_USAGE;
	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
		if (str_starts(text, str_from(kinds[i].begin)))
			status = kinds[i].status;
	if (atomic_load(&sql->cancelled))
		status = OW_E_INTERRUPTED;
	if (status == OW_E_INTERRUPTED)
		return error_set(err, status, "the query was cancelled");
	if (status == OW_E_NO_MEMORY && str_has(text, STR("\nDatabase is launched")))
		text = str_first(text, str_find(text, STR("\nDatabase is launched")));
	if (status == OW_E_NO_MEMORY)
		return error_set(
			err, status,
			"%.*s\nTry a larger --memory-limit, or --temp-dir DIR for what does "
			"not fit.",
			STR_ARG(str_first(text, str_find(text, STR("\nPossible solutions")))));
	if (status == OW_E_PERMISSION)
		return error_set(err, status, "%.*s\nQueries may use files only with --allow-io.",
				 STR_ARG(text));
	if (!text.len)
		return error_set(err, OW_E_INTERNAL, "DuckDB failed without saying why");
	return explain_error(sql, status, text, err);
}

ow_status sql_run(struct sql *sql, const char *text, struct ow_error *err)
{
	duckdb_result result;
	ow_status status = OW_OK;

	if (sql->lib->query(sql->connection, text, &result) != DuckDBSuccess)
		status = sql_error(sql, sql->lib->result_error(&result), err);
	sql->lib->destroy_result(&result);
	return status;
}

struct setting {
	const char *name, *value;
};

/* Makes settings that must be made before the database is opened. */
static ow_status configure(struct sql *sql, duckdb_config config, struct ow_error *err)
{
	const struct sql_options *o = &sql->options;
	char threads[16], memory[32];
	const struct setting settings[] = {
		{ "autoinstall_known_extensions", "false" },
		{ "autoload_known_extensions", "false" },
		{ "temp_directory", o->temp_dir ? o->temp_dir : "" },
		{ "threads", o->threads ? threads : NULL },
		{ "memory_limit", o->memory_limit ? memory : NULL },
		{ "custom_user_agent", "opwatch" },
	};

	snprintf(threads, sizeof(threads), "%u", o->threads);
	snprintf(memory, sizeof(memory), "%" PRIu64 "B", o->memory_limit);
	for (size_t i = 0; i < ARRAY_COUNT(settings); i++)
		if (settings[i].value && sql->lib->set_config(config, settings[i].name,
							      settings[i].value) != DuckDBSuccess)
			return error_set(err, OW_E_USAGE, "DuckDB does not accept %s = %s",
					 settings[i].name, settings[i].value);
	return OW_OK;
}

static ow_status open_database(struct sql *sql, struct ow_error *err)
{
	duckdb_config config;
	char *message = NULL;
	ow_status status;

	if (sql->lib->create_config(&config) != DuckDBSuccess)
		return error_no_memory(err);
	status = configure(sql, config, err);
	if (status == OW_OK &&
	    sql->lib->open_ext(NULL, &sql->db, config, &message) != DuckDBSuccess) {
		status = sql_error(sql, message, err);
		sql->lib->free(message);
	}
	sql->lib->destroy_config(&config);
	OW_TRY(status);
	if (sql->lib->connect(sql->db, &sql->connection) != DuckDBSuccess)
		return error_set(err, OW_E_INTERNAL, "DuckDB does not connect");
	return OW_OK;
}

/* Locks the session: from here on queries can neither access files nor change this setting. */
static ow_status lock_down(struct sql *sql, struct ow_error *err)
{
	const struct sql_options *o = &sql->options;
	ow_status status;
	struct buf text;

	if (o->allow_io)
		return OW_OK;
	buf_init(&text, sql->mem);
	if (o->may_write) {
		buf_puts(&text, "SET allowed_paths = [");
		sql_quote(&text, str_from(o->may_write));
		buf_puts(&text, "]; ");
	}
	buf_puts(&text, "SET enable_external_access = false; SET lock_configuration = true");
	status = buf_cstr(&text) ? sql_run(sql, text.ptr, err) : error_no_memory(err);
	buf_release(&text);
	return status;
}

static ow_status copy_options(struct sql *sql, const struct table_run *runs, size_t count,
			      const struct sql_options *options, struct ow_error *err)
{
	const char **names = ARENA_ARRAY(&sql->arena, const char *, count + 1);

	sql->options = *options;
	sql->runs = ARENA_ARRAY(&sql->arena, struct table_run, count + 1);
	if (options->temp_dir)
		sql->options.temp_dir = arena_cstr(&sql->arena, str_from(options->temp_dir));
	if (options->may_write)
		sql->options.may_write = arena_cstr(&sql->arena, str_from(options->may_write));
	if (!sql->runs || !names || !sql->options.temp_dir != !options->temp_dir ||
	    !sql->options.may_write != !options->may_write)
		return error_no_memory(err);
	for (size_t i = 0; i < count; i++) {
		sql->runs[i] = runs[i];
		sql->runs[i].name = names[i] = arena_cstr(&sql->arena, str_from(runs[i].name));
		if (!names[i])
			return error_no_memory(err);
	}
	sql->run_count = count;
	sql->run_names = (struct ow_list){ names, count };
	return OW_OK;
}

static ow_status open_session(struct sql *sql, struct ow_error *err)
{
	OW_TRY(duckdb_lib_load(&sql->lib, err));
	OW_TRY(open_database(sql, err));
	OW_TRY(sql_register_tables(sql, err));
	OW_TRY(sql_register_arg(sql, err));
	OW_TRY(sql_register_format(sql, err));
	return lock_down(sql, err);
}

ow_status sql_open(const struct table_run *runs, size_t run_count,
		   const struct sql_options *options, struct mem *mem, struct sql **out,
		   struct ow_error *err)
{
	struct sql *sql = mem_zalloc(mem, sizeof(*sql));
	ow_status status;

	*out = NULL;
	if (!sql)
		return error_no_memory(err);
	sql->mem = mem;
	arena_init(&sql->arena, mem);
	pthread_mutex_init(&sql->lock, NULL);
	status = copy_options(sql, runs, run_count, options, err);
	if (status == OW_OK)
		status = open_session(sql, err);
	if (status != OW_OK) {
		sql_close(sql);
		return status;
	}
	*out = sql;
	return OW_OK;
}

void sql_wait_for_threads(struct sql *sql)
{
	duckdb_result result;

	sql->lib->interrupt(sql->connection);
	(void)sql->lib->query(sql->connection, "SELECT 1", &result);
	sql->lib->destroy_result(&result);
}

void sql_close(struct sql *sql)
{
	if (!sql)
		return;
	if (sql->connection)
		sql_wait_for_threads(sql);
	for (struct sql_dict *d = sql->dicts; d; d = d->next)
		sql->lib->destroy_vector(&d->vector);
	if (sql->connection)
		sql->lib->disconnect(&sql->connection);
	if (sql->db)
		sql->lib->close(&sql->db);
	sql_streams_free(sql);
	for (struct sql_table *table = sql->tables; table; table = table->next)
		table_free(table->t);
	pthread_mutex_destroy(&sql->lock);
	arena_release(&sql->arena);
	mem_free(sql->mem, sql, sizeof(*sql));
}

void sql_cancel(struct sql *sql)
{
	atomic_store(&sql->cancelled, true);
	sql->lib->interrupt(sql->connection);
}

ow_status sql_check(struct sql *sql, struct ow_error *err)
{
	for (struct sql_table *table = sql->tables; table; table = table->next)
		OW_TRY(table_check(table->t, err));
	return OW_OK;
}

#endif
