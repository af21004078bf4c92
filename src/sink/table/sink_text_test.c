/* sink_text_test.c: alignment, units, fitting to a width, trees, control characters, colour. */
#include "sink/sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "support/small_tree.h"

static struct result *sample(struct mem *mem)
{
	struct result *r = result_new(mem, "sample", NULL);
	uint32_t row;

	assert_non_null(r);
	result_column(r, "name", "name", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "time", "time", RESULT_INT, RESULT_NS);
	result_column(r, "memory", "memory", RESULT_INT, RESULT_BYTES);
	result_column(r, "part", "%", RESULT_REAL, RESULT_PERCENT);
	result_column(r, "ran", "ran", RESULT_BOOL, RESULT_PLAIN);
	result_column(r, "note", "note", RESULT_TEXT, RESULT_PLAIN);
	row = result_row(r, 0);
	result_set_text(r, row, 0, STR("MatMul"));
	result_set_int(r, row, 1, 1234567);
	result_set_int(r, row, 2, 4500000);
	result_set_real(r, row, 3, 61.25);
	result_set_int(r, row, 4, 1);
	result_set_text(r, row, 5, STR("fine"));
	row = result_row(r, 0);
	result_set_text(r, row, 0, STR("gradients/net/block_0/conv_0/Conv2D_grad/Conv2DBackprop"));
	result_set_int(r, row, 1, 999);
	result_set_unknown(r, row, 2);
	result_set_real(r, row, 3, 0.5);
	result_set_text(r, row, 5, STR("\033[31mred\n中"));
	assert_int_equal(r->status, OW_OK);
	return r;
}

static void plain(void **state)
{
	struct mem mem;
	struct result *r;

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
	result_free(r);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void full_numbers(void **state)
{
	struct mem mem;
	struct result *r;

	(void)state;
	mem_init(&mem, 0);
	r = sample(&mem);
	result_limit(r, 1);
	small_expect(&sink_text, r, &(struct sink_options){ .full_numbers = true },
		     "name         time    memory       %  ran  note\n"
		     "MatMul  1234567ns  4500000B  61.25%  yes  fine\n");
	result_free(r);
}

/* No line is wider than asked for, names keep their ends, and columns that do not fit are named. */
static void fitted(void **state)
{
	struct mem mem;
	struct result *r;

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
	result_free(r);
}

static void colour(void **state)
{
	struct mem mem;
	struct result *r;

	(void)state;
	mem_init(&mem, 0);
	r = result_new(&mem, "x", NULL);
	result_column(r, "a", NULL, RESULT_INT, RESULT_COUNT);
	result_set_unknown(r, result_row(r, 0), 0);
	r->footer = (char *)(uintptr_t) "two\nlines";
	small_expect(&sink_text, r, &(struct sink_options){ .colour = true, .title = "Title" },
		     "\033[1mTitle\033[0m\n\033[1ma\033[0m\n\033[2m-\033[0m\n\ntwo\nlines\n");
	small_expect(&sink_text, r, &(struct sink_options){ .title = "Title" },
		     "Title\na\n-\n\ntwo\nlines\n");
	result_free(r);
}

static void tree(void **state)
{
	struct mem mem;
	struct result *r;
	uint32_t row;

	(void)state;
	mem_init(&mem, 0);
	r = result_new(&mem, "x", NULL);
	result_column(r, "n", "runs", RESULT_INT, RESULT_COUNT);
	result_column(r, "name", "name", RESULT_TEXT, RESULT_PLAIN);
	result_make_tree(r);
	for (uint32_t depth = 0; depth < 4; depth++) {
		row = result_row(r, depth);
		result_set_int(r, row, 0, depth * 1000);
		result_set_text(r, row, 1, STR("abcdefghijklmnop"));
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
	result_free(r);
}

/* On a terminal a name in a tree leaves out its parent's, and titles may take two lines. */
static void terminal(void **state)
{
	static const char *const names[] = { "all", "a", "a/b", "a/b/c", "ab", "a/d" };
	static const uint32_t depths[] = { 0, 1, 2, 3, 2, 6 };
	struct mem mem;
	struct result *r;

	(void)state;
	mem_init(&mem, 0);
	r = result_new(&mem, "x", NULL);
	result_column(r, "name", "name", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "t", "total accelerator time", RESULT_INT, RESULT_MICROS);
	result_make_tree(r);
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		uint32_t row = result_row(r, depths[i]);

		result_set_text(r, row, 0, str_from(names[i]));
		result_set_int(r, row, 1, (int64_t)i);
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
	result_free(r);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void empty(void **state)
{
	struct mem mem;
	struct result *r;

	(void)state;
	mem_init(&mem, 0);
	r = result_new(&mem, "x", NULL);
	small_expect(&sink_text, r, &(struct sink_options){ 0 }, "(nothing to show)\n");
	result_column(r, "a", "a", RESULT_INT, RESULT_COUNT);
	small_expect(&sink_text, r, &(struct sink_options){ .width = 80 }, "(nothing to show)\n");
	result_free(r);
}

/* Columns that are for programs, or have no value in any row, are not shown. */
static void left_out(void **state)
{
	struct mem mem;
	struct result *r;
	uint32_t row;

	(void)state;
	mem_init(&mem, 0);
	r = result_new(&mem, "x", NULL);
	result_column(r, "rank", "rank", RESULT_INT, RESULT_PLAIN);
	result_column(r, "name", "name", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "raw", "raw", RESULT_INT, RESULT_COUNT);
	result_column(r, "none", "none", RESULT_INT, RESULT_COUNT);
	result_column(r, "empty", "empty", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "zero", "zero", RESULT_INT, RESULT_COUNT);
	r->columns[2].for_programs = true;
	row = result_row(r, 0);
	result_set_text(r, row, 1, STR("a"));
	result_set_int(r, row, 2, 7);
	result_set_unknown(r, row, 3);
	small_expect(&sink_text, r, &(struct sink_options){ 0 },
		     "rank  name  zero\n"
		     "   0  a        0\n");
	result_free(r);
}

/* What does not fit is left out from the right, and columns of zeros before others. */
static void zeros_go_first(void **state)
{
	struct mem mem;
	struct result *r;
	uint32_t row;

	(void)state;
	mem_init(&mem, 0);
	r = result_new(&mem, "x", NULL);
	result_column(r, "name", "name", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "accelerator", "accelerator", RESULT_INT, RESULT_COUNT);
	result_column(r, "cpu", "cpu", RESULT_INT, RESULT_COUNT);
	row = result_row(r, 0);
	result_set_text(r, row, 0, STR("abcdefghij"));
	result_set_int(r, row, 2, 5);
	small_expect(&sink_text, r, &(struct sink_options){ .width = 60 },
		     "name        accelerator  cpu\n"
		     "abcdefghij            0    5\n");
	small_expect(&sink_text, r, &(struct sink_options){ .width = 20 },
		     "name        cpu\n"
		     "abcdefghij    5\n"
		     "1 more column in a wider terminal: accelerator\n");
	result_free(r);
}

/* In a deep tree an only child stands below its parent, with a mark. */
/* As in reports of nsys, whose names come last. */
static void names_stay(void **state)
{
	struct error err = { 0 };
	struct result *r;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	r = result_new(&mem, "x", &err);
	for (int i = 0; i < 3; i++)
		result_column(r, "n",
			      i == 0   ? "Total"
			      : i == 1 ? "Instances"
				       : "Average",
			      RESULT_INT, RESULT_PLAIN);
	result_column(r, "name", "Name", RESULT_TEXT, RESULT_PLAIN);
	result_row(r, 0);
	for (uint32_t i = 0; i < 3; i++)
		result_set_int(r, 0, i, 123456 + i);
	result_set_text(r, 0, 3, STR("void the_kernel(float *)"));
	small_expect(&sink_text, r, &(struct sink_options){ .width = 30 },
		     " Total  Name\n"
		     "123456  void the…rnel(float *)\n"
		     "2 more columns in a wider terminal: Instances, Average\n");
	result_free(r);
}

static void chains(void **state)
{
	static const char *const names[] = {
		"root", "main", "run", "fit", "a", "a/b", "c", "d", "e"
	};
	static const uint32_t depths[] = { 0, 1, 2, 3, 4, 5, 4, 5, 6 };
	struct mem mem;
	struct result *r;

	(void)state;
	mem_init(&mem, 0);
	r = result_new(&mem, "x", NULL);
	result_column(r, "name", "name", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "t", "time", RESULT_INT, RESULT_MICROS);
	result_make_tree(r);
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		uint32_t row = result_row(r, depths[i]);

		result_set_text(r, row, 0, str_from(names[i]));
		result_set_int(r, row, 1, (int64_t)i);
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
	result_free(r);
	assert_int_equal(atomic_load(&mem.used), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),	  cmocka_unit_test(full_numbers),
		cmocka_unit_test(fitted),	  cmocka_unit_test(colour),
		cmocka_unit_test(tree),		  cmocka_unit_test(empty),
		cmocka_unit_test(terminal),	  cmocka_unit_test(left_out),
		cmocka_unit_test(zeros_go_first), cmocka_unit_test(names_stay),
		cmocka_unit_test(chains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
