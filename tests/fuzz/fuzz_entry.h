/*
 * fuzz_entry.h: the one function the fuzz targets and the seed runner call. src/import implements it.
 */
#ifndef FUZZ_ENTRY_H
#define FUZZ_ENTRY_H

#include <stddef.h>

#include "opwatch/opwatch.h"

/* Loads `len` bytes with the named importer into a fresh model that is frozen and thrown away. */
ow_status import_memory(const char *importer_name, const void *data, size_t len,
			size_t memory_limit);

/* Enough for every seed, small enough that a length field taken at its word is refused. */
#define FUZZ_MEMORY_LIMIT ((size_t)256 << 20)

#endif
