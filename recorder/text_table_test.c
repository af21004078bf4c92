/*
 * text_table_test.c: unit test of text_table.c: equal texts have one number, numbers lead to the bytes in the region, long
 * texts are cut, and a full region counts what is lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "text_table.c" /* NOLINT(bugprone-suspicious-include) */

struct ring_process *recorder_process;

static int make_region(void **state)
{
	(void)state;
	assert_true(texts_begin());
	texts_forget();
	recorder_process = calloc(1, RING_TEXT_OFFSET + RING_TEXT_BYTES);
	assert_non_null(recorder_process);
	recorder_process->text_bytes = RING_TEXT_BYTES;
	atomic_store(&recorder_process->text_used, 1); /* 0 is the number of no text */
	return 0;
}

static int free_region(void **state)
{
	(void)state;
	free(recorder_process);
	return 0;
}

static void expect_text(uint32_t number, const char *text, size_t len)
{
	assert_int_not_equal(number, 0);
	assert_int_equal(text_at(number)->len, len);
	assert_memory_equal(text_at(number)->bytes, text, len);
}

static void equal_texts_have_one_number(void **state)
{
	uint32_t first = text_of("aten::mm"), second = text_of("aten::add");

	(void)state;
	assert_int_not_equal(first, second);
	assert_int_equal(text_of("aten::mm"), first);
	assert_int_equal(text_number("aten::mmX", 8), first);
	expect_text(first, "aten::mm", 8);
	expect_text(second, "aten::add", 9);
	expect_text(text_number("a\0b", 3), "a\0b", 3);
	expect_text(text_of(""), "", 0);
}

static void long_texts_are_cut(void **state)
{
	static char text[RING_TEXT_MAX + 10];
	uint32_t number;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	number = text_of(text);
	expect_text(number, text, RING_TEXT_MAX);
	assert_int_equal(text_number(text, RING_TEXT_MAX + 3), number);
}

static void a_thread_caches_its_numbers(void **state)
{
	static struct thread t;
	uint32_t number = text_number_cached(&t, "read");

	(void)state;
	memset(&t, 0, sizeof(t));
	assert_int_equal(text_number_cached(&t, "read"), number);
	texts_forget(); /* from here on only the thread knows it */
	assert_int_equal(text_number_cached(&t, "read"), number);
	assert_int_not_equal(text_number_cached(&t, "write"), number);
}

static void a_full_region_counts_lost_texts(void **state)
{
	uint32_t kept = 0, lost = 0;
	char text[256];

	(void)state;
	memset(text, 'y', sizeof(text));
	for (uint32_t i = 0; i < 8192; i++) {
		memcpy(text, &i, sizeof(i));
		if (text_number(text, sizeof(text)))
			kept++;
		else
			lost++;
	}
	assert_in_range(kept, RING_TEXT_BYTES / 272, RING_TEXT_BYTES / 256);
	assert_int_equal(atomic_load(&recorder_process->text_lost), lost);
	assert_true((uint64_t)atomic_load(&recorder_process->text_used) * 8 <= RING_TEXT_BYTES);
	memcpy(text, &(uint32_t){ 0 }, sizeof(uint32_t));
	assert_int_not_equal(text_number(text, sizeof(text)), 0); /* known ones are still found */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_region, free_region)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(equal_texts_have_one_number),
		TEST(long_texts_are_cut),
		TEST(a_thread_caches_its_numbers),
		TEST(a_full_region_counts_lost_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
