/* relation_tensor.c: the relation `tensor`: one tensor seen at run time or in a checkpoint. */
#include "relation/columns.h"

static const struct path_column derived[] = {
	{ "op", "op.name", "name of the op that produced the tensor" },
	{ "op_type", "op.type", NULL },
	{ "step", "step.number", "number of the step" },
	{ NULL, NULL, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	OW_TRY(columns_paths(t, TABLE_tensor, derived, err));
	return OW_OK;
}

const struct table_source relation_tensor = {
	.name = "tensor",
	.doc = "one tensor seen at run time or in a checkpoint",
	.is_table = true,
	.table = TABLE_tensor,
	.describe = describe,
};
