/*
 * prefault.h: maps memory that is about to be written in one call. Where the system has no huge pages (mem.c), faulting
 * in pages one by one costs a fifth more. Never required; meant for columns of many rows.
 */
#ifndef BASE_PREFAULT_H
#define BASE_PREFAULT_H

#include "base/base.h"

/* Bytes [first, last) of a block, which the caller owns and will write completely. */
void prefault(void *ptr, size_t first, size_t last);

#endif
