/*
 * queries.h: named queries: SQL with a title, a sentence and typed parameters, each in a file of its own. Those of
 * queries/ are built in; users have more in folders. Nothing is run here: see api/ask.c.
 *
 *	-- title: Longest single events
 *	-- One row per event, the longest first.
 *	-- param limit int 20: rows
 *	-- param name text '': only names that contain this
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
	enum sql_type type; /* SQL_INT, SQL_REAL or SQL_TEXT */
	const char *usual;  /* its default, as one would type it */
};

struct query {
	const char *name, *title, *doc;
	const char *path;	/* of the file; NULL when it is built in */
	const char *sql;	/* for the embedded engine */
	const char *clickhouse; /* or NULL: there is no form for it */
	const struct query_param *params;
	size_t param_count;
};

struct queries {
	struct mem *mem;
	struct arena arena;
	struct query *items; /* by name */
	size_t count, cap;
};

/* Those that are built in, then those of the folders; a later one of the same name takes its place. A folder that
 * does not exist has none. */
ow_status queries_open(struct queries *q, struct mem *mem, const struct ow_list *dirs,
		       struct error *err);
void queries_close(struct queries *q);
/* NULL when there is none. */
const struct query *queries_find(const struct queries *q, const char *name);

/* query_text.c: the header and the forms of one file. */
ow_status query_parse(struct arena *arena, const char *name, const char *path, struct str text,
		      struct query *query, struct error *err);

/* query_values.c: "name=value", or the defaults, as values of all parameters, in their order. */
ow_status query_values(const struct query *query, const struct ow_list *given, struct arena *arena,
		       struct sql_param **values, struct error *err);
/* The query with literals for its parameters, for an engine that cannot be given values beside it. */
ow_status query_render(const char *text, const struct sql_param *values, size_t count,
		       struct buf *to, struct error *err);

#endif
