/*
 * py_lines.h: from a place in the bytecode of a Python function to the line in its source, by the tables that
 * CPython 3.8 to 3.13 keep in code objects (four ways of writing them). Pure; any bytes are safe.
 */
#ifndef LIVE_PY_LINES_H
#define LIVE_PY_LINES_H

#include "base/str.h"

/* `offset` counts bytes of bytecode; negative: the function has not begun. `first` is its first line. Bytecode
 * that belongs to no line gets the line before it. */
int32_t py_line_at(uint32_t minor, struct str table, int32_t first, int64_t offset);

#endif
