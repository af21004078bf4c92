/*
 * format.h: a format of exported files. One file export_<name>.c exports `const struct export_format export_<name>`;
 * one line EXPORT(<name>) in exports.def registers it. A format writes blocks of rows to a stream, or, like Parquet,
 * whole tables in its own way.
 */
#ifndef EXPORT_FORMAT_H
#define EXPORT_FORMAT_H

#include "base/json_escape.h"
#include "export/export.h"
#include "table/cells.h"
#include "export/stream.h"

/* Rows that are written to one folder, into one file or several. */
struct export_group {
	const char *folder;		/* path of the folder; ends with a slash */
	uint32_t first, end;		/* range of parts */
	const struct order_item *items; /* rows in sorted order; NULL: the parts' own order */
	size_t count;
};

static inline ow_status group_start(struct rows *rows, const struct export_group *group,
				    struct ow_error *err)
{
	if (group->items)
		return rows_start_order(rows, group->items, group->count, err);
	rows_start(rows, group->first, group->end);
	return OW_OK;
}

/* A table that is being written. */
struct export_table {
	const struct export_options *options;
	enum export_packing packing; /* never PACKING_DEFAULT */
	const struct table_run *runs;
	size_t run_count;
	struct table *t;
	const bool *skip;	  /* for each column: it is in the names of folders, not in files */
	const char *const *names; /* names of all columns, as they are written */
	uint32_t sort, step;	  /* indexes of columns, or ORDER_NONE */
	bool folders;		  /* the table becomes a folder, not a file */
	/* final path: that file, or that folder with a slash at its end */
	const char *target;
	const char *staged;  /* path where it is written first, in the staging folder */
	const char *staging; /* folder for other temporary files */
	const struct export_group *group;
	struct rows rows;     /* rows of the current group */
	struct stream stream; /* output of the current file */
	void *state;	      /* state of the format, from prepare to release */
	void **shared;	      /* state of the format for all tables */
	struct export_summary *summary;
	uint64_t done, total; /* rows of the whole export */
};

struct export_format {
	const char *name, *extension, *doc;
	unsigned packings; /* compressions that the format supports, one bit each */
	enum export_packing usual;
	bool packs_itself; /* the format compresses itself, so the stream does not */
	/* Called before the first file of a group; may be NULL. */
	ow_status (*prepare)(struct export_table *table, struct ow_error *err);
	/* Write a file: begin, the block in table->rows, end. */
	ow_status (*begin)(struct export_table *table, struct ow_error *err);
	ow_status (*block)(struct export_table *table, struct ow_error *err);
	ow_status (*end)(struct export_table *table, struct ow_error *err);
	/* Called after prepare, also when prepare failed; may be NULL. */
	void (*release)(struct export_table *table);
	/* Instead of all these functions: writes the whole table, which is not prepared, to table->staged; it also
	 * counts rows. */
	ow_status (*write)(struct export_table *table, struct ow_error *err);
	/* Frees the state that write left in *table->shared for the other tables. */
	void (*finish)(void *shared, struct mem *mem);
};

/* export.c: reports progress; if the caller's function returns false, the result is OW_E_INTERRUPTED. */
ow_status export_progress(struct export_table *table, struct ow_error *err);

/* bigquery.c: a name that BigQuery accepts for a column; NULL if memory runs out. */
const char *bigquery_name(struct arena *arena, const char *name);
/* Makes the names of all columns valid, and distinct even when case is ignored. */
ow_status bigquery_names(struct arena *arena, const char **names, size_t count,
			 struct ow_error *err);
/* Writes the schema of a table as JSON. */
void bigquery_schema(struct buf *to, const struct export_table *table);
/* Write the beginning of load.sh, and the lines that load a table. */
void bigquery_script(struct buf *to);
void bigquery_load(struct buf *to, const struct export_table *table);

/* place.c: the folder of an export and its staging folder. */
struct place {
	struct mem *mem;
	struct arena arena;
	const char *dir;     /* folder of the export */
	const char *created; /* the outermost folder that was created for the export, or NULL */
	/* folder in which everything is written first; NULL: not created yet */
	char *staging;
	/* lock on the staging folder, which shows others that it is in use; or -1 */
	int lock;
	uint32_t replaced; /* number of old files that the export replaces */
};
/* Creates the folder, and the staging folder inside it. */
ow_status place_open(struct place *place, struct mem *mem, const char *dir, struct ow_error *err);
/* Moves a file out of the staging folder to its final path; a name with a slash at the end is a folder. */
ow_status place_publish(struct place *place, const char *name, bool overwrite,
			struct ow_error *err);
/* Removes the staging folder, and on failure the folders that place_open made, if they are empty. */
void place_close(struct place *place, bool failed);
/* Writes a separate file, directly at its final path. */
ow_status place_write(struct place *place, const char *name, struct str bytes, unsigned mode,
		      bool overwrite, struct ow_error *err);
/* Makes the folders of a path, which ends with a slash. */
ow_status place_folders(const char *path, struct mem *mem, struct ow_error *err);
/* Adds the number of files below a path, and their bytes. */
ow_status place_measure(const char *path, uint64_t *files, uint64_t *bytes, struct ow_error *err);
/* Writes a value for the name of a folder, after '=': special characters become %XX. */
/* Renames folders with this name anywhere in a tree. */
ow_status place_name_unknown(const char *path, const char *name, const char *wanted,
			     struct ow_error *err);
/* Hive's name of the folder for rows without a value. */
#define NULL_FOLDER "__HIVE_DEFAULT_PARTITION__"
char *place_escape(struct arena *arena, struct str value);

#endif
