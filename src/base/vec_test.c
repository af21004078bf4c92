/* vec_test.c: arrays that grow (vec.h) and the radix sort (radix.h). */
#include "base/radix.h"
#include "base/vec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

struct pair {
	int a, b;
};

struct pairs {
	struct pair *items;
	size_t cap;
	uint32_t count;
};

static void pushes_and_frees(void **state)
{
	struct pairs p = { 0 };
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	for (int i = 0; i < 1000; i++)
		assert_true(vec_push(&mem, p.items, p.count, p.cap, (struct pair){ i, -i }));
	assert_int_equal(p.count, 1000);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(p.items[i].a - p.items[i].b, 2 * i);
	assert_int_equal(atomic_load(&mem.used), p.cap * sizeof(struct pair));
	vec_free(&mem, p.items, p.cap);
	assert_null(p.items);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void stays_as_it_was_without_memory(void **state)
{
	struct pairs p = { 0 };
	struct mem mem;
	struct pair *before;

	(void)state;
	mem_init(&mem, 16 * sizeof(struct pair));
	while (vec_push(&mem, p.items, p.count, p.cap, (struct pair){ 1, 2 }))
		;
	assert_in_range(p.count, 8, 16);
	before = p.items;
	assert_false(vec_reserve(&mem, p.items, p.cap, SIZE_MAX / 2));
	assert_false(vec_reserve(&mem, p.items, p.cap, SIZE_MAX));
	assert_ptr_equal(p.items, before);
	assert_int_equal(p.items[p.count - 1].b, 2);
	vec_free(&mem, p.items, p.cap);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void new_items_are_zero(void **state)
{
	uint32_t *items = NULL;
	size_t cap = 0;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	for (size_t need = 1; need < 5000; need = need * 3 + 1) {
		size_t old = cap;

		assert_true(vec_reserve_zero(&mem, items, cap, need));
		for (size_t i = old; i < cap; i++) {
			assert_int_equal(items[i], 0);
			items[i] = 1;
		}
	}
	vec_free(&mem, items, cap);
}

struct keyed {
	uint32_t place;
	uint64_t key;
};

static void check_sorted(const struct keyed *items, size_t count)
{
	for (size_t i = 1; i < count; i++)
		assert_true(
			items[i - 1].key < items[i].key ||
			(items[i - 1].key == items[i].key && items[i - 1].place < items[i].place));
}

/* Stable, with keys that share digits, of any length, with either width of digits. */
static void radix_sorts(void **state)
{
	enum { MOST = 3000 };
	static struct keyed items[MOST], spare[MOST];
	static const uint64_t masks[] = { 0, 3, 0xff00, 0xfff0000000000000, UINT64_MAX };
	static const size_t counts[] = { 0, 1, 2, 100, MOST };
	uint64_t x = 88172645463325252u;

	(void)state;
	for (size_t m = 0; m < ARRAY_COUNT(masks); m++)
		for (size_t c = 0; c < ARRAY_COUNT(counts); c++)
			for (unsigned bits = 8; bits <= 11; bits += 3) {
				for (uint32_t i = 0; i < counts[c]; i++) {
					x ^= x << 13;
					x ^= x >> 7;
					x ^= x << 17;
					items[i] = (struct keyed){ i, (x & masks[m]) | 0x10 };
				}
				radix_sort_in_place(items, spare, counts[c], key, bits);
				check_sorted(items, counts[c]);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pushes_and_frees),
		cmocka_unit_test(stays_as_it_was_without_memory),
		cmocka_unit_test(new_items_are_zero),
		cmocka_unit_test(radix_sorts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
