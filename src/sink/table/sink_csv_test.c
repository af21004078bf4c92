/* sink_csv_test.c: quoting, unknown against empty, the depth of trees. */
#include "sink/sink.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "support/small_tree.h"

static void flat(void **state)
{
	struct mem mem;
	struct result *r;
	uint32_t row;

	(void)state;
	mem_init(&mem, 0);
	r = result_new(&mem, "op", NULL);
	result_column(r, "name", "name", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "n", "n", RESULT_INT, RESULT_COUNT);
	result_column(r, "x", "x", RESULT_REAL, RESULT_PLAIN);
	result_column(r, "ran", "ran", RESULT_BOOL, RESULT_PLAIN);
	row = result_row(r, 0);
	result_set_text(r, row, 0, STR("plain é"));
	result_set_int(r, row, 1, -1234567);
	result_set_real(r, row, 2, 0.1);
	result_set_int(r, row, 3, 1);
	row = result_row(r, 0);
	result_set_text(r, row, 0, STR("say \"hi\",\r\nthen go"));
	result_set_unknown(r, row, 1);
	result_set_real(r, row, 2, (double)INFINITY);
	row = result_row(r, 0);
	result_set_text(r, row, 0, STR(""));
	row = result_row(r, 0);
	result_set_unknown(r, row, 0);
	row = result_row(r, 0);
	result_set_text(r, row, 0, STR("\xff\""));
	small_expect(&sink_csv, r, &(struct sink_options){ 0 },
		     "name,n,x,ran\r\n"
		     "plain é,-1234567,0.1,true\r\n"
		     "\"say \"\"hi\"\",\r\nthen go\",,,false\r\n"
		     "\"\",0,0,false\r\n"
		     ",0,0,false\r\n"
		     "\"\xef\xbf\xbd\"\"\",0,0,false\r\n");
	small_starve(&sink_csv, r, &(struct sink_options){ 0 });
	small_hang_up(&sink_csv, r, &(struct sink_options){ 0 });
	result_free(r);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void tree(void **state)
{
	struct mem mem;
	struct result *r;

	(void)state;
	mem_init(&mem, 0);
	r = result_new(&mem, "t", NULL);
	result_column(r, "n", "n", RESULT_INT, RESULT_PLAIN);
	result_make_tree(r);
	result_set_int(r, result_row(r, 0), 0, 5);
	result_set_int(r, result_row(r, 1), 0, 6);
	small_expect(&sink_csv, r, &(struct sink_options){ 0 }, "depth,n\r\n0,5\r\n1,6\r\n");
	result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flat),
		cmocka_unit_test(tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
