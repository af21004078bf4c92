/* relation_op.c: the relation `op`: a graph node, or a distinct operation of a trace. */
#include "relation/columns.h"

static const struct path_column derived[] = {
	{ "file", "stack.frame.file", "source file of the line that made it" },
	{ "line", "stack.frame.line", "that line" },
	{ "function", "stack.frame.function", "the function it is in" },
	{ "source", "source.path", "path of the input that defines it" },
	{ NULL, NULL, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	OW_TRY(columns_paths(t, TABLE_op, derived, err));
	OW_TRY(columns_flag(t, TABLE_op, "has_code", OP_HAS_CODE,
			    "it has a call stack, maybe without frames", err));
	OW_TRY(columns_flag(t, TABLE_op, "from_run", OP_FROM_RUN,
			    "not in the graph: seen at run time only", err));
	OW_TRY(columns_flag(t, TABLE_op, "ran", OP_COVERED, "a run-time record was seen", err));
	OW_TRY(columns_flag(t, TABLE_op, "trainable", OP_TRAINABLE,
			    "among the trainable variables of its graph", err));
	OW_TRY(columns_flag(t, TABLE_op, "inferred_flops", OP_INFERRED_FLOPS,
			    "float_ops were computed from shapes, not given", err));
	OW_TRY(columns_flag(t, TABLE_op, "unknown_flops", OP_UNKNOWN_FLOPS,
			    "has a formula, but shapes stayed unknown", err));
	return OW_OK;
}

const struct table_source relation_op = {
	.name = "op",
	.doc = "what runs: a graph node, or a distinct operation of a trace",
	.is_table = true,
	.table = TABLE_op,
	.describe = describe,
};
