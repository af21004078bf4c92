/*
 * disk_ring.h: the files of a job's ring: numbered recordings in a folder, of which the oldest go so that all stay below a
 * limit. What is in them is the collector's; here are only their names and sizes. Files that are open while they go stay
 * readable for whoever has them open.
 */
#ifndef LIVE_DISK_RING_H
#define LIVE_DISK_RING_H

#include "base/error.h"
#include "base/mem.h"
#include "live/jobs.h"

#include <sys/types.h>

#define DISK_RING_FILES 16 /* that a full ring has, about */

struct disk_ring {
	struct mem *mem;
	char folder[JOBS_PATH];
	uint32_t first, last; /* numbers; 0: no files */
	uint64_t *sizes;      /* of first to last; what grows has 0 */
	size_t cap;
	uint64_t bytes; /* of all but the one that grows */
};

/* Of a folder that is there: finds the files that are in it. */
ow_status disk_ring_open(struct disk_ring *ring, struct mem *mem, const char *folder,
			 struct error *err);
void disk_ring_release(struct disk_ring *ring);
void disk_ring_path(const struct disk_ring *ring, uint32_t number, char *path, size_t size);
/* The next file, which is the caller's to make; the one before has `size` bytes and grows no more. */
ow_status disk_ring_next(struct disk_ring *ring, uint64_t size, char *path, size_t path_size,
			 struct error *err);
/* The last one grows no more. */
void disk_ring_rest(struct disk_ring *ring, uint64_t size);
/* Drops the oldest files until all, and `more` bytes, are within the limit; never the last. Returns how many. */
uint32_t disk_ring_trim(struct disk_ring *ring, uint64_t more, uint64_t limit);
/* Removes all files, and the folder. */
void disk_ring_remove(struct disk_ring *ring);

#endif
