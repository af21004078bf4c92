/* unavailable.c: sql.h for a build that found no duckdb.h: everything says how to get it. */
#include "opwatch_config.h"

#if !OPWATCH_HAVE_DUCKDB

#include "sql/sql.h"

#define NOT_BUILT                                                                                  \
	"this opwatch was built without SQL: duckdb.h was not found; 'make' fetches it "           \
	"(tools/setup "                                                                            \
	"sql), or give DUCKDB_ROOT"

bool sql_available(char *text, size_t size)
{
	snprintf(text, size, "not found when this was built");
	return false;
}

ow_status sql_open(const struct relation_run *runs, size_t run_count,
		   const struct sql_options *options, struct mem *mem, struct sql **sql,
		   struct error *err)
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

ow_status sql_parse(struct sql *sql, struct str text, struct sql_script **script, struct error *err)
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

void sql_bind(struct sql_script *script, const struct sql_param *params, size_t count)
{
	(void)script;
	(void)params;
	(void)count;
}

ow_status sql_step(struct sql_script *script, const struct sql_result **result, struct error *err)
{
	(void)script;
	*result = NULL;
	return error_set(err, OW_E_UNSUPPORTED, NOT_BUILT);
}

ow_status sql_fetch(struct sql_script *script, uint32_t *rows, struct error *err)
{
	(void)script;
	*rows = 0;
	return error_set(err, OW_E_UNSUPPORTED, NOT_BUILT);
}

ow_status sql_copy_parquet(struct sql *sql, struct str text, const char *path, struct error *err)
{
	(void)sql;
	(void)text;
	(void)path;
	return error_set(err, OW_E_UNSUPPORTED, NOT_BUILT);
}

ow_status sql_stream_view(struct sql *sql, const struct relation *relation, const char *view,
			  struct error *err)
{
	(void)sql;
	(void)relation;
	(void)view;
	return error_set(err, OW_E_UNSUPPORTED, NOT_BUILT);
}

void sql_cancel(struct sql *sql)
{
	(void)sql;
}

#endif
