/*
 * own_int.h: between the files of this room; no other room includes it. live_read.c reads the segments of a recording of
 * running programs (wire/own/opw.h) into the lists below: processes, lanes (threads, queues of devices), slices,
 * counts. import_live.c makes rows of them. Damaged records are left out and counted.
 */
#ifndef IMPORT_OWN_INT_H
#define IMPORT_OWN_INT_H

#include "import/importer.h"
#include "wire/own/opw.h"

enum live_name_flags {
	LIVE_NAME_LOADER = 1 << 0,     /* waits for a batch */
	LIVE_NAME_OPTIMIZER = 1 << 1,  /* ends a step */
	LIVE_NAME_COLLECTIVE = 1 << 2, /* communication with other ranks */
};

/* Bytes that were read, at one moment: as the system counts, and by the calls that the recorder sees. */
struct live_reads {
	uint64_t system, storage, seen, seen_files;
};

struct live_job { /* a process */
	struct live_process row;
	int32_t rank, world_size; /* -1: not known */
	str_id run;		  /* which job it is part of; nil when nothing says so */
	str_id marker; /* the function whose calls begin its steps, as asked for; or nil */
	str_id title;  /* from its command line */
	str_id command;
	str_id *names; /* by number */
	size_t name_cap;
	uint32_t seen;		   /* enum live_name_flags, of slices */
	int64_t first_ns, last_ns; /* of its ranges; 0: it has no ranges */
	uint64_t highest_id;
	uint32_t id_base; /* is added to ids, so that those of several processes differ */
	uint64_t dropped, dropped_marks, texts_lost, rings_lost;
	uint64_t sampled, sampled_of;	 /* slices that stand for several calls, and for how many */
	uint64_t counted[RING_COUNTERS]; /* bytes, so far */
	struct live_reads first, last;	 /* when the system was asked */
	struct live_reads waited_for;	 /* of its children, which the system adds to its own */
	bool asked, uses_uring;
	bool ended, known;
	bool repeats; /* a program of its own that repeats something; see live_programs.c */
	bool aside;   /* no part of a rank, although others have one */
	bool follows; /* was started by a process that takes steps, and is part of what that is part of */
	str_id armed[RING_HOOKS];
};

enum live_lane_kind { LIVE_LANE_THREAD, LIVE_LANE_SPANS, LIVE_LANE_DEVICE };

#define LIVE_BLOCK 64u
#define LIVE_CARRIES 8u

struct live_carry {
	uint32_t name;
	int64_t ns;
};

struct live_lane {
	uint32_t job; /* index */
	uint32_t kind, id;
	str_id name, device;
	bool first;	/* thread of its process */
	bool used;	/* has slices */
	bool steps;	/* has ranges that mark steps */
	int64_t end_ns; /* end of its slices so far */
	uint32_t track; /* set by import_live.c */
	/* Slices that stand for several calls and have no place yet (live_sampled.c), and estimated time that had none. */
	uint32_t block_count;
	uint32_t block[LIVE_BLOCK];
	struct live_carry carries[LIVE_CARRIES];
};

struct live_slice {
	int64_t ts_ns, dur_ns;
	int64_t bytes;
	uint32_t lane, name;
	uint32_t id;
	uint32_t calls; /* number of calls that the record stands for; 0: one */
	uint16_t category;
};

struct live_value {
	struct live_count row;
	uint32_t job;
};

/* What a thread had of the processors so far. */
struct live_schedule {
	uint32_t job, tid;
	int64_t ts_ns; /* monotonic */
	uint64_t running_ns, waiting_ns;
};

struct live_ring {
	uint32_t job, ring;
	uint32_t lane; /* index + 1; 0 = not known */
	uint64_t next;
	uint64_t dropped, dropped_marks;
};

struct live_sampled {
	struct live_sample row; /* its stack is one of the model */
	uint32_t lane;
};

/* Of the model, by the numbers of the recording; 0 where there is none. */
struct live_ids {
	uint32_t *items;
	size_t cap;
};

struct live_data {
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	struct live_session session;
	struct live_job *jobs;
	size_t job_count, job_cap;
	struct live_lane *lanes;
	size_t lane_count, lane_cap;
	struct live_slice *slices;
	size_t slice_count, slice_cap;
	size_t unplaced; /* see live_sampled.c */
	struct live_value *values;
	size_t value_count, value_cap;
	struct live_schedule *schedules;
	size_t schedule_count, schedule_cap;
	struct live_ring *rings;
	size_t ring_count, ring_cap;
	struct live_ids sources, frames, stacks;
	struct live_sampled *samples;
	size_t sample_count, sample_cap;
	struct map lane_map, ring_map;
	struct buf block; /* one block of the file */
	uint64_t damaged, damaged_at;
	bool complete;
	uint64_t end;
};

ow_status live_read(struct live_data *d, struct import_ctx *ctx);
void live_release(struct live_data *d);

/* live_sampled.c: a slice of the lane that stands for several calls; before another one that began then; at the end. */
void live_sampled_add(struct live_data *d, struct live_lane *lane, size_t slice);
void live_sampled_before(struct live_data *d, struct live_lane *lane, int64_t start_ns);
void live_sampled_finish(struct live_data *d);

/* live_programs.c: sets `repeats` of processes. Slices are sorted by lane and time. */
ow_status live_find_programs(struct live_data *d);

/* live_ranks.c: processes that train become ranks of one job, or jobs of their own, where no variable says so. */
ow_status live_separate_trainings(struct live_data *d);

/* journal_rows.c: a recording of the recorder API (wire/own/journal.h) as rows of the model. */
ow_status journal_load(struct import_ctx *ctx);

#endif
