/* ticker.c: see ticker.h. */
#include "watch/ticker.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#define TICK_NS (500 * 1000000L)

struct ticker {
	ticker_fn tick;
	void *arg;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop;
};

/* True when it is time to end. */
static bool wait_or_stop(struct ticker *t)
{
	struct timespec until;
	bool stop;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += TICK_NS;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	pthread_mutex_lock(&t->lock);
	while (!t->stop && pthread_cond_timedwait(&t->wake, &t->lock, &until) == 0)
		;
	stop = t->stop;
	pthread_mutex_unlock(&t->lock);
	return stop;
}

static void *run(void *arg)
{
	struct ticker *t = arg;
	bool stop = false, more = true;

	while (!stop && more) {
		stop = wait_or_stop(t);
		more = t->tick(t->arg, stop);
	}
	return NULL;
}

static void release(struct ticker *t)
{
	pthread_cond_destroy(&t->wake);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

ow_status ticker_start(ticker_fn tick, void *arg, struct ticker **out, struct error *err)
{
	struct ticker *t = calloc(1, sizeof(*t));
	pthread_condattr_t clock;
	sigset_t all, before;
	int failed;

	*out = NULL;
	if (!t)
		return error_no_memory(err);
	t->tick = tick;
	t->arg = arg;
	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&t->wake, &clock);
	pthread_condattr_destroy(&clock);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&t->thread, NULL, run, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed) {
		release(t);
		return error_errno(err, failed, "a thread that watches the job");
	}
	*out = t;
	return OW_OK;
}

void ticker_stop(struct ticker *t)
{
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	release(t);
}
