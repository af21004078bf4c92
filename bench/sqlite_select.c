/*
 * sqlite_select.c: SELECT * of every table of an SQLite database, through the library, and nothing else: what bench/other/nsys
 * compares with. With a second argument every value is fetched, too, by the calls that a reader would use.
 *
 *     sqlite_select FILE [values]	→ "rows N sum N"
 */
#include <sqlite3.h>

#include <stdio.h>
#include <stdlib.h>

static long long rows, sum;

static void check(int code, sqlite3 *db)
{
	if (code == SQLITE_OK)
		return;
	fprintf(stderr, "sqlite_select: %s\n", sqlite3_errmsg(db));
	exit(1);
}

static void add_values(sqlite3_stmt *statement, int columns)
{
	for (int i = 0; i < columns; i++)
		sum += sqlite3_column_type(statement, i) == SQLITE_TEXT
			       ? sqlite3_column_bytes(statement, i)
			       : sqlite3_column_int64(statement, i) & 0xff;
}

static void select_all(sqlite3 *db, const char *table, int values)
{
	char *sql = sqlite3_mprintf("SELECT * FROM \"%w\"", table);
	sqlite3_stmt *statement;
	int columns;

	check(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), db);
	columns = sqlite3_column_count(statement);
	while (sqlite3_step(statement) == SQLITE_ROW) {
		rows++;
		if (values)
			add_values(statement, columns);
	}
	check(sqlite3_finalize(statement), db);
	sqlite3_free(sql);
}

int main(int argc, char **argv)
{
	sqlite3_stmt *tables;
	sqlite3 *db;
	char *uri;

	if (argc < 2) {
		fprintf(stderr, "usage: sqlite_select FILE [values]\n");
		return 2;
	}
	uri = sqlite3_mprintf("file:%s?immutable=1", argv[1]);
	check(sqlite3_open_v2(uri, &db,
			      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL),
	      db);
	check(sqlite3_prepare_v2(db, "SELECT name FROM sqlite_master WHERE type = 'table'", -1,
				 &tables, NULL),
	      db);
	while (sqlite3_step(tables) == SQLITE_ROW)
		select_all(db, (const char *)sqlite3_column_text(tables, 0), argc > 2);
	check(sqlite3_finalize(tables), db);
	sqlite3_close(db);
	sqlite3_free(uri);
	printf("rows %lld sum %lld\n", rows, sum);
	return 0;
}
