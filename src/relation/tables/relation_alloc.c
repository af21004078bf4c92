/* relation_alloc.c: the relation `alloc`: one allocation (positive) or release (negative). */
#include "relation/columns.h"

static ow_status describe(struct table *t, struct ow_error *err)
{
	return columns_paths(t, TABLE_alloc, columns_op_step, err);
}

const struct table_source relation_alloc = {
	.name = "alloc",
	.doc = "one allocation (positive size) or release (negative size)",
	.is_table = true,
	.table = TABLE_alloc,
	.describe = describe,
};
