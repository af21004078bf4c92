/* unavailable.c: sql.h for a build without duckdb.h: every call fails with a message on how to get it. */
#include "opwatch_config.h"

#if !OPWATCH_HAVE_DUCKDB

#include "sql/sql.h"

#define NOT_BUILT                                                                                  \
	"this opwatch was built without SQL: duckdb.h was not found; 'make setup-sql all' in "     \
	"opwatch's source directory fetches DuckDB and builds again, or set DUCKDB_ROOT when "     \
	"building"

bool sql_available(char *text, size_t size)
{
	snprintf(text, size, "not found when this was built");
	return false;
}

ow_status sql_open(const struct table_run *runs, size_t run_count,
		   const struct sql_options *options, struct mem *mem, struct sql **sql,
		   struct ow_error *err)
{
	(void)runs;
	(void)run_count;
	(void)options;
	(void)mem;
	*sql = NULL;
	return error_set(err, OW_E_UNSUPPORTED, NOT_BUILT);
}

void sql_close(struct sql *sql)
{
	(void)sql;
}

ow_status sql_parse(struct sql *sql, struct str text, struct sql_script **script,
		    struct ow_error *err)
{
	(void)sql;
	(void)text;
	*script = NULL;
	return error_set(err, OW_E_UNSUPPORTED, NOT_BUILT);
}

void sql_script_free(struct sql_script *script)
{
	(void)script;
}

size_t sql_results(const struct sql_script *script)
{
	(void)script;
	return 0;
}

void sql_bind(struct sql_script *script, const struct sql_param *params, size_t count)
{
	(void)script;
	(void)params;
	(void)count;
}

const char *sql_unused(const struct sql_script *script)
{
	(void)script;
	return NULL;
}

void sql_use_json(struct sql_script *script)
{
	(void)script;
}

ow_status sql_step(struct sql_script *script, struct table **rows, struct ow_error *err)
{
	(void)script;
	*rows = NULL;
	return error_set(err, OW_E_UNSUPPORTED, NOT_BUILT);
}

ow_status sql_fetch(struct sql_script *script, struct ow_error *err)
{
	(void)script;
	return error_set(err, OW_E_UNSUPPORTED, NOT_BUILT);
}

ow_status sql_copy_parquet(struct sql *sql, struct str text, const char *path, struct ow_error *err)
{
	(void)sql;
	(void)text;
	(void)path;
	return error_set(err, OW_E_UNSUPPORTED, NOT_BUILT);
}

ow_status sql_stream_view(struct sql *sql, struct table *t, const char *view, struct ow_error *err)
{
	(void)sql;
	(void)t;
	(void)view;
	return error_set(err, OW_E_UNSUPPORTED, NOT_BUILT);
}

void sql_cancel(struct sql *sql)
{
	(void)sql;
}

#endif
