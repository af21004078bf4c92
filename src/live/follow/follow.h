/*
 * follow.h: reads a recording (wire/own/opw.h) while it grows. Each turn reads the new segments, keeps what
 * later ones need (processes, names, threads) and remembers where the segments of the last minutes lie. follow_cut
 * writes a part of that time as a recording of its own, into memory or a file. src/watch makes models of these
 * parts; `opwatch cut` and saved incidents are such parts, too.
 *
 * Records are not kept: they are read again from the open file. A file may be cut short, replaced or removed at
 * any time: what cannot be read is skipped and counted, and a new file of that name is read from its start.
 *
 * A folder, the ring of a daemon's job (live/daemon/jobs.h), is followed file by file: 000001.opw and on.
 */
#ifndef LIVE_FOLLOW_H
#define LIVE_FOLLOW_H

#include "base/map.h"
#include "live/daemon/jobs.h"
#include "wire/own/opw.h"

#include <sys/stat.h>

#define FOLLOW_THREADS 4 /* that used a ring, one after the other: the last ones are known */
#define FOLLOW_QUEUES 16 /* of devices, per ring */

struct follow_segment {
	uint64_t offset, size;
	uint32_t file; /* its number */
	uint32_t texts, frames,
		stacks; /* bytes of its follow_stacks that were written before the segment */
	int64_t first_ns, last_ns; /* monotonic: of its slices; without any, of those before */
	int64_t first_sample_ns, last_sample_ns; /* of its samples; first > last when it has none */
	uint32_t records;
};

/* What samples are made of, by numbers: these begin at 1 in each file, and again when sampling starts again. */
struct follow_stacks {
	uint64_t segment; /* the segment from which on these are valid */
	uint32_t file;
	struct buf texts, frames, stacks; /* rows as they are in blocks */
};

struct follow_file {
	uint32_t number; /* in a folder, from 1; 0 of a file by itself */
	int fd;
};

/* A record that says something about others, and where it came from. */
struct follow_mark {
	struct ring_record record;
	uint64_t number, segment;
};

/* From a segment on this many had been dropped. */
struct follow_drop {
	uint64_t segment, dropped;
	uint32_t marks;
};

struct follow_ring {
	uint32_t process, ring;
	uint64_t next;
	struct follow_drop *drops; /* one for each change; the last one has the total */
	size_t drop_count, drop_cap;
	struct follow_mark threads[FOLLOW_THREADS], queues[FOLLOW_QUEUES];
	uint32_t thread_count, queue_count; /* seen; the last ones are kept */
};

struct follow_process {
	struct live_process row;
	uint64_t segment;
	struct buf texts; /* a uint64_t, its segment, and a struct live_text with its bytes each */
	struct map text_map; /* where each begins in texts, + 1 */
	int64_t last_ns;     /* monotonic: of its latest slice or sample; INT64_MIN without */
	bool has_optimizer;  /* the file has a name that marks steps: a step ends with it */
	bool ended;
	uint64_t ended_segment;
};

struct follow {
	struct mem *mem;
	char *path;
	size_t path_size;
	bool folder;
	struct follow_file *files; /* that segments are in; the last one grows */
	size_t file_count, file_cap;
	dev_t device; /* of a file by itself */
	ino_t inode;
	uint64_t at;	   /* everything before this offset was read */
	bool closed;	   /* its end was written: nothing comes any more, but to a folder */
	bool removed;	   /* the file was removed; it is still open */
	bool caught_up;	   /* nothing more was there at the end of the last turn */
	uint64_t damaged;  /* segments that were left out */
	uint32_t restarts; /* how often the file was another one */
	bool has_session;
	struct live_session session;
	struct follow_process *processes;
	size_t process_count, process_cap;
	struct follow_stacks *stacks; /* that samples of the segments need */
	size_t stacks_count, stacks_cap;
	size_t stacks_bytes; /* of all */
	struct follow_ring *rings;
	size_t ring_count, ring_cap;
	struct follow_segment *segments; /* of the last keep_ns */
	size_t segment_count, segment_cap;
	uint64_t first_segment; /* number of segments[0] */
	int64_t forgotten_ns; /* monotonic: end of the latest slice that is in none of them any more */
	int64_t newest_ns;    /* monotonic: end of the latest slice; INT64_MIN when there is none */
	int64_t newest_sample_ns; /* likewise */
	int64_t keep_ns;
	uint64_t records; /* in all */
	struct buf block, heads;
};

#define FOLLOW_ALL INT64_MAX /* for keep_ns: nothing is forgotten; of a folder all files are read */

/* Fails when the file does not exist or is not a recording. Reads nothing yet. */
ow_status follow_open(struct follow *f, struct mem *mem, const char *path, int64_t keep_ns,
		      struct ow_error *err);
void follow_release(struct follow *f);

/* Reads what is new, a limited amount at a time; caught_up is false when there is more. Fails without
 * memory only. */
ow_status follow_turn(struct follow *f, struct ow_error *err);

/* Nothing comes any more. */
static inline bool follow_has_ended(const struct follow *f)
{
	return f->closed && !f->folder;
}

/* Records that were dropped, of all rings. */
uint64_t follow_dropped(const struct follow *f);
/* Of the times of records to that of the day. */
int64_t follow_wall(const struct follow *f, int64_t monotonic_ns);

/* A text of a process, the last one of that kind; nothing when there is none. */
struct str follow_text(const struct follow_process *p, enum live_text_kind kind);

struct follow_range {
	int64_t from_ns, to_ns; /* monotonic: segments with slices in it */
	uint64_t bytes_max;	/* of records; the latest are taken. 0 = any */
	bool no_samples;	/* they are not wanted */
	bool exact; /* of its first segments only what ends after from_ns; no processes that did nothing */
	/* Out. */
	int64_t begin_ns; /* from this time on the recording is complete */
	uint64_t records; /* exact: all; else those of things that were done */
	uint64_t samples;
	int64_t first_ns; /* exact: when the first thing that is in it began; INT64_MAX without */
};

/* Writes that part as a recording. Segments that cannot be read any more are left out; fails when the output does, or
 * without memory. */
ow_status follow_cut(struct follow *f, struct follow_range *range, const struct opw_out *out,
		     const char *writer_name, struct ow_error *err);
/* The same into memory: a whole file. */
ow_status follow_cut_buf(struct follow *f, struct follow_range *range, struct buf *to,
			 struct ow_error *err);

/* The same into a file that only its owner can read. On failure an existing file stays as it was. */
ow_status follow_save(struct follow *f, struct follow_range *range, const char *path,
		      struct ow_error *err);

struct cut_summary {
	uint64_t records;
	uint64_t samples;   /* stacks */
	uint32_t processes; /* that have records or samples in it */
	uint32_t files;	    /* of the ring that were read */
	int64_t covers_ns;  /* from the first record to the last */
};

struct cut {
	const struct job_info *job;
	int64_t last_ns; /* only this much time before the last record; 0: everything */
	int64_t from_ns; /* or what ended after this time of the monotonic clock; 0: not asked */
	const char *out_path; /* made again, for its owner only */
};

/* OW_E_EMPTY when nothing is there. */
ow_status cut_ring(const struct cut *cut, struct mem *mem, struct cut_summary *summary,
		   struct ow_error *err);

#endif
