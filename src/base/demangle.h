/*
 * demangle.h: C++ names as people write them. demangle_name turns a mangled (Itanium ABI) name into its
 * declaration; kernel_short_name makes of a declaration what fits in a column: no return type, no
 * parameters, and of template arguments what tells kernels apart. The trace importers call these once per
 * distinct name.
 *
 * For names from files: the time, memory and depth that a name may take are bounded, and a name that asks
 * for more, or is none, is simply left as it is.
 */
#ifndef BASE_DEMANGLE_H
#define BASE_DEMANGLE_H

#include "base/buf.h"

/* Appends the declaration to `out`. False, with `out` as it was, when the text is no mangled name or too
 * much of one; out->failed says when memory was short. */
bool demangle_name(struct str mangled, struct buf *out);

/* Appends the short form of a kernel's name, mangled or not. What is short already stays as it is. */
void kernel_short_name(struct str name, struct buf *out);

#endif
