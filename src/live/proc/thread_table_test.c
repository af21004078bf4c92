/* thread_table_test.c: threads have their names and what they use; those that have ended stay for some seconds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/clock.h"
#include "live/proc/thread_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define SECOND_NS 1000000000LL

static _Atomic int stop;

static void *burn(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop))
		;
	return NULL;
}

static const struct thread_row *named(const struct thread_table *t, const char *name)
{
	for (size_t i = 0; i < t->count; i++)
		if (strcmp(t->rows[i].name, name) == 0)
			return &t->rows[i];
	return NULL;
}

static void threads_that_end_keep_their_names(void **state)
{
	struct thread_table t;
	struct mem mem;
	pthread_t thread;
	const struct thread_row *row;
	int64_t now = steady_ns();

	(void)state;
	mem_init(&mem, 0);
	thread_table_init(&t, &mem);
	atomic_store(&stop, 0);
	assert_int_equal(pthread_create(&thread, NULL, burn, NULL), 0);
	assert_int_equal(pthread_setname_np(thread, "short-lived"), 0);
	assert_true(thread_table_turn(&t, getpid(), now));
	row = named(&t, "short-lived");
	assert_non_null(row);
	assert_true(row->cpu < 0); /* of one reading */
	do {			   /* until it got a processor */
		usleep(30000);
		assert_true(thread_table_turn(&t, getpid(), steady_ns()));
		row = named(&t, "short-lived");
		assert_non_null(row);
		assert_true(row->cpu >= 0 && row->wait >= 0);
	} while (row->cpu <= 0);
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
	now = t.rows[0].read_ns + 2 * SECOND_NS;
	do
		assert_true(thread_table_turn(&t, getpid(), now));
	while (named(&t, "short-lived")->state != 'X'); /* the kernel may still list it */
	assert_ptr_equal(named(&t, "short-lived"), &t.rows[t.count - 1]);
	assert_true(named(&t, "short-lived")->cpu < 0);
	assert_true(thread_table_turn(&t, getpid(), now + 60 * SECOND_NS));
	assert_null(named(&t, "short-lived"));
	thread_table_release(&t);
	assert_int_equal(mem.used, 0);
}

static bool has_thread(const struct thread_table *t, pid_t tid)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->rows[i].tid == tid)
			return true;
	return false;
}

/* A sanitizer may run a thread of its own in this process. */
static void another_process_begins_anew(void **state)
{
	struct thread_table t;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	thread_table_init(&t, &mem);
	assert_true(thread_table_turn(&t, getpid(), SECOND_NS));
	assert_true(has_thread(&t, getpid()));
	assert_true(thread_table_turn(&t, getppid(), SECOND_NS));
	assert_false(has_thread(&t, getpid()));
	thread_table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_that_end_keep_their_names),
		cmocka_unit_test(another_process_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
