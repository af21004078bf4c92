/*
 * sqlite_bytes.h: SQLite databases as bytes, for unit tests: made by the library from SQL, in memory.
 */
#ifndef SUPPORT_SQLITE_BYTES_H
#define SUPPORT_SQLITE_BYTES_H

#include "base/base.h"

#include <sqlite3.h>

/* The bytes of a database; the caller frees them with sqlite3_free. Every failure ends the test's case. */
static inline unsigned char *sqlite_bytes(const char *const *sql, size_t count, size_t *len)
{
	unsigned char *bytes;
	sqlite3_int64 size = 0;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	for (size_t i = 0; i < count; i++) {
		char *why = NULL;
		int code = sqlite3_exec(db, sql[i], NULL, NULL, &why);

		if (code != SQLITE_OK)
			print_error("%s: %s\n", sql[i], why);
		assert_int_equal(code, SQLITE_OK);
	}
	bytes = sqlite3_serialize(db, "main", &size, 0);
	assert_non_null(bytes);
	*len = (size_t)size;
	sqlite3_close(db);
	return bytes;
}

#endif
