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
	uint32_t index; /* in the stack that it is of */
};

struct mixed_input {
	const bool *is_loop; /* of native frames, innermost first: the interpreter's loop */
	size_t native_count;
	bool native_is_whole;	/* down to where the thread began */
	const bool *was_called; /* of Python frames, innermost first: by C */
	size_t python_count;
};

/* Innermost first; `out` has room for both. How many; 0: the two do not belong together. */
size_t mixed_stack_join(const struct mixed_input *in, struct mixed_frame *out);

struct native_process;

struct native_rows {
	struct builder *b;
	const struct sampler *sampler; /* who knows the Python stacks */
	struct native_process **items;
	size_t count, cap;
	metric_id metric;
	uint32_t hz;
	int64_t to_wall_ns, looked_ns;
	struct pid_list refused; /* processes that may not be sampled */
	uint32_t processes;	 /* ever sampled */
	uint64_t samples, lost;
	uint64_t refused_threads; /* of processes that have ended */
	uint64_t joined;	  /* of samples: with the Python functions in their place */
	uint64_t unjoined;	  /* the Python stack was of another moment */
	struct buf name;
};

void native_rows_init(struct native_rows *rows, struct builder *b, const struct sampler *sampler,
		      uint32_t hz, int64_t to_wall_ns);
void native_rows_release(struct native_rows *rows);
/* Fails as native_events_open and native_unwind_new do. */
ow_status native_rows_add(struct native_rows *rows, pid_t pid, struct ow_error *err);
/* Waits until that time of the steady clock, a sample, or a signal. False when it is time, or a signal has come. */
bool native_rows_wait(struct native_rows *rows, int64_t until_ns);
/* Threads that could not be sampled. */
uint64_t native_rows_refused(const struct native_rows *rows);
/* Empties the rings. False without memory; rows are the builder's to fail. */
bool native_rows_read(struct native_rows *rows);

#endif
