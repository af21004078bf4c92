/* sink_text_test.c: alignment, units, fitting to a width, trees, control characters, colour. */
#include "sink/sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "support/small_tree.h"

static struct table *sample(struct mem *mem)
{
	struct table *r = table_new(mem, "sample", NULL);
	uint32_t row;

	assert_non_null(r);
	table_add_column(r, "name", "name", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "time", "time", TYPE_INT, UNIT_NS);
	table_add_column(r, "memory", "memory", TYPE_INT, UNIT_BYTES);
	table_add_column(r, "part", "%", TYPE_REAL, UNIT_PERCENT);
	table_add_column(r, "ran", "ran", TYPE_BOOL, UNIT_NONE);
	table_add_column(r, "note", "note", TYPE_TEXT, UNIT_NONE);
	row = table_add_row(r, 0);
	table_set_text(r, row, 0, STR("MatMul"));
	table_set_int(r, row, 1, 1234567);
	table_set_int(r, row, 2, 4500000);
	table_set_real(r, row, 3, 61.25);
	table_set_int(r, row, 4, 1);
	table_set_text(r, row, 5, STR("fine"));
	row = table_add_row(r, 0);
	table_set_text(r, row, 0, STR("gradients/net/block_0/conv_0/Conv2D_grad/Conv2DBackprop"));
	table_set_int(r, row, 1, 999);
	table_set_unknown(r, row, 2);
	table_set_real(r, row, 3, 0.5);
	table_set_text(r, row, 5, STR("\033[31mred\n中"));
	assert_int_equal(r->status, OW_OK);
	return r;
}

static void plain(void **state)
{
	struct mem mem;
	struct table *r;

	(void)state;
	mem_init(&mem, 0);
	r = sample(&mem);
	small_expect(
		&sink_text, r, &(struct sink_options){ 0 },
		"name                                                       time  memory      "
		"%  ran  note\n"
		"MatMul                                                   1.23ms  4.50MB  61.2%"
		"  yes  fine\n"
		"gradients/net/block_0/conv_0/Conv2D_grad/Conv2DBackprop   999ns       -   0.5%"
		"   no  \xef\xbf\xbd[31mred\xef\xbf\xbd中\n");
	small_starve(&sink_text, r, &(struct sink_options){ .width = 60, .title = "t" });
	small_hang_up(&sink_text, r, &(struct sink_options){ 0 });
	table_free(r);
	assert_int_equal(atomic_load(&mem.used), 0);
}

/* Into a pipe all of a name of 1,500 characters is written, and no other row becomes as long. */
static void long_names(void **state)
{
	char name[1501], want[2200];
	struct mem mem;
	struct table *r;

	(void)state;
	mem_init(&mem, 0);
	memset(name, 'k', 1500);
	name[1500] = 0;
	r = table_new(&mem, "sample", NULL);
	table_add_column(r, "name", "name", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "runs", "runs", TYPE_INT, UNIT_COUNT);
	table_set_text(r, table_add_row(r, 0), 0, str_from(name));
	table_set_int(r, 0, 1, 7);
	table_set_text(r, table_add_row(r, 0), 0, STR("short"));
	table_set_int(r, 1, 1, 8);
	snprintf(want, sizeof(want), "%-160s  runs\n%s     7\n%-160s     8\n", "name", name,
		 "short");
	small_expect(&sink_text, r, &(struct sink_options){ 0 }, want);
	table_free(r);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void full_numbers(void **state)
{
	struct mem mem;
	struct table *r;

	(void)state;
	mem_init(&mem, 0);
	r = sample(&mem);
	table_limit(r, 1);
	small_expect(&sink_text, r, &(struct sink_options){ .full_numbers = true },
		     "name         time    memory       %  ran  note\n"
		     "MatMul  1234567ns  4500000B  61.25%  yes  fine\n");
	table_free(r);
}

/* No line is wider than asked for, names keep their ends, and columns that do not fit are named. */
static void fitted(void **state)
{
	struct mem mem;
	struct table *r;

	(void)state;
	mem_init(&mem, 0);
	r = sample(&mem);
	small_expect(&sink_text, r, &(struct sink_options){ .width = 60 },
		     "name                                time  memory      %  ran\n"
		     "MatMul                            1.23ms  4.50MB  61.2%  yes\n"
		     "gradients/ne…grad/Conv2DBackprop   999ns       -   0.5%   no\n"
		     "1 more column in a wider terminal: note\n");
	small_expect(&sink_text, r, &(struct sink_options){ .width = 30 },
		     "name              time  memory\n"
		     "MatMul          1.23ms  4.50MB\n"
		     "gradi…Backprop   999ns       -\n"
		     "3 more columns in a wider terminal: %, ran, note\n");
	for (uint32_t width = 1; width < 130; width++) {
		struct buf text;
		struct str rest, line;

		small_write(&sink_text, r, &(struct sink_options){ .width = width }, &text);
		rest = buf_str(&text);
		while (width >= 10 && str_split(&rest, '\n', &line))
			if (!str_has(line, STR("more column")))
				assert_true(utf8_width(line) <= width);
		buf_release(&text);
	}
	table_free(r);
}

static void colour(void **state)
{
	struct mem mem;
	struct table *r;

	(void)state;
	mem_init(&mem, 0);
	r = table_new(&mem, "x", NULL);
	table_add_column(r, "a", NULL, TYPE_INT, UNIT_COUNT);
	table_set_unknown(r, table_add_row(r, 0), 0);
	r->footer = (char *)(uintptr_t) "two\nlines";
	small_expect(&sink_text, r, &(struct sink_options){ .colour = true, .title = "Title" },
		     "\033[1mTitle\033[0m\n\033[1ma\033[0m\n\033[2m-\033[0m\n\ntwo\nlines\n");
	small_expect(&sink_text, r, &(struct sink_options){ .title = "Title" },
		     "Title\na\n-\n\ntwo\nlines\n");
	table_free(r);
}

static void tree(void **state)
{
	struct mem mem;
	struct table *r;
	uint32_t row;

	(void)state;
	mem_init(&mem, 0);
	r = table_new(&mem, "x", NULL);
	table_add_column(r, "n", "runs", TYPE_INT, UNIT_COUNT);
	table_add_column(r, "name", "name", TYPE_TEXT, UNIT_NONE);
	table_make_tree(r);
	for (uint32_t depth = 0; depth < 4; depth++) {
		row = table_add_row(r, depth);
		table_set_int(r, row, 0, depth * 1000);
		table_set_text(r, row, 1, STR("abcdefghijklmnop"));
	}
	small_expect(&sink_text, r, &(struct sink_options){ 0 },
		     " runs  name\n"
		     "    0  abcdefghijklmnop\n"
		     "1.00k    abcdefghijklmnop\n"
		     "2.00k      abcdefghijklmnop\n"
		     "3.00k        abcdefghijklmnop\n");
	small_expect(&sink_text, r, &(struct sink_options){ .width = 18 },
		     " runs  name\n"
		     "    0  abcd…klmnop\n"
		     "1.00k    abc…lmnop\n"
		     "2.00k      ab…mnop\n"
		     "3.00k       ab…nop\n");
	table_free(r);
}

/* On a terminal a name in a tree leaves out its parent's, and titles may take two lines. */
static void terminal(void **state)
{
	static const char *const names[] = { "all", "a", "a/b", "a/b/c", "ab", "a/d" };
	static const uint32_t depths[] = { 0, 1, 2, 3, 2, 6 };
	struct mem mem;
	struct table *r;

	(void)state;
	mem_init(&mem, 0);
	r = table_new(&mem, "x", NULL);
	table_add_column(r, "name", "name", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "t", "total accelerator time", TYPE_INT, UNIT_MICROS);
	table_make_tree(r);
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		uint32_t row = table_add_row(r, depths[i]);

		table_set_text(r, row, 0, str_from(names[i]));
		table_set_int(r, row, 1, (int64_t)i);
	}
	small_expect(&sink_text, r, &(struct sink_options){ .width = 36, .colour = true },
		     "\033[1m                            total\033[0m\n"
		     "\033[1mname             accelerator time\033[0m\n"
		     "all              \033[2m             0us\033[0m\n"
		     "  a                           1us\n"
		     "    b                         2us\n"
		     "      c                       3us\n"
		     "    ab                        4us\n"
		     "            a/d               5us\n");
	small_expect(&sink_text, r, &(struct sink_options){ 0 },
		     "name             total accelerator time\n"
		     "all                                 0us\n"
		     "  a                                 1us\n"
		     "    a/b                             2us\n"
		     "      a/b/c                         3us\n"
		     "    ab                              4us\n"
		     "            a/d                     5us\n");
	small_starve(&sink_text, r, &(struct sink_options){ .width = 36 });
	table_free(r);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void empty(void **state)
{
	struct mem mem;
	struct table *r;

	(void)state;
	mem_init(&mem, 0);
	r = table_new(&mem, "x", NULL);
	small_expect(&sink_text, r, &(struct sink_options){ 0 }, "(nothing to show)\n");
	table_add_column(r, "a", "a", TYPE_INT, UNIT_COUNT);
	small_expect(&sink_text, r, &(struct sink_options){ .width = 80 }, "(nothing to show)\n");
	table_free(r);
}

/* Columns that are for programs, or have no value in any row, are not shown. */
static void left_out(void **state)
{
	struct mem mem;
	struct table *r;
	uint32_t row;

	(void)state;
	mem_init(&mem, 0);
	r = table_new(&mem, "x", NULL);
	table_add_column(r, "rank", "rank", TYPE_INT, UNIT_NONE);
	table_add_column(r, "name", "name", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "raw", "raw", TYPE_INT, UNIT_COUNT);
	table_add_column(r, "none", "none", TYPE_INT, UNIT_COUNT);
	table_add_column(r, "empty", "empty", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "zero", "zero", TYPE_INT, UNIT_COUNT);
	r->columns[2].for_programs = true;
	row = table_add_row(r, 0);
	table_set_text(r, row, 1, STR("a"));
	table_set_int(r, row, 2, 7);
	table_set_unknown(r, row, 3);
	small_expect(&sink_text, r, &(struct sink_options){ 0 },
		     "rank  name  zero\n"
		     "   0  a        0\n");
	table_free(r);
}

/* What does not fit is left out from the right, and columns of zeros before others. */
static void zeros_go_first(void **state)
{
	struct mem mem;
	struct table *r;
	uint32_t row;

	(void)state;
	mem_init(&mem, 0);
	r = table_new(&mem, "x", NULL);
	table_add_column(r, "name", "name", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "accelerator", "accelerator", TYPE_INT, UNIT_COUNT);
	table_add_column(r, "cpu", "cpu", TYPE_INT, UNIT_COUNT);
	row = table_add_row(r, 0);
	table_set_text(r, row, 0, STR("abcdefghij"));
	table_set_int(r, row, 2, 5);
	small_expect(&sink_text, r, &(struct sink_options){ .width = 60 },
		     "name        accelerator  cpu\n"
		     "abcdefghij            0    5\n");
	small_expect(&sink_text, r, &(struct sink_options){ .width = 20 },
		     "name        cpu\n"
		     "abcdefghij    5\n"
		     "1 more column in a wider terminal: accelerator\n");
	table_free(r);
}

/* In a deep tree an only child stands below its parent, with a mark. */
/* As in reports of nsys, whose names come last. */
static void names_stay(void **state)
{
	struct ow_error err = { 0 };
	struct table *r;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	r = table_new(&mem, "x", &err);
	for (int i = 0; i < 3; i++)
		table_add_column(r, "n",
				 i == 0	  ? "Total"
				 : i == 1 ? "Instances"
					  : "Average",
				 TYPE_INT, UNIT_NONE);
	table_add_column(r, "name", "Name", TYPE_TEXT, UNIT_NONE);
	table_add_row(r, 0);
	for (uint32_t i = 0; i < 3; i++)
		table_set_int(r, 0, i, 123456 + i);
	table_set_text(r, 0, 3, STR("void the_kernel(float *)"));
	small_expect(&sink_text, r, &(struct sink_options){ .width = 30 },
		     " Total  Name\n"
		     "123456  void the…rnel(float *)\n"
		     "2 more columns in a wider terminal: Instances, Average\n");
	table_free(r);
}

static void chains(void **state)
{
	static const char *const names[] = {
		"root", "main", "run", "fit", "a", "a/b", "c", "d", "e"
	};
	static const uint32_t depths[] = { 0, 1, 2, 3, 4, 5, 4, 5, 6 };
	struct mem mem;
	struct table *r;

	(void)state;
	mem_init(&mem, 0);
	r = table_new(&mem, "x", NULL);
	table_add_column(r, "name", "name", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "t", "time", TYPE_INT, UNIT_MICROS);
	table_make_tree(r);
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		uint32_t row = table_add_row(r, depths[i]);

		table_set_text(r, row, 0, str_from(names[i]));
		table_set_int(r, row, 1, (int64_t)i);
	}
	small_expect(&sink_text, r, &(struct sink_options){ .width = 30 },
		     "name     time\n"
		     "root      0us\n"
		     "  main    1us\n"
		     "  ↳ run   2us\n"
		     "  ↳ fit   3us\n"
		     "    a     4us\n"
		     "      b   5us\n"
		     "    c     6us\n"
		     "    ↳ d   7us\n"
		     "    ↳ e   8us\n");
	small_starve(&sink_text, r, &(struct sink_options){ .width = 30 });
	table_free(r);
	assert_int_equal(atomic_load(&mem.used), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),	cmocka_unit_test(long_names),
		cmocka_unit_test(full_numbers), cmocka_unit_test(fitted),
		cmocka_unit_test(colour),	cmocka_unit_test(tree),
		cmocka_unit_test(empty),	cmocka_unit_test(terminal),
		cmocka_unit_test(left_out),	cmocka_unit_test(zeros_go_first),
		cmocka_unit_test(names_stay),	cmocka_unit_test(chains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
