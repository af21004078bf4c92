/* lanes_test.c: lanes against a plain search, with both rules, and without memory. */
#include "sink/timeline/lanes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

/* The first lane that is free, as a plain search finds it. */
static void check_rule(enum lanes_rule rule)
{
	static int64_t ends[5000];
	unsigned seed_value = 5;
	size_t used = rule == LANES_APART;
	struct lanes lanes;
	struct mem mem;

	memset(ends, 0, sizeof(ends));
	mem_init(&mem, 0);
	lanes_init(&lanes, &mem, rule);
	for (int i = 0; i < 5000; i++) {
		int64_t start = rand_r(&seed_value) % 300 + i / 4 - 100,
			end = start + rand_r(&seed_value) % 80;
		uint32_t lane;
		size_t plain = 0;

		while (plain < used && ends[plain] >= start + (rule == LANES_TOUCHING))
			plain++;
		used = plain == used ? used + 1 : used;
		ends[plain] = end;
		assert_true(lanes_take(&lanes, start, end, &lane));
		assert_int_equal(lane, plain);
	}
	lanes_release(&lanes);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void lanes_are_those_of_a_plain_search(void **state)
{
	(void)state;
	check_rule(LANES_APART);
	check_rule(LANES_TOUCHING);
}

/* Where all that does not exist seems free. */
static void the_end_of_time(void **state)
{
	uint32_t lane = 9;
	struct lanes lanes;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	lanes_init(&lanes, &mem, LANES_TOUCHING);
	assert_true(lanes_take(&lanes, INT64_MAX, INT64_MAX, &lane));
	assert_int_equal(lane, 0);
	assert_true(lanes_take(&lanes, 0, INT64_MAX, &lane));
	assert_int_equal(lane, 1);
	lanes_release(&lanes);
}

static void no_memory(void **state)
{
	struct lanes lanes;
	struct mem mem;
	uint32_t lane;

	(void)state;
	mem_init(&mem, 0);
	lanes_init(&lanes, &mem, LANES_APART);
	mem_fail_after(1, false);
	assert_false(lanes_take(&lanes, 1, 2, &lane));
	mem_fail_after(0, false);
	lanes_release(&lanes);
	assert_int_equal(atomic_load(&mem.used), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes_are_those_of_a_plain_search),
		cmocka_unit_test(the_end_of_time),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
