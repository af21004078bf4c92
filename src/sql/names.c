/*
 * names.c: names of columns: those of a result are made to differ, since JSON and data frames find values by them; and
 * for one that a table does not have, the one that may have been meant. For query.c and session.c.
 */
#include "opwatch_config.h"

#if OPWATCH_HAVE_DUCKDB

#include "base/nearest.h"
#include "sql/sql_int.h"

/* ---- of a result ---- */

static bool is_taken(const struct sql_column *columns, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(columns[i].name, name) == 0)
			return true;
	return false;
}

static ow_status rename_column(const struct sql_column *columns, size_t count, struct sql_column *c,
			       struct arena *arena, struct error *err)
{
	char *name;
	unsigned k = 1;

	do {
		name = arena_printf(arena, "%s_%u", c->name, k++);
		if (!name)
			return error_no_memory(err);
	} while (is_taken(columns, count, name));
	c->name = name;
	return OW_OK;
}

ow_status sql_unique_names(struct sql_column *columns, size_t count, struct arena *arena,
			   struct error *err)
{
	for (size_t i = 1; i < count; i++) {
		if (!is_taken(columns, i, columns[i].name))
			continue;
		OW_TRY(rename_column(columns, count, &columns[i], arena, err));
	}
	return OW_OK;
}

/* ---- of a table ---- */

const char *sql_nearest_column(const struct sql *sql, struct str name)
{
	size_t least = nearest_limit(name);
	const char *best = NULL;

	for (const struct sql_table *table = sql->tables; table; table = table->next)
		for (uint32_t i = 0; i < table->t->column_count; i++)
			nearest_try(name, table->t->columns[i].name, &best, &least);
	return best;
}

#endif
