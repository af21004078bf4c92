/*
 * sqlite_file.h: reading the tables of an SQLite database that another program wrote. Called by importers; knows
 * neither the model nor a format.
 *
 * The library reads through our own input: a packed file, a pipe and a member of an archive are opened like any other,
 * no path is opened a second time, and nothing is written, locked or looked for beside the file. Code in a database is
 * not run: no triggers, views, virtual tables, generated columns, extensions or functions. Tables are read from their
 * first row to the last; nothing is sorted or joined here.
 *
 * From a damaged database the rows before the damage are read, and then table->damaged is set. A tree of pages with a
 * cycle ends after the number of rows that a file of its size can have.
 *
 * The memory of the library itself is not accounted: it keeps pages of at most SQLITE_CACHE_KIB, and one row.
 */
#ifndef WIRE_SQLITE_FILE_H
#define WIRE_SQLITE_FILE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/input.h"

#define SQLITE_CACHE_KIB 2048
#define SQLITE_ROW_MAX (16 << 20) /* largest size of one value in bytes; profiles have less */

#define SQLITE_MAGIC "SQLite format 3" /* followed by a NUL in the file */

struct sqlite_table {
	struct str name; /* name of the table, NUL-terminated */
	uint64_t rows;	 /* number of rows read so far */
	bool read;	 /* the rows were read to the end, or to the damage */
	bool damaged;
};

struct sqlite_file {
	const struct input *in;
	struct ow_error *err;
	struct arena arena;
	struct sqlite_access *access; /* access of the library to the input; sqlite_access.c */
	struct sqlite3 *db;
	struct sqlite_table *tables; /* ordinary tables, in the order of the schema */
	size_t table_count, table_cap;
	uint64_t schema_rows;	      /* number of schema entries of any kind */
	uint64_t rows_read, rows_max; /* numbers of rows of all tables */
	/* the database has a write-ahead log (-wal), which is not read */
	bool logged;
	bool cut;     /* the file is shorter than its header says */
	bool stopped; /* the progress callback has cancelled */
};

/* Returns whether this build has SQLite. */
bool sqlite_available(void);

/* Opens a database. The caller calls sqlite_file_close in any case. */
ow_status sqlite_file_open(struct sqlite_file *f, struct mem *mem, const struct input *in,
			   struct ow_error *err);
void sqlite_file_close(struct sqlite_file *f);

/* Returns a table, comparing names without case as SQLite does; NULL if it does not exist. */
struct sqlite_table *sqlite_file_table(const struct sqlite_file *f, const char *name);

/* Calls `take` with the name of every column of a table. */
ow_status sqlite_file_columns(struct sqlite_file *f, const struct sqlite_table *table,
			      void (*take)(void *arg, struct str column), void *arg);

/* The rows of a table with some of its columns, numbered as in the list that was passed. A column that the table
 * does not have reads as null. */
#define SQLITE_COLUMNS_MAX 32

struct sqlite_rows {
	struct sqlite_file *file;
	struct sqlite_table *table;
	struct sqlite3_stmt *statement; /* statement; NULL: the table does not exist */
	uint32_t has;			/* one bit per column that exists */
};

/* Opens the rows of a table. Returns OW_OK also for a missing table, which has no rows. Without columns,
 * rows are only counted. */
ow_status sqlite_rows_open(struct sqlite_rows *rows, struct sqlite_file *f, const char *table,
			   const char *const *columns, size_t count);
/* Returns true if there is a row. False at the end, at damage (table->damaged is set), and on failure. */
bool sqlite_rows_next(struct sqlite_rows *rows, ow_status *status);
void sqlite_rows_close(struct sqlite_rows *rows);

bool sqlite_is_null(const struct sqlite_rows *rows, int column);
int64_t sqlite_int(const struct sqlite_rows *rows, int column);
/* Reads an integer; false for null. */
static inline bool sqlite_get_int(const struct sqlite_rows *rows, int column, int64_t *value)
{
	*value = sqlite_int(rows, column);
	return *value || !sqlite_is_null(rows, column);
}
double sqlite_real(const struct sqlite_rows *rows, int column);
/* Returns the bytes of a text, valid until the next row; they need not be UTF-8. */
struct str sqlite_text(const struct sqlite_rows *rows, int column);

#endif
