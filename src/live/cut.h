/*
 * cut.h: the recent past of a job out of its ring on disk, as a recording of its own that every command opens. The files
 * of the ring are read while the daemon goes on writing and dropping them; what has gone meanwhile is not there.
 */
#ifndef LIVE_CUT_H
#define LIVE_CUT_H

#include "live/follow.h"
#include "live/jobs.h"

struct cut_summary {
	uint64_t records;
	uint64_t samples;   /* stacks */
	uint32_t processes; /* that have records or samples in it */
	uint32_t files;	    /* of the ring that were read */
	int64_t covers_ns;  /* from the first record to the last */
};

struct cut {
	const struct job_info *job;
	int64_t last_ns; /* this much, up to the last record that is there; 0: all */
	int64_t from_ns; /* or what ended after this time of the monotonic clock; 0: not asked */
	const char *out_path; /* made anew, for its owner only */
	/* Writes a part of a recording to a file: all of it, or what was there before stays. */
	ow_status (*save)(struct follow *f, struct follow_range *range, const char *path,
			  struct error *err);
};

/* OW_E_EMPTY when nothing is there. */
ow_status cut_ring(const struct cut *cut, struct mem *mem, struct cut_summary *summary,
		   struct error *err);

#endif
