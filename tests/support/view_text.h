/*
 * view_text.h: runs a view on a frozen model and compares its rows, written as "a|b|c\n" with "-" for unknown values;
 * also runs it with every allocation failing in turn.
 */
#ifndef SUPPORT_VIEW_TEXT_H
#define SUPPORT_VIEW_TEXT_H

#include "analyze/view.h"

#include "support/small_model.h"

static inline void view_text_cell(struct buf *text, const struct table *r, uint32_t row,
				  uint32_t column)
{
	const struct table_column *c = &r->columns[column];

	if (c->known && !c->known[row])
		buf_add_char(text, '-');
	else if (c->type == TYPE_TEXT)
		buf_add_str(text, c->texts[row]);
	else if (c->type == TYPE_REAL)
		buf_printf(text, "%g", c->reals[row]);
	else
		buf_printf(text, "%" PRId64, c->ints[row]);
}

/* Runs a view that must succeed; the caller frees the result. */
static inline struct table *view_text_run(struct small_model *s, const struct view *view,
					  const struct view_options *options)
{
	struct view_options defaults;
	struct table *r = table_new(&s->mem, view->name, &s->err);

	assert_non_null(r);
	view_options_init(&defaults);
	assert_int_equal(view->run(s->m, options ? options : &defaults, r, &s->err), OW_OK);
	return r;
}

static inline void view_text_expect(struct small_model *s, const struct view *view,
				    const struct view_options *options, const char *want)
{
	struct table *r = view_text_run(s, view, options);
	struct buf text;

	buf_init(&text, &s->mem);
	for (uint32_t row = 0; row < r->row_count; row++)
		for (uint32_t i = 0; i < r->column_count; i++) {
			view_text_cell(&text, r, row, i);
			buf_add_char(&text, i + 1 < r->column_count ? '|' : '\n');
		}
	buf_add_char(&text, '\0');
	assert_string_equal(text.ptr, want);
	buf_release(&text);
	table_free(r);
}

/* Compares the rows of some columns: "step,rank". */
static inline void view_text_expect_columns(struct small_model *s, const struct view *view,
					    const struct view_options *options, const char *columns,
					    const char *want)
{
	struct table *r = view_text_run(s, view, options);
	struct buf text;

	buf_init(&text, &s->mem);
	for (uint32_t row = 0; row < r->row_count; row++) {
		struct str rest = str_from(columns), name;

		while (str_split(&rest, ',', &name)) {
			uint32_t i = 0;

			while (i < r->column_count && !str_eq(name, str_from(r->columns[i].name)))
				i++;
			assert_true(i < r->column_count);
			view_text_cell(&text, r, row, i);
			buf_add_char(&text, rest.ptr ? '|' : '\n');
		}
	}
	buf_add_char(&text, '\0');
	assert_string_equal(text.ptr, want);
	buf_release(&text);
	table_free(r);
}

static inline ow_status view_text_run_without(struct small_model *s, const struct view *view,
					      uint64_t n, bool sticky)
{
	struct view_options defaults;
	struct table *r = table_new(&s->mem, view->name, &s->err);
	ow_status status;

	assert_non_null(r);
	view_options_init(&defaults);
	mem_fail_after(n, sticky);
	status = view->run(s->m, &defaults, r, &s->err);
	mem_fail_after(0, false);
	assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
	table_free(r);
	return status;
}

/* Lets every allocation fail once, alone and with all that follow; the result must be OW_E_NO_MEMORY or, when the
 * code has an alternative, OW_OK. */
static inline void view_text_fail_each(struct small_model *s, const struct view *view)
{
	uint64_t n = 1;

	for (; view_text_run_without(s, view, n, true) != OW_OK; n++)
		(void)view_text_run_without(s, view, n, false);
	assert_true(n > 1);
}

#endif
