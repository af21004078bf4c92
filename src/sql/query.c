/*
 * query.c: runs statements and reads their results. A result is streamed: rows are computed as they are fetched, in
 * chunks of 2048, and become columns of five types. Values of other types (lists, timestamps, …) are cast to text by
 * DuckDB: the statement is wrapped in another one that casts them.
 */
#include "opwatch_config.h"

#if OPWATCH_HAVE_DUCKDB

#include "sql/bigquery.h"
#include "sql/sql_int.h"

#include <strings.h>
#include <time.h>

struct sql_script {
	struct sql *sql;
	struct arena arena; /* memory of the whole script */
	struct str text;    /* text of the script, rewritten by bigquery.c */
	duckdb_extracted_statements statements;
	idx_t count, next;
	/* State of the current statement. */
	struct arena columns_arena;
	duckdb_prepared_statement prepared;
	duckdb_result result;
	bool has_result;
	duckdb_data_chunk chunk;
	struct arena texts; /* memory for numbers of the chunk that were converted to text */
	struct table *rows; /* rows of the current chunk */
	bool has_rows;	    /* the statement returns rows, like SELECT */
	duckdb_type *types; /* DuckDB's types of the columns */
	uint8_t *scales;    /* scales of decimal columns */
	duckdb_type *internals;
	const char **logicals; /* types of the columns that were cast to text; NULL: none was */
	const struct sql_param *params;
	size_t param_count;
	/* for each parameter: whether a statement used it; NULL: there are no parameters */
	bool *used;
	bool json; /* lists and objects are converted to JSON */
};

/* Searches an ASCII word in a text, ignoring case. */
static bool mentions(struct str text, const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i + len <= text.len; i++)
		if (strncasecmp(text.ptr + i, word, len) == 0)
			return true;
	return false;
}

/* Runs a query of ours and returns the texts of its first column. */
static ow_status list_texts(struct sql_script *s, const char *query, struct ow_list *out,
			    struct ow_error *err)
{
	const struct duckdb_lib *lib = s->sql->lib;
	const char **items = NULL;
	size_t count = 0, room = 0;
	ow_status status = OW_OK;
	duckdb_data_chunk chunk;
	duckdb_result result;

	if (lib->query(s->sql->connection, query, &result) != DuckDBSuccess)
		status = sql_error(s->sql, lib->result_error(&result), err);
	while (status == OW_OK && (chunk = lib->fetch_chunk(result))) {
		uint32_t rows = (uint32_t)lib->data_chunk_get_size(chunk);
		const duckdb_string_t *texts =
			lib->vector_get_data(lib->data_chunk_get_vector(chunk, 0));

		if (!rows) {
			lib->destroy_data_chunk(&chunk);
			break;
		}
		if (count + rows > room) {
			const char **more =
				ARENA_ARRAY(&s->arena, const char *, room = 2 * room + rows);

			if (more && count)
				memcpy(more, items, count * sizeof(*more));
			items = more;
		}
		for (uint32_t i = 0; items && i < rows; i++) {
			items[count] = arena_cstr(&s->arena, sql_string(&texts[i]));
			if (!items[count++])
				items = NULL;
		}
		if (!items)
			status = error_no_memory(err);
		lib->destroy_data_chunk(&chunk);
	}
	lib->destroy_result(&result);
	*out = (struct ow_list){ items, count };
	return status;
}

/* Collects the names that a BigQuery query can use; other texts do not need it. */
static ow_status find_names(struct sql_script *s, struct str text, struct bigquery_names *names,
			    struct ow_error *err)
{
	*names = (struct bigquery_names){ .runs = s->sql->run_names };
	if (!str_has(text, STR("`")) && !mentions(text, "traceEvents"))
		return OW_OK;
	OW_TRY(list_texts(s, "SELECT path FROM source WHERE path IS NOT NULL", &names->files, err));
	return list_texts(s,
			  "SELECT table_name FROM duckdb_tables() WHERE NOT internal UNION ALL "
			  "SELECT view_name FROM duckdb_views() WHERE NOT internal AND NOT "
			  "starts_with(sql, format('CREATE VIEW {} AS SELECT * FROM {}()', "
			  "view_name, view_name))",
			  &names->tables, err);
}

/* Creates the BigQuery functions that the text uses, once. They are not created if the text itself defines
 * functions. */
static ow_status create_functions(struct sql *sql, const struct bigquery_names *names,
				  struct ow_error *err)
{
	uint64_t wanted = names->functions & ~sql->created;
	const char *create;

	if (!wanted || names->defines)
		return OW_OK;
	for (unsigned bit = 0; (create = bigquery_create(bit)); bit++)
		if (wanted >> bit & 1)
			OW_TRY(sql_run(sql, create, err));
	sql->created |= wanted;
	return OW_OK;
}

static ow_status rewrite(struct sql_script *s, struct str text, struct ow_error *err)
{
	struct bigquery_names names;
	ow_status status;
	struct buf buf;

	OW_TRY(find_names(s, text, &names, err));
	buf_init(&buf, s->sql->mem);
	status = bigquery_rewrite(text, &names, &s->arena, &buf, err);
	if (status == OW_OK) {
		s->text = arena_str(&s->arena, buf_str(&buf));
		status = s->text.ptr ? OW_OK : error_no_memory(err);
	}
	buf_release(&buf);
	return status == OW_OK ? create_functions(s->sql, &names, err) : status;
}

ow_status sql_parse(struct sql *sql, struct str text, struct sql_script **out, struct ow_error *err)
{
	struct sql_script *s = mem_zalloc(sql->mem, sizeof(*s));
	ow_status status;

	*out = NULL;
	if (!s)
		return error_no_memory(err);
	s->sql = sql;
	arena_init(&s->arena, sql->mem);
	arena_init(&s->columns_arena, sql->mem);
	arena_init(&s->texts, sql->mem);
	atomic_store(&sql->cancelled, false);
	status = rewrite(s, text, err);
	if (status == OW_OK) {
		s->count =
			sql->lib->extract_statements(sql->connection, s->text.ptr, &s->statements);
		if (!s->count && sql->lib->extract_statements_error(s->statements))
			status = sql_error(sql, sql->lib->extract_statements_error(s->statements),
					   err);
	}
	if (status != OW_OK) {
		sql_script_free(s);
		return status;
	}
	*out = s;
	return OW_OK;
}

static void end_statement(struct sql_script *s)
{
	const struct duckdb_lib *lib = s->sql->lib;

	if (s->chunk)
		lib->destroy_data_chunk(&s->chunk);
	if (s->has_result)
		lib->destroy_result(&s->result);
	if (s->prepared)
		lib->destroy_prepare(&s->prepared);
	s->chunk = NULL;
	s->has_result = false;
	s->prepared = NULL;
	s->logicals = NULL;
	table_free(s->rows);
	s->rows = NULL;
	arena_clear(&s->columns_arena);
	arena_clear(&s->texts);
}

void sql_script_free(struct sql_script *s)
{
	if (!s)
		return;
	end_statement(s);
	if (s->statements)
		s->sql->lib->destroy_extracted(&s->statements);
	arena_release(&s->texts);
	arena_release(&s->columns_arena);
	arena_release(&s->arena);
	mem_free(s->sql->mem, s, sizeof(*s));
}

/* The column type for a DuckDB type; TYPE_TEXT and *foreign for types that have to be cast to text. */
static enum column_type type_of(duckdb_type type, bool *foreign)
{
	*foreign = false;
	switch (type) {
	case DUCKDB_TYPE_BOOLEAN:
		return TYPE_BOOL;
	case DUCKDB_TYPE_TINYINT:
	case DUCKDB_TYPE_SMALLINT:
	case DUCKDB_TYPE_INTEGER:
	case DUCKDB_TYPE_BIGINT:
	case DUCKDB_TYPE_UTINYINT:
	case DUCKDB_TYPE_USMALLINT:
	case DUCKDB_TYPE_UINTEGER:
		return TYPE_INT;
	case DUCKDB_TYPE_UBIGINT:
	case DUCKDB_TYPE_HUGEINT:
	case DUCKDB_TYPE_UHUGEINT:
	case DUCKDB_TYPE_DECIMAL:
		return TYPE_NUMBER;
	case DUCKDB_TYPE_FLOAT:
	case DUCKDB_TYPE_DOUBLE:
		return TYPE_REAL;
	case DUCKDB_TYPE_VARCHAR:
		return TYPE_TEXT;
	default:
		*foreign = true;
		return TYPE_TEXT;
	}
}

/* The type that a column cast to text originally had, as a word for readers; NULL when it is just a text. */
static const char *logical_of(duckdb_type type)
{
	switch (type) {
	case DUCKDB_TYPE_TIMESTAMP:
	case DUCKDB_TYPE_TIMESTAMP_S:
	case DUCKDB_TYPE_TIMESTAMP_MS:
	case DUCKDB_TYPE_TIMESTAMP_NS:
		return "timestamp";
	case DUCKDB_TYPE_TIMESTAMP_TZ:
		return "timestamptz";
	case DUCKDB_TYPE_DATE:
		return "date";
	case DUCKDB_TYPE_TIME:
	case DUCKDB_TYPE_TIME_TZ:
		return "time";
	case DUCKDB_TYPE_INTERVAL:
		return "interval";
	case DUCKDB_TYPE_LIST:
	case DUCKDB_TYPE_ARRAY:
		return "list";
	case DUCKDB_TYPE_STRUCT:
	case DUCKDB_TYPE_MAP:
	case DUCKDB_TYPE_UNION:
		return "object";
	default:
		return NULL;
	}
}

/* The number of columns of the prepared statement, or of its result if it was run. */
static idx_t columns_in(struct sql_script *s)
{
	const struct duckdb_lib *lib = s->sql->lib;

	return s->has_result ? lib->column_count(&s->result)
			     : lib->prepared_statement_column_count(s->prepared);
}

static duckdb_type type_in(struct sql_script *s, idx_t i)
{
	const struct duckdb_lib *lib = s->sql->lib;

	return s->has_result ? lib->column_type(&s->result, i)
			     : lib->prepared_statement_column_type(s->prepared, i);
}

static void put_name_in(struct sql_script *s, idx_t i, struct buf *to)
{
	const struct duckdb_lib *lib = s->sql->lib;
	const char *name;

	if (s->has_result) {
		sql_quote_name(to, str_from(lib->column_name(&s->result, i)));
		return;
	}
	name = lib->prepared_statement_column_name(s->prepared, i);
	sql_quote_name(to, str_from(name));
	lib->free((void *)(uintptr_t)name);
}

/* Whether some column has a foreign type. The types of a result may depend on those of its parameters; then they are
 * unknown before the statement has run. */
static bool has_foreign(struct sql_script *s)
{
	idx_t count = columns_in(s);
	bool found = false;

	for (idx_t i = 0; i < count; i++) {
		duckdb_type type = type_in(s, i);
		bool foreign;

		if (type == DUCKDB_TYPE_INVALID)
			return false;
		type_of(type, &foreign);
		found |= foreign;
	}
	return found;
}

/* Wraps a statement: SELECT c0 AS "a", CAST(c1 AS VARCHAR) AS "b" FROM (…) AS t(c0, c1). */
static void put_wrapped(struct sql_script *s, struct str statement, struct buf *to)
{
	idx_t count = columns_in(s);

	for (idx_t i = 0; i < count; i++) {
		const char *logical;
		bool foreign;

		type_of(type_in(s, i), &foreign);
		logical = foreign ? logical_of(type_in(s, i)) : NULL;
		buf_puts(to, i ? ", " : "SELECT ");
		if (s->json && logical &&
		    (strcmp(logical, "list") == 0 || strcmp(logical, "object") == 0))
			buf_printf(to, "CAST(to_json(c%u) AS VARCHAR) AS ", (unsigned)i);
		else
			buf_printf(to, foreign ? "CAST(c%u AS VARCHAR) AS " : "c%u AS ",
				   (unsigned)i);
		put_name_in(s, i, to);
		if (s->logicals)
			s->logicals[i] = logical;
	}
	buf_puts(to, " FROM (");
	buf_add_str(to, statement);
	buf_puts(to, "\n) AS t(");
	for (idx_t i = 0; i < count; i++)
		buf_printf(to, "%sc%u", i ? "," : "", (unsigned)i);
	buf_puts(to, ")");
}

/* Wraps the only statement of the text to cast foreign types. When that is not possible, the statement is unchanged,
 * and foreign values appear as the name of their type. */
static ow_status wrap_foreign(struct sql_script *s, struct ow_error *err)
{
	const struct duckdb_lib *lib = s->sql->lib;
	duckdb_prepared_statement wrapped = NULL;
	struct str statement = bigquery_statement(s->text, s->next - 1);
	struct buf text;

	if (!statement.len || !has_foreign(s))
		return OW_OK;
	buf_init(&text, s->sql->mem);
	s->logicals = ARENA_ARRAY(&s->columns_arena, const char *, columns_in(s) + 1);
	put_wrapped(s, statement, &text);
	if (!buf_cstr(&text) || !s->logicals) {
		buf_release(&text);
		return error_no_memory(err);
	}
	if (lib->prepare(s->sql->connection, text.ptr, &wrapped) == DuckDBSuccess) {
		if (s->has_result)
			lib->destroy_result(&s->result);
		s->has_result = false;
		lib->destroy_prepare(&s->prepared);
		s->prepared = wrapped;
	} else {
		s->logicals = NULL;
		lib->destroy_prepare(&wrapped);
	}
	buf_release(&text);
	return OW_OK;
}

/* Whether a column has this name already: JSON and data frames find values by name, so a repeated name gets a
 * number: a, a_1. */
static bool is_taken(const struct table *t, uint32_t count, const char *name)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(t->columns[i].name, name) == 0)
			return true;
	return false;
}

static ow_status make_names_differ(struct table *t, struct ow_error *err)
{
	for (uint32_t i = 1; i < t->column_count; i++) {
		struct table_column *c = &t->columns[i];
		char *name = NULL;

		if (!is_taken(t, i, c->name))
			continue;
		for (unsigned k = 1; !name || is_taken(t, t->column_count, name); k++) {
			name = arena_printf(&t->arena, "%s_%u", c->name, k);
			if (!name)
				return error_no_memory(err);
		}
		c->name = c->title = name;
	}
	return OW_OK;
}

static ow_status add_column(struct sql_script *s, idx_t i, struct ow_error *err)
{
	const struct duckdb_lib *lib = s->sql->lib;
	duckdb_logical_type type = lib->column_logical_type(&s->result, i);
	struct table *t = s->rows;
	enum column_type ours;
	const char *name;
	bool foreign;

	s->types[i] = lib->get_type_id(type);
	if (s->types[i] == DUCKDB_TYPE_DECIMAL) {
		s->scales[i] = lib->decimal_scale(type);
		s->internals[i] = lib->decimal_internal_type(type);
	}
	lib->destroy_logical_type(&type);
	ours = type_of(s->types[i], &foreign);
	if (foreign)
		s->types[i] = DUCKDB_TYPE_INVALID;
	name = arena_cstr(&t->arena, str_from(lib->column_name(&s->result, i)));
	if (!name)
		return error_no_memory(err);
	table_add_column(t, name, name, ours, UNIT_NONE);
	if (s->logicals)
		t->columns[t->column_count - 1].logical = s->logicals[i];
	return OW_OK;
}

/* Makes the table of the result, with room for a chunk. */
static ow_status make_columns(struct sql_script *s, struct ow_error *err)
{
	const struct duckdb_lib *lib = s->sql->lib;
	struct arena *arena = &s->columns_arena;
	idx_t count = lib->column_count(&s->result), rows = lib->vector_size();

	s->rows = table_new(s->sql->mem, "sql", err);
	if (!s->rows)
		return OW_E_NO_MEMORY;
	if (count > TABLE_COLUMNS_MAX)
		return error_set(err, OW_E_LIMIT, "more than %d columns: name those you need",
				 TABLE_COLUMNS_MAX);
	s->types = ARENA_ARRAY(arena, duckdb_type, count + 1);
	s->internals = ARENA_ARRAY(arena, duckdb_type, count + 1);
	s->scales = ARENA_ARRAY(arena, uint8_t, count + 1);
	if (!s->types || !s->scales || !s->internals)
		return error_no_memory(err);
	for (idx_t i = 0; i < count; i++)
		OW_TRY(add_column(s, i, err));
	OW_TRY(make_names_differ(s->rows, err));
	if (!table_reserve(s->rows, (uint32_t)rows))
		return error_no_memory(err);
	for (uint32_t i = 0; i < s->rows->column_count; i++) {
		s->rows->columns[i].known = mem_zalloc(s->sql->mem, rows);
		if (!s->rows->columns[i].known)
			return error_no_memory(err);
	}
	s->has_rows = lib->result_return_type(s->result) == DUCKDB_RESULT_TYPE_QUERY_RESULT;
	return OW_OK;
}

bool sql_is_cancelled(struct sql *sql)
{
	if (sql->options.progress && !sql->options.progress(sql->options.progress_arg))
		atomic_store(&sql->cancelled, true);
	return atomic_load(&sql->cancelled);
}

/* Runs the statement in small pieces, between which it can be cancelled. */
static ow_status execute(struct sql_script *s, struct ow_error *err)
{
	struct sql *sql = s->sql;
	const struct duckdb_lib *lib = sql->lib;
	duckdb_pending_result pending = NULL;
	ow_status status = OW_OK;

	if (lib->pending_prepared_streaming(s->prepared, &pending) != DuckDBSuccess) {
		status = sql_error(sql, pending ? lib->pending_error(pending) : NULL, err);
		lib->destroy_pending(&pending);
		return status;
	}
	for (;;) {
		duckdb_pending_state state = lib->pending_execute_task(pending);

		if (state == DUCKDB_PENDING_ERROR) {
			status = sql_error(sql, lib->pending_error(pending), err);
			break;
		}
		if (lib->pending_execution_is_finished(state))
			break;
		if (sql_is_cancelled(sql)) {
			lib->interrupt(sql->connection);
			status = sql_error(sql, NULL, err);
			break;
		}
		/* Other threads do the work; polling without a pause would take processor time from them. */
		if (state == DUCKDB_PENDING_NO_TASKS_AVAILABLE)
			nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	}
	if (status == OW_OK) {
		s->has_result = true;
		if (lib->execute_pending(pending, &s->result) != DuckDBSuccess)
			status = sql_error(sql, lib->result_error(&s->result), err);
	}
	lib->destroy_pending(&pending);
	if (status != OW_OK)
		sql_wait_for_threads(sql);
	return status;
}

void sql_bind(struct sql_script *s, const struct sql_param *params, size_t count)
{
	s->params = params;
	s->param_count = count;
	s->used = ARENA_ARRAY(&s->arena, bool, count + 1);
}

const char *sql_unused(const struct sql_script *s)
{
	for (size_t i = 0; s->used && i < s->param_count; i++)
		if (!s->used[i])
			return s->params[i].name;
	return NULL;
}

void sql_use_json(struct sql_script *s)
{
	s->json = true;
}

static ow_status bind_one(struct sql_script *s, idx_t index, struct ow_error *err)
{
	const struct duckdb_lib *lib = s->sql->lib;
	const char *name = lib->parameter_name(s->prepared, index);
	ow_status status = OW_E_USAGE;

	for (size_t i = 0; name && i < s->param_count; i++)
		if (strcmp(s->params[i].name, name) == 0) {
			duckdb_value value;

			status = sql_value_of(lib, &s->params[i], &value, err);
			if (status != OW_OK) {
				lib->free((void *)(uintptr_t)name);
				return status;
			}
			if (s->used)
				s->used[i] = true;
			status = lib->bind_value(s->prepared, index, value) == DuckDBSuccess
					 ? OW_OK
					 : sql_error(s->sql, lib->prepare_error(s->prepared), err);
			lib->destroy_value(&value);
			break;
		}
	if (status == OW_E_USAGE && (!name || strspn(name, "0123456789") == strlen(name)))
		error_set(err, status, "the query has a parameter $%s (or ?) without a value",
			  name ? name : "1");
	else if (status == OW_E_USAGE)
		error_set(
			err, status,
			"the query has a parameter $%s that is not declared; write its value "
			"instead, or, in a named query, '-- param %s text DEFAULT: what it means'",
			name, name);
	lib->free((void *)(uintptr_t)name);
	return status;
}

static ow_status bind_all(struct sql_script *s, struct ow_error *err)
{
	idx_t count = s->sql->lib->nparams(s->prepared);

	for (idx_t i = 1; i <= count; i++)
		OW_TRY(bind_one(s, i, err));
	return OW_OK;
}

/* Whether a query with parameters may run twice: once to find its types, and again with foreign types cast. */
static bool is_read_only(const struct sql_script *s)
{
	struct str statement = bigquery_statement(s->text, s->next - 1);
	struct str word = bigquery_first_word(statement);

	return s->sql->lib->nparams(s->prepared) &&
	       ((word.len == 6 && strncasecmp(word.ptr, "SELECT", 6) == 0) ||
		(word.len == 4 && strncasecmp(word.ptr, "FROM", 4) == 0) ||
		(word.len == 4 && strncasecmp(word.ptr, "WITH", 4) == 0 &&
		 !mentions(statement, "INSERT") && !mentions(statement, "UPDATE") &&
		 !mentions(statement, "DELETE")));
}

static ow_status start_statement(struct sql_script *s, struct ow_error *err)
{
	const struct duckdb_lib *lib = s->sql->lib;

	if (lib->prepare_extracted_statement(s->sql->connection, s->statements, s->next++,
					     &s->prepared) != DuckDBSuccess)
		return sql_error(s->sql, lib->prepare_error(s->prepared), err);
	OW_TRY(wrap_foreign(s, err));
	OW_TRY(bind_all(s, err));
	OW_TRY(execute(s, err));
	if (is_read_only(s) && has_foreign(s)) {
		OW_TRY(wrap_foreign(s, err));
		if (!s->has_result) {
			OW_TRY(bind_all(s, err));
			OW_TRY(execute(s, err));
		}
	}
	return make_columns(s, err);
}

static bool returns_rows(struct str statement)
{
	static const char *const others[] = {
		"CREATE",  "SET",	 "RESET",      "INSERT",  "COPY",    "DROP",	 "UPDATE",
		"DELETE",  "ATTACH",	 "USE",	       "BEGIN",	  "COMMIT",  "ALTER",	 "DETACH",
		"LOAD",	   "INSTALL",	 "ROLLBACK",   "EXPORT",  "IMPORT",  "TRUNCATE", "VACUUM",
		"ANALYZE", "CHECKPOINT", "DEALLOCATE", "PREPARE", "COMMENT", "MERGE",
	};
	struct str word = bigquery_first_word(statement);

	for (size_t i = 0; i < ARRAY_COUNT(others); i++)
		if (word.len == strlen(others[i]) &&
		    strncasecmp(word.ptr, others[i], word.len) == 0)
			return mentions(statement, "RETURNING");
	return true;
}

size_t sql_results(const struct sql_script *s)
{
	size_t count = 0;
	struct str statement;

	for (size_t i = 0; (statement = bigquery_statement(s->text, i)).len; i++)
		count += returns_rows(statement);
	return count;
}

ow_status sql_step(struct sql_script *s, struct table **rows, struct ow_error *err)
{
	struct guard guard;
	ow_status status = OW_OK;

	*rows = NULL;
	do {
		end_statement(s);
		s->has_rows = false;
		if (s->next >= s->count)
			return OW_OK;
		/* The columns of opwatch files are mapped, and DuckDB's threads read texts there, so a guard is
		 * needed. */
		guard_enter(&guard);
		status = start_statement(s, err);
		guard_leave(&guard);
		OW_TRY(status);
	} while (!s->has_rows);
	*rows = s->rows;
	return OW_OK;
}

static int64_t int_at(duckdb_type type, const void *data, uint32_t i)
{
	switch (type) {
	case DUCKDB_TYPE_BOOLEAN:
	case DUCKDB_TYPE_UTINYINT:
		return ((const uint8_t *)data)[i];
	case DUCKDB_TYPE_TINYINT:
		return ((const int8_t *)data)[i];
	case DUCKDB_TYPE_SMALLINT:
		return ((const int16_t *)data)[i];
	case DUCKDB_TYPE_USMALLINT:
		return ((const uint16_t *)data)[i];
	case DUCKDB_TYPE_INTEGER:
		return ((const int32_t *)data)[i];
	case DUCKDB_TYPE_UINTEGER:
		return ((const uint32_t *)data)[i];
	default:
		return ((const int64_t *)data)[i];
	}
}

/* The exact digits of value × 10^-scale. */
static struct str digits_of(struct arena *arena, bool negative, unsigned __int128 value,
			    unsigned scale)
{
	char text[64];
	size_t at = sizeof(text);

	for (unsigned place = 0; value || place <= scale; place++) {
		if (place == scale && scale)
			text[--at] = '.';
		text[--at] = (char)('0' + (int)(value % 10));
		value /= 10;
	}
	if (negative)
		text[--at] = '-';
	return arena_str(arena, str_make(text + at, sizeof(text) - at));
}

static struct str number_at(struct sql_script *s, idx_t column, const void *data, uint32_t i)
{
	duckdb_type type = s->types[column];
	bool is_signed = true;
	__int128 value;

	if (type == DUCKDB_TYPE_DECIMAL)
		type = s->internals[column];
	if (type == DUCKDB_TYPE_HUGEINT) {
		duckdb_hugeint huge = ((const duckdb_hugeint *)data)[i];

		value = (__int128)((unsigned __int128)(__int128)huge.upper << 64 | huge.lower);
	} else if (type == DUCKDB_TYPE_UHUGEINT) {
		duckdb_uhugeint huge = ((const duckdb_uhugeint *)data)[i];

		value = (__int128)((unsigned __int128)huge.upper << 64 | huge.lower);
		is_signed = false;
	} else if (type == DUCKDB_TYPE_UBIGINT) {
		value = ((const uint64_t *)data)[i];
	} else {
		value = int_at(type, data, i);
	}
	if (is_signed && value < 0)
		return digits_of(&s->texts, true, -(unsigned __int128)value, s->scales[column]);
	return digits_of(&s->texts, false, (unsigned __int128)value, s->scales[column]);
}

static void read_known(const uint64_t *validity, uint32_t n, uint8_t *known)
{
	for (uint32_t i = 0; i < n; i++)
		known[i] = !validity || (validity[i / 64] >> i % 64 & 1);
}

static ow_status read_values(struct sql_script *s, idx_t column, const void *data, uint32_t n,
			     struct ow_error *err)
{
	struct table_column *c = &s->rows->columns[column];
	duckdb_type type = s->types[column];

	for (uint32_t i = 0; i < n; i++) {
		if (!c->known[i]) {
			if (c->type == TYPE_TEXT || c->type == TYPE_NUMBER)
				c->texts[i] = STR("");
			continue;
		}
		if (type == DUCKDB_TYPE_INVALID) {
			c->texts[i] = STR("(a value without a text form)");
		} else if (c->type == TYPE_TEXT) {
			c->texts[i] = sql_string((const duckdb_string_t *)data + i);
		} else if (c->type == TYPE_NUMBER) {
			c->texts[i] = number_at(s, column, data, i);
			if (!c->texts[i].ptr)
				return error_no_memory(err);
		} else if (type == DUCKDB_TYPE_FLOAT) {
			c->reals[i] = (double)((const float *)data)[i];
		} else if (c->type == TYPE_REAL) {
			c->reals[i] = ((const double *)data)[i];
		} else {
			c->ints[i] = int_at(type, data, i);
		}
	}
	return OW_OK;
}

static ow_status fetch(struct sql_script *s, struct ow_error *err)
{
	const struct duckdb_lib *lib = s->sql->lib;
	uint32_t rows;

	if (s->chunk)
		lib->destroy_data_chunk(&s->chunk);
	arena_clear(&s->texts);
	if (sql_is_cancelled(s->sql))
		return sql_error(s->sql, NULL, err);
	s->chunk = lib->fetch_chunk(s->result);
	if (!s->chunk) {
		const char *message = lib->result_error(&s->result);

		if (message && *message)
			return sql_error(s->sql, message, err);
		return sql_check(s->sql, err);
	}
	rows = (uint32_t)lib->data_chunk_get_size(s->chunk);
	for (idx_t i = 0; i < s->rows->column_count; i++) {
		duckdb_vector vector = lib->data_chunk_get_vector(s->chunk, i);

		read_known(lib->vector_get_validity(vector), rows, s->rows->columns[i].known);
		OW_TRY(read_values(s, i, lib->vector_get_data(vector), rows, err));
	}
	s->rows->row_count = rows;
	return OW_OK;
}

ow_status sql_fetch(struct sql_script *s, struct ow_error *err)
{
	struct guard guard;
	ow_status status;

	s->rows->row_count = 0;
	guard_enter(&guard);
	status = fetch(s, err);
	guard_leave(&guard);
	return status;
}

ow_status sql_copy_parquet(struct sql *sql, struct str text, const char *path, struct ow_error *err)
{
	struct sql_script *script;
	struct table *rows;
	ow_status status;
	struct buf copy;

	text = bigquery_body(text);
	if (bigquery_statement(text, 1).len)
		return error_set(err, OW_E_USAGE, "a Parquet file holds the result of one query");
	buf_init(&copy, sql->mem);
	buf_puts(&copy, "COPY (");
	buf_add_str(&copy, bigquery_statement(text, 0));
	buf_puts(&copy, "\n) TO ");
	sql_quote(&copy, str_from(path));
	buf_puts(&copy, " (FORMAT parquet, COMPRESSION zstd)");
	status = copy.failed ? error_no_memory(err) : sql_parse(sql, buf_str(&copy), &script, err);
	buf_release(&copy);
	OW_TRY(status);
	status = sql_step(script, &rows, err);
	sql_script_free(script);
	return status == OW_OK ? sql_check(sql, err) : status;
}

#endif
