/* sink_svg_test.c: the chart of the roofline is whole and escapes what it is given; other views are refused. */
#include "sink/svg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static ow_status collect(void *arg, const void *bytes, size_t len, struct error *err)
{
	(void)err;
	buf_add(arg, bytes, len);
	return OW_OK;
}

static void add_row(struct result *r, const char *name, double intensity, double rate)
{
	uint32_t row = result_row(r, 0);

	result_set_text(r, row, 0, str_from(name));
	result_set_real(r, row, 1, intensity);
	result_set_real(r, row, 2, rate);
	result_set_real(r, row, 3, 100000);
	result_set_real(r, row, 4, 1000);
}

static void draws(void **state)
{
	static const char *const columns[] = { "intensity", "gflops_per_second",
					       "peak_gflops_per_second", "peak_gbytes_per_second" };
	struct sink_options options = { .title = "a < b" };
	struct error err = { 0 };
	struct result *r;
	struct mem mem;
	struct buf text;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&text, &mem);
	r = result_new(&mem, "roofline", &err);
	result_column(r, "name", "", RESULT_TEXT, RESULT_PLAIN);
	for (int i = 0; i < 4; i++)
		result_column(r, columns[i], "", RESULT_REAL, RESULT_PLAIN);
	add_row(r, "x<y>&z", 10, 5000);
	add_row(r, "no intensity", 0, 5000);
	add_row(r, "odd", 1e-300, 1e300);
	assert_int_equal(sink_svg.write(r, &options, &(struct out){ collect, &text }, &err), OW_OK);
	assert_non_null(strstr(buf_cstr(&text), "x&lt;y&gt;&amp;z"));
	assert_non_null(strstr(buf_cstr(&text), "a &lt; b"));
	assert_null(strstr(buf_cstr(&text), "no intensity"));
	assert_null(strstr(buf_cstr(&text), "nan"));
	assert_true(str_ends(buf_str(&text), STR("</svg>\n")));
	result_free(r);
	r = result_new(&mem, "steps", &err);
	assert_int_equal(sink_svg.write(r, &options, &(struct out){ collect, &text }, &err),
			 OW_E_USAGE);
	result_free(r);
	buf_release(&text);
	assert_int_equal(atomic_load(&mem.used), 0);
}

/* Texts at the same place: names of points that lie on each other are written one below the other. */
static void names_do_not_cover_each_other(void **state)
{
	static const char *const columns[] = { "intensity", "gflops_per_second",
					       "peak_gflops_per_second", "peak_gbytes_per_second" };
	struct sink_options options = { 0 };
	struct error err = { 0 };
	struct result *r;
	struct mem mem;
	struct buf text;
	double last = 0;
	const char *at;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&text, &mem);
	r = result_new(&mem, "roofline", &err);
	result_column(r, "name", "", RESULT_TEXT, RESULT_PLAIN);
	for (int i = 0; i < 4; i++)
		result_column(r, columns[i], "", RESULT_REAL, RESULT_PLAIN);
	add_row(r, "one_here", 10, 5000);
	add_row(r, "two_here", 10, 5001);
	assert_int_equal(sink_svg.write(r, &options, &(struct out){ collect, &text }, &err), OW_OK);
	at = buf_cstr(&text);
	for (int i = 0; i < 2; i++) {
		const char *label = strstr(at, i ? ">two_here</text>" : ">one_here</text>"), *y;

		assert_non_null(label);
		for (y = label; strncmp(y, "y=\"", 3) != 0; y--)
			;
		assert_true(strtod(y + 3, NULL) - last >= 11 || strtod(y + 3, NULL) - last <= -11);
		last = strtod(y + 3, NULL);
	}
	assert_non_null(strstr(at, ">100 TFLOP/s, 1.00 TB/s</text>"));
	result_free(r);
	buf_release(&text);
}

static void memory_is_told_in_words(void **state)
{
	static const char *const numbers[] = { "rank", "ts_ns", "in_use_bytes", "reserved_bytes",
					       "peak" };
	struct sink_options options = { 0 };
	struct error err = { 0 };
	struct result *r;
	struct mem mem;
	struct buf text;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&text, &mem);
	r = result_new(&mem, "memory_time", &err);
	result_column(r, "device", "", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "allocator", "", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "alive", "", RESULT_TEXT, RESULT_PLAIN);
	for (int i = 0; i < 5; i++)
		result_column(r, numbers[i], "", RESULT_INT, RESULT_PLAIN);
	result_row(r, 0);
	result_set_text(r, 0, 0, STR("GPU 0"));
	result_set_text(r, 0, 2,
			STR("/home/someone/with/a/long/path/pkg/model.py:39:f(x) (2179563520), "
			    "b<c> (12)"));
	result_set_int(r, 0, 5, 3000);
	result_set_int(r, 0, 7, 1);
	assert_int_equal(sink_svg.write(r, &options, &(struct out){ collect, &text }, &err), OW_OK);
	assert_non_null(
		strstr(buf_cstr(&text), ": …/pkg/model.py:39:f(x) 2.18GB, b&lt;c&gt; 12B<"));
	assert_non_null(strstr(buf_cstr(&text), "held by the allocator"));
	result_free(r);
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(draws),
		cmocka_unit_test(names_do_not_cover_each_other),
		cmocka_unit_test(memory_is_told_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
