/*
 * sqlite_access.h: between sqlite_file.c and sqlite_access.c: an input as the one file that the SQLite library sees. No
 * other file includes it.
 */
#ifndef WIRE_SQLITE_ACCESS_H
#define WIRE_SQLITE_ACCESS_H

#include "base/input.h"

#include <sqlite3.h>

struct sqlite_access {
	sqlite3_vfs vfs;
	const struct input *in;
	struct window window;
	struct ow_error err; /* error of the window */
	uint64_t size;	     /* size in the header, if that exceeds the input */
	uint64_t next;	     /* offset at which the last read ended */
	uint64_t read;	     /* number of bytes read, for progress */
	ow_status status;    /* status of the last read */
	bool registered;
	bool logged;
	char name[40];
};

/* Registers the input with the library under access->name, until the release. */
ow_status sqlite_access_init(struct sqlite_access *access, const struct input *in);
void sqlite_access_release(struct sqlite_access *access);

#endif
