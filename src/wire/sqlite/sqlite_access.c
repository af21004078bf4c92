/*
 * sqlite_access.c: a file system for the SQLite library with one file, our input, which can only be read. No journal,
 * log or temporary file is ever found or made.
 *
 * The library sees two things differently from the file. A database that was written with a log beside it looks like
 * one without, since the library would look for the log. A database that was cut short looks as long as its header
 * says, with zeros at its end, since the library would not read any of it otherwise.
 */
#include "opwatch_config.h"

#if OPWATCH_HAVE_SQLITE

#include "wire/sqlite/sqlite_access.h"

#define HEADER_BYTES 100
/* offsets in the header; the value 1 means a journal, 2 a write-ahead log */
#define WRITE_VERSION 18
#define READ_VERSION 19

struct access_file {
	sqlite3_file base;
	struct sqlite_access *access;
};

static struct sqlite_access *access_of(sqlite3_file *file)
{
	return ((struct access_file *)file)->access;
}

static int file_close(sqlite3_file *file)
{
	(void)file;
	return SQLITE_OK;
}

static void hide_log(const struct sqlite_access *a, unsigned char *to, uint64_t offset, size_t len)
{
	for (uint64_t at = WRITE_VERSION; a->logged && at <= READ_VERSION; at++)
		if (at >= offset && at - offset < len)
			to[at - offset] = 1;
}

/* Reads ahead if pages follow each other, otherwise a single page. */
static ow_status read_bytes(struct sqlite_access *a, void *to, uint64_t at, size_t len)
{
	const struct window *w = &a->window;
	bool at_hand = a->in->data || (at >= w->base && at - w->base < w->len);
	const unsigned char *bytes;

	if (!at_hand && at != a->next) {
		a->next = at + len;
		return input_read_at(a->in, at, to, len, &a->err);
	}
	a->next = at + len;
	bytes = window_at(&a->window, at, len);
	if (!bytes)
		return w->status;
	memcpy(to, bytes, len);
	return OW_OK;
}

static int file_read(sqlite3_file *file, void *to, int len, sqlite3_int64 offset)
{
	struct sqlite_access *a = access_of(file);
	size_t want = len > 0 ? (size_t)len : 0, there = 0;
	uint64_t at = offset >= 0 ? (uint64_t)offset : UINT64_MAX;

	if (at < a->in->size)
		there = (size_t)MIN((uint64_t)want, a->in->size - at);
	if (there) {
		a->status = read_bytes(a, to, at, there);
		if (a->status != OW_OK)
			return SQLITE_IOERR_READ;
		hide_log(a, to, at, there);
	}
	a->read += there;
	if (there == want)
		return SQLITE_OK;
	memset((char *)to + there, 0, want - there);
	return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *file, const void *from, int len, sqlite3_int64 offset)
{
	(void)file;
	(void)from;
	(void)len;
	(void)offset;
	return SQLITE_READONLY;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	(void)file;
	(void)size;
	return SQLITE_READONLY;
}

static int file_sync(sqlite3_file *file, int flags)
{
	(void)file;
	(void)flags;
	return SQLITE_OK;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size)
{
	*size = (sqlite3_int64)MIN(access_of(file)->size, (uint64_t)INT64_MAX);
	return SQLITE_OK;
}

static int file_lock(sqlite3_file *file, int level)
{
	(void)file;
	(void)level;
	return SQLITE_OK;
}

static int file_reserved(sqlite3_file *file, int *out)
{
	(void)file;
	*out = 0;
	return SQLITE_OK;
}

static int file_control(sqlite3_file *file, int op, void *arg)
{
	(void)file;
	(void)op;
	(void)arg;
	return SQLITE_NOTFOUND;
}

static int file_sector(sqlite3_file *file)
{
	(void)file;
	return 4096;
}

static int file_traits(sqlite3_file *file)
{
	(void)file;
	return SQLITE_IOCAP_IMMUTABLE;
}

static const sqlite3_io_methods file_methods = {
	.iVersion = 1,
	.xClose = file_close,
	.xRead = file_read,
	.xWrite = file_write,
	.xTruncate = file_truncate,
	.xSync = file_sync,
	.xFileSize = file_size,
	.xLock = file_lock,
	.xUnlock = file_lock,
	.xCheckReservedLock = file_reserved,
	.xFileControl = file_control,
	.xSectorSize = file_sector,
	.xDeviceCharacteristics = file_traits,
};

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
		     int *out_flags)
{
	struct access_file *f = (struct access_file *)file;

	(void)name;
	f->base.pMethods = NULL;
	if (!(flags & SQLITE_OPEN_MAIN_DB))
		return SQLITE_CANTOPEN;
	f->access = vfs->pAppData;
	f->base.pMethods = &file_methods;
	if (out_flags)
		*out_flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB;
	return SQLITE_OK;
}

static int delete_file(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs;
	(void)name;
	(void)sync;
	return SQLITE_READONLY;
}

static int find_file(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
	(void)vfs;
	(void)name;
	(void)flags;
	*out = 0;
	return SQLITE_OK;
}

static int full_name(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
	(void)vfs;
	snprintf(out, size > 0 ? (size_t)size : 0, "%s", name);
	return SQLITE_OK;
}

/* Returns fixed bytes, so that nothing depends on chance or on the time. */
static int random_bytes(sqlite3_vfs *vfs, int size, char *out)
{
	(void)vfs;
	memset(out, 0, size > 0 ? (size_t)size : 0);
	return size;
}

static int sleep_some(sqlite3_vfs *vfs, int micros)
{
	(void)vfs;
	return micros;
}

static int current_time(sqlite3_vfs *vfs, double *now)
{
	(void)vfs;
	*now = 0;
	return SQLITE_OK;
}

static int last_error(sqlite3_vfs *vfs, int size, char *out)
{
	(void)vfs;
	(void)size;
	(void)out;
	return 0;
}

static uint64_t big_endian(const unsigned char *p, int bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < bytes; i++)
		value = value << 8 | p[i];
	return value;
}

static void read_header(struct sqlite_access *a)
{
	const unsigned char *header;
	uint64_t page, pages;

	a->size = a->in->size;
	if (a->size < HEADER_BYTES)
		return;
	header = window_at(&a->window, 0, HEADER_BYTES);
	if (!header)
		return;
	a->logged = header[READ_VERSION] == 2 || header[WRITE_VERSION] == 2;
	page = big_endian(header + 16, 2);
	pages = big_endian(header + 28, 4);
	if (page == 1)
		page = 65536;
	/* the number of pages is valid only if it was written with the last change */
	if (page >= 512 && pages && memcmp(header + 24, header + 92, 4) == 0)
		a->size = MAX(a->size, page * pages);
}

ow_status sqlite_access_init(struct sqlite_access *a, const struct input *in)
{
	*a = (struct sqlite_access){ .in = in };
	window_init(&a->window, in, &a->err);
	read_header(a);
	snprintf(a->name, sizeof(a->name), "opwatch-%" PRIxPTR, (uintptr_t)a);
	a->vfs = (sqlite3_vfs){ .iVersion = 1,
				.szOsFile = sizeof(struct access_file),
				.mxPathname = 64,
				.zName = a->name,
				.pAppData = a,
				.xOpen = open_file,
				.xDelete = delete_file,
				.xAccess = find_file,
				.xFullPathname = full_name,
				.xRandomness = random_bytes,
				.xSleep = sleep_some,
				.xCurrentTime = current_time,
				.xGetLastError = last_error };
	a->registered = sqlite3_vfs_register(&a->vfs, 0) == SQLITE_OK;
	return a->registered ? OW_OK : OW_E_NO_MEMORY;
}

void sqlite_access_release(struct sqlite_access *a)
{
	if (a->registered)
		sqlite3_vfs_unregister(&a->vfs);
	window_release(&a->window);
	a->registered = false;
}

#endif
