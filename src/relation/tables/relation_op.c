/* relation_op.c: the relation `op`: a graph node, or a distinct operation of a trace. */
#include "relation/columns.h"

static const struct path_column derived[] = {
	{ "file", "stack.frame.file", "source file of the line that created the op" },
	{ "line", "stack.frame.line", "that line" },
	{ "function", "stack.frame.function", "function that contains the line" },
	{ "source", "source.path", "path of the input that defines the op" },
	{ NULL, NULL, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	OW_TRY(columns_paths(t, TABLE_op, derived, err));
	OW_TRY(columns_flag(t, TABLE_op, "has_code", OP_HAS_CODE,
			    "true: the op has a call stack, maybe without frames", err));
	OW_TRY(columns_flag(t, TABLE_op, "from_run", OP_FROM_RUN,
			    "true: the op is not in the graph and was seen only at run time", err));
	OW_TRY(columns_flag(t, TABLE_op, "ran", OP_COVERED,
			    "true: the input has a run-time record of the op", err));
	OW_TRY(columns_flag(t, TABLE_op, "trainable", OP_TRAINABLE,
			    "true: the op is among the trainable variables of its graph", err));
	OW_TRY(columns_flag(t, TABLE_op, "inferred_flops", OP_INFERRED_FLOPS,
			    "true: float_ops were computed from shapes, not given by the input",
			    err));
	OW_TRY(columns_flag(
		t, TABLE_op, "unknown_flops", OP_UNKNOWN_FLOPS,
		"true: the op has a formula for float operations, but its shapes are unknown",
		err));
	return OW_OK;
}

const struct table_source relation_op = {
	.name = "op",
	.doc = "an operation: a graph node, or a distinct operation of a trace",
	.is_table = true,
	.table = TABLE_op,
	.describe = describe,
};
