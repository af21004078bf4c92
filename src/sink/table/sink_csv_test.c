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
	struct table *r;
	uint32_t row;

	(void)state;
	mem_init(&mem, 0);
	r = table_new(&mem, "op", NULL);
	table_add_column(r, "name", "name", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "n", "n", TYPE_INT, UNIT_COUNT);
	table_add_column(r, "x", "x", TYPE_REAL, UNIT_NONE);
	table_add_column(r, "ran", "ran", TYPE_BOOL, UNIT_NONE);
	row = table_add_row(r, 0);
	table_set_text(r, row, 0, STR("plain é"));
	table_set_int(r, row, 1, -1234567);
	table_set_real(r, row, 2, 0.1);
	table_set_int(r, row, 3, 1);
	row = table_add_row(r, 0);
	table_set_text(r, row, 0, STR("say \"hi\",\r\nthen go"));
	table_set_unknown(r, row, 1);
	table_set_real(r, row, 2, (double)INFINITY);
	row = table_add_row(r, 0);
	table_set_text(r, row, 0, STR(""));
	row = table_add_row(r, 0);
	table_set_unknown(r, row, 0);
	row = table_add_row(r, 0);
	table_set_text(r, row, 0, STR("\xff\""));
	small_expect(&sink_csv, r, &(struct sink_options){ 0 },
		     "name,n,x,ran\r\n"
		     "plain é,-1234567,0.1,true\r\n"
		     "\"say \"\"hi\"\",\r\nthen go\",,Infinity,false\r\n"
		     "\"\",0,0,false\r\n"
		     ",0,0,false\r\n"
		     "\"\xef\xbf\xbd\"\"\",0,0,false\r\n");
	small_starve(&sink_csv, r, &(struct sink_options){ 0 });
	small_hang_up(&sink_csv, r, &(struct sink_options){ 0 });
	table_free(r);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void tree(void **state)
{
	struct mem mem;
	struct table *r;

	(void)state;
	mem_init(&mem, 0);
	r = table_new(&mem, "t", NULL);
	table_add_column(r, "n", "n", TYPE_INT, UNIT_NONE);
	table_make_tree(r);
	table_set_int(r, table_add_row(r, 0), 0, 5);
	table_set_int(r, table_add_row(r, 1), 0, 6);
	small_expect(&sink_csv, r, &(struct sink_options){ 0 }, "depth,n\r\n0,5\r\n1,6\r\n");
	table_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flat),
		cmocka_unit_test(tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
