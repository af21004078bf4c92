/*
 * view.h: what a view is: a pure function from a frozen model and options to a result. One file
 * view_<name>.c exports `const struct view view_<name>`; one line VIEW(<name>) in views.def makes it
 * known to the command line, the shell, the Python package, SQL and the docs index.
 */
#ifndef ANALYZE_VIEW_H
#define ANALYZE_VIEW_H

#include "model/event_sums.h"
#include "model/result.h"
#include "model/tree.h"

/* The public structs are the internal ones. */
#define view_list ow_list
#define view_options ow_view_options

/* tfprof's defaults. */
void view_options_init(struct view_options *options);

/* The step, rank and part of the time that the options ask for; fails when there is no such thing. */
ow_status view_filter(const struct model *m, const struct view_options *options,
		      struct event_filter *filter, struct error *err);

/* What ops did in the part of the time or on the rank that the options ask for; NULL when they ask for
 * everything, or for a step only. */
ow_status view_sums(struct model *m, const struct view_options *options, struct arena *arena,
		    const struct event_sums **sums, struct error *err);

/* What order_by takes; NULL beyond the last. An empty text, which leaves the order, is not among them. */
const char *view_order_at(size_t index);

struct view {
	const char *name, *summary;
	bool tree; /* one of the four tfprof views */
	ow_status (*run)(struct model *m, const struct view_options *options, struct result *out,
			 struct error *err);
};

#define VIEW(name) extern const struct view view_##name;
#include "analyze/views.def"
#undef VIEW

extern const struct view *const views[];
extern const size_t view_count;
const struct view *view_find(const char *name);

#endif
