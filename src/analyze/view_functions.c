/*
 * view_functions.c: sampled functions by what they cost themselves, or, with the style "total", with all that
 * they call. Stands in for the op view where nothing but samples is known.
 */
#include "analyze/sample_functions.h"

enum {
	COLUMN_NAME,
	COLUMN_SELF, /* the first of those that tell the cost */
	COLUMN_MODULE = COLUMN_SELF + 4,
	COLUMN_FILE,
	COLUMN_METRIC,
	COLUMN_UNIT
};

static void add_columns(struct result *out, enum result_unit unit)
{
	result_column(out, "name", "function", RESULT_TEXT, RESULT_PLAIN);
	samples_add_cost_columns(out, unit);
	result_column(out, "module", "module", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "file", "file", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "metric", "metric", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "unit", "unit", RESULT_TEXT, RESULT_PLAIN);
	out->columns[COLUMN_METRIC].for_programs = out->columns[COLUMN_UNIT].for_programs = true;
}

static void add_rows(struct functions *f, const struct view_options *options, struct result *out)
{
	const struct model *m = f->m;
	uint32_t limit = options->limit ? options->limit : UINT32_MAX;

	for (size_t i = 1; i < f->count && out->row_count < limit; i++) {
		const struct function *item = &f->items[i];
		uint32_t row = result_row(out, 0);

		result_set_text(out, row, COLUMN_NAME, item->name);
		samples_set_cost(out, row, COLUMN_SELF, item->self, item->total, f->all);
		result_set_model_text(out, row, COLUMN_MODULE,
				      model_str(m, COLUMN_GET(m->frame.module, item->frame)));
		result_set_model_text(out, row, COLUMN_FILE,
				      model_str(m, m->frame.file[item->frame]));
		result_set_model_text(out, row, COLUMN_METRIC, model_str(m, f->choice.name));
		result_set_model_text(out, row, COLUMN_UNIT, model_str(m, f->choice.unit));
	}
}

/* The word among the styles. */
static bool wants_totals(const struct view_options *options)
{
	struct str rest = str_from(options->style ? options->style : ""), word;

	while (str_split(&rest, ',', &word))
		if (str_eq(word, STR("total")))
			return true;
	return false;
}

static ow_status run(struct model *m, const struct view_options *options, struct result *out,
		     struct error *err)
{
	struct arena scratch;
	struct functions f = { .m = m, .scratch = &scratch };
	ow_status status;

	OW_TRY(model_require_stacks(m, err));
	arena_init(&scratch, m->mem);
	status = samples_choose(m, options, &scratch, &f.choice, err);
	if (status == OW_OK) {
		status = sample_functions_make(&f, err);
		add_columns(out, f.choice.shown_as);
		sample_functions_sort(&f, wants_totals(options));
		if (status == OW_OK) {
			add_rows(&f, options, out);
			status = samples_add_footer(&f.choice, options, out, err);
		}
		sample_functions_release(&f);
	}
	arena_release(&scratch);
	return status;
}

const struct view view_functions = {
	.name = "functions",
	.summary = "sampled functions, by what they cost themselves and in total",
	.run = run,
};
