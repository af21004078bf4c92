/*
 * sqlite_file.c: opens an SQLite database through our own input and reads tables row by row; the Nsight Systems
 * importer calls it. Everything that the library can be forbidden to do is switched off here, before the first table
 * is read: no triggers, views, extensions or writes. It runs no query of the user, and neither sorts nor joins. A
 * build without SQLite has stubs at the end of this file that refuse.
 */
#include "wire/sqlite/sqlite_file.h"

#include "opwatch_config.h"

#if OPWATCH_HAVE_SQLITE

#include "wire/sqlite/sqlite_access.h"

#include <strings.h>

#define STEPS_PER_REPORT 50000 /* number of library instructions per report, some thousand rows */
#define LEAST_ROW_BYTES 4

bool sqlite_available(void)
{
	return true;
}

/* Explains a failure: if it is not a cancellation, a failed read or a lack of memory, the
 * database is damaged. */
static ow_status failure(struct sqlite_file *f, int code)
{
	if (f->stopped)
		return error_set(f->err, OW_E_INTERRUPTED, "interrupted");
	if (f->access->status != OW_OK) {
		if (f->err)
			*f->err = f->access->err;
		return f->access->status;
	}
	if ((code & 0xff) == SQLITE_NOMEM)
		return error_no_memory(f->err);
	return error_set(f->err, OW_E_CORRUPT, "%s: the SQLite database is damaged: %s",
			 f->in->name, sqlite3_errstr(code));
}

static bool is_damage(const struct sqlite_file *f, int code)
{
	return !f->stopped && f->access->status == OW_OK && (code & 0xff) != SQLITE_NOMEM;
}

static int watch(void *arg)
{
	struct sqlite_file *f = arg;
	const struct progress *p = f->in->progress;
	uint64_t done = MIN(f->access->read, f->in->size);

	if (p && p->report && !p->report(p->arg, done, f->in->size))
		f->stopped = true;
	return f->stopped;
}

static int authorise(void *arg, int action, const char *a, const char *b, const char *c,
		     const char *d)
{
	(void)arg;
	(void)b;
	(void)c;
	(void)d;
	if (action == SQLITE_SELECT || action == SQLITE_READ)
		return SQLITE_OK;
	if (action == SQLITE_PRAGMA && a && strcasecmp(a, "table_xinfo") == 0)
		return SQLITE_OK;
	return SQLITE_DENY;
}

static void restrict_library(struct sqlite_file *f)
{
	static const struct {
		int limit, value;
	} limits[] = {
		{ SQLITE_LIMIT_LENGTH, SQLITE_ROW_MAX },
		{ SQLITE_LIMIT_SQL_LENGTH, 1 << 20 },
		/* these limits also apply to views of the schema, which the library parses but
		 * never runs */
		{ SQLITE_LIMIT_EXPR_DEPTH, 500 },
		{ SQLITE_LIMIT_COMPOUND_SELECT, 500 },
		{ SQLITE_LIMIT_ATTACHED, 0 },
		{ SQLITE_LIMIT_TRIGGER_DEPTH, 1 },
		{ SQLITE_LIMIT_WORKER_THREADS, 0 },
	};

	for (size_t i = 0; i < ARRAY_COUNT(limits); i++)
		sqlite3_limit(f->db, limits[i].limit, limits[i].value);
	sqlite3_db_config(f->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(f->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(f->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(f->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_db_config(f->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
	sqlite3_progress_handler(f->db, STEPS_PER_REPORT, watch, f);
}

static ow_status run_pragmas(struct sqlite_file *f)
{
	char sql[128];
	int code;

	snprintf(sql, sizeof(sql),
		 "PRAGMA cache_size=-%d; PRAGMA temp_store=MEMORY; PRAGMA cell_size_check=ON",
		 SQLITE_CACHE_KIB);
	code = sqlite3_exec(f->db, sql, NULL, NULL, NULL);
	return code == SQLITE_OK ? OW_OK : failure(f, code);
}

static ow_status prepare(struct sqlite_file *f, const char *sql, sqlite3_stmt **statement)
{
	int code = sqlite3_prepare_v2(f->db, sql, -1, statement, NULL);

	return code == SQLITE_OK ? OW_OK : failure(f, code);
}

static ow_status add_table(struct sqlite_file *f, const char *name)
{
	struct str copy = arena_str(&f->arena, str_from(name));
	struct sqlite_table *grown =
		arena_grow(&f->arena, f->tables, f->table_count, &f->table_cap, sizeof(*grown));

	if (!copy.ptr || !grown)
		return error_no_memory(f->err);
	f->tables = grown;
	f->tables[f->table_count++] = (struct sqlite_table){ .name = copy };
	return OW_OK;
}

/* Lists tables. Views and virtual tables are skipped: they have no pages and would run code from the
 * database. */
static ow_status list_tables(struct sqlite_file *f)
{
	sqlite3_stmt *statement = NULL;
	ow_status status = prepare(f, "SELECT type, name, rootpage FROM sqlite_master", &statement);
	int code = SQLITE_DONE;

	while (status == OW_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		const char *type = (const char *)sqlite3_column_text(statement, 0);
		const char *name = (const char *)sqlite3_column_text(statement, 1);

		if (++f->schema_rows > f->rows_max)
			break;
		if (!type || !name || strcmp(type, "table") != 0 ||
		    sqlite3_column_int64(statement, 2) <= 0)
			continue;
		status = add_table(f, name);
	}
	if (status == OW_OK && code != SQLITE_DONE && code != SQLITE_ROW)
		status = failure(f, code);
	sqlite3_finalize(statement);
	return status;
}

ow_status sqlite_file_open(struct sqlite_file *f, struct mem *mem, const struct input *in,
			   struct ow_error *err)
{
	const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
	int code;

	*f = (struct sqlite_file){ .in = in,
				   .err = err,
				   .rows_max = in->size / LEAST_ROW_BYTES + 16 };
	arena_init(&f->arena, mem);
	f->access = ARENA_NEW(&f->arena, struct sqlite_access);
	if (!f->access || sqlite_access_init(f->access, in) != OW_OK)
		return error_no_memory(err);
	f->logged = f->access->logged;
	f->cut = f->access->size > in->size;
	code = sqlite3_open_v2("input", &f->db, flags, f->access->name);
	if (code != SQLITE_OK)
		return failure(f, code);
	restrict_library(f);
	OW_TRY(run_pragmas(f));
	sqlite3_set_authorizer(f->db, authorise, NULL);
	return list_tables(f);
}

void sqlite_file_close(struct sqlite_file *f)
{
	sqlite3_close(f->db);
	if (f->access)
		sqlite_access_release(f->access);
	arena_release(&f->arena);
	f->db = NULL;
	f->access = NULL;
}

struct sqlite_table *sqlite_file_table(const struct sqlite_file *f, const char *name)
{
	for (size_t i = 0; i < f->table_count; i++)
		if (strcasecmp(f->tables[i].name.ptr, name) == 0)
			return &f->tables[i];
	return NULL;
}

/* Adds "name" in quotes, for use in SQL. */
static void add_quoted(struct buf *sql, struct str name)
{
	buf_add_char(sql, '"');
	for (size_t i = 0; i < name.len; i++) {
		if (name.ptr[i] == '"')
			buf_add_char(sql, '"');
		buf_add_char(sql, name.ptr[i]);
	}
	buf_add_char(sql, '"');
}

/* Visits the columns, except generated ones, which are computed when they are read. */
static ow_status each_column(struct sqlite_file *f, const struct sqlite_table *table,
			     void (*take)(void *arg, struct str column), void *arg)
{
	sqlite3_stmt *statement = NULL;
	ow_status status;
	struct buf sql;
	int code = SQLITE_DONE;

	buf_init(&sql, f->arena.mem);
	buf_puts(&sql, "PRAGMA table_xinfo(");
	add_quoted(&sql, table->name);
	buf_add_char(&sql, ')');
	status = buf_cstr(&sql) ? prepare(f, buf_cstr(&sql), &statement) : error_no_memory(f->err);
	buf_release(&sql);
	while (status == OW_OK && (code = sqlite3_step(statement)) == SQLITE_ROW)
		if (!sqlite3_column_int(statement, 6))
			take(arg, str_from((const char *)sqlite3_column_text(statement, 1)));
	if (status == OW_OK && code != SQLITE_DONE)
		status = failure(f, code);
	sqlite3_finalize(statement);
	return status;
}

ow_status sqlite_file_columns(struct sqlite_file *f, const struct sqlite_table *table,
			      void (*take)(void *arg, struct str column), void *arg)
{
	return each_column(f, table, take, arg);
}

struct wanted {
	const char *const *columns;
	size_t count;
	uint32_t has;
};

static void find_column(void *arg, struct str column)
{
	struct wanted *w = arg;

	for (size_t i = 0; i < w->count; i++)
		if (column.ptr && strcasecmp(column.ptr, w->columns[i]) == 0)
			w->has |= (uint32_t)1 << i;
}

static ow_status prepare_rows(struct sqlite_rows *rows, const struct wanted *w)
{
	struct sqlite_file *f = rows->file;
	ow_status status;
	struct buf sql;

	buf_init(&sql, f->arena.mem);
	buf_puts(&sql, w->count ? "SELECT " : "SELECT 1");
	for (size_t i = 0; i < w->count; i++) {
		if (i)
			buf_add_char(&sql, ',');
		if (w->has >> i & 1)
			add_quoted(&sql, str_from(w->columns[i]));
		else
			buf_puts(&sql, "NULL");
	}
	buf_puts(&sql, " FROM ");
	add_quoted(&sql, rows->table->name);
	buf_puts(&sql, " NOT INDEXED");
	status = buf_cstr(&sql) ? prepare(f, buf_cstr(&sql), &rows->statement)
				: error_no_memory(f->err);
	buf_release(&sql);
	return status;
}

ow_status sqlite_rows_open(struct sqlite_rows *rows, struct sqlite_file *f, const char *table,
			   const char *const *columns, size_t count)
{
	struct wanted w = { .columns = columns, .count = count };
	ow_status status;

	OW_ASSERT(count <= SQLITE_COLUMNS_MAX);
	*rows = (struct sqlite_rows){ .file = f, .table = sqlite_file_table(f, table) };
	if (!rows->table)
		return OW_OK;
	status = count ? each_column(f, rows->table, find_column, &w) : OW_OK;
	if (status == OW_OK)
		status = prepare_rows(rows, &w);
	rows->has = w.has;
	rows->table->rows = 0;
	if (status != OW_E_CORRUPT)
		return status;
	/* the definition of the table is damaged */
	rows->table->damaged = rows->table->read = true;
	error_clear(f->err);
	return OW_OK;
}

bool sqlite_rows_next(struct sqlite_rows *rows, ow_status *status)
{
	struct sqlite_file *f = rows->file;
	int code;

	*status = OW_OK;
	if (!rows->statement)
		return false;
	code = sqlite3_step(rows->statement);
	if (OW_LIKELY(code == SQLITE_ROW && f->rows_read < f->rows_max)) {
		f->rows_read++;
		rows->table->rows++;
		return true;
	}
	rows->table->read = true;
	if (code == SQLITE_DONE)
		return false;
	if (is_damage(f, code))
		rows->table->damaged = true;
	else
		*status = failure(f, code);
	return false;
}

void sqlite_rows_close(struct sqlite_rows *rows)
{
	sqlite3_finalize(rows->statement);
	rows->statement = NULL;
}

bool sqlite_is_null(const struct sqlite_rows *rows, int column)
{
	return sqlite3_column_type(rows->statement, column) == SQLITE_NULL;
}

int64_t sqlite_int(const struct sqlite_rows *rows, int column)
{
	return sqlite3_column_int64(rows->statement, column);
}

double sqlite_real(const struct sqlite_rows *rows, int column)
{
	return sqlite3_column_double(rows->statement, column);
}

struct str sqlite_text(const struct sqlite_rows *rows, int column)
{
	const void *text = sqlite3_column_text(rows->statement, column);
	int len = sqlite3_column_bytes(rows->statement, column);

	return text && len > 0 ? str_make(text, (size_t)len) : STR("");
}

#else

bool sqlite_available(void)
{
	return false;
}

ow_status sqlite_file_open(struct sqlite_file *f, struct mem *mem, const struct input *in,
			   struct ow_error *err)
{
	*f = (struct sqlite_file){ .in = in, .err = err };
	arena_init(&f->arena, mem);
	return error_set(err, OW_E_UNSUPPORTED,
			 "%s: an SQLite database; this opwatch was built without the SQLite "
			 "library: install libsqlite3-dev and build it again",
			 in->name);
}

void sqlite_file_close(struct sqlite_file *f)
{
	arena_release(&f->arena);
}

struct sqlite_table *sqlite_file_table(const struct sqlite_file *f, const char *name)
{
	(void)f;
	(void)name;
	return NULL;
}

ow_status sqlite_file_columns(struct sqlite_file *f, const struct sqlite_table *table,
			      void (*take)(void *arg, struct str column), void *arg)
{
	(void)f;
	(void)table;
	(void)take;
	(void)arg;
	return OW_OK;
}

ow_status sqlite_rows_open(struct sqlite_rows *rows, struct sqlite_file *f, const char *table,
			   const char *const *columns, size_t count)
{
	(void)table;
	(void)columns;
	(void)count;
	*rows = (struct sqlite_rows){ .file = f };
	return OW_OK;
}

bool sqlite_rows_next(struct sqlite_rows *rows, ow_status *status)
{
	(void)rows;
	*status = OW_OK;
	return false;
}

void sqlite_rows_close(struct sqlite_rows *rows)
{
	(void)rows;
}

bool sqlite_is_null(const struct sqlite_rows *rows, int column)
{
	(void)rows;
	(void)column;
	return true;
}

int64_t sqlite_int(const struct sqlite_rows *rows, int column)
{
	(void)rows;
	(void)column;
	return 0;
}

double sqlite_real(const struct sqlite_rows *rows, int column)
{
	(void)rows;
	(void)column;
	return 0;
}

struct str sqlite_text(const struct sqlite_rows *rows, int column)
{
	(void)rows;
	(void)column;
	return STR("");
}

#endif
