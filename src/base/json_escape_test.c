/* json_escape_test.c: the three styles of JSON strings, on text and on bytes that are none. */
#include "base/json_escape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void expect(enum json_style style, struct str text, const char *want)
{
	char escape[JSON_ESCAPE_MAX];
	struct mem mem;
	struct buf buf;

	mem_init(&mem, 0);
	buf_init(&buf, &mem);
	buf_add_char(&buf, '"');
	for (struct str rest = text; rest.len;)
		buf_add_str(&buf, json_escape_next(&rest, style, escape));
	buf_add_char(&buf, '"');
	assert_string_equal(buf_cstr(&buf), want);
	buf_clear(&buf);
	json_quote(&buf, text);
	if (style == JSON_UTF8)
		assert_string_equal(buf_cstr(&buf), want);
	buf_release(&buf);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void utf8_stays(void **state)
{
	(void)state;
	expect(JSON_UTF8, STR(""), "\"\"");
	expect(JSON_UTF8, STR("a\"\\\n\t\r\b\f\x01\x7f"),
	       "\"a\\\"\\\\\\n\\t\\r\\b\\f\\u0001\x7f\"");
	expect(JSON_UTF8, STR("\xc3\xa4\xf0\x9f\x98\x80z"), "\"\xc3\xa4\xf0\x9f\x98\x80z\"");
	expect(JSON_UTF8, STR("x\xff\xc3"), "\"x\xef\xbf\xbd\xef\xbf\xbd\"");
	expect(JSON_UTF8, STR("\xef\xbf\xbd"), "\"\xef\xbf\xbd\"");
	expect(JSON_UTF8, STR("\xc3\0"), "\"\xef\xbf\xbd\\u0000\"");
}

static void ascii_as_python(void **state)
{
	(void)state;
	expect(JSON_ASCII, STR("a~\x7f\n\xc3\xa4"), "\"a~\\u007f\\n\\u00e4\"");
	expect(JSON_ASCII, STR("\xf0\x9f\x98\x80"), "\"\\ud83d\\ude00\"");
	expect(JSON_ASCII, STR("\xff"), "\"\\ufffd\"");
}

/* Names that are cut within a character: the bytes behind it are taken for its continuation. */
static void ascii_as_jsoncpp(void **state)
{
	(void)state;
	expect(JSON_JSONCPP, STR("a\x7f/\n\xc3\xa4"), "\"a\x7f/\\n\\u00e4\"");
	expect(JSON_JSONCPP, STR("\xf0\x9f\x98\x80"), "\"\\ud83d\\ude00\"");
	expect(JSON_JSONCPP, STR("\xe2\x82xyz"), "\"\\u20b8yz\"");
	expect(JSON_JSONCPP, STR("\xc3"), "\"\\ufffd\"");
	expect(JSON_JSONCPP, STR("\xf8z"), "\"\\ufffdz\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utf8_stays),
		cmocka_unit_test(ascii_as_python),
		cmocka_unit_test(ascii_as_jsoncpp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
