/* side_thread_test.c: work that is done in time, work that is not, and a caller that goes on meanwhile. */
#include "live/proc/side_thread.h"

#include "base/clock.h"

#include <unistd.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#define MS 1000000LL

struct work {
	struct side_thread *thread;
	int pipe[2]; /* the work returns when it can read */
	atomic_int done, used;
};

static void add_one(void *arg)
{
	struct work *w = arg;

	if (side_thread_begin_use(w->thread)) {
		w->used++;
		side_thread_end_use(w->thread);
	}
	w->done++;
}

static void wait_and_add(void *arg)
{
	struct work *w = arg;
	char byte;

	assert_int_equal(read(w->pipe[0], &byte, 1), 1);
	add_one(w);
}

static void wait_until_idle(struct side_thread *t)
{
	while (side_thread_is_busy(t))
		usleep(1000);
}

static void done_in_time(void **state)
{
	struct work w = { .thread = side_thread_start() };

	(void)state;
	assert_non_null(w.thread);
	for (int i = 1; i <= 100; i++) {
		assert_true(side_thread_run(w.thread, add_one, &w, 10000 * MS));
		assert_int_equal(w.done, i);
		assert_int_equal(w.used, i);
	}
	assert_true(side_thread_close(w.thread));
}

static void does_not_return(void **state)
{
	struct work w = { .thread = side_thread_start() };
	int64_t begin = steady_ns();

	(void)state;
	assert_int_equal(pipe(w.pipe), 0);
	assert_false(side_thread_run(w.thread, wait_and_add, &w, 5 * MS));
	assert_true(steady_ns() - begin >= 5 * MS);
	assert_true(side_thread_is_busy(w.thread));
	assert_int_equal(write(w.pipe[1], "x", 1), 1);
	wait_until_idle(w.thread);
	assert_int_equal(w.done, 1);
	assert_int_equal(w.used, 0); /* the caller did not wait any more */
	assert_true(side_thread_run(w.thread, add_one, &w, 10000 * MS));
	assert_int_equal(w.used, 1);
	assert_true(side_thread_close(w.thread));
	close(w.pipe[0]);
	close(w.pipe[1]);
}

static void closed_while_busy(void **state)
{
	static struct work w;

	(void)state;
	w.thread = side_thread_start();
	assert_int_equal(pipe(w.pipe), 0);
	assert_false(side_thread_run(w.thread, wait_and_add, &w, MS));
	assert_false(side_thread_close(w.thread));
	assert_int_equal(write(w.pipe[1], "x", 1), 1);
	while (w.done != 1)
		usleep(1000);
	assert_int_equal(w.used, 0);
}

static atomic_int released;

static void count_release(void *arg)
{
	(void)arg;
	atomic_fetch_add(&released, 1);
}

/* At once when the work is done, else when it returns. */
static void released_after_work(void **state)
{
	static struct work w;

	(void)state;
	w.thread = side_thread_start();
	assert_true(side_thread_run(w.thread, add_one, &w, 10000 * MS));
	side_thread_close_and(w.thread, count_release, &w);
	assert_int_equal(atomic_load(&released), 1);
	w = (struct work){ .thread = side_thread_start() };
	assert_int_equal(pipe(w.pipe), 0);
	assert_false(side_thread_run(w.thread, wait_and_add, &w, MS));
	side_thread_close_and(w.thread, count_release, &w);
	assert_int_equal(atomic_load(&released), 1);
	assert_int_equal(write(w.pipe[1], "x", 1), 1);
	while (atomic_load(&released) != 2)
		usleep(1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(done_in_time),
		cmocka_unit_test(does_not_return),
		cmocka_unit_test(closed_while_busy),
		cmocka_unit_test(released_after_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
