/*
 * answer.h: the tab-separated answer of a server (names, types, rows) as a result that sinks write. Types of
 * the server become ours: integers, reals, booleans; all others are shown as the server writes them.
 */
#ifndef PUSH_ANSWER_H
#define PUSH_ANSWER_H

#include "base/error.h"
#include "base/str.h"
#include "table/table.h"

/* Fills an empty result. The text may be empty: a statement without rows. */
ow_status answer_read(struct table *r, struct str text, struct ow_error *err);

#endif
