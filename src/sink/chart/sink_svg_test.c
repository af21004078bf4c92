/* sink_svg_test.c: the chart of the roofline is whole and escapes what it is given; other views are refused. */
#include "sink/chart/svg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static ow_status collect(void *arg, const void *bytes, size_t len, struct ow_error *err)
{
	(void)err;
	buf_add(arg, bytes, len);
	return OW_OK;
}

static void add_row(struct table *r, const char *name, double intensity, double rate)
{
	uint32_t row = table_add_row(r, 0);

	table_set_text(r, row, 0, str_from(name));
	table_set_real(r, row, 1, intensity);
	table_set_real(r, row, 2, rate);
	table_set_real(r, row, 3, 100000);
	table_set_real(r, row, 4, 1000);
}

static void draws(void **state)
{
	static const char *const columns[] = { "intensity", "gflops_per_second",
					       "peak_gflops_per_second", "peak_gbytes_per_second" };
	struct sink_options options = { .title = "a < b" };
	struct ow_error err = { 0 };
	struct table *r;
	struct mem mem;
	struct buf text;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&text, &mem);
	r = table_new(&mem, "roofline", &err);
	table_add_column(r, "name", "", TYPE_TEXT, UNIT_NONE);
	for (int i = 0; i < 4; i++)
		table_add_column(r, columns[i], "", TYPE_REAL, UNIT_NONE);
	add_row(r, "x<y>&z", 10, 5000);
	add_row(r, "no intensity", 0, 5000);
	add_row(r, "odd", 1e-300, 1e300);
	assert_int_equal(sink_svg.write(r, &options, &(struct out){ collect, &text }, &err), OW_OK);
	assert_non_null(strstr(buf_cstr(&text), "x&lt;y&gt;&amp;z"));
	assert_non_null(strstr(buf_cstr(&text), "a &lt; b"));
	assert_null(strstr(buf_cstr(&text), "no intensity"));
	assert_null(strstr(buf_cstr(&text), "nan"));
	assert_true(str_ends(buf_str(&text), STR("</svg>\n")));
	table_free(r);
	r = table_new(&mem, "steps", &err);
	assert_int_equal(sink_svg.write(r, &options, &(struct out){ collect, &text }, &err),
			 OW_E_USAGE);
	table_free(r);
	buf_release(&text);
	assert_int_equal(atomic_load(&mem.used), 0);
}

/* Texts at the same place: names of points that lie on each other are written one below the other. */
static void names_do_not_cover_each_other(void **state)
{
	static const char *const columns[] = { "intensity", "gflops_per_second",
					       "peak_gflops_per_second", "peak_gbytes_per_second" };
	struct sink_options options = { 0 };
	struct ow_error err = { 0 };
	struct table *r;
	struct mem mem;
	struct buf text;
	double last = 0;
	const char *at;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&text, &mem);
	r = table_new(&mem, "roofline", &err);
	table_add_column(r, "name", "", TYPE_TEXT, UNIT_NONE);
	for (int i = 0; i < 4; i++)
		table_add_column(r, columns[i], "", TYPE_REAL, UNIT_NONE);
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
	table_free(r);
	buf_release(&text);
}

/* The rectangle of a label against the circles of all points, in the text of the picture. */
static void expect_no_overlap(const char *svg)
{
	unsigned labels = 0;

	for (const char *t = strstr(svg, "font-size=\"10\">"); t;
	     t = strstr(t + 1, "font-size=\"10\">")) {
		const char *tag = t;
		double x, y, width = 5.6 * (double)(strchr(t, '<') - strchr(t, '>') - 1);

		while (strncmp(tag, "<text x=\"", 9) != 0)
			tag--;
		assert_int_equal(sscanf(tag, "<text x=\"%lf\" y=\"%lf\"", &x, &y), 2);
		labels++;
		for (const char *p = strstr(svg, "<circle"); p; p = strstr(p + 1, "<circle")) {
			double cx, cy, r;

			assert_int_equal(
				sscanf(p, "<circle cx=\"%lf\" cy=\"%lf\" r=\"%lf\"", &cx, &cy, &r),
				3);
			assert_false(cx + r > x && cx - r < x + width && cy + r > y - 8 &&
				     cy - r < y + 2);
		}
	}
	assert_true(labels >= 2);
}

/* Points in a row, each where the name of the one before it would be; some under the roof. */
static void names_do_not_touch_points(void **state)
{
	static const char *const columns[] = { "intensity", "gflops_per_second",
					       "peak_gflops_per_second", "peak_gbytes_per_second" };
	struct sink_options options = { 0 };
	struct ow_error err = { 0 };
	struct table *r;
	struct mem mem;
	struct buf text;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&text, &mem);
	r = table_new(&mem, "roofline", &err);
	table_add_column(r, "name", "", TYPE_TEXT, UNIT_NONE);
	for (int i = 0; i < 4; i++)
		table_add_column(r, columns[i], "", TYPE_REAL, UNIT_NONE);
	for (int i = 0; i < 12; i++)
		add_row(r, "a_rather_long_name_of_a_kernel", 10 * (1 + i * 0.3), 5000 + i);
	assert_int_equal(sink_svg.write(r, &options, &(struct out){ collect, &text }, &err), OW_OK);
	expect_no_overlap(buf_cstr(&text));
	table_free(r);
	buf_release(&text);
}

static void memory_is_told_in_words(void **state)
{
	static const char *const numbers[] = { "rank", "ts_ns", "in_use_bytes", "reserved_bytes",
					       "peak" };
	struct sink_options options = { 0 };
	struct ow_error err = { 0 };
	struct table *r;
	struct mem mem;
	struct buf text;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&text, &mem);
	r = table_new(&mem, "memory_time", &err);
	table_add_column(r, "device", "", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "allocator", "", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "alive", "", TYPE_TEXT, UNIT_NONE);
	for (int i = 0; i < 5; i++)
		table_add_column(r, numbers[i], "", TYPE_INT, UNIT_NONE);
	table_add_row(r, 0);
	table_set_text(r, 0, 0, STR("GPU 0"));
	table_set_text(r, 0, 2,
		       STR("/home/someone/with/a/long/path/pkg/model.py:39:f(x) (2179563520), "
			   "b<c> (12)"));
	table_set_int(r, 0, 5, 3000);
	table_set_int(r, 0, 7, 1);
	assert_int_equal(sink_svg.write(r, &options, &(struct out){ collect, &text }, &err), OW_OK);
	assert_non_null(
		strstr(buf_cstr(&text), ": …/pkg/model.py:39:f(x) 2.18GB, b&lt;c&gt; 12B<"));
	assert_non_null(strstr(buf_cstr(&text), "held by the allocator"));
	table_free(r);
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(draws),
		cmocka_unit_test(names_do_not_cover_each_other),
		cmocka_unit_test(names_do_not_touch_points),
		cmocka_unit_test(memory_is_told_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
