/* writer_test.c: escapes of JSON and XML, numbers, and failures that are remembered. */
#include "base/writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "support/small_tree.h"

struct page {
	struct mem mem;
	struct buf text;
	struct out out;
	struct ow_error err;
	struct writer w;
};

static void open_page(struct page *p)
{
	memset(p, 0, sizeof(*p));
	mem_init(&p->mem, 0);
	buf_init(&p->text, &p->mem);
	p->out = (struct out){ small_collect, &p->text };
	writer_init(&p->w, &p->mem, &p->out, &p->err);
}

static void expect_page(struct page *p, const char *want)
{
	assert_int_equal(writer_finish(&p->w), OW_OK);
	buf_add_char(&p->text, '\0');
	assert_string_equal(p->text.ptr, want);
	buf_release(&p->text);
	assert_int_equal(atomic_load(&p->mem.used), 0);
}

static void numbers(void **state)
{
	struct page p;

	(void)state;
	open_page(&p);
	writer_int(&p.w, 0);
	writer_char(&p.w, ' ');
	writer_int(&p.w, INT64_MIN);
	writer_char(&p.w, ' ');
	writer_int(&p.w, INT64_MAX);
	writer_char(&p.w, ' ');
	writer_micros(&p.w, 12000);
	writer_char(&p.w, ' ');
	writer_micros(&p.w, 12034);
	writer_char(&p.w, ' ');
	writer_micros(&p.w, -1);
	writer_char(&p.w, ' ');
	writer_real(&p.w, 0.1);
	writer_char(&p.w, ' ');
	writer_real(&p.w, 1.0 / 3);
	writer_char(&p.w, ' ');
	writer_real(&p.w, 5e-324);
	expect_page(&p, "0 -9223372036854775808 9223372036854775807 12 12.034 -0.001 0.1 "
			"0.3333333333333333 4.94065645841247e-324");
}

static void json(void **state)
{
	struct page p;

	(void)state;
	open_page(&p);
	writer_json(&p.w, STR("a\"\\\b\f\n\r\t\1\x7f/é\xff€"));
	writer_json(&p.w, STR(""));
	writer_json(&p.w, str_make("n\0l", 3));
	expect_page(&p, "\"a\\\"\\\\\\b\\f\\n\\r\\t\\u0001\x7f/é\xef\xbf\xbd€\"\"\"\"n\\u0000l\"");
}

static void json_ascii(void **state)
{
	struct page p;

	(void)state;
	open_page(&p);
	writer_json_ascii(&p.w, STR("a\"\\\b\f\n\r\t\1\x7f/"));
	writer_json_ascii(&p.w, STR(" é中😀 \xf4\x8f\xbf\xbf"));
	expect_page(&p, "a\\\"\\\\\\b\\f\\n\\r\\t\\u0001\x7f/ \\u00e9\\u4e2d\\ud83d\\ude00 "
			"\\udbff\\udfff");
}

/* Names cut within a character, as jsoncpp reads them. */
static void json_ascii_broken(void **state)
{
	struct page p;

	(void)state;
	open_page(&p);
	writer_json_ascii(&p.w, STR("x\xc3..."));
	writer_json_ascii(&p.w, STR(" \xc0\x80 \xe4\xb8."));
	writer_json_ascii(&p.w, STR(" \xed\xa0\x80"));
	writer_json_ascii(&p.w, STR(" \xff\xfe"));
	writer_json_ascii(&p.w, STR(" \xe4"));
	writer_json_ascii(&p.w, STR(" \xf0\x9f\x98"));
	expect_page(&p, "x\\u00ee.. \\ufffd \\u4e2e \\ufffd \\ufffd\\ufffd \\ufffd "
			"\\ufffd\\u07d8");
}

static void xml(void **state)
{
	struct page p;

	(void)state;
	open_page(&p);
	writer_xml(&p.w, STR("<a b=\"c\">&amp;\1\t\n\r\xff\xef\xbf\xbf é"));
	expect_page(&p, "&lt;a b=&quot;c&quot;&gt;&amp;amp;\xef\xbf\xbd\t\n&#13;\xef\xbf\xbd"
			"\xef\xbf\xbd é");
}

static void large(void **state)
{
	struct page p;
	size_t len = 200000;
	char *bytes = malloc(len);

	(void)state;
	assert_non_null(bytes);
	memset(bytes, 'x', len);
	open_page(&p);
	writer_puts(&p.w, "<");
	writer_add(&p.w, bytes, len);
	writer_repeat(&p.w, 'y', 70001);
	writer_puts(&p.w, ">");
	assert_int_equal(writer_finish(&p.w), OW_OK);
	assert_int_equal(p.w.written, len + 70003);
	assert_int_equal(p.text.len, len + 70003);
	assert_memory_equal(p.text.ptr + 1, bytes, len);
	assert_true(p.text.ptr[len + 70002] == '>');
	buf_release(&p.text);
	free(bytes);
}

static void failures(void **state)
{
	struct page p;

	(void)state;
	open_page(&p);
	buf_release(&p.text);
	p.out.write = small_closed;
	writer_puts(&p.w, "text");
	assert_int_equal(p.w.status, OW_OK); /* not yet */
	writer_repeat(&p.w, 'x', 100000);
	assert_int_equal(p.w.status, OW_E_INTERRUPTED);
	writer_fail(&p.w, OW_E_INTERNAL);
	writer_puts(&p.w, "more");
	assert_int_equal(writer_finish(&p.w), OW_E_INTERRUPTED);

	mem_fail_after(1, false);
	writer_init(&p.w, &p.mem, &p.out, &p.err);
	mem_fail_after(0, false);
	writer_puts(&p.w, "text");
	assert_int_equal(writer_finish(&p.w), OW_E_NO_MEMORY);
	assert_int_equal(p.err.status, OW_E_NO_MEMORY);
	assert_int_equal(atomic_load(&p.mem.used), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),    cmocka_unit_test(json),
		cmocka_unit_test(json_ascii), cmocka_unit_test(json_ascii_broken),
		cmocka_unit_test(xml),	      cmocka_unit_test(large),
		cmocka_unit_test(failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
