/*
 * saved.h: minutes of jobs that attention has saved beside the daemon's rings, NAME-ID-slow-120304.opw and
 * NAME-ID-stall-120304.opw: what they take on disk, and which go when that is too much. The daemon looks now and then;
 * other files in the folder are nobody's business here.
 */
#ifndef LIVE_SAVED_H
#define LIVE_SAVED_H

#include "base/error.h"
#include "base/mem.h"

struct saved_file {
	uint32_t job; /* its id */
	int64_t modified_ns;
	uint64_t bytes;
	char name[256];
};

struct saved {
	struct mem *mem;
	struct saved_file *items; /* the oldest first */
	size_t count, cap;
	uint64_t bytes; /* of all */
};

/* The id of the job in a file's name; 0: it is none of these files. */
uint32_t saved_job_of(const char *name);

/* Finds them; fails without memory, and finds nothing in a folder that cannot be read. */
ow_status saved_find(struct saved *saved, struct mem *mem, const char *folder, struct error *err);
void saved_release(struct saved *saved);
/* Removes the oldest until all are within the limit, never the last one. Returns how many. */
uint32_t saved_trim(struct saved *saved, const char *folder, uint64_t limit);

#endif
