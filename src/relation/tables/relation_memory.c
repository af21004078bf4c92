/* relation_memory.c: the relation `memory`: memory statistics of one run of an op. */
#include "relation/columns.h"

static ow_status describe(struct table *t, struct ow_error *err)
{
	return columns_paths(t, TABLE_memory, columns_op_step, err);
}

const struct table_source relation_memory = {
	.name = "memory",
	.doc = "memory statistics of one run of an op",
	.is_table = true,
	.table = TABLE_memory,
	.describe = describe,
};
