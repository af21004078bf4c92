/*
 * populate.h: memory that is going to be written, asked for together: where the system has no huge pages to give
 * (mem.c), pages that are met one by one cost a fifth more. Never needed; for columns of many rows.
 */
#ifndef BASE_POPULATE_H
#define BASE_POPULATE_H

#include "base/base.h"

/* Bytes [first, last) of a block, which are the caller's and will all be written. */
void populate(void *ptr, size_t first, size_t last);

#endif
