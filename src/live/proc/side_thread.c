/*
 * side_thread.c: one thread, one function at a time, and a caller that waits for it for a limited time. Called by the stack
 * samplers and the daemon. It is not a pool: each caller has its own thread, so that one slow job does not delay others.
 */
#include "live/proc/side_thread.h"

#include "base/parallel.h"
#include "base/clock.h"

#include <pthread.h>
#include <time.h>

#define SECOND_NS 1000000000
#define ALONE_MOST 64 /* largest number of threads whose work does not return */

struct side_thread {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	void (*work)(void *);
	void *arg;
	bool busy;   /* work is running or about to run */
	bool waited; /* the caller is waiting for the work */
	bool ends, is_alone;
	/* releases `arg` when the work of a closed thread returns; or NULL */
	void (*release)(void *);
};

static atomic_int alone;

struct mem *side_mem(void)
{
	static struct mem mem;

	return &mem; /* a zeroed mem has no limit */
}

static void *run_side_thread(void *arg)
{
	struct side_thread *t = arg;
	bool is_alone;

	pthread_mutex_lock(&t->lock);
	while (!t->ends ||
	       t->busy) { /* work that was given before the end is done, even if it was not begun */
		if (!t->busy) {
			pthread_cond_wait(&t->changed, &t->lock);
			continue;
		}
		pthread_mutex_unlock(&t->lock);
		t->work(t->arg);
		pthread_mutex_lock(&t->lock);
		t->busy = false;
		pthread_cond_broadcast(&t->changed);
	}
	is_alone = t->is_alone;
	pthread_mutex_unlock(&t->lock);
	if (is_alone) {
		if (t->release)
			t->release(t->arg);
		mem_free(side_mem(), t, sizeof(*t));
		atomic_fetch_sub(&alone, 1);
	}
	return NULL;
}

struct side_thread *side_thread_start(void)
{
	struct side_thread *t =
		atomic_load(&alone) < ALONE_MOST ? mem_zalloc(side_mem(), sizeof(*t)) : NULL;
	int failed;

	if (!t)
		return NULL;
	pthread_mutex_init(&t->lock, NULL);
	background_cond_init(&t->changed);
	failed = background_start(&t->thread, run_side_thread, t);
	if (failed) {
		mem_free(side_mem(), t, sizeof(*t));
		return NULL;
	}
	return t;
}

bool side_thread_run(struct side_thread *t, void (*work)(void *), void *arg, int64_t patience_ns)
{
	int64_t end_ns = steady_ns() + patience_ns;
	struct timespec end = { end_ns / SECOND_NS, end_ns % SECOND_NS };
	bool done;

	pthread_mutex_lock(&t->lock);
	t->work = work;
	t->arg = arg;
	t->busy = t->waited = true;
	pthread_cond_broadcast(&t->changed);
	while (t->busy && pthread_cond_timedwait(&t->changed, &t->lock, &end) == 0)
		;
	done = !t->busy;
	t->waited = false;
	pthread_mutex_unlock(&t->lock);
	return done;
}

bool side_thread_is_busy(struct side_thread *t)
{
	bool busy;

	pthread_mutex_lock(&t->lock);
	busy = t->busy;
	pthread_mutex_unlock(&t->lock);
	return busy;
}

bool side_thread_begin_use(struct side_thread *t)
{
	pthread_mutex_lock(&t->lock);
	if (t->waited)
		return true;
	pthread_mutex_unlock(&t->lock);
	return false;
}

void side_thread_end_use(struct side_thread *t)
{
	pthread_mutex_unlock(&t->lock);
}

bool side_thread_close(struct side_thread *t)
{
	bool busy;

	pthread_mutex_lock(&t->lock);
	t->ends = true;
	busy = t->is_alone = t->busy;
	if (busy) {
		atomic_fetch_add(&alone, 1);
		pthread_detach(t->thread);
	}
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
	if (busy)
		return false;
	pthread_join(t->thread, NULL);
	mem_free(side_mem(), t, sizeof(*t));
	return true;
}

void side_thread_close_and(struct side_thread *t, void (*release)(void *), void *arg)
{
	pthread_mutex_lock(&t->lock);
	t->release = release;
	pthread_mutex_unlock(&t->lock);
	if (side_thread_close(t))
		release(arg);
}
