/* sql_int.h: declarations that the files of src/sql share; no other folder includes it. Only for builds that have
 * duckdb.h. */
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

/* DuckDB's functions, named without duckdb_. */
struct duckdb_lib {
	char path[512];
	/* DuckDB's own Vector::Dictionary, or NULL; see duckdb_lib.c. */
	void (*dictionary)(duckdb_vector self, duckdb_vector dict, idx_t size,
			   duckdb_selection_vector selection, idx_t count);
	/* DictionaryVector::GetCachedHashes; set if `dictionary` is. */
	const void *(*hash_dictionary)(duckdb_vector vector);
	/* Vector::DebugTransformToDictionary; set if `dictionary` is. It turns a flat vector into a dictionary
	 * vector of the same rows, with twice as many entries and an id. */
	void (*name_dictionary)(duckdb_vector vector, idx_t count);
#define DUCKDB(name) __typeof__(duckdb_##name) *name;
#include "sql/duckdb_functions.def"
#undef DUCKDB
};

/* duckdb_lib.c: finds and loads the library, once for the process; it is never unloaded. */
ow_status duckdb_lib_load(const struct duckdb_lib **lib, struct ow_error *err);
/* The library, after it was loaded: for functions that DuckDB calls with only its own handles. */
const struct duckdb_lib *duckdb_lib(void);

/* value.c: converts a parameter to a DuckDB value; the caller destroys *value. A list with items of different types
 * is rejected. */
ow_status sql_value_of(const struct duckdb_lib *lib, const struct sql_param *param,
		       duckdb_value *value, struct ow_error *err);

/* The text of a DuckDB string. */
static inline struct str sql_string(const duckdb_string_t *s)
{
	if (s->value.inlined.length <= sizeof(s->value.inlined.inlined))
		return str_make(s->value.inlined.inlined, s->value.inlined.length);
	return str_make(s->value.pointer.ptr, s->value.pointer.length);
}

/* Whether a row of a vector is not NULL. */
static inline bool sql_known(const uint64_t *validity, uint64_t i)
{
	return !validity || (validity[i / 64] >> i % 64 & 1);
}

/* Sets a row of a vector of texts; NULL if the text's ptr is NULL. */
static inline void sql_set_string(const struct duckdb_lib *lib, duckdb_vector out, idx_t i,
				  struct str value)
{
	if (value.ptr) {
		lib->vector_assign_string_element_len(out, i, value.ptr, value.len);
		return;
	}
	lib->vector_ensure_validity_writable(out);
	lib->vector_get_validity(out)[i / 64] &= ~((uint64_t)1 << i % 64);
}

/* A table that a query has used; it is kept, because views and advice take time to compute. */
struct sql_table {
	struct sql_table *next;
	struct sql *sql;
	struct table *t;
	const struct table_source *relation;
	struct str args; /* arguments of the table function as text, for comparison */
};

/* A dictionary in DuckDB's form, shared by all threads and tables with the same texts. */
struct sql_dict {
	struct sql_dict *next;
	const struct str *texts;
	duckdb_vector vector;
	bool named; /* the vector is already a dictionary with an id, and is sliced */
};

/* The data with which a table function is registered. */
struct sql_function {
	struct sql *sql;
	const struct table_source *relation;
};

struct sql {
	struct mem *mem;
	struct arena arena;
	const struct duckdb_lib *lib;
	struct sql_options options;
	struct table_run *runs;
	size_t run_count;
	struct ow_list run_names;
	/* functions of BigQuery that were created: bits of bigquery_functions.c */
	uint64_t created;
	duckdb_database db;
	duckdb_connection connection;
	struct sql_function *functions;
	size_t function_count;
	pthread_mutex_t lock; /* protects tables, dicts and arena */
	struct sql_table *tables;
	struct sql_dict *dicts;
	struct sql_stream *streams;
	atomic_bool cancelled;
};

/* scan.c: registers the relations as table functions. */
ow_status sql_register_tables(struct sql *sql, struct ow_error *err);
/* stream.c: frees the streams; called after the database is closed. */
void sql_streams_free(struct sql *sql);
/* The reason why a stream ended early, reported once; OW_OK when none did. */
ow_status sql_streams_error(struct sql *sql, struct ow_error *err);
/* arg_function.c: registers arg(event_id, 'key'). */
ow_status sql_register_arg(struct sql *sql, struct ow_error *err);
/* format_function.c: registers BigQuery's FORMAT. */
ow_status sql_register_format(struct sql *sql, struct ow_error *err);
/* Checks that the opwatch files whose tables were read are unchanged; see relation_check. */
ow_status sql_check(struct sql *sql, struct ow_error *err);

/* query.c: whether the caller has cancelled; may be called from any thread. */
bool sql_is_cancelled(struct sql *sql);

/* session.c: runs statements without a result. */
ow_status sql_run(struct sql *sql, const char *text, struct ow_error *err);
/*
 * Ends a query that was cancelled, failed or was not read to its end, and waits until no thread of DuckDB works on it. The
 * tasks hold the connection themselves, so disconnecting and closing do not wait for them; the next query does.
 */
void sql_wait_for_threads(struct sql *sql);
/* Converts DuckDB's message to an error of ours: status, text, what to try. */
ow_status sql_error(struct sql *sql, const char *message, struct ow_error *err);

#endif

#endif
