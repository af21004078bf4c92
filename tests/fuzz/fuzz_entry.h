/*
 * fuzz_entry.h: what the fuzz targets and the seed runner do with an input. A target is an importer (the
 * bytes are loaded by it, into a model that is frozen and thrown away), or one of those below it.
 */
#ifndef FUZZ_ENTRY_H
#define FUZZ_ENTRY_H

#include <stddef.h>

#include "opwatch/opwatch.h"

/* Runs the named target. The only wrong answers are a crash and OW_E_INTERNAL. */
ow_status fuzz_run(const char *target, const void *data, size_t len);

/* fuzz_request.c */
ow_status fuzz_request(const void *data, size_t len);

/* Implemented by src/import. */
ow_status import_memory(const char *importer_name, const void *data, size_t len,
			size_t memory_limit);

/* Enough for every seed, small enough that a length field taken at its word is refused. */
#define FUZZ_MEMORY_LIMIT ((size_t)256 << 20)

#endif
