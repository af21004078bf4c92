/* ids_test.c: ids of different files never meet, and keep the form that viewers read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "merge/merge_int.h"

static void check(uint32_t file, enum json_kind kind, const char *id, const char *want)
{
	struct json_value value = { id, (uint32_t)strlen(id), kind };
	struct merge m = { .id_bits = 48, .file_count = 20 };
	struct buf out;
	struct mem mem;

	mem_init(&mem, 0);
	buf_init(&out, &mem);
	if (want) {
		assert_true(id_move(&m, file, &value, &out));
		assert_string_equal(buf_cstr(&out), want);
	} else {
		assert_false(id_move(&m, file, &value, &out));
	}
	buf_release(&out);
}

static void forms(void **state)
{
	(void)state;
	check(0, JSON_NUMBER, "17", NULL);
	check(0, JSON_STRING, "abc", NULL);
	check(1, JSON_NUMBER, "17", "281474976710673");
	check(1, JSON_STRING, "17", "\"281474976710673\"");
	check(1, JSON_NUMBER, "-17", "-281474976710673");
	check(1, JSON_STRING, "0x11", "\"0x1000000000011\"");
	check(2, JSON_STRING, "0X7fffabcd1234", "\"0x27fffabcd1234\"");
	check(1, JSON_STRING, "8780d402", "\"100008780d402\"");
	check(1, JSON_STRING, "request 1", "\"2:request 1\"");
	check(3, JSON_STRING, "", "\"4:\"");
	check(1, JSON_NUMBER, "1.5", "\"2:1.5\"");
	check(1, JSON_STRING, "0x", "\"2:0x\"");
	check(1, JSON_STRING, "0x10000000000000000", "\"2:0x10000000000000000\"");
	check(1, JSON_LITERAL, "null", NULL);
	check(1, JSON_OBJECT, "{}", NULL);
}

static void large_ids(void **state)
{
	struct json_value id = { "0xaf5adc4cfdcd427c", 18, JSON_STRING };
	struct merge m = { .id_bits = 48, .file_count = 20 };
	char seen[20][32];
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	for (uint32_t file = 1; file < 20; file++) {
		struct buf out;

		buf_init(&out, &mem);
		assert_true(id_move(&m, file, &id, &out));
		snprintf(seen[file], sizeof(seen[file]), "%s", buf_cstr(&out));
		assert_int_equal(strlen(seen[file]), 20);
		for (uint32_t other = 1; other < file; other++)
			assert_string_not_equal(seen[file], seen[other]);
		buf_release(&out);
	}
}

static void frames(void **state)
{
	struct json_value id = { "7", 1, JSON_NUMBER };
	struct buf out;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&out, &mem);
	assert_false(frame_id_move(0, &id, &out));
	assert_true(frame_id_move(4, &id, &out));
	assert_string_equal(buf_cstr(&out), "\"5:7\"");
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms),
		cmocka_unit_test(large_ids),
		cmocka_unit_test(frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
