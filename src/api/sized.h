/*
 * sized.h: copies of public structs that begin with their own size. A program built against an older or a newer
 * header has a shorter or a longer struct: exactly the part that both sides know is copied. Called by the bodies in
 * src/api; nothing else knows about sizes.
 */
#ifndef API_SIZED_H
#define API_SIZED_H

#include "base/base.h"

static inline void sized_copy(void *to, const void *from, size_t size)
{
	if (size > sizeof(size_t))
		memcpy((char *)to + sizeof(size_t), (const char *)from + sizeof(size_t),
		       size - sizeof(size_t));
}

/* Copies the caller's options (may be NULL) over the defaults in *to. The size in *to stays. */
#define SIZED_IN(to, from)                                                                         \
	do {                                                                                       \
		(void)((to) == (from)); /* compiles only if both have the same type */             \
		if (from)                                                                          \
			sized_copy(to, from, MIN((from)->size, sizeof(*(to))));                    \
	} while (0)

/* Copies *from to the caller's struct (may be NULL), up to the caller's size, which stays. */
#define SIZED_OUT(to, from)                                                                        \
	do {                                                                                       \
		(void)((to) == (from)); /* compiles only if both have the same type */             \
		if (to)                                                                            \
			sized_copy(to, from, MIN((to)->size, sizeof(*(from))));                    \
	} while (0)

#endif
