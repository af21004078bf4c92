/*
 * query.c: statements and their results. A result is streamed: rows are made as they are fetched, in chunks of
 * 2048, and become plain columns of five types. Types that are none of ours (lists, timestamps, …) are cast to
 * text by DuckDB itself: the statement is wrapped in another that does so.
 */
#include "opwatch_config.h"

#if OPWATCH_HAVE_DUCKDB

#include "sql/bigquery.h"
#include "sql/quote.h"
#include "sql/sql_int.h"

#include <time.h>

struct sql_script {
	struct sql *sql;
	struct arena arena; /* of the script */
	struct str text;    /* rewritten */
	duckdb_extracted_statements statements;
	idx_t count, next;
	/* the statement that is being run */
	struct arena columns_arena;
	duckdb_prepared_statement prepared;
	duckdb_result result;
	bool has_result;
	duckdb_data_chunk chunk;
	struct arena texts; /* numbers of the chunk that were made text */
	struct sql_column *columns;
	duckdb_type *types; /* DuckDB's, of the columns */
	uint8_t *scales;    /* of decimals */
	duckdb_type *internals;
	struct sql_result info;
	const struct sql_param *params;
	size_t param_count;
};

/* ---- parsing ---- */

ow_status sql_parse(struct sql *sql, struct str text, struct sql_script **out, struct error *err)
{
	struct sql_script *s = mem_zalloc(sql->mem, sizeof(*s));
	ow_status status;
	struct buf buf;

	*out = NULL;
	if (!s)
		return error_no_memory(err);
	s->sql = sql;
	arena_init(&s->arena, sql->mem);
	arena_init(&s->columns_arena, sql->mem);
	arena_init(&s->texts, sql->mem);
	buf_init(&buf, sql->mem);
	status = bigquery_rewrite(text, &sql->run_names, &s->arena, &buf, err);
	if (status == OW_OK) {
		s->text = arena_str(&s->arena, buf_str(&buf));
		status = s->text.ptr ? OW_OK : error_no_memory(err);
	}
	buf_release(&buf);
	atomic_store(&sql->cancelled, false);
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

/* ---- columns of a result ---- */

/* SQL_TEXT for what has to be cast to become text. */
static enum sql_type type_of(duckdb_type type, bool *foreign)
{
	*foreign = false;
	switch (type) {
	case DUCKDB_TYPE_BOOLEAN:
		return SQL_BOOL;
	case DUCKDB_TYPE_TINYINT:
	case DUCKDB_TYPE_SMALLINT:
	case DUCKDB_TYPE_INTEGER:
	case DUCKDB_TYPE_BIGINT:
	case DUCKDB_TYPE_UTINYINT:
	case DUCKDB_TYPE_USMALLINT:
	case DUCKDB_TYPE_UINTEGER:
		return SQL_INT;
	case DUCKDB_TYPE_UBIGINT:
	case DUCKDB_TYPE_HUGEINT:
	case DUCKDB_TYPE_UHUGEINT:
	case DUCKDB_TYPE_DECIMAL:
		return SQL_NUMBER;
	case DUCKDB_TYPE_FLOAT:
	case DUCKDB_TYPE_DOUBLE:
		return SQL_REAL;
	case DUCKDB_TYPE_VARCHAR:
		return SQL_TEXT;
	default:
		*foreign = true;
		return SQL_TEXT;
	}
}

/* True when some column of the prepared statement is of a foreign type. What a statement gives may depend on the
 * types of its parameters; then nothing is known yet, and it stays as it is. */
static bool has_foreign(const struct sql_script *s)
{
	const struct duckdb_lib *lib = s->sql->lib;
	idx_t count = lib->prepared_statement_column_count(s->prepared);
	bool found = false;

	for (idx_t i = 0; i < count; i++) {
		duckdb_type type = lib->prepared_statement_column_type(s->prepared, i);
		bool foreign;

		if (type == DUCKDB_TYPE_INVALID)
			return false;
		type_of(type, &foreign);
		found |= foreign;
	}
	return found;
}

/* SELECT c0 AS "a", CAST(c1 AS VARCHAR) AS "b" FROM (…) AS t(c0, c1) */
static void put_wrapped(const struct sql_script *s, struct str statement, struct buf *to)
{
	const struct duckdb_lib *lib = s->sql->lib;
	idx_t count = lib->prepared_statement_column_count(s->prepared);

	for (idx_t i = 0; i < count; i++) {
		const char *name = lib->prepared_statement_column_name(s->prepared, i);
		bool foreign;

		type_of(lib->prepared_statement_column_type(s->prepared, i), &foreign);
		buf_printf(to, foreign ? "%s CAST(c%u AS VARCHAR) AS " : "%s c%u AS ",
			   i ? "," : "SELECT", (unsigned)i);
		sql_quote_name(to, str_from(name));
		lib->free((void *)(uintptr_t)name);
	}
	buf_puts(to, " FROM (");
	buf_add_str(to, statement);
	buf_puts(to, "\n) AS t(");
	for (idx_t i = 0; i < count; i++)
		buf_printf(to, "%sc%u", i ? "," : "", (unsigned)i);
	buf_puts(to, ")");
}

/* Foreign types are cast by a statement around the only one of the text. When that cannot be done, the statement stays
 * and its foreign values are shown by the name of their type. */
static ow_status wrap_foreign(struct sql_script *s, struct error *err)
{
	const struct duckdb_lib *lib = s->sql->lib;
	duckdb_prepared_statement wrapped = NULL;
	struct str statement = bigquery_statement(s->text, s->next - 1);
	struct buf text;

	if (!statement.len || !has_foreign(s))
		return OW_OK;
	buf_init(&text, s->sql->mem);
	put_wrapped(s, statement, &text);
	if (!buf_cstr(&text)) {
		buf_release(&text);
		return error_no_memory(err);
	}
	if (lib->prepare(s->sql->connection, text.ptr, &wrapped) == DuckDBSuccess) {
		lib->destroy_prepare(&s->prepared);
		s->prepared = wrapped;
	} else {
		lib->destroy_prepare(&wrapped);
	}
	buf_release(&text);
	return OW_OK;
}

static ow_status make_columns(struct sql_script *s, struct error *err)
{
	const struct duckdb_lib *lib = s->sql->lib;
	struct arena *arena = &s->columns_arena;
	idx_t count = lib->column_count(&s->result), rows = lib->vector_size();

	s->columns = ARENA_ARRAY(arena, struct sql_column, count + 1);
	s->types = ARENA_ARRAY(arena, duckdb_type, count + 1);
	s->internals = ARENA_ARRAY(arena, duckdb_type, count + 1);
	s->scales = ARENA_ARRAY(arena, uint8_t, count + 1);
	if (!s->columns || !s->types || !s->scales || !s->internals)
		return error_no_memory(err);
	for (idx_t i = 0; i < count; i++) {
		struct sql_column *c = &s->columns[i];
		duckdb_logical_type type = lib->column_logical_type(&s->result, i);
		bool foreign;

		s->types[i] = lib->get_type_id(type);
		if (s->types[i] == DUCKDB_TYPE_DECIMAL) {
			s->scales[i] = lib->decimal_scale(type);
			s->internals[i] = lib->decimal_internal_type(type);
		}
		lib->destroy_logical_type(&type);
		c->name = arena_cstr(arena, str_from(lib->column_name(&s->result, i)));
		c->type = type_of(s->types[i], &foreign);
		if (foreign)
			s->types[i] = DUCKDB_TYPE_INVALID;
		c->known = ARENA_ARRAY(arena, uint8_t, rows);
		if (c->type == SQL_TEXT || c->type == SQL_NUMBER)
			c->texts = ARENA_ARRAY(arena, struct str, rows);
		else if (c->type == SQL_REAL)
			c->reals = ARENA_ARRAY(arena, double, rows);
		else
			c->ints = ARENA_ARRAY(arena, int64_t, rows);
		if (!c->name || !c->known || !c->ints)
			return error_no_memory(err);
	}
	OW_TRY(sql_unique_names(s->columns, count, arena, err));
	s->info = (struct sql_result){ s->columns, (uint32_t)count,
				       lib->result_return_type(s->result) ==
					       DUCKDB_RESULT_TYPE_QUERY_RESULT };
	return OW_OK;
}

/* ---- running ---- */

bool sql_is_cancelled(struct sql *sql)
{
	if (sql->options.progress && !sql->options.progress(sql->options.progress_arg))
		atomic_store(&sql->cancelled, true);
	return atomic_load(&sql->cancelled);
}

/* Does the work in small pieces, so that it can be cancelled between them. */
static ow_status execute(struct sql_script *s, struct error *err)
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
		/* Other threads have the work; asking again and again would take a processor from them. */
		if (state == DUCKDB_PENDING_NO_TASKS_AVAILABLE)
			nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	}
	if (status == OW_OK) {
		s->has_result = true;
		if (lib->execute_pending(pending, &s->result) != DuckDBSuccess)
			status = sql_error(sql, lib->result_error(&s->result), err);
	}
	lib->destroy_pending(&pending);
	return status;
}

void sql_bind(struct sql_script *s, const struct sql_param *params, size_t count)
{
	s->params = params;
	s->param_count = count;
}

static duckdb_value value_of(const struct duckdb_lib *lib, const struct sql_param *param)
{
	switch (param->type) {
	case SQL_BOOL:
		return lib->create_bool(param->number != 0);
	case SQL_INT:
		return lib->create_int64(param->number);
	case SQL_REAL:
		return lib->create_double(param->real);
	default:
		return lib->create_varchar_length(param->text.ptr ? param->text.ptr : "",
						  param->text.len);
	}
}

static ow_status bind_one(struct sql_script *s, idx_t index, struct error *err)
{
	const struct duckdb_lib *lib = s->sql->lib;
	const char *name = lib->parameter_name(s->prepared, index);
	ow_status status = OW_E_USAGE;

	for (size_t i = 0; name && i < s->param_count; i++)
		if (strcmp(s->params[i].name, name) == 0) {
			duckdb_value value = value_of(lib, &s->params[i]);

			status = lib->bind_value(s->prepared, index, value) == DuckDBSuccess
					 ? OW_OK
					 : sql_error(s->sql, lib->prepare_error(s->prepared), err);
			lib->destroy_value(&value);
			break;
		}
	if (status == OW_E_USAGE && (!name || strspn(name, "0123456789") == strlen(name)))
		error_set(err, status,
			  "the query has parameters ($1 or ?); write their values instead");
	else if (status == OW_E_USAGE)
		error_set(
			err, status,
			"the query has a parameter $%s that is not declared; write its value "
			"instead, or, in a named query, '-- param %s text DEFAULT: what it means'",
			name, name);
	lib->free((void *)(uintptr_t)name);
	return status;
}

static ow_status bind_all(struct sql_script *s, struct error *err)
{
	idx_t count = s->sql->lib->nparams(s->prepared);

	for (idx_t i = 1; i <= count; i++)
		OW_TRY(bind_one(s, i, err));
	return OW_OK;
}

static ow_status start_statement(struct sql_script *s, struct error *err)
{
	const struct duckdb_lib *lib = s->sql->lib;

	if (lib->prepare_extracted_statement(s->sql->connection, s->statements, s->next++,
					     &s->prepared) != DuckDBSuccess)
		return sql_error(s->sql, lib->prepare_error(s->prepared), err);
	OW_TRY(wrap_foreign(s, err));
	OW_TRY(bind_all(s, err));
	OW_TRY(execute(s, err));
	return make_columns(s, err);
}

ow_status sql_step(struct sql_script *s, const struct sql_result **result, struct error *err)
{
	struct guard guard;
	ow_status status;

	*result = NULL;
	end_statement(s);
	if (s->next >= s->count)
		return OW_OK;
	/* The columns of opwatch files are mapped, and DuckDB's threads follow our texts. */
	guard_enter(&guard);
	status = start_statement(s, err);
	guard_leave(&guard);
	OW_TRY(status);
	*result = &s->info;
	return OW_OK;
}

/* ---- values ---- */

static struct str string_at(const duckdb_string_t *strings, uint32_t i)
{
	const duckdb_string_t *s = &strings[i];

	if (s->value.inlined.length <= sizeof(s->value.inlined.inlined))
		return str_make(s->value.inlined.inlined, s->value.inlined.length);
	return str_make(s->value.pointer.ptr, s->value.pointer.length);
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

/* The digits of value × 10^-scale, exact. */
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
			     struct error *err)
{
	struct sql_column *c = &s->columns[column];
	duckdb_type type = s->types[column];

	for (uint32_t i = 0; i < n; i++) {
		if (!c->known[i]) {
			if (c->type == SQL_TEXT || c->type == SQL_NUMBER)
				c->texts[i] = STR("");
			continue;
		}
		if (type == DUCKDB_TYPE_INVALID) {
			c->texts[i] = STR("(a value that is no text)");
		} else if (c->type == SQL_TEXT) {
			c->texts[i] = string_at(data, i);
		} else if (c->type == SQL_NUMBER) {
			c->texts[i] = number_at(s, column, data, i);
			if (!c->texts[i].ptr)
				return error_no_memory(err);
		} else if (type == DUCKDB_TYPE_FLOAT) {
			c->reals[i] = (double)((const float *)data)[i];
		} else if (c->type == SQL_REAL) {
			c->reals[i] = ((const double *)data)[i];
		} else {
			c->ints[i] = int_at(type, data, i);
		}
	}
	return OW_OK;
}

static ow_status fetch(struct sql_script *s, uint32_t *rows, struct error *err)
{
	const struct duckdb_lib *lib = s->sql->lib;

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
	*rows = (uint32_t)lib->data_chunk_get_size(s->chunk);
	for (idx_t i = 0; i < s->info.column_count; i++) {
		duckdb_vector vector = lib->data_chunk_get_vector(s->chunk, i);

		read_known(lib->vector_get_validity(vector), *rows, s->columns[i].known);
		OW_TRY(read_values(s, i, lib->vector_get_data(vector), *rows, err));
	}
	return OW_OK;
}

ow_status sql_fetch(struct sql_script *s, uint32_t *rows, struct error *err)
{
	struct guard guard;
	ow_status status;

	*rows = 0;
	if (!s->has_result || !s->info.has_rows)
		return OW_OK;
	guard_enter(&guard);
	status = fetch(s, rows, err);
	guard_leave(&guard);
	return status;
}

/* ---- Parquet ---- */

ow_status sql_copy_parquet(struct sql *sql, struct str text, const char *path, struct error *err)
{
	const struct sql_result *result;
	struct sql_script *script;
	ow_status status;
	struct buf copy;

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
	status = sql_step(script, &result, err);
	sql_script_free(script);
	return status == OW_OK ? sql_check(sql, err) : status;
}

#endif
