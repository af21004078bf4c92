/*
 * parallel.c: starts threads, runs one function on all of them, and joins them. Importers, the freeze, merge, push
 * and relations call it. Each call starts new threads; there is no pool and no queue, and work is not divided here.
 * The caller's own thread is thread 0, so the work is done even when no other thread can be started.
 */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

static __thread bool inside; /* true in threads of parallel_run, which share the processors */

unsigned parallel_threads(void)
{
	cpu_set_t set;
	int count = 1;

	if (inside)
		return 1;
	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		count = CPU_COUNT(&set);
	return (unsigned)MAX(1, MIN(count, PARALLEL_MAX));
}

struct call {
	void (*work)(void *arg, unsigned thread);
	void *arg;
	unsigned thread;
};

static void *run(void *arg)
{
	struct call *call = arg;

	inside = true;
	call->work(call->arg, call->thread);
	return NULL;
}

void parallel_run(unsigned threads, void (*work)(void *arg, unsigned thread), void *arg)
{
	struct call calls[PARALLEL_MAX];
	pthread_t ids[PARALLEL_MAX];
	sigset_t all, old;
	unsigned started = 1;
	bool was_inside = inside;

	threads = MIN(threads, PARALLEL_MAX);
	/* Signals are for the caller's thread: an interrupt must reach the one that waits for it. Faults
	 * are the thread's own, and one that is blocked ends the process (guard.h). */
	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (; started < threads; started++) {
		calls[started] = (struct call){ work, arg, started };
		if (pthread_create(&ids[started], NULL, run, &calls[started]) != 0)
			break;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	inside |= started > 1;
	work(arg, 0);
	inside = was_inside;
	for (unsigned i = 1; i < started; i++)
		pthread_join(ids[i], NULL);
}
