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

#define FOLLOW_THREADS 4 /* number of threads of a ring that are remembered, the last ones */
#define FOLLOW_QUEUES 16 /* number of device queues per ring */

struct follow_segment {
	uint64_t offset, size;
	uint32_t file; /* number of the file that has the segment */
	uint32_t texts, frames,
		stacks; /* size of its follow_stacks before the segment was written */
	/* monotonic times of the segment's slices; without slices, of earlier ones */
	int64_t first_ns, last_ns;
	/* times of the segment's samples; first > last if there are none */
	int64_t first_sample_ns, last_sample_ns;
	uint32_t records;
};

/* Texts, frames and stacks that samples refer to by number. Numbers begin at 1 in each file, and again
 * when sampling restarts. */
struct follow_stacks {
	uint64_t segment; /* first segment for which these are valid */
	uint32_t file;
	struct buf texts, frames, stacks; /* rows in the form of the blocks */
};

struct follow_file {
	uint32_t number; /* number of the file in a folder, from 1; 0 for a single file */
	int fd;
};

/* A record that describes other records, and its origin. */
struct follow_mark {
	struct ring_record record;
	uint64_t number, segment;
};

/* The number of dropped records from a segment on. */
struct follow_drop {
	uint64_t segment, dropped;
	uint32_t marks;
};

struct follow_ring {
	uint32_t process, ring;
	uint64_t next;
	struct follow_drop *drops; /* one item for each change; the last one has the total */
	size_t drop_count, drop_cap;
	struct follow_mark threads[FOLLOW_THREADS], queues[FOLLOW_QUEUES];
	uint32_t thread_count, queue_count; /* numbers seen; only the last ones are kept */
};

struct follow_process {
	struct live_process row;
	uint64_t segment;
	struct buf texts;    /* for each text: uint64_t segment, struct live_text and its bytes */
	struct map text_map; /* for each text: its offset in `texts` + 1 */
	/* monotonic time of the latest slice or sample; INT64_MIN if there is none */
	int64_t last_ns;
	bool has_optimizer; /* the file has a name that marks the ends of steps */
	bool ended;
	uint64_t ended_segment;
};

struct follow {
	struct mem *mem;
	char *path;
	size_t path_size;
	bool folder;
	struct follow_file *files; /* files that contain the segments; the last one grows */
	size_t file_count, file_cap;
	dev_t device; /* device of a single file */
	ino_t inode;
	uint64_t at; /* offset up to which the file was read */
	/* the end of the recording was written, so a single file no longer grows */
	bool closed;
	bool removed;	   /* the file was removed but is still open */
	bool caught_up;	   /* the last turn read all available data */
	uint64_t damaged;  /* number of damaged segments */
	uint32_t restarts; /* how often the file was replaced or cut */
	bool has_session;
	struct live_session session;
	struct follow_process *processes;
	size_t process_count, process_cap;
	struct follow_stacks *stacks; /* stacks that samples of the segments need */
	size_t stacks_count, stacks_cap;
	size_t stacks_bytes; /* size of all stacks */
	struct follow_ring *rings;
	size_t ring_count, ring_cap;
	struct follow_segment *segments; /* segments of the last keep_ns */
	size_t segment_count, segment_cap;
	uint64_t first_segment; /* number of segments[0] */
	/* monotonic end of the latest slice that is no longer in the segments */
	int64_t forgotten_ns;
	int64_t newest_ns; /* monotonic end of the latest slice; INT64_MIN if there is none */
	/* monotonic time of the latest sample; INT64_MIN if there is none */
	int64_t newest_sample_ns;
	int64_t keep_ns;
	uint64_t records; /* number of all records */
	struct buf block, heads;
};

/* value for keep_ns: nothing is forgotten, and all files of a folder are read */
#define FOLLOW_ALL INT64_MAX

/* Opens a recording. Fails if the file does not exist or is not one. Reads nothing yet. */
ow_status follow_open(struct follow *f, struct mem *mem, const char *path, int64_t keep_ns,
		      struct ow_error *err);
void follow_release(struct follow *f);

/* Reads new data, a limited amount at a time; caught_up is false if there is more. Fails only if memory runs out. */
ow_status follow_turn(struct follow *f, struct ow_error *err);

/* Returns whether no more data will come. */
static inline bool follow_has_ended(const struct follow *f)
{
	return f->closed && !f->folder;
}

/* Returns the number of dropped records of all rings. */
uint64_t follow_dropped(const struct follow *f);
/* Converts a monotonic time of a record to the time of day. */
int64_t follow_wall(const struct follow *f, int64_t monotonic_ns);

/* Returns the last text of that kind of a process; empty if there is none. */
struct str follow_text(const struct follow_process *p, enum live_text_kind kind);

struct follow_range {
	int64_t from_ns, to_ns; /* monotonic range; segments with slices in it are taken */
	uint64_t bytes_max;	/* largest size of the records, the latest first; 0 = no limit */
	bool no_samples;	/* leave out samples */
	bool exact; /* take only records that end after from_ns, and no processes without records */
	/* Results. */
	int64_t begin_ns; /* time from which on the recording is complete */
	uint64_t records; /* exact: number of all records; else number of slices */
	uint64_t samples;
	int64_t first_ns; /* exact: begin of the first slice; INT64_MAX if there is none */
};

/* Writes this part as a recording. Segments that can no longer be read are left out. Fails if the output fails or if
 * memory runs out. */
ow_status follow_cut(struct follow *f, struct follow_range *range, const struct opw_out *out,
		     const char *writer_name, struct ow_error *err);
/* Writes this part into memory as a complete file. */
ow_status follow_cut_buf(struct follow *f, struct follow_range *range, struct buf *to,
			 struct ow_error *err);

/* Writes this part to a file that only its owner can read. On failure an existing file stays as
 * it was. */
ow_status follow_save(struct follow *f, struct follow_range *range, const char *path,
		      struct ow_error *err);

struct cut_summary {
	uint64_t records;
	uint64_t samples;   /* number of sampled stacks */
	uint32_t processes; /* number of processes with records or samples */
	uint32_t files;	    /* number of ring files that were read */
	int64_t covers_ns;  /* time from the first record to the last one */
};

struct cut {
	const struct job_info *job;
	int64_t last_ns; /* length of the part before the last record; 0: everything */
	/* alternatively: everything that ended after this monotonic time; 0: not used */
	int64_t from_ns;
	const char *out_path; /* path of a new file, readable only by its owner */
};

/* Writes a part of a job's ring; OW_E_EMPTY if there is no data. */
ow_status cut_ring(const struct cut *cut, struct mem *mem, struct cut_summary *summary,
		   struct ow_error *err);

#endif
