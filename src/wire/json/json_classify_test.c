/* json_classify_test.c: both ways of marking quotes and brackets against a plain one, byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/json/json_scan.h"

#define MAX_LEN 700

/* The same as json_classify, said in the simplest way. */
static void plain(const unsigned char *b, size_t len, struct json_block *blocks)
{
	bool in_string = false;
	size_t backslashes = 0; /* in a row before this byte */

	memset(blocks, 0, ((len + 63) / 64) * sizeof(*blocks));
	for (size_t i = 0; i < len; i++) {
		uint64_t bit = (uint64_t)1 << i % 64;
		struct json_block *block = &blocks[i / 64];
		bool escaped = backslashes % 2;

		if (!in_string && b[i] == '/' && i + 1 < len && b[i + 1] == '/') {
			while (i < len && b[i] != '\n' && b[i] != '\r')
				i++;
			backslashes = 0;
			continue;
		}
		if (!in_string && b[i] == '/' && i + 1 < len && b[i + 1] == '*') {
			for (i += 2; i < len && !(b[i] == '*' && i + 1 < len && b[i + 1] == '/');
			     i++)
				;
			i++;
			backslashes = 0;
			continue;
		}
		backslashes = b[i] == '\\' ? backslashes + 1 : 0;
		if (b[i] == '"' && !escaped) {
			block->quote |= bit;
			in_string = !in_string;
		} else if (!in_string && (b[i] == '{' || b[i] == '[')) {
			block->open |= bit;
		} else if (!in_string && (b[i] == '}' || b[i] == ']')) {
			block->close |= bit;
		}
	}
}

static void compare(enum json_path path, const unsigned char *text, size_t len)
{
	struct json_block want[MAX_LEN / 64 + 1], got[MAX_LEN / 64 + 1];
	unsigned char *copy = malloc(len ? len : 1); /* exact, for the sanitizers */
	struct json_carry carry = { 0 };
	size_t blocks = (len + 63) / 64;

	memcpy(copy, text, len);
	plain(copy, len, want);
	assert_int_equal(json_classify(path, copy, len, got, &carry), blocks);
	for (size_t i = 0; i < blocks; i++) {
		assert_int_equal(got[i].quote, want[i].quote);
		assert_int_equal(got[i].open, want[i].open);
		assert_int_equal(got[i].close, want[i].close);
	}
	/* in pieces of whole blocks the same comes out */
	carry = (struct json_carry){ 0 };
	for (size_t at = 0; at < len; at += 128)
		json_classify(path, copy + at, MIN(len - at, (size_t)128), got + at / 64, &carry);
	assert_memory_equal(got, want, blocks * sizeof(*got));
	free(copy);
}

static void compare_both(const unsigned char *text, size_t len)
{
	compare(JSON_PORTABLE, text, len);
	compare(json_best_path(), text, len);
}

static void test_random(void **state)
{
	/* alphabets from "strings only" to "comments and damage" */
	static const char *const alphabets[] = { "\"\\ab", "\"\\{}[]:, x", "\"\\{}[]/ *\n", "\\\"",
						 "\"\\{}[]/*\r\nab\xff\x80[{" };
	unsigned char text[MAX_LEN];
	uint64_t seed = 1;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		const char *alphabet = alphabets[round % 5];
		size_t letters = strlen(alphabet), len;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		len = (seed >> 33) % MAX_LEN;
		for (size_t i = 0; i < len; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			text[i] = (unsigned char)alphabet[(seed >> 33) % letters];
			if (round % 7 == 0 && (seed >> 20) % 8)
				text[i] = 'x'; /* longer stretches of one kind */
		}
		compare_both(text, len);
	}
}

static void test_long_runs_of_backslashes(void **state)
{
	unsigned char text[MAX_LEN];

	(void)state;
	for (size_t run = 0; run < 200; run++)
		for (size_t before = 0; before < 3; before++) {
			memset(text, ' ', sizeof(text));
			text[before] = '"';
			memset(text + before + 1, '\\', run);
			text[before + 1 + run] = '"';
			text[before + 2 + run] = '{';
			compare_both(text, 300);
		}
}

static void test_every_byte(void **state)
{
	unsigned char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (unsigned char)i;
	for (size_t len = 0; len < sizeof(text); len++)
		compare_both(text, len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_long_runs_of_backslashes),
		cmocka_unit_test(test_every_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
