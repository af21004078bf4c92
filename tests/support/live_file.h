/*
 * live_file.h: writes small recordings of running programs, for unit tests and seeds: processes, names and slices, one
 * line each. Times are milliseconds of the job's clock.
 */
#ifndef SUPPORT_LIVE_FILE_H
#define SUPPORT_LIVE_FILE_H

#include "live/record/recording.h"

#define LIVE_MS 1000000u

struct live_writer {
	struct mem mem;
	struct recording recording;
	uint32_t last_name;
	uint64_t next[16]; /* next record number of each process */
};

static inline void live_writer_open(struct live_writer *w, const char *path)
{
	struct ow_error err = { 0 };

	*w = (struct live_writer){ 0 };
	mem_init(&w->mem, 0);
	if (recording_open(&w->recording, &w->mem, path, "test", &err) != OW_OK)
		fail_msg("%s", err.text);
}

static inline void live_writer_process(struct live_writer *w, uint32_t number, uint32_t parent,
				       const char *identity)
{
	recording_add_process(&w->recording,
			      &(struct live_process){ .number = number,
						      .pid = 100 + number,
						      .parent = parent ? 100 + parent : 1,
						      .flags = parent ? LIVE_FORKED : 0 });
	recording_add_text(&w->recording, number, LIVE_COMMAND, 0,
			   str_make("/usr/bin/python3\0train.py", 26));
	if (identity)
		recording_add_text(&w->recording, number, LIVE_IDENTITY, 0,
				   str_make(identity, strlen(identity) + 1));
}

static inline uint32_t live_writer_name(struct live_writer *w, uint32_t process, const char *text)
{
	recording_add_text(&w->recording, process, LIVE_NAME, ++w->last_name, str_from(text));
	return w->last_name;
}

static inline void live_writer_record(struct live_writer *w, uint32_t process,
				      struct ring_record record)
{
	struct live_run run = {
		.process = process, .ring = 1, .first = w->next[process], .count = 1
	};
	struct ring_record *to = recording_add_run(&w->recording, &run);

	assert_non_null(to);
	record.sequence = (uint32_t)w->next[process]++;
	*to = record;
}

static inline void live_writer_thread(struct live_writer *w, uint32_t process, uint32_t tid)
{
	live_writer_record(w, process,
			   (struct ring_record){ .kind = RING_THREAD, .id = tid, .bytes = 1 });
}

static inline void live_writer_slice(struct live_writer *w, uint32_t process, const char *name,
				     enum ring_category category, uint64_t begin, uint64_t end)
{
	live_writer_record(w, process,
			   (struct ring_record){ .kind = RING_SLICE,
						 .category = (uint16_t)category,
						 .name = live_writer_name(w, process, name),
						 .start_ns = begin * LIVE_MS,
						 .dur_ns = (end - begin) * LIVE_MS });
}

static inline void live_writer_sample(struct live_writer *w, uint32_t process, uint32_t stack,
				      uint64_t at)
{
	recording_add_sample(&w->recording,
			     &(struct live_sample){ .process = process,
						    .tid = 100 + process,
						    .stack = stack,
						    .ts_ns = (int64_t)(at * LIVE_MS),
						    .wall_ns = 10 * (int64_t)LIVE_MS });
}

/* Adds stacks: main calls inner, one sample in each. */
static inline void live_writer_stacks(struct live_writer *w, uint32_t process, uint32_t tid)
{
	struct recording *r = &w->recording;

	recording_add_text(r, 0, LIVE_SOURCE, 1, STR("main"));
	recording_add_text(r, 0, LIVE_SOURCE, 2, STR("inner"));
	recording_add_text(r, 0, LIVE_SOURCE, 3, STR("train.py"));
	for (uint32_t i = 1; i <= 2; i++) {
		recording_add_frame(r, &(struct live_frame){ .number = i,
							     .function = i,
							     .file = 3,
							     .line = (int32_t)i * 10 });
		recording_add_stack(
			r, &(struct live_stack){ .number = i, .parent = i - 1, .frame = i });
		recording_add_sample(r, &(struct live_sample){ .process = process,
							       .tid = tid,
							       .stack = i,
							       .ts_ns = (1000 + i) * LIVE_MS,
							       .wall_ns = i * LIVE_MS,
							       .cpu_ns = LIVE_MS });
	}
}

/* Adds a sample of the main thread, 10 ms long, with a stack of two frames, outer and inner, whose numbers begin at
 * `first`. */
static inline void live_writer_stack(struct live_writer *w, uint32_t process, uint32_t first,
				     const char *outer, const char *inner, uint64_t at)
{
	struct recording *r = &w->recording;

	recording_add_text(r, 0, LIVE_SOURCE, first, str_from(outer));
	recording_add_text(r, 0, LIVE_SOURCE, first + 1, str_from(inner));
	recording_add_text(r, 0, LIVE_SOURCE, first + 2, STR("train.py"));
	for (uint32_t i = 0; i < 2; i++) {
		recording_add_frame(r, &(struct live_frame){ .number = first + i,
							     .function = first + i,
							     .file = first + 2,
							     .line = 7 });
		recording_add_stack(r, &(struct live_stack){ .number = first + i,
							     .parent = i ? first : 0,
							     .frame = first + i });
	}
	live_writer_sample(w, process, first + 1, at);
}

/* Adds a step of a training loop: a wait for data, compute, the optimizer. */
static inline void live_writer_step(struct live_writer *w, uint32_t process, uint64_t begin,
				    uint64_t wait, uint64_t compute)
{
	live_writer_slice(w, process, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
			  RING_RANGE, begin, begin + wait);
	live_writer_slice(w, process, "aten::mm", RING_OPERATOR, begin + wait,
			  begin + wait + compute);
	live_writer_slice(w, process, "Optimizer.step#SGD.step", RING_RANGE, begin + wait + compute,
			  begin + wait + compute + 1);
}

static inline void live_writer_flush(struct live_writer *w)
{
	struct ow_error err = { 0 };

	if (recording_flush(&w->recording, &err) != OW_OK)
		fail_msg("%s", err.text);
}

static inline void live_writer_close(struct live_writer *w)
{
	struct ow_error err = { 0 };

	if (recording_close(&w->recording, &err) != OW_OK)
		fail_msg("%s", err.text);
}

#endif
