/*
 * verdict_samples.c: the sentence of verdict.h for a profile that has only samples: the function that takes
 * the most, and, where it says more, the one below which most of it happens.
 */
#include "analyze/sample_functions.h"
#include "analyze/verdict.h"

#define NAME_COLUMNS 60
#define MOST 50.0 /* percent: a caller that is worth telling */
#define ALL 99.5  /* a caller of everything is no news */

static void add_name(struct buf *text, struct str name)
{
	struct str shown = utf8_fit(name, NAME_COLUMNS);

	buf_add_str(text, shown);
	buf_puts(text, shown.len < name.len ? "…" : "");
}

static void add_function(struct buf *text, const struct functions *f, size_t item)
{
	struct str module = model_str(f->m, COLUMN_GET(f->m->frame.module, f->items[item].frame));
	size_t slash = str_rfind_char(module, '/');

	add_name(text, f->items[item].name);
	if (!module.len)
		return;
	buf_puts(text, " (");
	add_name(text, slash == STR_NONE ? module : str_skip(module, slash + 1));
	buf_add_char(text, ')');
}

/* The function with the largest total that is not (almost) everything. */
static size_t largest_caller(struct functions *f)
{
	sample_functions_sort(f, true);
	for (size_t i = 1; i < f->count; i++)
		if (samples_percent(f->items[i].total, f->all) < ALL)
			return samples_percent(f->items[i].total, f->all) >= MOST ? i : 0;
	return 0;
}

static void say(struct functions *f, struct buf *text)
{
	struct str name = model_str(f->m, f->choice.name);
	size_t caller;

	if (f->count < 2 || f->all <= 0) {
		buf_puts(text, "No sample counts here.");
		return;
	}
	sample_functions_sort(f, false);
	buf_printf(text, "%.0f %% of ", samples_percent(f->items[1].self, f->all));
	add_name(text, name);
	buf_puts(text, str_eq(name, STR("samples")) ? " are in " : " is spent in ");
	add_function(text, f, 1);
	buf_puts(text, " itself");
	caller = largest_caller(f);
	if (caller && f->items[caller].self != f->items[caller].total) {
		buf_printf(text, "; %.0f %% below ",
			   samples_percent(f->items[caller].total, f->all));
		add_function(text, f, caller);
	}
	buf_add_char(text, '.');
}

ow_status verdict_samples(struct model *m, const struct event_filter *filter, const char *metric,
			  struct buf *text, struct error *err)
{
	struct view_options options;
	struct arena scratch;
	struct functions f = { .m = m, .scratch = &scratch };
	ow_status status;

	OW_TRY(model_require_stacks(m, err));
	view_options_init(&options);
	options.metric = metric;
	arena_init(&scratch, m->mem);
	status = samples_choose(m, &options, &scratch, &f.choice, err);
	if (status == OW_OK) {
		f.choice.filter = *filter;
		status = sample_functions_make(&f, err);
		if (status == OW_OK)
			say(&f, text);
		sample_functions_release(&f);
	}
	arena_release(&scratch);
	return status;
}
