/*
 * guard.h: reading a mapped file that another program may cut short meanwhile. Used for our own file format,
 * whose columns are mapped; every other input is read (input.h).
 *
 * Touching a page beyond the end of a file raises SIGBUS. Between guard_enter and guard_leave a handler
 * is in place that knows our mappings: it maps zeros where the file has no bytes any more and remembers
 * that; all other faults go to the previous handler. Outside of these calls no handler of ours is
 * installed, so a host process (Python, a server) keeps its own handlers. Any number of threads may be
 * inside at once, nested as they like.
 *
 *	guard_enter(&guard);
 *	…read map.ptr[0 … len)…
 *	guard_leave(&guard);
 *	if (mapping_lost(&map))
 *		…the bytes read are not valid: the file became shorter…
 */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include "base/base.h"

#include <signal.h>

/* A private mapping of a file. Writing to it does not change the file. */
struct mapping {
	unsigned char *ptr; /* address of the mapping; NULL if there is none */
	size_t len;
	int slot;
};

/* Maps a file. Returns false if that is impossible (or MAPPINGS_MAX mappings exist); the caller then reads
 * the file. */
bool mapping_open(struct mapping *map, int fd, size_t len);
void mapping_close(struct mapping *map);
/* Returns whether bytes of the mapping were missing when they were read. Stays true. */
bool mapping_lost(const struct mapping *map);

#define MAPPINGS_MAX 256

struct guard {
	sigset_t mask; /* signal mask of this thread before guard_enter */
};

void guard_enter(struct guard *guard);
void guard_leave(struct guard *guard);

#endif
