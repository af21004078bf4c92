/*
 * parallel.h: runs one function on several threads and waits for all of them. Work is shared out by the
 * function itself (an atomic counter in its argument), so that it also ends when fewer threads could be
 * started than asked for.
 */
#ifndef BASE_PARALLEL_H
#define BASE_PARALLEL_H

#include "base/base.h"

#include <stdatomic.h>

#define PARALLEL_MAX 32

/* Processors that this process may use, at least 1 and at most PARALLEL_MAX. */
unsigned parallel_threads(void);

/* Calls work(arg, 0) … work(arg, n - 1), n ≤ threads, each on its own thread; number 0 on this one. */
void parallel_run(unsigned threads, void (*work)(void *arg, unsigned thread), void *arg);

#endif
