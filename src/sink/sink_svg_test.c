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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(draws),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
