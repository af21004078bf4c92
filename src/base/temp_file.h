/*
 * temp_file.h: unlinked temporary files for data that is too large for memory: streams, unpacked containers, converted
 * texts. Used by base/input.c, wire/container/spool.c and merge. Nothing is left behind, however the program ends. The
 * disk is never filled completely, because other programs use it, too.
 */
#ifndef BASE_TEMP_FILE_H
#define BASE_TEMP_FILE_H

#include "base/error.h"

/* Opens a temporary file in $TMPDIR or /tmp; -1 with err set on failure. */
int temp_file_open(struct ow_error *err);

/* Writes all bytes or fails: OW_E_LIMIT if less than a twentieth of the file system (at most 1
 * GiB) would be left free. */
ow_status temp_file_write(int fd, uint64_t offset, const void *bytes, size_t len,
			  struct ow_error *err) OW_MUST_CHECK;

/* Returns whether `len` bytes may be written if `free` of `total` bytes are free. */
bool temp_file_fits(uint64_t total, uint64_t free, uint64_t len);

#endif
