/* relation_source.c: the relation `source`: one input file, or one member of a container. */
#include "relation/columns.h"

static const struct path_column derived[] = {
	{ "step", "step.number", "number of the step that the source holds, if it holds just one" },
	{ NULL, NULL, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	OW_TRY(columns_paths(t, TABLE_source, derived, err));
	return OW_OK;
}

const struct table_source relation_source = {
	.name = "source",
	.doc = "one input file, or one member of a container",
	.is_table = true,
	.table = TABLE_source,
	.describe = describe,
};
