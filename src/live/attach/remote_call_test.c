/*
 * remote_call_test.c: unit test of the scheduling part of remote_call.c: work in a session of its own returns its result or none, and
 * this thread is scheduled as before.
 */
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

#include "live/attach/remote_call.h"

struct answer {
	pid_t pid, session;
	int number;
};

static void answer_in_child(void *arg, void *result)
{
	*(struct answer *)result = (struct answer){ getpid(), getsid(0), *(int *)arg };
}

static void works_apart(void **state)
{
	struct answer answer = { 0 };
	int number = 7;

	(void)state;
	assert_true(sched_boost_apart(answer_in_child, &number, &answer, sizeof(answer)));
	assert_int_equal(answer.number, 7);
	assert_int_not_equal(answer.pid, getpid());
	assert_int_equal(answer.session, answer.pid);
	assert_int_equal(waitpid(answer.pid, NULL, 0), -1); /* it is gone */
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
	assert_false(sched_boost_apart(die, NULL, &result, sizeof(result)));
}

static void results_have_a_limit(void **state)
{
	static char large[PIPE_BUF + 1];

	(void)state;
	assert_false(sched_boost_apart(die, NULL, large, sizeof(large)));
}

static void leaves_the_thread_as_it_was(void **state)
{
	int policy = sched_getscheduler(0);
	struct sched_boost hurry;

	(void)state;
	sched_boost_begin(&hurry);
	assert_int_equal(sched_getscheduler(0), hurry.first ? SCHED_RR : policy);
	sched_boost_end(&hurry);
	assert_int_equal(sched_getscheduler(0), policy);
	sched_boost_end(&hurry); /* twice is no harm */
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
