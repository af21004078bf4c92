/* spans_test.c: unions of spans against a bitmap, in any order, and without memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analyze/steps/spans.h"

#define MOMENTS 200

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* Adds `count` random spans, in order of their begin when `sorted`; marks them in `bits`. */
static bool add_random(struct span_list *list, struct mem *mem, uint32_t seed, int count,
		       bool sorted, char *bits)
{
	int64_t begin = 0;

	for (int i = 0; i < count; i++) {
		int64_t len = next_random(&seed) % 6, end;

		begin = sorted ? begin + next_random(&seed) % 9 : next_random(&seed) % MOMENTS;
		begin = MIN(begin, MOMENTS - 1);
		end = MIN(begin + len, MOMENTS);
		for (int64_t t = begin; t < end; t++)
			bits[t] = 1;
		if (!spans_add(list, mem, begin, end))
			return false;
	}
	return spans_finish(list, mem);
}

static void expect_bits(const struct span_list *list, const char *bits)
{
	for (size_t i = 0; i < list->count; i++) {
		assert_true(list->items[i].begin < list->items[i].end);
		if (i)
			assert_true(list->items[i - 1].end < list->items[i].begin);
	}
	for (int64_t t = 0; t < MOMENTS; t++) {
		size_t at = spans_after(list, t);

		assert_int_equal(at < list->count && list->items[at].begin <= t, bits[t]);
	}
}

static void random_unions(void **state)
{
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	for (uint32_t seed = 1; seed <= 400; seed++) {
		struct span_list list = { 0 }, more = { 0 };
		char bits[MOMENTS] = { 0 };

		assert_true(add_random(&list, &mem, seed, (int)(seed % 60), seed % 3 == 0, bits));
		expect_bits(&list, bits);
		assert_true(add_random(&more, &mem, seed + 1000, 20, false, bits));
		assert_true(spans_add_all(&list, &mem, &more) && spans_finish(&list, &mem));
		expect_bits(&list, bits);
		spans_release(&list, &mem);
		spans_release(&more, &mem);
	}
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void without_memory(void **state)
{
	bool done = false;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	for (uint64_t n = 1; !done; n++) {
		struct span_list list = { 0 };
		char bits[MOMENTS] = { 0 };

		mem_fail_after(n, true);
		done = add_random(&list, &mem, 7, 50, false, bits);
		mem_fail_after(0, false);
		spans_release(&list, &mem);
		assert_int_equal(atomic_load(&mem.used), 0);
	}
}

static void extremes(void **state)
{
	struct span_list list = { 0 };
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	assert_int_equal(span_length(INT64_MIN, INT64_MAX), INT64_MAX);
	assert_int_equal(span_length(5, 4), 0);
	assert_int_equal(span_add(INT64_MAX, 1), INT64_MAX);
	assert_int_equal(span_add(INT64_MIN, -1), INT64_MIN);
	assert_int_equal(spans_after(&list, 0), 0);
	assert_true(spans_finish(&list, &mem));
	assert_true(spans_add(&list, &mem, 3, 3));
	assert_int_equal(list.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(random_unions),
					    cmocka_unit_test(without_memory),
					    cmocka_unit_test(extremes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
