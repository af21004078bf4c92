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

/* Rows that go to one folder, into one file or several. */
struct export_group {
	const char *folder;		/* where they go; ends with a slash */
	uint32_t first, end;		/* parts */
	const struct order_item *items; /* NULL: the parts' own order */
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
	enum export_packing packing; /* never the default */
	const struct table_run *runs;
	size_t run_count;
	struct table *t;
	const bool *skip;	  /* columns that are in the names of folders, not in files */
	const char *const *names; /* of all columns, as they are written */
	uint32_t sort, step;	  /* columns, or ORDER_NONE */
	bool folders;		  /* it becomes a folder, not a file */
	const char *target;	  /* where: that file, or that folder with a slash at its end */
	const char *staged;	  /* where it is written: the same in the staging folder */
	const char *staging;	  /* for other temporary files */
	const struct export_group *group;
	struct rows rows;     /* of the group */
	struct stream stream; /* of the file */
	void *state;	      /* the format's own, from prepare to release */
	void **shared;	      /* the format's own, for all tables */
	struct export_summary *summary;
	uint64_t done, total; /* rows of the whole export */
};

struct export_format {
	const char *name, *extension, *doc;
	unsigned packings; /* those it can, a bit each */
	enum export_packing usual;
	bool packs_itself; /* the stream does not */
	/* Before the first file of a group; may be NULL. */
	ow_status (*prepare)(struct export_table *table, struct ow_error *err);
	/* A file: its beginning, the block in table->rows, its end. */
	ow_status (*begin)(struct export_table *table, struct ow_error *err);
	ow_status (*block)(struct export_table *table, struct ow_error *err);
	ow_status (*end)(struct export_table *table, struct ow_error *err);
	/* Called after prepare, also when that failed; may be NULL. */
	void (*release)(struct export_table *table);
	/* Instead of all these: the whole table, which is not prepared, at table->staged; it also counts rows. */
	ow_status (*write)(struct export_table *table, struct ow_error *err);
	/* Frees the state that write left in *table->shared for the other tables. */
	void (*finish)(void *shared, struct mem *mem);
};

/* export.c: false from the caller's progress becomes OW_E_INTERRUPTED. */
ow_status export_progress(struct export_table *table, struct ow_error *err);

/* bigquery.c. A name that BigQuery accepts for a column; NULL without memory. */
const char *bigquery_name(struct arena *arena, const char *name);
/* Makes the names of all columns valid, and different even without regard to case. */
ow_status bigquery_names(struct arena *arena, const char **names, size_t count,
			 struct ow_error *err);
/* The schema of a table as JSON. */
void bigquery_schema(struct buf *to, const struct export_table *table);
/* load.sh: its beginning, and the lines that load a table. */
void bigquery_script(struct buf *to);
void bigquery_load(struct buf *to, const struct export_table *table);

/* place.c: folders and names. */
struct place {
	struct mem *mem;
	struct arena arena;
	const char *dir;     /* of the export */
	const char *created; /* the outermost folder that was made for it, or NULL */
	char *staging;	     /* where everything is written first; NULL: not made yet */
	int lock;	     /* on the staging folder: others see that it is in use; or -1 */
	uint32_t replaced;   /* how many old files it replaces */
};
/* Makes the folder, and one inside to write in. */
ow_status place_open(struct place *place, struct mem *mem, const char *dir, struct ow_error *err);
/* Moves something out of the staging folder to its place; with a slash at the end it is a folder. */
ow_status place_publish(struct place *place, const char *name, bool overwrite,
			struct ow_error *err);
/* Removes the staging folder, and on failure the folders that place_open made, if they are empty. */
void place_close(struct place *place, bool failed);
/* A file of its own, in place at once. */
ow_status place_write(struct place *place, const char *name, struct str bytes, unsigned mode,
		      bool overwrite, struct ow_error *err);
/* Makes the folders of a path, which ends with a slash. */
ow_status place_folders(const char *path, struct mem *mem, struct ow_error *err);
/* Adds the files below a path, and their bytes. */
ow_status place_measure(const char *path, uint64_t *files, uint64_t *bytes, struct ow_error *err);
/* A value as it follows '=' in the name of a folder: special characters become %XX. */
/* Folders of that name anywhere in a tree get another one. */
ow_status place_name_unknown(const char *path, const char *name, const char *wanted,
			     struct ow_error *err);
/* Where rows without a value go, as Hive names it. */
#define NULL_FOLDER "__HIVE_DEFAULT_PARTITION__"
char *place_escape(struct arena *arena, struct str value);

#endif
