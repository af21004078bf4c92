/*
 * native_rows.h: native stacks of processes as rows of the model: samples of the metric `native` (time on a
 * processor) on the same tracks as the Python stacks of the thread. For a Python process the Python stack is read
 * as soon as the kernel has taken a sample, and both become one stack when they belong together. Processes that
 * the sampler finds are followed, whatever they run, and so are programs that they execute.
 */
#ifndef LIVE_NATIVE_ROWS_H
#define LIVE_NATIVE_ROWS_H

#include "base/base.h"
#include "live/native/native_stacks.h"
#include "live/pystack/sampler.h"
#include "model/builder.h"

struct mixed_frame {
	bool is_python;
	uint32_t index; /* index in the stack that the frame came from */
};

struct mixed_input {
	/* for each native frame, innermost first: it is the interpreter's loop */
	const bool *is_loop;
	size_t native_count;
	bool native_is_whole;	/* the native stack reaches back to the start of the thread */
	const bool *was_called; /* for each Python frame, innermost first: it was called by C */
	size_t python_count;
};

/* Joins two stacks, innermost first; `out` has room for both. Returns the number of frames; 0:
 * they do not belong together. */
size_t mixed_stack_join(const struct mixed_input *in, struct mixed_frame *out);

struct native_process;

struct native_rows {
	struct builder *b;
	const struct sampler *sampler; /* sampler that has the Python stacks */
	struct native_process **items;
	size_t count, cap;
	metric_id metric;
	uint32_t hz;
	int64_t to_wall_ns, looked_ns;
	struct pid_list refused; /* processes that may not be sampled */
	uint32_t processes;	 /* number of processes that were ever sampled */
	uint64_t samples, lost;
	/* number of threads of ended processes that could not be sampled */
	uint64_t refused_threads;
	uint64_t joined;   /* number of samples with their Python functions */
	uint64_t unjoined; /* number of samples whose Python stack was from another moment */
	struct buf name;
};

void native_rows_init(struct native_rows *rows, struct builder *b, const struct sampler *sampler,
		      uint32_t hz, int64_t to_wall_ns);
void native_rows_release(struct native_rows *rows);
/* Starts sampling a process; fails as native_events_open and native_unwind_new do. */
ow_status native_rows_add(struct native_rows *rows, pid_t pid, struct ow_error *err);
/* Waits for a sample until that time of the steady clock. False if the time is over or a signal has
 * arrived. */
bool native_rows_wait(struct native_rows *rows, int64_t until_ns);
/* Returns the number of threads that could not be sampled. */
uint64_t native_rows_refused(const struct native_rows *rows);
/* Empties the rings. False if memory runs out; failures of rows are reported by the builder. */
bool native_rows_read(struct native_rows *rows);

#endif
