/*
 * fuzz_importer.c: the libFuzzer target. Compiled once per importer with -DIMPORTER=name; the list
 * comes from src/import/importers.def. Any status is a fine answer, except "a bug in opwatch".
 */
#include <stdint.h>
#include <stdlib.h>

#include "fuzz_entry.h"

#define TEXT_OF(x) #x
#define NAME_OF(x) TEXT_OF(x)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (import_memory(NAME_OF(IMPORTER), data, size, FUZZ_MEMORY_LIMIT) == OW_E_INTERNAL)
		abort();
	return 0;
}
