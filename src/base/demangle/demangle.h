/*
 * demangle.h: C++ names as people write them. demangle_name turns a mangled (Itanium ABI) name into its declaration.
 * kernel_short_name shortens a declaration for a column: no return type, no parameters, and only the template arguments
 * that distinguish kernels. The trace importers call these once per distinct name.
 *
 * Names come from files, so the time, memory and depth that a name may take are bounded. A name that needs more, or is
 * not mangled, is left as it is.
 */
#ifndef BASE_DEMANGLE_H
#define BASE_DEMANGLE_H

#include "base/buf.h"

/* Appends the declaration to `out`. False, with `out` unchanged, when the text is not a mangled name or exceeds the
 * bounds; out->failed is set when memory was short. */
bool demangle_name(struct str mangled, struct buf *out);

/* Appends the short form of a kernel's name, mangled or not. A short name is appended unchanged. */
void kernel_short_name(struct str name, struct buf *out);

#endif
