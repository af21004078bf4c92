/* hurry_test.c: work in a session of its own hands its result back, or there is none; how this thread runs is as before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live/hurry.h"

struct told {
	pid_t pid, session;
	int number;
};

static void tell(void *arg, void *result)
{
	*(struct told *)result = (struct told){ getpid(), getsid(0), *(int *)arg };
}

static void works_apart(void **state)
{
	struct told told = { 0 };
	int number = 7;

	(void)state;
	assert_true(hurry_apart(tell, &number, &told, sizeof(told)));
	assert_int_equal(told.number, 7);
	assert_int_not_equal(told.pid, getpid());
	assert_int_equal(told.session, told.pid);
	assert_int_equal(waitpid(told.pid, NULL, 0), -1); /* it is gone */
}

static void die(void *arg, void *result)
{
	(void)arg;
	(void)result;
	raise(SIGKILL);
}

static void tells_that_it_ended_before(void **state)
{
	int result = 1;

	(void)state;
	assert_false(hurry_apart(die, NULL, &result, sizeof(result)));
}

static void results_have_a_limit(void **state)
{
	static char large[PIPE_BUF + 1];

	(void)state;
	assert_false(hurry_apart(die, NULL, large, sizeof(large)));
}

static void leaves_the_thread_as_it_was(void **state)
{
	int policy = sched_getscheduler(0);
	struct hurry hurry;

	(void)state;
	hurry_begin(&hurry);
	assert_int_equal(sched_getscheduler(0), hurry.first ? SCHED_RR : policy);
	hurry_end(&hurry);
	assert_int_equal(sched_getscheduler(0), policy);
	hurry_end(&hurry); /* twice is no harm */
	assert_int_equal(sched_getscheduler(0), policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(works_apart),
		cmocka_unit_test(tells_that_it_ended_before),
		cmocka_unit_test(results_have_a_limit),
		cmocka_unit_test(leaves_the_thread_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
