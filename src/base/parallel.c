/* parallel.c: see parallel.h. */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

unsigned parallel_threads(void)
{
	cpu_set_t set;
	int count = 1;

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

	call->work(call->arg, call->thread);
	return NULL;
}

void parallel_run(unsigned threads, void (*work)(void *arg, unsigned thread), void *arg)
{
	struct call calls[PARALLEL_MAX];
	pthread_t ids[PARALLEL_MAX];
	sigset_t all, old;
	unsigned started = 1;

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
	work(arg, 0);
	for (unsigned i = 1; i < started; i++)
		pthread_join(ids[i], NULL);
}
