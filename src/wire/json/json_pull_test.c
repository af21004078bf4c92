/* json_pull_test.c: tokens of documents, whole, cut at any byte, longer than a window, and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "wire/json/json_pull.h"

static const char *const names[] = { "end",    "{",	 "[",	 "close", "key",
				     "string", "number", "word", "damage" };

static void tokens(const char *text, size_t len, struct buf *out)
{
	static struct json_pull p;
	struct ow_error err = { 0 };
	enum json_token token;
	struct input in;

	assert_int_equal(input_from_memory(&in, out->mem, "test", text, len, &err), OW_OK);
	json_pull_init(&p, &in, &err);
	do {
		token = json_pull_next(&p);
		buf_printf(out, "%s%s%.*s ", names[token],
			   p.text.len && token >= TOKEN_KEY ? ":" : "",
			   token >= TOKEN_KEY ? (int)p.text.len : 0, p.text.ptr);
	} while (token != TOKEN_END && token != TOKEN_DAMAGE);
	buf_printf(out, "%u", (unsigned)p.depth);
	json_pull_release(&p);
	input_close(&in);
}

static void expect(const char *text, const char *want)
{
	struct mem mem;
	struct buf out;

	mem_init(&mem, 0);
	buf_init(&out, &mem);
	tokens(text, strlen(text), &out);
	assert_string_equal(buf_cstr(&out), want);
	buf_release(&out);
}

static void documents(void **state)
{
	(void)state;
	expect("", "end 0");
	expect("{\"a\" : [1,-2.5e3,{}], \"b\\\"\":\"x\\\\\", \"c\":null}",
	       "{ key:a [ number:1 number:-2.5e3 { close close key:b\\\" string:x\\\\ key:c "
	       "word:null close end 0");
	expect("[\"a\",\"b\"] {\"c\":1}", "[ string:a string:b close { key:c number:1 close end 0");
}

static void damaged(void **state)
{
	(void)state;
	expect("{\"a\":[1}", "{ key:a [ number:1 damage 2");
	expect("{1:2}", "{ damage 1");
	expect("{\"a\":}", "{ key:a damage 1");
	expect("{\"a\" 1}", "{ key:a damage 1");
	expect("]", "damage 0");
	expect("{\"a\":\"b", "{ key:a end 1");
	expect("[1", "[ number:1 end 1");
	expect("{[1]}", "{ damage 1");
	expect("[\"\\\"", "[ end 1");
}

/* A document longer than what is at hand, in a file: the same tokens however it is cut into pieces. */
static void long_documents(void **state)
{
	static struct json_pull p;
	char path[] = "/tmp/opwatch-json-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");
	struct ow_error err = { 0 };
	struct input in;
	struct mem mem;
	unsigned count = 0;
	enum json_token token;

	(void)state;
	assert_non_null(f);
	fputc('[', f);
	for (int i = 0; i < 300000; i++)
		fprintf(f, "%s{\"key %d\" :\t\"value %d\",\"n\":%d}", i ? "," : "", i, i, i);
	fprintf(f, ",\"");
	for (int i = 0; i < 1000000; i++)
		fputc('x', f);
	fprintf(f, "\"]");
	assert_int_equal(fclose(f), 0);
	mem_init(&mem, 0);
	assert_int_equal(input_open(&in, &mem, path, &err), OW_OK);
	json_pull_init(&p, &in, &err);
	assert_int_equal(json_pull_next(&p), TOKEN_ARRAY);
	while ((token = json_pull_next(&p)) == TOKEN_OBJECT) {
		char want[32];

		snprintf(want, sizeof(want), "key %u", count);
		assert_int_equal(json_pull_next(&p), TOKEN_KEY);
		assert_true(str_eq(p.text, str_from(want)));
		assert_int_equal(json_pull_next(&p), TOKEN_STRING);
		snprintf(want, sizeof(want), "value %u", count);
		assert_true(str_eq(p.text, str_from(want)));
		assert_int_equal(json_pull_next(&p), TOKEN_KEY);
		assert_int_equal(json_pull_next(&p), TOKEN_NUMBER);
		snprintf(want, sizeof(want), "%u", count++);
		assert_true(str_eq(p.text, str_from(want)));
		assert_int_equal(json_pull_next(&p), TOKEN_CLOSE);
	}
	assert_int_equal(count, 300000);
	assert_int_equal(token, TOKEN_STRING);
	assert_int_equal(p.text.len, 1000000);
	assert_int_equal(json_pull_next(&p), TOKEN_CLOSE);
	assert_int_equal(json_pull_next(&p), TOKEN_END);
	json_pull_seek(&p, 0);
	assert_int_equal(json_pull_next(&p), TOKEN_ARRAY);
	assert_true(json_pull_skip(&p));
	assert_int_equal(json_pull_next(&p), TOKEN_END);
	json_pull_release(&p);
	input_close(&in);
	unlink(path);
}

static void skipping(void **state)
{
	static const char text[] = "{\"a\":[{\"x\":[]},2],\"b\":3,\"c\":\"d\",\"e\":{";
	static struct json_pull p;
	struct ow_error err = { 0 };
	struct input in;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	assert_int_equal(input_from_memory(&in, &mem, "test", text, sizeof(text) - 1, &err), OW_OK);
	json_pull_init(&p, &in, &err);
	assert_int_equal(json_pull_next(&p), TOKEN_OBJECT);
	for (const char *key = "abc"; *key; key++) {
		assert_int_equal(json_pull_next(&p), TOKEN_KEY);
		assert_int_equal(p.text.ptr[0], *key);
		assert_true(json_pull_skip(&p));
	}
	assert_int_equal(json_pull_next(&p), TOKEN_KEY);
	assert_false(json_pull_skip(&p));
	json_pull_release(&p);
	input_close(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(documents),
		cmocka_unit_test(damaged),
		cmocka_unit_test(long_documents),
		cmocka_unit_test(skipping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
