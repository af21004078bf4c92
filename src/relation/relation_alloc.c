/* relation_alloc.c: the relation `alloc`: one allocation (positive) or release (negative). */
#include "relation/columns.h"

static const struct path_column derived[] = {
	{ "op_id", "op_step.op", NULL },
	{ "op", "op_step.op.name", "name of the op" },
	{ "op_type", "op_step.op.type", NULL },
	{ "device", "op_step.op.device", "device of the op" },
	{ "step", "op_step.step.number", "number of the step" },
	{ NULL, NULL, NULL },
};

static ow_status describe(struct relation_table *t, struct error *err)
{
	OW_TRY(columns_paths(t, TABLE_alloc, derived, err));
	return OW_OK;
}

const struct relation relation_alloc = {
	.name = "alloc",
	.doc = "one allocation (positive) or release (negative)",
	.is_table = true,
	.table = TABLE_alloc,
	.describe = describe,
};
