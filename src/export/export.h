/*
 * export.h: relations as files for other programs: Parquet, newline-delimited JSON, CSV, Arrow. The call of
 * api/export.c ends here. Rows are read in blocks and written in blocks, so that memory does not grow with
 * a table; only an order that is not the table's own costs 32 bytes per row.
 *
 * A table becomes one file DIR/event.csv, or, when it is partitioned or split, a folder: DIR/event/part-0.csv,
 * DIR/event/run=a/step=5/part-0.csv. All is written in a hidden folder inside DIR first and appears by a
 * rename, table by table; whatever ends the export early, nothing half-done is left.
 */
#ifndef EXPORT_EXPORT_H
#define EXPORT_EXPORT_H

#include "base/error.h"
#include "relation/relation.h"
#include "wire/pack.h"

enum export_partition { PARTITION_NONE, PARTITION_RUN, PARTITION_STEP };
enum export_packing {
	PACKING_DEFAULT, /* what the format is usually packed with */
	PACKING_NONE,
	PACKING_GZIP,
	PACKING_ZSTD
};

struct export_options {
	const char *dir;
	const struct export_format *format;
	struct ow_list tables; /* by name; none = all but the views */
	enum export_partition partition;
	const char *sort; /* a column; tables without it keep their order. NULL = their order */
	enum export_packing packing;
	uint64_t file_bytes; /* begin another file after about so many; 0 = never */
	bool bigquery;	/* names, types and values as BigQuery loads them; schemas and load.sh */
	bool overwrite; /* what is there of the same name is replaced */
	/* Called now and then with rows; false cancels. May be NULL. */
	bool (*progress)(void *arg, const char *table, uint64_t done, uint64_t total);
	void *progress_arg;
	/* What Parquet is written through may use; see sql/sql.h. */
	uint64_t memory_limit;
};

struct export_summary {
	uint64_t tables, files, rows, bytes;
};

/* The format of that name; NULL when there is none. */
const struct export_format *export_format_find(const char *name);

ow_status export_tables(const struct relation_run *runs, size_t run_count,
			const struct export_options *options, struct mem *mem,
			struct export_summary *summary, struct error *err);

#endif
