/*
 * function_name.h: names of functions as people write them. Importers of sampled stacks call it for each distinct frame: recorders that do
 * not demangle leave "_Z4betav". Only names that begin like mangled ones are looked at; all others stay as they are.
 */
#ifndef IMPORT_FUNCTION_NAME_H
#define IMPORT_FUNCTION_NAME_H

#include "base/buf.h"
#include "model/builder.h"

/* Appends the name, demangled and without parameters, as perf prints it. False, with `out` unchanged, if it is not a mangled name. */
bool function_name_plain(struct str name, struct buf *out);

/* Returns the readable name as a string of the model. */
str_id function_name(struct builder *b, struct str name);

#endif
