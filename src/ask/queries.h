/*
 * queries.h: named queries: SQL with a title, a sentence and typed parameters, each in a file of its own. Those of
 * queries/ are built in; users have more in folders. Nothing is run here: see api/ask.c.
 *
 *	-- title: Longest single events
 *	-- One row per event, the longest first.
 *	-- param limit int 20: rows
 *	-- param name text '': only names that contain this
 *	-- needs: event WHERE dur IS NOT NULL | the files have no timed events
 *					when there are no rows: the first of these that has none is why
 *	-- none: every kernel is longer		why there are no rows although all of these have some
 *	-- instead: top_ops | op_step	when there are no rows, and that table has some: another query to ask
 *	-- runs: 2				fewer runs are an error
 *	SELECT … LIMIT $limit
 *	-- clickhouse:
 *	SELECT … LIMIT $limit			its form for ClickHouse 18.16; "-- clickhouse: same" when it
 *						is the same
 */
#ifndef ASK_QUERIES_H
#define ASK_QUERIES_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "sql/sql.h"

/* A query that is built in; the table is made by cmake/queries.cmake. */
struct query_file {
	const char *name;
	struct str text;
};
extern const struct query_file query_files[];
extern const size_t query_file_count;

struct query_param {
	const char *name, *doc;
	enum column_type type; /* type of the parameter: TYPE_INT, TYPE_REAL or TYPE_TEXT */
	const char *usual;     /* default value of the parameter, as a user would type it */
};

/* A condition that explains why a query has no rows: rows of a table, written as after FROM. */
struct query_need {
	const char *rows;
	const char *text; /* reason to show, or name of the other query to suggest */
	bool instead;
};

struct query {
	const char *name, *title, *doc;
	const char *path;	/* path of the query's file; NULL when the query is built in */
	const char *sql;	/* text of the query for the embedded engine */
	const char *clickhouse; /* text of the query for ClickHouse; NULL: not available there */
	const struct query_param *params;
	size_t param_count;
	const struct query_need *needs;
	size_t need_count;
	/* reason to show if the query has no rows although all tables that it needs have some;
	 * or NULL */
	const char *none;
	size_t least_runs;
};

struct queries {
	struct mem *mem;
	struct arena arena;
	struct query *items; /* queries, sorted by name */
	size_t count, cap;
};

/* Loads the built-in queries, then those of the folders; a later one replaces an earlier one of the same name. A
 * folder that does not exist has none. */
ow_status queries_open(struct queries *q, struct mem *mem, const struct ow_list *dirs,
		       struct ow_error *err);
void queries_close(struct queries *q);
/* Returns the query of that name; NULL if there is none. */
const struct query *queries_find(const struct queries *q, const char *name);

/* query_text.c: parses the header and the SQL texts of one query file. */
ow_status query_parse(struct arena *arena, const char *name, const char *path, struct str text,
		      struct query *query, struct ow_error *err);

/* query_values.c: makes the values of all parameters, in order, from "name=value" or the
 * defaults. */
ow_status query_values(const struct query *query, const struct ow_list *given, struct arena *arena,
		       struct sql_param **values, struct ow_error *err);
/* Writes the query with its parameters as literals, for an engine that takes no separate values. */
ow_status query_render(const char *text, const struct sql_param *values, size_t count,
		       struct buf *to, struct ow_error *err);

#endif
