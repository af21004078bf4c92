/*
 * view.h: what a view is: a pure function from a frozen model and options to a result. One file
 * view_<name>.c exports `const struct view view_<name>`; one line VIEW(<name>) in views.def makes it
 * known to the command line, the shell, the Python package, SQL and the docs index.
 */
#ifndef ANALYZE_VIEW_H
#define ANALYZE_VIEW_H

#include "model/result.h"
#include "model/tree.h"

struct view_list {
	const char *const *items;
	size_t count;
};

/* tfprof's options, with its defaults from view_options_init; other views use what fits. */
struct view_options {
	int32_t max_depth;
	int64_t min_bytes, min_peak_bytes, min_residual_bytes, min_output_bytes;
	int64_t min_micros, min_accelerator_micros, min_cpu_micros;
	int64_t min_params, min_float_ops, min_occurrence;
	int64_t step;
	const char *order_by; /* "" = do not sort */
	struct view_list account_type_regexes, start_name_regexes, trim_name_regexes;
	struct view_list show_name_regexes, hide_name_regexes;
	bool account_displayed_op_only;
	struct view_list select;
	uint32_t limit; /* rows; 0 = all */
};

void view_options_init(struct view_options *options);

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
