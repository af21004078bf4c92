/* json_test.c: decoding strings and numbers, stepping through objects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/json/json.h"

static void decodes(const char *raw, const char *want, size_t replaced)
{
	struct mem mem;
	struct buf out;

	mem_init(&mem, 0);
	buf_init(&out, &mem);
	assert_int_equal(json_decode(str_from(raw), &out), replaced);
	assert_string_equal(buf_cstr(&out), want);
	buf_release(&out);
}

static void test_strings(void **state)
{
	(void)state;
	decodes("", "", 0);
	decodes("plain \xc3\xa9", "plain \xc3\xa9", 0);
	decodes("\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t", 0);
	decodes("\\u0041\\u00e9\\u30C7", "A\xc3\xa9\xe3\x83\x87", 0);
	decodes("\\ud83d\\ude00!", "\xf0\x9f\x98\x80!", 0);
	decodes("\\ud83d!", "\xef\xbf\xbd!", 1);
	decodes("\\ude00\\ud83d", "\xef\xbf\xbd\xef\xbf\xbd", 2);
	decodes("\\ud83d\\u0041",
		"\xef\xbf\xbd"
		"A",
		1);
	decodes("a\xff\xfe"
		"b",
		"a\xef\xbf\xbd\xef\xbf\xbd"
		"b",
		2);
	decodes("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
		3); /* a surrogate in UTF-8 */
	decodes("\\x\\", "\xef\xbf\xbdx\xef\xbf\xbd", 2);
	decodes("\\u12", "\xef\xbf\xbdu12", 1);
	assert_true(json_is_plain(STR("abc\xc3\xa9")));
	assert_false(json_is_plain(STR("a\\n")));
	assert_false(json_is_plain(STR("a\xff")));
	assert_true(json_key_is(STR("\\u0070h"), "ph"));
	assert_false(json_key_is(STR("phx"), "ph"));
	assert_false(json_key_is(STR("p"), "ph"));
}

static void decimal(const char *text, int scale, enum json_exactness how, int64_t want)
{
	char padded[128] = { 0 };
	int64_t value = 12345;

	assert_int_equal(json_decimal(str_from(text), scale, &value), how);
	if (how != JSON_NOT_A_NUMBER)
		assert_int_equal(value, want);
	memcpy(padded, text, strlen(text));
	/* digits that follow must not be read as part of it */
	memset(padded + strlen(text), '7', sizeof(padded) - strlen(text));
	value = 12345;
	assert_int_equal(json_decimal_padded(str_make(padded, strlen(text)), scale, &value), how);
	if (how != JSON_NOT_A_NUMBER)
		assert_int_equal(value, want);
}

static void test_numbers(void **state)
{
	(void)state;
	decimal("0", 3, JSON_EXACT, 0);
	decimal("-0", 3, JSON_EXACT, 0);
	decimal("7", 3, JSON_EXACT, 7000);
	decimal("12345678", 3, JSON_EXACT, 12345678000);
	decimal("123456789", 3, JSON_EXACT, 123456789000);
	decimal("1712195495406752.797", 3, JSON_EXACT, 1712195495406752797);
	decimal("1712195495406752", 3, JSON_EXACT, 1712195495406752000);
	decimal("-3.5", 3, JSON_EXACT, -3500);
	decimal("1.0005", 3, JSON_ROUNDED, 1001);
	decimal("1.00049999999999", 3, JSON_ROUNDED, 1000);
	decimal("-1.0005", 3, JSON_ROUNDED, -1001);
	decimal("1025.5709999999999", 3, JSON_ROUNDED, 1025571);
	decimal("0.05799999999", 3, JSON_ROUNDED, 58);
	decimal("1.5000000000000", 3, JSON_EXACT, 1500);
	decimal("1.12300000", 3, JSON_EXACT, 1123);
	decimal("1e3", 3, JSON_EXACT, 1000000);
	decimal("1.5E+2", 3, JSON_EXACT, 150000);
	decimal("12345e-5", 3, JSON_ROUNDED, 123);
	decimal("1e-300", 3, JSON_ROUNDED, 0);
	decimal("1e999999999999", 3, JSON_CLAMPED, INT64_MAX);
	decimal("0e999999999999", 3, JSON_EXACT, 0);
	decimal("9223372036854775.807", 3, JSON_EXACT, INT64_MAX);
	decimal("9223372036854775.808", 3, JSON_CLAMPED, INT64_MAX);
	decimal("9223372036854775.8075", 3, JSON_CLAMPED, INT64_MAX);
	decimal("9999999999999999", 3, JSON_CLAMPED, INT64_MAX);
	decimal("-9999999999999999", 3, JSON_CLAMPED, -INT64_MAX);
	decimal("123456789012345678901234567890", 3, JSON_CLAMPED, INT64_MAX);
	decimal("18446744073709551615", 0, JSON_CLAMPED, INT64_MAX);
	decimal("9223372036854775807", 0, JSON_EXACT, INT64_MAX);
	decimal("1.5", 0, JSON_ROUNDED, 2);
	decimal("1.0", 0, JSON_EXACT, 1);
	decimal(".5", 3, JSON_EXACT, 500);
	decimal("5.", 3, JSON_EXACT, 5000);
	decimal("+5", 3, JSON_EXACT, 5000);
	for (size_t i = 0; i < 10; i++) {
		static const char *const bad[] = { "",	  "-",	 ".",	  "e5",	  "1e",
						   "1e+", "NaN", "1.2.3", "0x10", "--1" };

		decimal(bad[i], 3, JSON_NOT_A_NUMBER, 0);
	}
}

/* Against arithmetic with more digits than needed. */
static void test_random_numbers(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		char text[64];
		unsigned places, whole_digits;
		uint64_t whole, fraction, scale = 1, ns;
		int64_t value;
		int len;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		whole_digits = (unsigned)(seed >> 60);
		whole = (seed >> 4) % 1000000000000000ull;
		for (unsigned d = whole_digits; d < 15; d++)
			whole /= 10;
		places = (unsigned)(seed >> 20) % 8;
		for (unsigned d = 0; d < places; d++)
			scale *= 10;
		fraction = (seed >> 30) % scale;
		len = snprintf(text, sizeof(text), "%s%" PRIu64, i & 1 ? "-" : "", whole);
		if (places)
			snprintf(text + len, sizeof(text) - (size_t)len, ".%0*" PRIu64, (int)places,
				 fraction);
		ns = whole * 1000 + (fraction * 1000 * 2 + scale) / (2 * scale);
		value = i & 1 ? -(int64_t)ns : (int64_t)ns;
		decimal(text, 3, fraction * 1000 % scale ? JSON_ROUNDED : JSON_EXACT, value);
	}
}

static void test_doubles(void **state)
{
	double value;

	(void)state;
	assert_true(json_double(STR("1.5e3"), &value) && value == 1500);
	assert_true(json_double(STR("-7"), &value) && value == -7);
	assert_false(json_double(STR("0x10"), &value));
	assert_false(json_double(STR("inf"), &value));
	assert_false(json_double(STR("1e999"), &value));
	assert_false(json_double(STR(""), &value));
}

static void test_members(void **state)
{
	static const char text[] = "{ \"a\" : 1, // note "
				   "}\n\"b\":\"x\\\"}\",,\"c\":[1,{\"d\":2}],\"e\":{},\"a\":null}";
	struct json_reader r = json_over(str_from(text));
	struct json_value v;
	struct str key;

	(void)state;
	assert_true(json_next_member(&r, &key, &v));
	assert_true(str_eq(key, STR("a")) && v.kind == JSON_NUMBER && v.len == 1);
	assert_true(json_next_member(&r, &key, &v));
	assert_true(str_eq(json_text(v), STR("x\\\"}")) && v.kind == JSON_STRING);
	assert_true(json_next_member(&r, &key, &v));
	assert_true(str_eq(json_text(v), STR("[1,{\"d\":2}]")) && v.kind == JSON_ARRAY);
	assert_true(json_next_member(&r, &key, &v) && v.kind == JSON_OBJECT);
	assert_true(json_next_member(&r, &key, &v) && v.kind == JSON_LITERAL);
	assert_false(json_next_member(&r, &key, &v));
	assert_int_equal(json_find(str_from(text), "a").kind, JSON_LITERAL); /* the last counts */
	assert_int_equal(json_find(str_from(text), "z").kind, JSON_NONE);
	assert_int_equal(json_find(STR(""), "z").kind, JSON_NONE);
	assert_int_equal(json_find(STR("[1]"), "z").kind, JSON_NONE);
	r = json_over(STR("[1, \"a\" , [2], ]"));
	for (int i = 0; i < 3; i++)
		assert_true(json_next_element(&r, &v));
	assert_false(json_next_element(&r, &v));
}

/* Any cut of a text ends without reading beyond it. */
static void test_cut_members(void **state)
{
	static const char text[] = "{\"a\":{\"b\":[1,\"\\u12\"]},\"c\": tru /* x */,\"d\":-1.5e3}";

	(void)state;
	for (size_t len = 0; len < sizeof(text); len++) {
		char *copy = malloc(len ? len : 1);
		struct json_reader r;
		struct json_value v;
		struct str key;

		memcpy(copy, text, len);
		r = json_over(str_make(copy, len));
		while (json_next_member(&r, &key, &v))
			;
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strings),	       cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_random_numbers), cmocka_unit_test(test_doubles),
		cmocka_unit_test(test_members),	       cmocka_unit_test(test_cut_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
