/* id_map_test.c: values of ids near and far, the first of several, room that cannot be had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/id_map.h"

static void the_first_value_counts(void **state)
{
	struct id_map map;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	id_map_init(&map, &mem);
	assert_int_equal(id_map_find(&map, 0), 0);
	assert_true(id_map_add(&map, 0, 7));
	assert_true(id_map_add(&map, 100000, 8));
	assert_true(id_map_add(&map, 100000, 9));
	assert_int_equal(id_map_find(&map, 0), 7);
	assert_int_equal(id_map_find(&map, 1), 0);
	assert_int_equal(id_map_find(&map, 99999), 0);
	assert_int_equal(id_map_find(&map, 100000), 8);
	assert_int_equal(id_map_find(&map, UINT32_MAX), 0);
	id_map_release(&map);
	assert_int_equal(atomic_load(&mem.used), 0);
	assert_int_equal(id_map_find(&map, 0), 0);
	assert_true(id_map_add(&map, 3, 1));
	assert_int_equal(id_map_find(&map, 3), 1);
	id_map_release(&map);
}

static void without_room_nothing_changes(void **state)
{
	struct id_map map;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	id_map_init(&map, &mem);
	assert_true(id_map_add(&map, 5, 6));
	mem_fail_after(1, true);
	assert_false(id_map_add(&map, 100000, 1));
	mem_fail_after(0, false);
	assert_int_equal(id_map_find(&map, 100000), 0);
	assert_int_equal(id_map_find(&map, 5), 6);
	id_map_release(&map);
	assert_int_equal(atomic_load(&mem.used), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_value_counts),
		cmocka_unit_test(without_room_nothing_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
