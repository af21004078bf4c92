/* trace_order_test.c: rows go to their places in the order of the file, or it is said that they cannot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "relation/trace/trace_order.h"

#define PLACES 5000

static void order(unsigned shift, uint64_t step)
{
	struct trace_order o;
	struct mem mem;

	mem_init(&mem, 0);
	assert_true(trace_order_init(&o, &mem, PLACES * step, shift));
	for (uint64_t i = 0; i < PLACES; i++) /* in some other order */
		trace_order_add(&o, i * 2017 % PLACES * step + i % 3);
	assert_false(o.failed);
	trace_order_count(&o);
	for (uint64_t i = 0; i < PLACES; i++)
		assert_int_equal(trace_order_at(&o, i * 2017 % PLACES * step + i % 3),
				 i * 2017 % PLACES);
	trace_order_release(&o);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void places_are_found(void **state)
{
	(void)state;
	order(0, 3);
	order(3, 16);
	order(3, 1000);
}

/* Tiny elements: one that shares its bit with what follows, some in a row, one alone. */
static void tiny_elements(void **state)
{
	static const uint64_t places[] = { 9, 18, 22, 41, 49, 52, 55, 60, 700, 1391, 1403, 1420 };
	static const bool tiny[] = { 0, 1, 0, 0, 1, 1, 1, 0, 1, 0, 1, 0 };

	(void)state;
	for (unsigned shift = 0; shift <= 3; shift += 3) {
		struct trace_order o;
		struct mem mem;

		mem_init(&mem, 0);
		assert_true(trace_order_init(&o, &mem, 1500, shift));
		for (size_t i = 0; i < ARRAY_COUNT(places); i++)
			if (tiny[i])
				assert_true(trace_order_add_tiny(&o, places[i]));
			else
				trace_order_add(&o, places[i]);
		trace_order_count(&o);
		assert_false(o.failed);
		for (size_t i = 0; i < ARRAY_COUNT(places); i++)
			assert_int_equal(trace_order_at(&o, places[i]), i);
		assert_true(trace_order_add_tiny(&o, 18));
		assert_true(o.failed);
		trace_order_release(&o);
		assert_int_equal(atomic_load(&mem.used), 0);
	}
}

static bool fails(unsigned shift, uint64_t a, uint64_t b)
{
	struct trace_order o;
	struct mem mem;
	bool failed;

	mem_init(&mem, 0);
	assert_true(trace_order_init(&o, &mem, 1000, shift));
	trace_order_add(&o, a);
	trace_order_add(&o, b);
	failed = o.failed;
	trace_order_release(&o);
	return failed;
}

static void what_is_no_order(void **state)
{
	(void)state;
	assert_false(fails(0, 8, 9));
	assert_false(fails(3, 7, 8));
	assert_false(fails(3, 8, 999));
	assert_true(fails(0, 8, 8));
	assert_true(fails(3, 8, 15));
	assert_true(fails(0, 8, 1000));
	assert_true(fails(3, 8, UINT64_MAX));
}

static void without_memory(void **state)
{
	struct trace_order o;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	for (uint64_t n = 1; n <= 3; n++) {
		mem_fail_after(n, true);
		assert_false(trace_order_init(&o, &mem, 1000, 3) && trace_order_add_tiny(&o, 5));
		mem_fail_after(0, false);
		trace_order_release(&o);
		assert_int_equal(atomic_load(&mem.used), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_are_found),
		cmocka_unit_test(tiny_elements),
		cmocka_unit_test(what_is_no_order),
		cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
