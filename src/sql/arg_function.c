/*
 * arg_function.c: the SQL functions arg(event_id, 'key'), the value of an argument of an event as text, and
 * arg_value(args, 'key'), the same for the text of arguments. Arguments are read from the input when needed, those of a
 * chunk of rows together; see relation/args.h.
 */
#include "opwatch_config.h"

#if OPWATCH_HAVE_DUCKDB

#include "relation/args.h"
#include "sql/sql_int.h"

/* The parameters of the calls for a chunk of rows, and the vector for the results. */
struct call {
	const struct duckdb_lib *lib;
	struct sql *sql;
	idx_t count;
	const void *first;
	const uint64_t *first_known, *key_known;
	const duckdb_string_t *keys;
	duckdb_vector out;
	struct arena scratch;
};

static void begin(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector out,
		  struct call *c)
{
	duckdb_vector first, key;

	*c = (struct call){ .lib = duckdb_lib(), .out = out };
	c->sql = c->lib->scalar_function_get_extra_info(info);
	first = c->lib->data_chunk_get_vector(input, 0);
	key = c->lib->data_chunk_get_vector(input, 1);
	c->count = c->lib->data_chunk_get_size(input);
	c->first = c->lib->vector_get_data(first);
	c->first_known = c->lib->vector_get_validity(first);
	c->keys = c->lib->vector_get_data(key);
	c->key_known = c->lib->vector_get_validity(key);
	arena_init(&c->scratch, c->sql->mem);
}

/* The run and the row of an event id. */
static const struct table_run *find_run(const struct sql *sql, int64_t id, uint32_t *row)
{
	for (size_t i = 0; i < sql->run_count; i++)
		if (id >> 32 == (int64_t)sql->runs[i].number - 1) {
			*row = (uint32_t)id;
			return *row && *row < sql->runs[i].m->event.count ? &sql->runs[i] : NULL;
		}
	return NULL;
}

/* Reads the arguments of a chunk; adjacent rows of the same run are read together. */
static ow_status read_texts(struct call *c, struct str *texts, struct ow_error *err)
{
	uint32_t *rows = ARENA_ARRAY(&c->scratch, uint32_t, c->count + 1);
	const int64_t *ids = c->first;
	idx_t n;

	if (!rows)
		return error_no_memory(err);
	for (idx_t i = 0; i < c->count; i += n) {
		const struct table_run *run = NULL;

		for (n = 0; i + n < c->count; n++) {
			const struct table_run *next = NULL;

			rows[n] = 0;
			if (sql_known(c->first_known, i + n))
				next = find_run(c->sql, ids[i + n], &rows[n]);
			if (!next)
				rows[n] = 0;
			else if (run && run != next)
				break;
			else
				run = next;
		}
		if (!run)
			continue;
		OW_TRY(model_require_rows(run->m, TABLE_BIT(event_args), err));
		OW_TRY(args_read_all(run->m, rows, (uint32_t)n, texts + i, &c->scratch, err));
	}
	return OW_OK;
}

static ow_status put_values(struct call *c, const struct str *texts, struct ow_error *err)
{
	for (idx_t i = 0; i < c->count; i++) {
		struct str value = { 0 };

		if (texts[i].ptr && sql_known(c->key_known, i))
			OW_TRY(args_value(texts[i], sql_string(&c->keys[i]), &c->scratch, &value,
					  err));
		sql_set_string(c->lib, c->out, i, value);
	}
	return OW_OK;
}

static void arg(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector out)
{
	struct ow_error err = { 0 };
	struct str *texts;
	struct call c;
	ow_status status;

	begin(info, input, out, &c);
	texts = ARENA_ARRAY(&c.scratch, struct str, c.count + 1);
	status = texts ? read_texts(&c, texts, &err) : error_no_memory(&err);
	if (status == OW_OK)
		status = put_values(&c, texts, &err);
	if (status != OW_OK)
		c.lib->scalar_function_set_error(info, err.text);
	arena_release(&c.scratch);
}

static void arg_value(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector out)
{
	struct ow_error err = { 0 };
	struct str *texts;
	struct call c;
	ow_status status = OW_OK;

	begin(info, input, out, &c);
	texts = ARENA_ARRAY(&c.scratch, struct str, c.count + 1);
	if (!texts)
		status = error_no_memory(&err);
	for (idx_t i = 0; texts && i < c.count; i++)
		if (sql_known(c.first_known, i))
			texts[i] = sql_string((const duckdb_string_t *)c.first + i);
	if (status == OW_OK)
		status = put_values(&c, texts, &err);
	if (status != OW_OK)
		c.lib->scalar_function_set_error(info, err.text);
	arena_release(&c.scratch);
}

static ow_status add_function(struct sql *sql, const char *name, duckdb_type first,
			      duckdb_scalar_function_t function, struct ow_error *err)
{
	const struct duckdb_lib *lib = sql->lib;
	duckdb_scalar_function f = lib->create_scalar_function();
	duckdb_logical_type text = lib->create_logical_type(DUCKDB_TYPE_VARCHAR);
	duckdb_logical_type type = lib->create_logical_type(first);
	bool ok;

	lib->scalar_function_set_name(f, name);
	lib->scalar_function_add_parameter(f, type);
	lib->scalar_function_add_parameter(f, text);
	lib->scalar_function_set_return_type(f, text);
	lib->scalar_function_set_extra_info(f, sql, NULL);
	lib->scalar_function_set_function(f, function);
	ok = lib->register_scalar_function(sql->connection, f) == DuckDBSuccess;
	lib->destroy_logical_type(&type);
	lib->destroy_logical_type(&text);
	lib->destroy_scalar_function(&f);
	return ok ? OW_OK
		  : error_set(err, OW_E_INTERNAL, "DuckDB does not accept the function %s", name);
}

ow_status sql_register_arg(struct sql *sql, struct ow_error *err)
{
	OW_TRY(add_function(sql, "arg", DUCKDB_TYPE_BIGINT, arg, err));
	return add_function(sql, "arg_value", DUCKDB_TYPE_VARCHAR, arg_value, err);
}

#endif
