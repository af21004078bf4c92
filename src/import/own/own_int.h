/*
 * own_int.h: declarations that the files of src/import/own share. live_read.c reads the segments of a recording of
 * running programs (wire/own/opw.h) into the lists below: processes, lanes (threads, queues of devices), slices,
 * counts. import_live.c makes rows from them. Damaged records are left out and counted.
 */
#ifndef IMPORT_OWN_INT_H
#define IMPORT_OWN_INT_H

#include "import/importer.h"
#include "wire/own/opw.h"

enum live_name_flags {
	LIVE_NAME_LOADER = 1 << 0,     /* the function waits for a batch */
	LIVE_NAME_OPTIMIZER = 1 << 1,  /* the function ends a step */
	LIVE_NAME_COLLECTIVE = 1 << 2, /* the function communicates with other ranks */
};

/* Bytes read at one moment: as the system counts them, and as counted by the calls that the recorder sees. */
struct live_reads {
	uint64_t system, storage, seen, seen_files;
};

struct live_job { /* a process */
	struct live_process row;
	int32_t rank, world_size; /* -1: unknown */
	str_id run;		  /* the job that the process belongs to; nil when unknown */
	str_id marker; /* the function whose calls begin the steps, if the user named one; or nil */
	str_id title;  /* title from the command line */
	str_id command;
	str_id *names; /* indexed by the recording's number */
	size_t name_cap;
	uint32_t seen;		   /* enum live_name_flags of the process's slices */
	int64_t first_ns, last_ns; /* range of its marked ranges; 0: it has none */
	uint64_t highest_id;
	uint32_t id_base; /* added to ids, so that those of several processes differ */
	uint64_t dropped, dropped_marks, texts_lost, rings_lost;
	/* number of slices that stand for several calls, and number of these calls */
	uint64_t sampled, sampled_of;
	uint64_t counted[RING_COUNTERS]; /* bytes counted so far, for each kind of call */
	struct live_reads first, last;	 /* the system's counts at the first and last reading */
	/* reads of its children, which the system adds to its own */
	struct live_reads waited_for;
	bool asked, uses_uring;
	bool ended, known;
	bool repeats; /* a separate program with repeated calls; see live_programs.c */
	bool aside;   /* the process does not belong to a rank, although others do */
	bool follows; /* a process with steps started this one, which belongs to the same job */
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
	uint32_t job; /* index of the process */
	uint32_t kind, id;
	str_id name, device;
	bool first;	/* the first thread of its process */
	bool used;	/* the lane has slices */
	bool steps;	/* the lane has ranges that mark steps */
	int64_t end_ns; /* end of the lane's slices so far */
	uint32_t track; /* set by import_live.c */
	/* Slices that stand for several calls and are not placed yet (live_sampled.c), and estimated time that did
	 * not fit. */
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

/* Processor time and waiting time of a thread so far. */
struct live_schedule {
	uint32_t job, tid;
	int64_t ts_ns; /* monotonic time */
	uint64_t running_ns, waiting_ns;
};

struct live_ring {
	uint32_t job, ring;
	uint32_t lane; /* 1 + index of the lane; 0 = unknown */
	uint64_t next;
	uint64_t dropped, dropped_marks;
};

struct live_sampled {
	struct live_sample row; /* its stack is a stack of the model */
	uint32_t lane;
};

/* Ids of the model, indexed by numbers of the recording; 0 if there is none. */
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
	size_t unplaced; /* number of estimates that could not be placed; see live_sampled.c */
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
	struct buf block; /* content of one block of the file */
	uint64_t damaged, damaged_at;
	bool complete;
	uint64_t end;
};

ow_status live_read(struct live_data *d, struct import_ctx *ctx);
void live_release(struct live_data *d);

/* live_sampled.c: adds a slice that stands for several calls; places slices before one that begins at start_ns;
 * places the rest at the end. */
void live_sampled_add(struct live_data *d, struct live_lane *lane, size_t slice);
void live_sampled_before(struct live_data *d, struct live_lane *lane, int64_t start_ns);
void live_sampled_finish(struct live_data *d);

/* live_programs.c: sets `repeats` of processes. Slices are sorted by lane and time. */
ow_status live_find_programs(struct live_data *d);

/* live_ranks.c: makes processes that train ranks of one job, or separate jobs, if no variable decides. */
ow_status live_separate_trainings(struct live_data *d);

/* journal_rows.c: converts a recording of the recorder API (wire/own/journal.h) to rows of the model. */
ow_status journal_load(struct import_ctx *ctx);

#endif
