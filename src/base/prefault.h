/*
 * prefault.h: maps memory that is about to be written in one call. Where the system has no huge pages (mem.c), faulting
 * in pages one by one costs a fifth more. Never required; meant for columns of many rows.
 */
#ifndef BASE_PREFAULT_H
#define BASE_PREFAULT_H

#include "base/base.h"

/* Allocates the pages of bytes [first, last) of a block ahead of use. The caller owns the block
 * and will write all of these bytes. */
void prefault(void *ptr, size_t first, size_t last);

#endif
