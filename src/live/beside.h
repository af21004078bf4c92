/*
 * beside.h: going to the processor that a thread of another process runs on. The kernel gives us our turn there as it
 * would to any program; meanwhile the thread waits, and what is read of it is of one moment. Used by py_settle.c for
 * stacks that change faster than they can be read from another processor; nothing is done to the thread itself.
 *
 * Threads that have a right to the processor before us (real-time ones) are left alone: we would wait for ever.
 */
#ifndef LIVE_BESIDE_H
#define LIVE_BESIDE_H

#include "base/base.h"

#include <sched.h>
#include <sys/types.h>

struct beside {
	cpu_set_t home; /* where we may run otherwise */
	bool knows_home, away;
};

/* False when that cannot be, or makes no sense: then we are where we were. The caller goes back. */
bool beside_go(struct beside *b, pid_t pid, pid_t tid);
void beside_leave(struct beside *b);

#endif
