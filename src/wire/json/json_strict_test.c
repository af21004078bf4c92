/* json_strict_test.c: what is strict JSON and what is not, repairs, and failing allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/json/json_strict.h"

static bool strict(const char *text)
{
	return json_strict(str_from(text));
}

static void strict_texts(void **state)
{
	static const char *const good[] = {
		"{}",
		"[]",
		"0",
		"-0.5e+10",
		"\"\"",
		"true",
		"null",
		"{\"a\":1}",
		"{ \"a\" : [ 1 , 2.5 , { } ] ,\n\"b\":\"x\" }",
		"\"\\u00e9\\n\\/ \xc3\xa9 \xf0\x9f\x98\x80\"",
		"[[[[[[[[[[]]]]]]]]]]",
		"\"a long text without anything odd in it, longer than a vector\"",
		"123456789012345678901234567890",
	};
	static const char *const bad[] = {
		"",
		" 1",
		"1 ",
		"{",
		"}",
		"[1,]",
		"{,}",
		"{\"a\"}",
		"{\"a\":}",
		"{a:1}",
		"{\"a\":1,}",
		"[1 2]",
		"[1}",
		"{\"a\":1]",
		"01",
		"-",
		"1.",
		".5",
		"+1",
		"1e",
		"0x10",
		"NaN",
		"Infinity",
		"True",
		"nul",
		"\"",
		"\"\\x\"",
		"\"\\u12\"",
		"\"\\u12g4\"",
		"\"a\tb\"",
		"\"\xff\"",
		"\"\xc3\"",
		"\"\xed\xa0\x80\"",
		"'a'",
		"[1]//c",
		"/**/1",
		"[1,,2]",
		"\"a\\\"",
		"{\"a\":1 \"b\":2}",
		"[1]]",
		"\"a long text with an odd \x01 byte\"",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(good); i++)
		if (!strict(good[i]))
			fail_msg("good: %s", good[i]);
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
		if (strict(bad[i]))
			fail_msg("bad: %s", bad[i]);
	assert_false(json_strict(str_make("\"a\0b\"", 5)));
}

/* Every place in a vector's width. */
static void strict_at_every_place(void **state)
{
	char text[80];

	(void)state;
	for (size_t len = 0; len < 70; len++) {
		memset(text, 'x', sizeof(text));
		text[0] = text[len + 1] = '"';
		assert_true(json_strict(str_make(text, len + 2)));
		for (size_t at = 1; at <= len; at++) {
			text[at] = '\n';
			assert_false(json_strict(str_make(text, len + 2)));
			text[at] = (char)0x80;
			assert_false(json_strict(str_make(text, len + 2)));
			text[at] = 'x';
		}
	}
}

static void check_repair(const char *text, const char *want)
{
	struct buf out;
	struct mem mem;

	mem_init(&mem, 0);
	buf_init(&out, &mem);
	json_repair(str_from(text), NULL, &out);
	assert_string_equal(buf_cstr(&out), want);
	assert_true(json_strict(str_from(want)));
	buf_release(&out);
}

static void repairs(void **state)
{
	(void)state;
	check_repair("{ \"a\" : 1 }", "{\"a\":1}");
	check_repair("{\"a\":1,,\"b\":[,1,],}", "{\"a\":1,\"b\":[1]}");
	check_repair("{\"a\":1 \"b\":2}", "{\"a\":1,\"b\":2}");
	check_repair("{\"a\":,\"b\":}", "{\"a\":null,\"b\":null}");
	check_repair("{\"a\"}", "{\"a\":null}");
	check_repair("{a:True,b:false,'c':\"d\"}", "{\"a\":\"True\",\"b\":false,\"'c'\":\"d\"}");
	check_repair("{[1]}", "{\"\":[1]}");
	check_repair("[NaN,-Infinity,+1,007,-.5,5.,1.e5,0x10,1e,--1,+]",
		     "[null,null,1,7,-0.5,5,1e5,\"0x10\",\"1e\",\"--1\",\"+\"]");
	check_repair("[1}", "[1]");
	check_repair("{\"a\":[1,{\"b\":\"c", "{\"a\":[1,{\"b\":\"c\"}]}");
	check_repair("\"\\q\\u12 \x01 \xff \xc3\xa9\"",
		     "\"\xef\xbf\xbdq\xef\xbf\xbdu12 \\u0001 \xef\xbf\xbd \xc3\xa9\"");
	check_repair("/*x*/[1,//y\n2/*z*/]", "[1,2]");
	check_repair("[/*/1]", "[]");
	check_repair("", "null");
	check_repair(":,]1", "1");
	check_repair("\"a\\", "\"a\xef\xbf\xbd\"");
}

static bool hide_b(struct str key)
{
	return str_eq(key, STR("b"));
}

static void hides(void **state)
{
	struct buf out;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&out, &mem);
	assert_int_equal(
		json_repair(STR("{\"a\":1,\"b\":{\"b\":[1,{}]},\"c\":{\"b\":2,\"d\":3},\"b\"}"),
			    hide_b, &out),
		3);
	assert_string_equal(buf_cstr(&out), "{\"a\":1,\"b\":\"(hidden)\",\"c\":{\"b\":\"(hidden)\","
					    "\"d\":3},\"b\":\"(hidden)\"}");
	buf_release(&out);
}

static void quotes(void **state)
{
	struct buf out;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&out, &mem);
	json_quote(&out, STR("a\"b\\c\n\xff"));
	json_quote_raw(&out, STR("a\\\"b\\n\n"));
	assert_string_equal(buf_cstr(&out), "\"a\\\"b\\\\c\\n\xef\xbf\xbd\"\"a\\\"b\\n\\n\"");
	buf_release(&out);
}

/* Whatever the bytes, what comes out is strict, and strict text comes out as it is but for blanks. */
static void random_bytes(void **state)
{
	static const char alphabet[] = "{}[]\",:\\ 0-1.eEtrue\nNn/*'\x01\x80\xc3\xa9";
	uint64_t seed = 7;
	char text[48];
	struct buf out;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&out, &mem);
	for (int round = 0; round < 200000; round++) {
		size_t len;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		len = (size_t)(seed >> 40) % sizeof(text);
		for (size_t i = 0; i < len; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			text[i] = alphabet[(seed >> 33) % (sizeof(alphabet) - 1)];
		}
		buf_clear(&out);
		json_repair(str_make(text, len), NULL, &out);
		if (!json_strict(buf_str(&out)))
			fail_msg("%.*s became %.*s", (int)len, text, (int)out.len, out.ptr);
	}
	buf_release(&out);
}

static void fails_cleanly(void **state)
{
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	for (uint64_t n = 1; n < 8; n++) {
		struct buf out;

		buf_init(&out, &mem);
		mem_fail_after(n, true);
		json_repair(STR("{\"a\":[[[1,2,3]]],\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\":2}"),
			    NULL, &out);
		mem_fail_after(0, false);
		buf_release(&out);
		assert_int_equal(atomic_load(&mem.used), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strict_texts),	 cmocka_unit_test(strict_at_every_place),
		cmocka_unit_test(repairs),	 cmocka_unit_test(hides),
		cmocka_unit_test(quotes),	 cmocka_unit_test(random_bytes),
		cmocka_unit_test(fails_cleanly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
