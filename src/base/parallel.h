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

/* Returns the number of processors that this process may use, from 1 to PARALLEL_MAX; 1 in a thread of
 * parallel_run, whose threads use them all. */
unsigned parallel_threads(void);

/* Calls work(arg, 0) … work(arg, n - 1), n ≤ threads, each on its own thread; number 0 on this one. */
void parallel_run(unsigned threads, void (*work)(void *arg, unsigned thread), void *arg);

/* Background threads that work beside the program: */

/* Signals are handled by the thread that starts a background thread; timed waits use the clock that never
 * jumps (clock.h). */

/* Initialises a condition for pthread_cond_timedwait with times of steady_ns. */
static inline void background_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t steady;

	pthread_condattr_init(&steady);
	pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &steady);
	pthread_condattr_destroy(&steady);
}

/* Starts a thread. Returns 0, or the error code of pthread_create. */
static inline int background_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	sigset_t all, before;
	int failed;

	sigfillset(&all);
	sigdelset(&all,
		  /* SIGBUS stays unblocked: a fault belongs to its thread, and a blocked fault
		 * ends the process (guard.h) */
		  SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed;
}

#endif
