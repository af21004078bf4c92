/*
 * view.c: the table of views and tfprof's default options. What the views do is in view_<name>.c.
 */
#include "analyze/view.h"

const struct view *const views[] = {
#define VIEW(name) &view_##name,
#include "analyze/views.def"
#undef VIEW
};
const size_t view_count = ARRAY_COUNT(views);

const struct view *view_find(const char *name)
{
	for (size_t i = 0; i < view_count; i++)
		if (!strcmp(views[i]->name, name))
			return views[i];
	return NULL;
}

void view_options_init(struct view_options *options)
{
	static const char *const everything[] = { ".*" }, *const micros[] = { "micros" };
	static const struct view_list all = { everything, 1 };

	*options = (struct view_options){
		.size = sizeof(*options),
		.max_depth = 10,
		.step = -1,
		.order_by = "name",
		.account_type_regexes = all,
		.start_name_regexes = all,
		.show_name_regexes = all,
		.select = { micros, 1 },
	};
}
