/*
 * live_read.h: the segments of a recording of running programs (wire/live_file.h), read into lists: processes, lanes
 * (threads, queues of devices), slices, counts. live_rows.c makes rows of a model of them; import_live.c is the
 * importer. What is damaged is left out and counted.
 */
#ifndef IMPORT_LIVE_READ_H
#define IMPORT_LIVE_READ_H

#include "import/importer.h"
#include "wire/live_file.h"
#include "wire/opw.h"

enum live_name_flags {
	LIVE_NAME_LOADER = 1 << 0,    /* waits for a batch */
	LIVE_NAME_OPTIMIZER = 1 << 1, /* ends a step */
};

/* Bytes that were read, at one moment: as the system counts, and by the calls that the recorder sees. */
struct live_reads {
	uint64_t system, storage, seen, seen_files;
};

struct live_job { /* a process */
	struct live_process row;
	int32_t rank, world_size; /* -1 when it has none */
	str_id run;		  /* which job it is part of; nil when nothing says so */
	str_id title;		  /* from its command line */
	str_id command;
	str_id *names; /* by number */
	size_t name_cap;
	uint32_t seen; /* enum live_name_flags, of slices */
	uint64_t highest_id;
	uint32_t id_base; /* is added to ids, so that those of several processes differ */
	uint64_t dropped, dropped_marks, texts_lost, rings_lost;
	uint64_t counted[RING_COUNTERS]; /* bytes, so far */
	struct live_reads first, last;	 /* when the system was asked */
	struct live_reads waited_for;	 /* of its children, which the system adds to its own */
	bool asked, uses_uring;
	bool ended, known;
	bool aside; /* no part of a rank, although others have one */
	str_id armed[RING_HOOKS];
};

enum live_lane_kind { LIVE_LANE_THREAD, LIVE_LANE_SPANS, LIVE_LANE_DEVICE };

struct live_lane {
	uint32_t job; /* index */
	uint32_t kind, id;
	str_id name, device;
	bool first;	/* thread of its process */
	bool used;	/* has slices */
	uint32_t track; /* set by live_rows.c */
};

struct live_slice {
	int64_t ts_ns, dur_ns;
	int64_t bytes;
	uint32_t lane, name;
	uint32_t id;
	uint16_t category;
};

struct live_value {
	struct live_count row;
	uint32_t job;
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
	struct live_value *values;
	size_t value_count, value_cap;
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
/* The slices become rows; see live_rows.c. */
ow_status live_rows(struct live_data *d);
/* Index + 1 of a lane, which is made when there is none; 0 without memory. */
uint32_t live_lane_of(struct live_data *d, uint32_t job, uint32_t kind, uint32_t id);

/* Stacks: live_stacks.c. `at` is where it stands in the file. */
ow_status live_take_source(struct live_data *d, uint32_t number, struct str text);
ow_status live_take_frame(struct live_data *d, const struct live_frame *row, uint64_t at);
ow_status live_take_stack(struct live_data *d, const struct live_stack *row, uint64_t at);
ow_status live_take_sample(struct live_data *d, const struct live_sample *row, uint64_t at);
/* Of the processes of this job and rank, whose tracks are made. */
ow_status live_add_samples(struct live_data *d, str_id run, int32_t rank);
void live_release_stacks(struct live_data *d);

#endif
