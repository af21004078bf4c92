/*
 * sink_text_tree_test.c: a tree that is written directly reads as the table that is made of its columns; with
 * chains and without, whatever is selected and whatever names look like.
 */
#include "sink/tree_out.h"
#include "sink/sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "support/tfprof_text.h"

/* Long chains of calls that part late, names that a terminal must not see, times of all sizes. */
static void open_model(struct small_model *s)
{
	static const char *const functions[] = { "f", "größe", "a\tb", "中文", "\xff" };
	static const char *const scopes[] = { "a", "a/größe", "a/\033[31m", "b" };

	small_open(s);
	for (int i = 0; i < 40; i++) {
		struct small_frame frames[16] = { { 0 } };
		char name[64];
		op_id op;

		snprintf(name, sizeof(name), "%s/op_%d", scopes[i % 4], i);
		op = small_op(s, name, i % 3 ? "MatMul" : "Conv2D", "/cpu:0");
		for (int64_t step = 0; step < 2; step++)
			small_run(s, op, step, 10 * i, (int64_t)1 << i % 35, i % 2 ? i : 0);
		s->m->op.float_ops[op.v] = (int64_t)1 << i;
		for (int k = 0; k < 1 + i % 13; k++)
			frames[k] = (struct small_frame){ "/p/main.py", k < 3 ? i / 5 : i + k,
							  functions[k % 5] };
		if (i % 7)
			small_code(s, op, frames);
	}
	small_freeze(s);
}

static void expect_same(struct small_model *s, const char *view, const char *words,
			const struct sink_options *options)
{
	struct table *r = tfprof_run(s, view, words);
	struct buf direct, table;

	assert_true(sink_text.direct(r, options));
	small_write(&sink_text, r, options, &direct);
	assert_int_equal(tree_flatten(r, &s->err), OW_OK);
	assert_false(sink_text.direct(r, options));
	small_write(&sink_text, r, options, &table);
	assert_string_equal(direct.ptr, table.ptr);
	buf_release(&direct);
	buf_release(&table);
	table_free(r);
}

static void same_as_columns(void **state)
{
	static const char *const names[] = { "code", "scope", "graph" };
	static const char *const words[] = {
		"-max_depth 100",
		"-max_depth 4 -order_by float_ops -select micros,float_ops,occurrence",
		"-max_depth 100 -select bytes -account_type_regexes none",
		"-max_depth 100 -select tensor_value",
		"-max_depth 100 -min_micros 1000 -hide_name_regexes .*f",
	};
	struct small_model s;

	(void)state;
	open_model(&s);
	for (size_t v = 0; v < ARRAY_COUNT(names); v++)
		for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
			expect_same(&s, names[v], words[i], &(struct sink_options){ 0 });
			expect_same(&s, names[v], words[i],
				    &(struct sink_options){ .full_numbers = true,
							    .all_columns = true,
							    .title = "t\033" });
		}
	s.m->time_unit_ns = 1;
	expect_same(&s, "code", words[0], &(struct sink_options){ 0 });
	small_close(&s);
}

static void chains_stay_folded(void **state)
{
	struct small_model s;
	struct table *r;

	(void)state;
	open_model(&s);
	r = tfprof_run(&s, "code", "-max_depth 100");
	assert_true(r->tree->folded);
	small_starve(&sink_text, r, &(struct sink_options){ 0 });
	small_hang_up(&sink_text, r, &(struct sink_options){ 0 });
	assert_true(r->tree->folded);
	assert_int_equal(r->column_count, 0);
	table_free(r);
	small_close(&s);
}

/* What needs texts, a width or colours is left to the table. */
static void not_everything(void **state)
{
	struct small_model s;
	struct table *r;

	(void)state;
	open_model(&s);
	r = tfprof_run(&s, "code", "-select micros,device");
	assert_false(sink_text.direct(r, &(struct sink_options){ 0 }));
	table_free(r);
	r = tfprof_run(&s, "scope", "-select params");
	assert_false(sink_text.direct(r, &(struct sink_options){ 0 }));
	table_free(r);
	r = tfprof_run(&s, "op", "-select micros");
	assert_false(sink_text.direct(r, &(struct sink_options){ 0 }));
	table_free(r);
	r = tfprof_run(&s, "scope", "-select micros");
	assert_false(sink_text.direct(r, &(struct sink_options){ .width = 80 }));
	assert_false(sink_text.direct(r, &(struct sink_options){ .colour = true }));
	table_free(r);
	small_close(&s);
}

static void narrow_numbers(void **state)
{
	static const enum column_unit units[] = { UNIT_NS, UNIT_MICROS, UNIT_BYTES, UNIT_COUNT };

	(void)state;
	for (int64_t value = 0; value <= HUMAN_NARROW_MAX; value += 1 + value / 997)
		for (size_t u = 0; u < ARRAY_COUNT(units); u++) {
			char text[HUMAN_SIZE];

			assert_true(human_int(text, value, human_unit_of(units[u]), false) <=
				    HUMAN_NARROW);
			assert_true(human_real(text, (double)value / 1000.0,
					       human_unit_of(units[u]), false) <= HUMAN_NARROW);
		}
}

static void metrics(void **state)
{
	(void)state;
	assert_int_equal(metric_find(NULL), METRIC_MICROS);
	assert_int_equal(metric_find(""), METRIC_MICROS);
	assert_int_equal(metric_find("float_ops"), METRIC_FLOAT_OPS);
	assert_int_equal(metric_find("occurrence"), METRIC_RUN_COUNT);
	assert_int_equal(metric_find("colour"), METRIC_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(metrics),
					    cmocka_unit_test(same_as_columns),
					    cmocka_unit_test(chains_stay_folded),
					    cmocka_unit_test(not_everything),
					    cmocka_unit_test(narrow_numbers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
