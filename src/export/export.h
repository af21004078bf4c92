/*
 * export.h: writes relations as files for other programs: Parquet, newline-delimited JSON, CSV, Arrow. Called by
 * api/export.c. Rows are read and written in blocks, so memory does not grow with a table; only sorting by another
 * column needs 32 bytes per row. A table becomes one file DIR/event.csv, or, when it is partitioned or split, a folder:
 * DIR/event/part-0.csv, DIR/event/run=a/step=5/part-0.csv. Files are first written in a hidden folder inside DIR and
 * appear by a rename, table by table; an export that ends early leaves nothing incomplete.
 */
#ifndef EXPORT_EXPORT_H
#define EXPORT_EXPORT_H

#include "base/error.h"
#include "relation/relation.h"
#include "wire/container/pack.h"

enum export_partition { PARTITION_NONE, PARTITION_RUN, PARTITION_STEP };
enum export_packing {
	PACKING_DEFAULT, /* the usual compression of the format */
	PACKING_NONE,
	PACKING_GZIP,
	PACKING_ZSTD
};

struct export_options {
	const char *dir;
	const struct export_format *format;
	struct ow_list tables; /* names of tables; none = all but the views */
	enum export_partition partition;
	/* column to sort by; tables without it keep their order. NULL = no sorting */
	const char *sort;
	enum export_packing packing;
	uint64_t file_bytes; /* begin another file after about this many bytes; 0 = never */
	/* write names, types and values as BigQuery loads them, schemas and load.sh */
	bool bigquery;
	bool overwrite; /* replace files of the same name */
	/* Called now and then with the number of rows; returns false to cancel. May be NULL. */
	bool (*progress)(void *arg, const char *table, uint64_t done, uint64_t total);
	void *progress_arg;
	/* Limits for DuckDB, which writes Parquet; see sql/sql.h. */
	uint64_t memory_limit;
};

struct export_summary {
	uint64_t tables, files, rows, bytes;
};

/* Finds a format by name; NULL when there is none. */
const struct export_format *export_format_find(const char *name);

/* Writes one table as a Parquet file; an existing file is overwritten. */
ow_status export_parquet_file(struct table *t, const char *path, struct mem *mem,
			      struct ow_error *err);

ow_status export_tables(const struct table_run *runs, size_t run_count,
			const struct export_options *options, struct mem *mem,
			struct export_summary *summary, struct ow_error *err);

#endif
