/*
 * format_function.c: the SQL function format_texts(format, text, …), which the macro for BigQuery's FORMAT calls with
 * values that are cast to text. bigquery_format.c formats them.
 */
#include "opwatch_config.h"

#if OPWATCH_HAVE_DUCKDB

#include "sql/bigquery_format.h"
#include "sql/sql_int.h"

#define ARGUMENTS_MAX 64

/* The arguments of the calls for a chunk of rows. */
struct arguments {
	const duckdb_string_t *texts[ARGUMENTS_MAX];
	const uint64_t *known[ARGUMENTS_MAX];
	idx_t count;
};

static void take_arguments(const struct duckdb_lib *lib, duckdb_data_chunk input,
			   struct arguments *all)
{
	all->count = lib->data_chunk_get_column_count(input);
	for (idx_t i = 0; i < all->count && i < ARGUMENTS_MAX; i++) {
		duckdb_vector vector = lib->data_chunk_get_vector(input, i);

		all->texts[i] = lib->vector_get_data(vector);
		all->known[i] = lib->vector_get_validity(vector);
	}
}

static ow_status format_row(const struct duckdb_lib *lib, const struct arguments *all, idx_t row,
			    struct buf *text, duckdb_vector out, struct ow_error *err)
{
	struct str values[ARGUMENTS_MAX] = { 0 }, none = { 0 };
	bool is_null = true;

	for (idx_t i = 0; i < all->count; i++)
		if (sql_known(all->known[i], row))
			values[i] = sql_string(&all->texts[i][row]);
	buf_clear(text);
	if (values[0].ptr)
		OW_TRY(bigquery_format(text, values[0], values + 1, all->count - 1, &is_null, err));
	sql_set_string(lib, out, row, is_null ? none : buf_str(text));
	return OW_OK;
}

static void format(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector out)
{
	const struct duckdb_lib *lib = duckdb_lib();
	struct sql *sql = lib->scalar_function_get_extra_info(info);
	struct ow_error err = { 0 };
	ow_status status = OW_OK;
	struct arguments all;
	struct buf text;

	take_arguments(lib, input, &all);
	if (!all.count || all.count > ARGUMENTS_MAX)
		status = error_set(&err, OW_E_USAGE, "FORMAT takes 1 to %d arguments",
				   ARGUMENTS_MAX);
	buf_init(&text, sql->mem);
	for (idx_t i = 0; status == OW_OK && i < lib->data_chunk_get_size(input); i++)
		status = format_row(lib, &all, i, &text, out, &err);
	if (status != OW_OK)
		lib->scalar_function_set_error(info, err.text);
	buf_release(&text);
}

ow_status sql_register_format(struct sql *sql, struct ow_error *err)
{
	const struct duckdb_lib *lib = sql->lib;
	duckdb_scalar_function f = lib->create_scalar_function();
	duckdb_logical_type text = lib->create_logical_type(DUCKDB_TYPE_VARCHAR);
	bool ok;

	lib->scalar_function_set_name(f, "format_texts");
	lib->scalar_function_set_varargs(f, text);
	/* %t formats NULL, so the function must be called with NULL values, too */
	lib->scalar_function_set_special_handling(f);
	lib->scalar_function_set_return_type(f, text);
	lib->scalar_function_set_extra_info(f, sql, NULL);
	lib->scalar_function_set_function(f, format);
	ok = lib->register_scalar_function(sql->connection, f) == DuckDBSuccess;
	lib->destroy_logical_type(&text);
	lib->destroy_scalar_function(&f);
	return ok ? OW_OK
		  : error_set(err, OW_E_INTERNAL,
			      "DuckDB does not accept the function format_texts");
}

#endif
