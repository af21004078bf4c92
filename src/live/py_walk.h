/*
 * py_walk.h: one reading of one thread's frames, and whether it is of one moment; used by py_settle.c alone.
 *
 * What makes a reading true: frames carry a mark. From 3.11 on a frame that runs has no stack pointer (-1), and one
 * that has called another Python function, or has returned, has one. So the innermost frame is the outermost one that
 * runs, whatever the thread says a moment earlier or later, and what lies above it is over. Before 3.11 each frame of
 * a stack says that it executes. Calls through C leave the caller without a mark: the callee is an entry (3.11), or
 * a shim lies between (from 3.12 on).
 */
#ifndef LIVE_PY_WALK_H
#define LIVE_PY_WALK_H

#include "live/py_process.h"

/* What a thread says of itself. */
struct py_head {
	uint64_t next, interpreter, number, native;
};

enum py_walk_result { PY_WALK_DONE, PY_WALK_TORN, PY_WALK_GONE, PY_WALK_NO_MEMORY };

/* Asks for what a thread had when it was read last: when nothing has changed, the walk needs nothing else. */
void py_walk_want(const struct py_process *p, const struct py_thread *thread,
		  struct glimpse *glimpse);
/* Reads the thread at thread->at, from the glimpse or else from the process. */
enum py_walk_result py_walk(struct py_process *p, struct py_thread *thread, struct glimpse *glimpse,
			    struct py_raw_stack *out, struct py_head *head);

enum py_stack_state {
	PY_STACK_MIXED, /* of two moments */
	PY_STACK_TURNING, /* the innermost function is just beginning or returning, or others were called since */
	PY_STACK_WHOLE
};
/* By the marks; takes what is over off the inner end. */
enum py_stack_state py_walk_check(const struct py_offsets *o, struct py_raw_stack *stack);
/* How many frames, from the innermost on, were copied at once, and did not change meanwhile. */
size_t py_walk_run(const struct py_offsets *o, const struct py_raw_stack *stack);

#endif
