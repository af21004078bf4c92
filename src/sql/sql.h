/*
 * sql.h: SQL over relations, answered by DuckDB inside this process. The relations' columns are read in place
 * through table functions; nothing is copied up front. DuckDB is loaded with the first session: a program
 * without queries does not pay for it, and it may be missing.
 *
 *	sql_open(runs, count, &options, mem, &sql, err);
 *	sql_parse(sql, "SELECT …; SELECT …", &script, err);
 *	while (sql_step(script, &rows, err) == OW_OK && rows)			a statement
 *		while (sql_fetch(script, err) == OW_OK && rows->row_count)	some rows of its result
 *	sql_script_free(script);
 *	sql_close(sql);
 *
 * A query may read the relations and nothing else: no files, no network, no extensions, unless asked for.
 * One session is used by one thread at a time (DuckDB uses more); any thread may call sql_cancel.
 */
#ifndef SQL_SQL_H
#define SQL_SQL_H

#include "base/buf.h"
#include "base/error.h"
#include "relation/relation.h"

struct sql;
struct sql_script;

struct sql_options {
	/* limit of DuckDB's memory in bytes; 0 = its default, most of the machine's */
	uint64_t memory_limit;
	const char *temp_dir;  /* folder for data that does not fit into memory; NULL = none */
	uint32_t threads;      /* 0 = all processors */
	bool allow_io;	       /* queries may read and write files */
	const char *may_write; /* a file that queries may write even without allow_io, or NULL */
	/* Called now and then while a query runs, from any thread; returns false to cancel. */
	bool (*progress)(void *arg);
	void *progress_arg;
};

/* Writes "DuckDB v1.4.4 (path)" and returns true; or writes why DuckDB is not available and returns false. */
bool sql_available(char *text, size_t size);

ow_status sql_open(const struct table_run *runs, size_t run_count,
		   const struct sql_options *options, struct mem *mem, struct sql **sql,
		   struct ow_error *err);
void sql_close(struct sql *sql);

/* Parses statements, separated by semicolons. Forms of BigQuery are understood, see bigquery.h. */
ow_status sql_parse(struct sql *sql, struct str text, struct sql_script **script,
		    struct ow_error *err);
void sql_script_free(struct sql_script *script);
/* The kind of a parameter's value, beyond the types of columns. */
enum sql_kind {
	SQL_PLAIN,	  /* sql_param.type is the type */
	SQL_NUMBER,	  /* in `text`: decimal digits with an optional sign and point */
	SQL_BYTES,	  /* in `text` */
	SQL_DATE,	  /* in `number`: days since 1970 */
	SQL_TIME,	  /* in `number`: microseconds since midnight */
	SQL_TIMESTAMP,	  /* in `number`: microseconds since 1970, without a time zone */
	SQL_TIMESTAMPTZ,  /* in `number`: microseconds since 1970, UTC */
	SQL_TIMESTAMP_NS, /* in `number`: nanoseconds since 1970, without a time zone */
	SQL_INTERVAL,	  /* in `number`: microseconds */
	SQL_LIST,	  /* in `items` */
	SQL_KINDS
};
/* A value for $name in statements. */
struct sql_param {
	const char *name;
	enum column_type type; /* TYPE_BOOL, TYPE_INT, TYPE_REAL or TYPE_TEXT */
	enum sql_kind kind;
	int64_t number; /* for TYPE_INT and TYPE_BOOL */
	double real;
	struct str text;
	bool is_null;
	const struct sql_param *items; /* values of a list; they have no names */
	size_t item_count;
};
/* Sets the values of the parameters; they must live until the script is freed. A statement with a parameter that is
 * not among them is rejected. */
void sql_bind(struct sql_script *script, const struct sql_param *params, size_t count);
/* The first parameter that no statement used, or NULL. Call it after the last statement. */
const char *sql_unused(const struct sql_script *script);
/* Makes lists and objects JSON instead of DuckDB's text form. Called before the first step. */
void sql_use_json(struct sql_script *script);
/* Runs statements up to the next one that returns rows. *rows is a table with its columns, NULL at the end. The
 * script owns the table; it is valid until the next sql_step. */
ow_status sql_step(struct sql_script *script, struct table **rows, struct ow_error *err);
/* The number of statements that return rows, judged by their first words. */
size_t sql_results(const struct sql_script *script);
/* Replaces the rows of that table by the next ones: at most 2048, none at the end. Texts are valid until the next
 * call. */
ow_status sql_fetch(struct sql_script *script, struct ow_error *err);

/* Appends a name, or a text, quoted for SQL: "a ""b""" and 'it''s'. */
void sql_quote_name(struct buf *to, struct str name);
void sql_quote(struct buf *to, struct str text);

/* Writes the result of the only statement of the text as a Parquet file, which must be `may_write`. */
ow_status sql_copy_parquet(struct sql *sql, struct str text, const char *path,
			   struct ow_error *err);

/* A view of all rows of a table, in their order, for a COPY: it can be read once, on all cores. The query must name
 * all columns in their order and have no condition: DuckDB assumes that a stream applies both, and this one does
 * not. */
ow_status sql_stream_view(struct sql *sql, struct table *t, const char *view, struct ow_error *err);

/* Ends the running query with OW_E_INTERRUPTED; may be called from any thread or a signal handler. */
void sql_cancel(struct sql *sql);

#endif
