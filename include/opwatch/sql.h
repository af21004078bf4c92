/*
 * sql.h: profiles as data for other programs: SQL, named queries, tables as files, and Arrow. Part of the public
 * interface; opwatch.h explains the rules for errors, ownership, structs and threads.
 */
#ifndef OPWATCH_SQL_H
#define OPWATCH_SQL_H

#include "opwatch/opwatch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A frozen profile and its name in the column `run` of every table. The names in one call must differ. */
struct ow_run {
	ow_profile *profile;
	const char *name;
};

/* ---- SQL --------------------------------------------------------------------------------------- */

/* A session for SQL queries on one or more frozen profiles. DuckDB runs the queries inside this process. The first
 * session loads DuckDB; if it is missing, ow_sql_open returns OW_E_UNSUPPORTED and the error text says what to
 * install. docs/sql.md lists the tables. The profiles must outlive the session and its results. Queries can only
 * read the tables; files, network and settings need allow_io. */
typedef struct ow_sql ow_sql;

struct ow_sql_options {
	size_t size;
	/* bytes that DuckDB may use in addition to the profiles; 0 = its default */
	uint64_t memory_limit;
	const char *temp_dir; /* folder for data that does not fit into memory; NULL = none */
	uint32_t threads;     /* number of threads; 0 = one per processor */
	bool allow_io;	      /* allow queries to read and write files */
	/* Called repeatedly during a query, from any thread. Returns false to cancel. */
	bool (*keep_going)(void *arg);
	void *keep_going_arg;
};
OW_API void ow_sql_options_init(struct ow_sql_options *options);

/* Opens a session. The caller closes *sql. The strings in the options must live as long as the session. */
OW_API OW_MUST_CHECK ow_status ow_sql_open(const struct ow_run *runs, size_t count,
					   const struct ow_sql_options *options, ow_sql **sql,
					   struct ow_error *err);
OW_API void ow_sql_close(ow_sql *sql);

/* Runs the statements in `text`, separated by semicolons. *result is the table of the last statement that
 * returns one; otherwise it has no rows and no columns. All rows are kept in memory. The caller frees *result. */
OW_API OW_MUST_CHECK ow_status ow_sql_query(ow_sql *sql, const char *text, ow_result **result,
					    struct ow_error *err);
/* A value for a parameter of a query. Later versions do not change this struct. */
struct ow_sql_param {
	/* name of the parameter: `name` for $name; "1", "2", … for $1, $2 and for each ? in
	 * order */
	const char *name;
	ow_type type; /* OW_TYPE_INT, OW_TYPE_REAL, OW_TYPE_TEXT or OW_TYPE_BOOL */
	bool is_null;
	int64_t number; /* value of type OW_TYPE_INT or OW_TYPE_BOOL */
	double real;
	struct ow_text text;
};
/* Runs statements as ow_sql_query does, with values for their parameters. Values are never parsed as SQL.
 * A parameter without a value and a value that no statement uses are errors. Lists and objects are
 * returned as JSON texts. */
OW_API OW_MUST_CHECK ow_status ow_sql_query_with(ow_sql *sql, const char *text,
						 const struct ow_sql_param *params, size_t count,
						 ow_result **result, struct ow_error *err);
/* Type of a value for a parameter. */
typedef enum {
	OW_SQL_NULL,
	OW_SQL_BOOL,	     /* number: 0 or 1 */
	OW_SQL_INT,	     /* number */
	OW_SQL_REAL,	     /* real */
	OW_SQL_TEXT,	     /* text, UTF-8 */
	OW_SQL_NUMBER,	     /* text: decimal digits with an optional sign and point, at most 38 */
	OW_SQL_BYTES,	     /* text, any bytes */
	OW_SQL_DATE,	     /* number: days since 1970-01-01 */
	OW_SQL_TIME,	     /* number: microseconds since midnight */
	OW_SQL_TIMESTAMP,    /* number: microseconds since 1970-01-01, without a time zone */
	OW_SQL_TIMESTAMPTZ,  /* number: microseconds since 1970-01-01, UTC */
	OW_SQL_TIMESTAMP_NS, /* number: nanoseconds since 1970-01-01, without a time zone */
	OW_SQL_INTERVAL,     /* number: microseconds */
	OW_SQL_LIST	     /* items; they have one type, or are NULL */
} ow_sql_kind;
/* A value of any type for a parameter of a query. Later versions do not change this struct. */
struct ow_sql_value {
	const char *name; /* as in struct ow_sql_param; NULL for an item of a list */
	ow_sql_kind kind;
	int64_t number;
	double real;
	struct ow_text text;
	const struct ow_sql_value *items;
	size_t item_count;
};
/* Runs statements as ow_sql_query_with does, with values of any type. */
OW_API OW_MUST_CHECK ow_status ow_sql_query_values(ow_sql *sql, const char *text,
						   const struct ow_sql_value *values, size_t count,
						   ow_result **result, struct ow_error *err);
/* Runs the statements and writes each table through a sink ("text", "json", "csv"). Rows are not kept in memory,
 * so a table may have any number of rows. */
OW_API OW_MUST_CHECK ow_status ow_sql_write(ow_sql *sql, const char *text, const char *sink,
					    const struct ow_write_options *options,
					    ow_write_fn write, void *arg, struct ow_error *err);
/* Runs one query and writes its table as a Parquet file. On failure an existing file stays as it was. */
OW_API OW_MUST_CHECK ow_status ow_sql_write_parquet(ow_sql *sql, const char *text, const char *path,
						    struct ow_error *err);
/* Cancels the running query, which then returns OW_E_INTERRUPTED. May be called from any thread and from a signal
 * handler. */
OW_API void ow_sql_cancel(ow_sql *sql);

/* Lists the tables, for help and completion. detail is "options" for tables with options, for example
 * op_view(order_by := 'micros'). Returns false after the last. */
OW_API bool ow_relation_info(size_t index, struct ow_part_info *info);

/* A column or an option of a table. */
struct ow_relation_column {
	size_t size;
	const char *name, *type; /* name of the column, and its SQL type: BIGINT, VARCHAR, ... */
	const char *unit;	 /* unit of the values: "ns", "bytes", "count" or "" */
	const char *doc;	 /* one sentence that describes the column */
};
/* Calls `take` with each column in the answer of a command: "path", "what-if", "diff", "baseline",
 * "ranks", "hang" or "jobs". */
OW_API OW_MUST_CHECK ow_status ow_answer_columns(
	const char *command, void (*take)(void *arg, const struct ow_relation_column *column),
	void *arg, struct ow_error *err);
/* Calls `take` with each column of a table. The struct is valid during the call; its strings are static. */
OW_API OW_MUST_CHECK ow_status ow_relation_columns(
	const char *relation, void (*take)(void *arg, const struct ow_relation_column *column),
	void *arg, struct ow_error *err);
/* Calls `take` with each option of a table. Options have no unit. */
OW_API OW_MUST_CHECK ow_status ow_relation_options(
	const char *relation, void (*take)(void *arg, const struct ow_relation_column *option),
	void *arg, struct ow_error *err);

/* ---- named queries ----------------------------------------------------------------------------- */

/* A set of named queries: questions that users ask without writing SQL. Each has a name, a title and parameters.
 * Some are built in; folders may add more, one file NAME.sql each (docs/ask.md). */
typedef struct ow_queries ow_queries;

struct ow_query_info {
	size_t size;
	const char *name, *title, *doc;
	const char *path;	/* path of the query's file; NULL = built in */
	const char *sql;	/* text of the query for the embedded engine */
	const char *clickhouse; /* text of the query for a ClickHouse server, or NULL */
	size_t param_count;
};
struct ow_query_param {
	size_t size;
	const char *name;
	const char *type;  /* type of the parameter: "int", "real" or "text" */
	const char *usual; /* default value of the parameter */
	const char *doc;
};

/* Loads the built-in queries and those in the folders (dirs may be NULL). A later query replaces an earlier one with
 * the same name. A folder that does not exist is skipped. The caller frees *queries. */
OW_API OW_MUST_CHECK ow_status ow_queries_open(const struct ow_list *dirs, ow_queries **queries,
					       struct ow_error *err);
OW_API void ow_queries_free(ow_queries *queries);
/* List the queries, sorted by name, find one, and list its parameters. Each function returns false if there is no
 * query or parameter of that index or name. The strings live as long as `queries`. */
OW_API bool ow_queries_at(const ow_queries *queries, size_t index, struct ow_query_info *info);
OW_API bool ow_queries_find(const ow_queries *queries, const char *name,
			    struct ow_query_info *info);
OW_API bool ow_queries_param(const ow_queries *queries, const char *name, size_t index,
			     struct ow_query_param *param);

struct ow_ask_options {
	size_t size;
	/* values of parameters as "name=value"; other parameters keep their defaults */
	struct ow_list params;
	/* bytes that the query may use in addition to the profiles; 0 = no limit */
	uint64_t memory_limit;
	const char *temp_dir; /* folder for data that does not fit into memory; NULL = none */
	/* Called repeatedly. Returns false to cancel. */
	bool (*keep_going)(void *arg);
	void *keep_going_arg;
};
OW_API void ow_ask_options_init(struct ow_ask_options *options);

/* Runs a named query on frozen profiles with the embedded engine. Parameters are passed as values, never as
 * SQL text. The caller frees *result. */
OW_API OW_MUST_CHECK ow_status ow_ask(const ow_queries *queries, const char *name,
				      const struct ow_run *runs, size_t count,
				      const struct ow_ask_options *options, ow_result **result,
				      struct ow_error *err);
/* Writes the text of a query for a ClickHouse server, with the parameters as literals. Returns
 * OW_E_UNSUPPORTED if the query has no text for ClickHouse. */
OW_API OW_MUST_CHECK ow_status ow_ask_text(const ow_queries *queries, const char *name,
					   const struct ow_list *params, ow_write_fn write,
					   void *arg, struct ow_error *err);

/* ---- tables as files --------------------------------------------------------------------------- */

struct ow_export_options {
	size_t size;
	const char *format; /* format of the files: "parquet", "ndjson", "csv" or "arrow" */
	/* names of the tables to write; empty = all tables except the views */
	struct ow_list tables;
	/* subfolders: "run", or "step" for run and step; NULL = one file per table */
	const char *partition;
	const char *sort; /* column to sort by, in tables that have it; NULL = do not sort */
	/* compression: "gzip", "zstd" or "none"; NULL = the default of the format */
	const char *compress;
	uint64_t file_bytes; /* start a new file after about this many bytes; 0 = never */
	/* use names and types for BigQuery, and write schemas and load.sh for its loader */
	bool bigquery;
	bool overwrite; /* replace existing files */
	/* Reports progress. Returns false to cancel. */
	bool (*progress)(void *arg, const char *table, uint64_t rows_done, uint64_t rows_total);
	void *progress_arg;
};
OW_API void ow_export_options_init(struct ow_export_options *options);

struct ow_export_summary {
	size_t size;
	uint64_t tables, files, rows, bytes;
};

/* Writes the tables of all runs into a folder and creates the folder if necessary. A table that fails leaves no
 * partial file. The caller sets summary->size; summary may be NULL. */
OW_API OW_MUST_CHECK ow_status ow_export(const struct ow_run *runs, size_t count,
					 const struct ow_export_options *options, const char *dir,
					 struct ow_export_summary *summary, struct ow_error *err);

/* ---- Arrow ------------------------------------------------------------------------------------- */

/* The structs of the Arrow C data interface and C stream interface, copied from their specification. The guards
 * allow other headers that define the same structs. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4
struct ArrowSchema {
	const char *format, *name, *metadata;
	int64_t flags, n_children;
	struct ArrowSchema **children, *dictionary;
	void (*release)(struct ArrowSchema *schema);
	void *private_data;
};
struct ArrowArray {
	int64_t length, null_count, offset, n_buffers, n_children;
	const void **buffers;
	struct ArrowArray **children, *dictionary;
	void (*release)(struct ArrowArray *array);
	void *private_data;
};
#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
	int (*get_schema)(struct ArrowArrayStream *stream, struct ArrowSchema *out);
	int (*get_next)(struct ArrowArrayStream *stream, struct ArrowArray *out);
	const char *(*get_last_error)(struct ArrowArrayStream *stream);
	void (*release)(struct ArrowArrayStream *stream);
	void *private_data;
};
#endif

struct ow_arrow_options {
	size_t size;
	/* Called once, from any thread, when all structs and arrays of this call are released. Until then the
	 * caller keeps the result and its profile alive. Not called after a failure. */
	void (*release)(void *owner);
	void *owner;
};
OW_API void ow_arrow_options_init(struct ow_arrow_options *options);

/* Returns a result as an Arrow struct array with one child per column: int64, float64 (also for numbers beyond
 * int64), bool, and utf8 (large_utf8 beyond 2 GB). Numbers are not copied. The metadata of a column has its title
 * and unit ("opwatch.title", "opwatch.unit"). schema or array may be NULL. The caller releases both. */
OW_API OW_MUST_CHECK ow_status ow_result_arrow(ow_result *result,
					       const struct ow_arrow_options *options,
					       struct ArrowSchema *schema, struct ArrowArray *array,
					       struct ow_error *err);
/* Returns the result as an Arrow stream of one batch. Texts are copied when the consumer
 * requests the batch. */
OW_API OW_MUST_CHECK ow_status ow_result_arrow_stream(ow_result *result,
						      const struct ow_arrow_options *options,
						      struct ArrowArrayStream *stream,
						      struct ow_error *err);

#ifdef __cplusplus
}
#endif
#endif
