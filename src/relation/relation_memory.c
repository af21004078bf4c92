/* relation_memory.c: the relation `memory`: memory statistics of one run of an op. */
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
	OW_TRY(columns_paths(t, TABLE_memory, derived, err));
	return OW_OK;
}

const struct relation relation_memory = {
	.name = "memory",
	.doc = "memory statistics of one run of an op",
	.is_table = true,
	.table = TABLE_memory,
	.describe = describe,
};
