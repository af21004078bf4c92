/*
 * parallel.h: runs one function on several threads and waits for all of them. The function divides the work itself (an
 * atomic counter in its argument), so all of it is done even when fewer threads start than were asked for.
 */
#ifndef BASE_PARALLEL_H
#define BASE_PARALLEL_H

#include "base/base.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <stdatomic.h>

#define PARALLEL_MAX 32

/* Processors that this process may use, at least 1 and at most PARALLEL_MAX; 1 in a thread of parallel_run, whose threads use them all. */
unsigned parallel_threads(void);

/* Calls work(arg, 0) … work(arg, n - 1), n ≤ threads, each on its own thread; number 0 on this one. */
void parallel_run(unsigned threads, void (*work)(void *arg, unsigned thread), void *arg);

/* ---- threads that work beside the program ---- */

/* Signals stay with the thread that starts one, and waits are measured by the clock that never jumps (clock.h). */

/* For pthread_cond_timedwait with times of steady_ns. */
static inline void background_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t steady;

	pthread_condattr_init(&steady);
	pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &steady);
	pthread_condattr_destroy(&steady);
}

/* 0, or what pthread_create returns. */
static inline int background_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	sigset_t all, before;
	int failed;

	sigfillset(&all);
	sigdelset(
		&all,
		SIGBUS); /* a fault is the thread's own, and one that is blocked ends the process (guard.h) */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed;
}

#endif
