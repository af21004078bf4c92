/*
 * view.h: what a view is: a pure function from a frozen model and options to a result. One file
 * view_<name>.c exports `const struct view view_<name>`; one line VIEW(<name>) in views.def makes it
 * known to the command line, the shell, the Python package, SQL and the docs index.
 */
#ifndef ANALYZE_VIEW_H
#define ANALYZE_VIEW_H

#include "model/event_sums.h"
#include "table/table.h"
#include "table/tree/tree.h"

/* The public structs are used internally under these names. */
#define view_list ow_list
#define view_options ow_view_options

struct view;

/* Sets tfprof's defaults. */
void view_options_init(struct view_options *options);
/* Replaces order_by NULL and OW_DEFAULT_DEPTH by the defaults of the view: sort by cost, and show one
 * screen of ops. */
void view_choose_defaults(const struct view *view, struct view_options *options);

/* Refuses the first option that the view would ignore for these files. Called before the defaults are
 * chosen. */
ow_status view_options_check(const struct view *view, const struct model *m,
			     const struct view_options *options, struct ow_error *err);
/* Sets the options that the view would ignore to their defaults. */
void view_options_drop(const struct view *view, const struct model *m,
		       struct view_options *options);

/* Makes a filter from the step, rank and range of time in the options; fails if one of them does
 * not exist. */
ow_status view_filter(const struct model *m, const struct view_options *options,
		      struct event_filter *filter, struct ow_error *err);
/* Makes the same filter with times that count from `start` (TIME_UNKNOWN: there are no times). */
ow_status view_filter_from(const struct model *m, const struct view_options *options, int64_t start,
			   struct event_filter *filter, struct ow_error *err);

/* What ops did in the part of the time or on the rank that the options ask for; NULL when they ask for
 * everything, or for a step only. */
ow_status view_sums(struct model *m, const struct view_options *options, struct arena *arena,
		    const struct event_sums **sums, struct ow_error *err);

/* Returns why a view has no rows: what the inputs lack, and which inputs have it. Never NULL. */
const char *view_empty_reason(const struct view *view, const struct model *m,
			      const struct view_options *options);
/* Returns a hint on this model for a user who selects ops by type; NULL for none. */
const char *view_type_hint(const struct model *m, const struct view_options *options);

/* Returns the values that order_by accepts, by index; NULL beyond the last. The empty text, which keeps
 * the order, is not among them. */
const char *view_order_at(size_t index);

/* The options that a view uses; all others are refused. */
enum view_use {
	VIEW_USES_STEP = 1 << 0,
	VIEW_USES_TIME = 1 << 1, /* range of time */
	VIEW_USES_RANK = 1 << 2,
	VIEW_USES_PART = VIEW_USES_STEP | VIEW_USES_TIME | VIEW_USES_RANK,
	/* options of tfprof: levels, order, columns, minima, regular expressions */
	VIEW_USES_OPS = 1 << 3,
	VIEW_USES_FULL_NAMES = 1 << 4,
	VIEW_USES_METRIC = 1 << 5, /* metric of sampled stacks */
	VIEW_USES_STYLE = 1 << 6,
	VIEW_USES_PEAK = 1 << 7,
	/* minimum of occurrences, which tfprof's code view does not have */
	VIEW_USES_OCCURRENCE = 1 << 8
};

struct view {
	const char *name, *summary;
	bool tree;     /* the view is one of the four tfprof views */
	unsigned uses; /* flags of enum view_use */
	ow_status (*run)(struct model *m, const struct view_options *options, struct table *out,
			 struct ow_error *err);
};

#define VIEW(name) extern const struct view view_##name;
#include "analyze/views.def"
#undef VIEW

/* Puts the sentences of columns.def into the columns of a view's table. */
void view_describe(const struct view *view, struct table *t);

extern const struct view *const views[];
extern const size_t view_count;
const struct view *view_find(const char *name);

/* Whether an op is a gradient, by TensorFlow's names: "…gradients/NAME_grad/…" is a gradient of NAME, and tfprof looks for the first
 * of each. One line of code creates all gradients, so views that go by lines show them beside the op that they belong to. */
bool gradient_of(struct str name, struct str *forward);

#endif
