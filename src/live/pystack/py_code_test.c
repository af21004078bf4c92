/*
 * py_code_test.c: unit test of the line tables in py_code.c, as four versions of CPython wrote them for one function, and damaged ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "live/pystack/py_code.h"

#define TABLE(text)                                                                                \
	{                                                                                          \
		text, sizeof(text) - 1                                                             \
	}

/* A function with lines going back and forth and a gap of 140 lines; what dis says of it, by the same Python. */
static const struct {
	uint32_t minor;
	int32_t first;
	struct str table;
	struct {
		int64_t offset;
		int32_t line;
	} lines[24]; /* ends with line 0 */
} known[] = {
	{ 8,
	  2,
	  TABLE("\x00\x03\x02\x02\x02\xfd\x04\x04\x08\x01\x04\x01\x04\x01\x02\xff\x06\x7f\x00\x0f"
		"\x04\x01\x0a\x01\x02\x01\x02\x01\x02\xff\x08\x03\x04\x01\x02\xff"),
	  { { 0, 5 },
	    { 2, 7 },
	    { 4, 4 },
	    { 8, 8 },
	    { 16, 9 },
	    { 20, 10 },
	    { 24, 11 },
	    { 26, 10 },
	    { 32, 152 },
	    { 36, 153 },
	    { 46, 154 },
	    { 48, 155 },
	    { 50, 156 },
	    { 52, 155 },
	    { 60, 158 },
	    { 64, 159 },
	    { 66, 158 } } },
	{ 10,
	  2,
	  TABLE("\x02\x03\x02\x02\x04\xfd\x08\x04\x04\x01\x04\x01\x02\x01\x04\xff\x02\x80\x00\x7f"
		"\x04\x0f\x08\x01\x04\xff\x02\x02\x02\x01\x02\x01\x04\xff\x04\x03\x02\x01\x0a\xff"
		"\x02\x01\x06\xff"),
	  { { 0, 5 },	 { 2, 7 },    { 4, 4 },	   { 8, 8 },	{ 16, 9 },
	    { 20, 10 },	 { 24, 11 },  { 26, 10 },  { 32, 152 }, { 36, 153 },
	    { 44, 152 }, { 48, 154 }, { 50, 155 }, { 52, 156 }, { 54, 155 },
	    { 58, 158 }, { 62, 159 }, { 64, 158 }, { 74, 159 }, { 76, 158 } } },
	{ 11,
	  2,
	  TABLE("\x80\x00\xf0\x06\x00\x09\x0a\xe0\x08\x09\xf0\x07\x03\x09\x0b\x80\x41\xf0\x08\x00"
		"\x0e\x0f\xf0\x00\x03\x05\x11\xf0\x00\x03\x05\x11\x88\x01\xd8\x0b\x0c\xf0\x00\x02"
		"\x09\x11\xdd\x0c\x0d\x88\x61\xd8\x0e\x0f\xf1\x03\x01\x0d\x11\xf4\x00\x01\x0d\x11"
		"\xf0\x00\x01\x0d\x11\xf8\xf0\x5c\x04\x00\x0b\x0c\xf0\x00\x01\x05\x0f\xd8\x08\x09"
		"\x88\x51\x89\x06\x88\x01\xf0\x03\x00\x0b\x0c\xf0\x00\x01\x05\x0f\xf0\x04\x05\x05"
		"\x11\xd8\x10\x11\xd8\x11\x12\xf4\x03\x01\x11\x14\xf5\x06\x00\x09\x0e\x88\x61\xd8"
		"\x0e\x0f\xf1\x03\x01\x09\x11\xf4\x00\x01\x09\x11\xf0\x00\x01\x09\x11\xf0\x00\x01"
		"\x09\x11\xf8\x8d\x05\x88\x61\xd8\x0e\x0f\xf1\x03\x01\x09\x11\xf4\x00\x01\x09\x11"
		"\xf0\x00\x01\x09\x11\xf0\x00\x01\x09\x11\xf8\xf8\xf8"),
	  { { 0, 2 },	  { 2, 5 },	{ 4, 7 },    { 6, 4 },	  { 10, 8 },   { 18, 9 },
	    { 22, 10 },	  { 36, 11 },	{ 38, 10 },  { 56, 152 }, { 60, 153 }, { 70, 152 },
	    { 74, 154 },  { 76, 155 },	{ 78, 156 }, { 80, 155 }, { 90, 158 }, { 104, 159 },
	    { 106, 158 }, { 140, 159 }, { 142, 158 } } },
	{ 13,
	  2,
	  TABLE("\x80\x00\xf0\x06\x00\x09\x0a\xe0\x08\x09\xf0\x07\x03\x09\x0b\x80\x41\xf3\x08\x00"
		"\x0e\x0f\x88\x01\xdf\x0b\x0c\x88\x31\xdc\x0c\x0d\x88\x61\xd8\x0e\x0f\xf6\x03\x01"
		"\x0d\x11\xf1\x05\x00\x0e\x0f\xf6\x60\x04\x00\x0b\x0c\xd8\x08\x09\x88\x51\x89\x06"
		"\x88\x01\xf7\x03\x00\x0b\x0c\x88\x21\xf0\x04\x05\x05\x11\xd8\x10\x11\xd8\x11\x12"
		"\xf1\x03\x01\x11\x14\xf4\x06\x00\x09\x0e\x88\x61\xd8\x0e\x0f\xf5\x03\x01\x09\x11"
		"\xf8\x8c\x05\x88\x61\xd8\x0e\x0f\xf5\x03\x01\x09\x11\xfa"),
	  { { 0, 2 },	  { 2, 5 },	{ 4, 7 },     { 6, 4 },	    { 10, 8 },	  { 20, 9 },
	    { 38, 10 },	  { 50, 11 },	{ 52, 10 },   { 66, 8 },    { 70, 152 },  { 84, 153 },
	    { 94, 152 },  { 112, 154 }, { 114, 155 }, { 116, 156 }, { 118, 155 }, { 122, 158 },
	    { 134, 159 }, { 136, 158 }, { 162, 159 }, { 164, 158 } } },
};

static void what_python_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
		for (size_t k = 0; known[i].lines[k].line; k++)
			assert_int_equal(py_line_at(known[i].minor, known[i].table, known[i].first,
						    known[i].lines[k].offset),
					 known[i].lines[k].line);
		assert_int_equal(py_line_at(known[i].minor, known[i].table, known[i].first, -2),
				 known[i].first);
	}
}

/* Any bytes give some line, without reading beyond them (the sanitizers tell). */
static void damaged_tables(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(known); i++)
		for (size_t len = 0; len <= known[i].table.len; len++) {
			char *copy = malloc(len + 1);

			assert_non_null(copy);
			memcpy(copy, known[i].table.ptr, len);
			for (size_t bit = 0; bit < len * 8; bit += 5) {
				copy[bit / 8] ^= (char)(1 << bit % 8);
				for (uint32_t minor = 8; minor <= 13; minor++)
					py_line_at(minor, str_make(copy, len), INT32_MAX - 2,
						   (int64_t)bit);
				copy[bit / 8] ^= (char)(1 << bit % 8);
			}
			free(copy);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_python_says),
		cmocka_unit_test(damaged_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
