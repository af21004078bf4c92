/* py_walk.h: one reading of one thread's frames; used by py_process.c alone. */
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

#endif
