/*
 * remote.h: reading the memory of another process, which goes on running meanwhile (process_vm_readv). What is
 * read may be half changed: callers check it. Nothing is ever written there, and nobody is stopped.
 */
#ifndef LIVE_REMOTE_H
#define LIVE_REMOTE_H

#include "base/base.h"

#include <sys/types.h>

struct remote {
	pid_t pid;
	int failure;	/* errno of the last read that failed */
	uint64_t reads; /* system calls */
};

/* One of the pieces that are read by one call. */
struct remote_part {
	uint64_t at;
	void *to;
	size_t len;
};
#define REMOTE_PARTS 256

/* All of it, or false. */
bool remote_read(struct remote *r, uint64_t at, void *to, size_t len);
/* At most REMOTE_PARTS pieces. Returns how many, from the first on, were read whole. */
size_t remote_read_parts(struct remote *r, const struct remote_part *parts, size_t count);
/* Eight bytes of what was read, however they lie. */
static inline uint64_t remote_word(const unsigned char *bytes, size_t offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}
/* The process is gone, rather than its memory elsewhere. */
static inline bool remote_is_gone(const struct remote *r)
{
	return r->failure == 3; /* ESRCH */
}

#endif
