/*
 * fuzz_target.c: the libFuzzer target. Compiled once per target with -DTARGET=name; the list
 * comes from src/import/importers.def, and fuzz_entry.c has some more. Any status is a fine answer, except
 * "a bug in opwatch".
 */
#include <stdint.h>
#include <stdlib.h>

#include "fuzz_entry.h"

#define TEXT_OF(x) #x
#define NAME_OF(x) TEXT_OF(x)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (fuzz_run(NAME_OF(TARGET), data, size) == OW_E_INTERNAL)
		abort();
	return 0;
}
