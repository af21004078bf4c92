/* sql_int.h: between the files of src/sql; nobody else includes it. Only for builds that have duckdb.h. */
#ifndef SQL_SQL_INT_H
#define SQL_SQL_INT_H

#include "opwatch_config.h"

#if OPWATCH_HAVE_DUCKDB

#include "base/buf.h"
#include "base/guard.h"
#include "sql/sql.h"

#include <duckdb.h>
#include <pthread.h>
#include <stdatomic.h>

/* DuckDB's functions by their names without duckdb_. */
struct duckdb_lib {
	char path[512];
	/* DuckDB's own Vector::Dictionary, or NULL; see duckdb_lib.c. */
	void (*dictionary)(duckdb_vector self, duckdb_vector dict, idx_t size,
			   duckdb_selection_vector selection, idx_t count);
	/* DictionaryVector::GetCachedHashes, whenever dictionary is there. */
	const void *(*hash_dictionary)(duckdb_vector vector);
	/* Vector::DebugTransformToDictionary, likewise: a flat vector becomes a dictionary vector of the same rows, of
	 * twice as many entries and with an id. */
	void (*name_dictionary)(duckdb_vector vector, idx_t count);
#define DUCKDB(name) __typeof__(duckdb_##name) *name;
#include "sql/duckdb_functions.def"
#undef DUCKDB
};

/* duckdb_lib.c: finds and loads the library, once for the process; it is never unloaded. */
ow_status duckdb_lib_load(const struct duckdb_lib **lib, struct error *err);
/* The library, after it was loaded: for functions that DuckDB calls, which are given no more than its own
 * handles. */
const struct duckdb_lib *duckdb_lib(void);

/* A table that some query has asked for; kept, because views and advice take time to make. */
struct sql_table {
	struct sql_table *next;
	struct sql *sql;
	struct relation_table *t;
	const struct relation *relation;
	struct str args; /* as text, to be compared */
};

/* A dictionary as DuckDB has it, shared by all threads and tables that have the same texts. */
struct sql_dict {
	struct sql_dict *next;
	const struct str *texts;
	duckdb_vector vector;
	bool named; /* the vector is a dictionary already, with an id, and is sliced */
};

/* What a table function is registered with. */
struct sql_function {
	struct sql *sql;
	const struct relation *relation;
};

struct sql {
	struct mem *mem;
	struct arena arena;
	const struct duckdb_lib *lib;
	struct sql_options options;
	struct relation_run *runs;
	size_t run_count;
	struct ow_list run_names;
	duckdb_database db;
	duckdb_connection connection;
	struct sql_function *functions;
	size_t function_count;
	pthread_mutex_t lock; /* tables, dicts, arena */
	struct sql_table *tables;
	struct sql_dict *dicts;
	struct sql_stream *streams;
	atomic_bool cancelled;
};

/* scan.c: the relations as table functions. */
ow_status sql_register_tables(struct sql *sql, struct error *err);
/* The relation without options. */
ow_status sql_get_table(struct sql *sql, const struct relation *relation, struct sql_table **table,
			struct error *err);
/* stream.c: after the database is closed. */
void sql_streams_free(struct sql *sql);
/* Why a stream ended early, told once; OW_OK when none did. */
ow_status sql_streams_error(struct sql *sql, struct error *err);
/* arg_function.c: arg(event_id, 'key'). */
ow_status sql_register_arg(struct sql *sql, struct error *err);
/* What opwatch files under the tables read so far say; see relation_check. */
ow_status sql_check(struct sql *sql, struct error *err);

/* query.c: asks whoever may cancel; from any thread. */
bool sql_is_cancelled(struct sql *sql);

/* names.c: names that are there twice get a number: a, a_1. */
ow_status sql_unique_names(struct sql_column *columns, size_t count, struct arena *arena,
			   struct error *err);
/* The column of any of our tables whose name is most like it, or NULL. */
const char *sql_nearest_column(const struct sql *sql, struct str name);

/* session.c: runs statements that give nothing. */
ow_status sql_run(struct sql *sql, const char *text, struct error *err);
/* DuckDB's message as ours: status, text, what to try. */
ow_status sql_error(struct sql *sql, const char *message, struct error *err);

#endif

#endif
