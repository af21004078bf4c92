/*
 * sql.h: SQL over relations, answered by DuckDB inside this process. The relations' columns are read in place
 * through table functions; nothing is copied up front. DuckDB is loaded with the first session, so that a
 * program that asks nothing does not pay for it, and so that it may be missing.
 *
 *	sql_open(runs, count, &options, mem, &sql, err);
 *	sql_parse(sql, "SELECT …; SELECT …", &script, err);
 *	while (sql_step(script, &result, err) == OW_OK && result)		a statement
 *		while (sql_fetch(script, &batch, err) == OW_OK && batch.rows)	some rows of its result
 *	sql_script_free(script);
 *	sql_close(sql);
 *
 * A query may read the relations and nothing else: no files, no network, no extensions, unless asked for.
 * One session is used by one thread at a time (DuckDB uses more); sql_cancel may come from anywhere.
 */
#ifndef SQL_SQL_H
#define SQL_SQL_H

#include "base/error.h"
#include "relation/relation.h"

struct sql;
struct sql_script;

struct sql_options {
	uint64_t
		memory_limit; /* bytes that DuckDB may use; 0 = its default, most of the machine's */
	const char *temp_dir;  /* where it may put what does not fit; NULL = nowhere */
	uint32_t threads;      /* 0 = all */
	bool allow_io;	       /* queries may read and write files */
	const char *may_write; /* a file that they may write without that, or NULL */
	/* Called now and then while a query runs, from any thread; false cancels it. */
	bool (*progress)(void *arg);
	void *progress_arg;
};

enum sql_type {
	SQL_BOOL,
	SQL_INT,
	SQL_REAL,
	SQL_NUMBER, /* a number as text: beyond 64 bits, or with decimals, exact */
	SQL_TEXT
};

struct sql_column {
	const char *name;
	enum sql_type type;
	union {
		int64_t *ints; /* SQL_INT, SQL_BOOL */
		double *reals;
		struct str *texts; /* SQL_TEXT, SQL_NUMBER */
	};
	uint8_t *known; /* 0 = NULL */
};

/* What the next statement gives; valid until the next sql_step. */
struct sql_result {
	const struct sql_column *columns; /* arrays are filled by sql_fetch */
	uint32_t column_count;
	bool has_rows; /* a SELECT or the like; else the statement has been run, and that is all */
};

/* "DuckDB v1.4.4 (path)", or why there is none. False when there is none. */
bool sql_available(char *text, size_t size);

ow_status sql_open(const struct relation_run *runs, size_t run_count,
		   const struct sql_options *options, struct mem *mem, struct sql **sql,
		   struct error *err);
void sql_close(struct sql *sql);

/* Statements of a text, separated by semicolons. Forms of BigQuery are understood, see bigquery.h. */
ow_status sql_parse(struct sql *sql, struct str text, struct sql_script **script,
		    struct error *err);
void sql_script_free(struct sql_script *script);
/* A value for $name in statements. */
struct sql_param {
	const char *name;
	enum sql_type type; /* SQL_BOOL, SQL_INT, SQL_REAL or SQL_TEXT */
	int64_t number;	    /* SQL_INT, SQL_BOOL */
	double real;
	struct str text;
};
/* What the parameters of the statements are; kept by the caller until the script is freed. A statement with
 * one that is not among them is refused. */
void sql_bind(struct sql_script *script, const struct sql_param *params, size_t count);
/* Runs the next statement; *result is NULL when there is none. */
ow_status sql_step(struct sql_script *script, const struct sql_result **result, struct error *err);
/* Rows of the statement's result: at most 2048 at a time, 0 at the end. */
ow_status sql_fetch(struct sql_script *script, uint32_t *rows, struct error *err);

/* Writes what the only statement of the text gives as a Parquet file, which must be `may_write`. */
ow_status sql_copy_parquet(struct sql *sql, struct str text, const char *path, struct error *err);

/* A view of all rows of a relation, in their order, for a COPY: it can be read once, on all cores. Whoever reads it
 * names all columns as they come and no condition: DuckDB believes that a stream heeds both, and this one does not. */
ow_status sql_stream_view(struct sql *sql, const struct relation *relation, const char *view,
			  struct error *err);

/* Ends the running query with OW_E_INTERRUPTED; from any thread, or a signal handler. */
void sql_cancel(struct sql *sql);

#endif
