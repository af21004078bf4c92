/*
 * base.h: the basis of every file of the project: integer types, small macros, the length-carrying string, and the
 * banned functions. Depends on libc only.
 */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opwatch/opwatch.h"

#include "base/banned.h"

#define ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define OW_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define OW_LIKELY(x) __builtin_expect(!!(x), 1)
#define OW_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define OW_ALWAYS_INLINE static inline __attribute__((always_inline))

/* Checks for a bug of opwatch, not for bad data: aborts in builds with assertions. */
#define OW_ASSERT(x) assert(x)

/* Returns from the calling function if expr fails; for functions that return ow_status. */
#define OW_TRY(expr)                                                                               \
	do {                                                                                       \
		ow_status ow_try_status_ = (expr);                                                 \
		if (OW_UNLIKELY(ow_try_status_ != OW_OK))                                          \
			return ow_try_status_;                                                     \
	} while (0)

/* A string with a length. It is NUL-terminated only where a comment says so, and does not own
 * its memory. */
struct str {
	const char *ptr;
	size_t len;
};

#endif
