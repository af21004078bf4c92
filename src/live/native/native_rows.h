/*
 * native_rows.h: native stacks of processes as rows of the model: samples of the metric `native`, how long a thread was
 * on a processor, on the same tracks as its Python stacks. Of a Python process the Python stack is read as soon as the
 * kernel has taken a sample, and the two become one stack when they belong together (mixed_stack.h). Processes that the
 * sampler finds are followed, whatever they run, and so are programs that they execute.
 */
#ifndef LIVE_NATIVE_ROWS_H
#define LIVE_NATIVE_ROWS_H

#include "live/native_unwind.h"
#include "live/sampler.h"
#include "model/builder.h"

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
ow_status native_rows_add(struct native_rows *rows, pid_t pid, struct error *err);
/* Waits until that time of the steady clock, a sample, or a signal. False when it is time, or a signal has come. */
bool native_rows_wait(struct native_rows *rows, int64_t until_ns);
/* Threads that could not be sampled. */
uint64_t native_rows_refused(const struct native_rows *rows);
/* Empties the rings. False without memory; rows are the builder's to fail. */
bool native_rows_read(struct native_rows *rows);

#endif
