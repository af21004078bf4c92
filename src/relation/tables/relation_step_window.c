/* relation_step_window.c: the relation `step_window`: one step of one source, with the times of its marker. */
#include "relation/columns.h"

static const struct path_column derived[] = {
	{ "step", "step.number", "number of the step" },
	{ "source", "source.path", "path of the input" },
	{ "rank", "source.rank", NULL },
	{ NULL, NULL, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	OW_TRY(columns_paths(t, TABLE_window, derived, err));
	return OW_OK;
}

const struct table_source relation_step_window = {
	.name = "step_window",
	.doc = "one step of one source, with the time of its marker",
	.is_table = true,
	.table = TABLE_window,
	.describe = describe,
};
