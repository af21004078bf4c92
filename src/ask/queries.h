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

/* One that is built in; made by cmake/queries.cmake. */
struct query_file {
	const char *name;
	struct str text;
};
extern const struct query_file query_files[];
extern const size_t query_file_count;

struct query_param {
	const char *name, *doc;
	enum column_type type; /* TYPE_INT, TYPE_REAL or TYPE_TEXT */
	const char *usual;     /* its default, as a user would type it */
};

/* What a query without rows looks at to say why: rows of a table, as after FROM. */
struct query_need {
	const char *rows;
	const char *text; /* the reason, or the name of the other query */
	bool instead;
};

struct query {
	const char *name, *title, *doc;
	const char *path;	/* of the file; NULL when it is built in */
	const char *sql;	/* for the embedded engine */
	const char *clickhouse; /* or NULL: not available in this form */
	const struct query_param *params;
	size_t param_count;
	const struct query_need *needs;
	size_t need_count;
	const char
		*none; /* why it has no rows although all tables that it needs have some; or NULL */
	size_t least_runs;
};

struct queries {
	struct mem *mem;
	struct arena arena;
	struct query *items; /* by name */
	size_t count, cap;
};

/* Loads the built-in queries, then those of the folders; a later one replaces an earlier one of the same name. A
 * folder that does not exist has none. */
ow_status queries_open(struct queries *q, struct mem *mem, const struct ow_list *dirs,
		       struct ow_error *err);
void queries_close(struct queries *q);
/* The query of that name; NULL when there is none. */
const struct query *queries_find(const struct queries *q, const char *name);

/* query_text.c: the header and the forms of one file. */
ow_status query_parse(struct arena *arena, const char *name, const char *path, struct str text,
		      struct query *query, struct ow_error *err);

/* query_values.c: "name=value", or the defaults, as values of all parameters, in their order. */
ow_status query_values(const struct query *query, const struct ow_list *given, struct arena *arena,
		       struct sql_param **values, struct ow_error *err);
/* The query with literals for its parameters, for an engine that takes no values beside the text. */
ow_status query_render(const char *text, const struct sql_param *values, size_t count,
		       struct buf *to, struct ow_error *err);

#endif
