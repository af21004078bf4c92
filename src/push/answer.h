/*
 * answer.h: converts the tab-separated answer of a server (names, types, rows) to a table that sinks write. Integers,
 * reals and booleans keep their types; all other types become text as the server writes it.
 */
#ifndef PUSH_ANSWER_H
#define PUSH_ANSWER_H

#include "base/error.h"
#include "base/str.h"
#include "table/table.h"

/* Fills an empty table. The text may be empty: the answer of a statement without rows. */
ow_status answer_read(struct table *r, struct str text, struct ow_error *err);

#endif
