/*
 * clock_test.c: unit test of clock.c: lines from the processor's counter to nanoseconds, how they are bent towards the
 * system's clock, and the clock itself, which never runs backwards. tests/support/clock_check.c compares it for longer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "clock.c" /* NOLINT(bugprone-suspicious-include) */

static void a_line_leads_to_nanoseconds(void **state)
{
	const struct clock_line line = { .counter = 1000, .ns = 5000, .rate = (uint64_t)1 << 31 };

	(void)state;
	assert_int_equal(clock_at(&line, 1000), 5000);
	assert_int_equal(clock_at(&line, 1200), 5100);
	assert_int_equal(clock_at(&line, 900), 5000); /* a core that is a little behind */
	assert_int_equal(clock_at(&line, 1000 + ((uint64_t)1 << 40)), 5000 + ((uint64_t)1 << 39));
	assert_int_equal(ns_since(10, 30), 20);
	assert_int_equal(ns_since(30, 10), 0);
}

#if defined(__x86_64__)
static void a_rate_is_bent_gently(void **state)
{
	(void)state;
	assert_true(bent_rate(0.5, 0) == 0.5);
	assert_true(bent_rate(0.5, 1e6) > 0.5 && bent_rate(0.5, 1e6) < 0.501);
	assert_true(bent_rate(0.5, -1e6) < 0.5 && bent_rate(0.5, -1e6) > 0.499);
	assert_true(bent_rate(0.5, -1e12) == 0.25); /* never backwards */
}
#endif

static void it_follows_the_system(void **state)
{
	const struct timespec moment = { 0, 15000000 };
	uint64_t last = 0;

	(void)state;
	clock_begin();
	assert_null(atomic_load(&recorder_clock)); /* until it has been compared twice */
	for (int i = 0; i < 20; i++) {
		nanosleep(&moment, NULL);
		clock_adjust();
		for (int k = 0; k < 1000; k++) {
			uint64_t before = clock_ns(), now = now_ns(), after = clock_ns();

			assert_true(now >= last);
			assert_true(now + 1000000 > before && now < after + 1000000);
			last = now;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_leads_to_nanoseconds),
#if defined(__x86_64__)
		cmocka_unit_test(a_rate_is_bent_gently),
#endif
		cmocka_unit_test(it_follows_the_system),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
