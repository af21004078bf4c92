/* relation_stack.c: the relation `stack`: a call stack as a prefix tree: a frame called from a parent stack. */
#include "relation/columns.h"

static const struct path_column derived[] = {
	{ "file", "frame.file", NULL },		{ "line", "frame.line", NULL },
	{ "function", "frame.function", NULL }, { "text", "frame.text", NULL },
	{ "module", "frame.module", NULL },	{ NULL, NULL, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	OW_TRY(columns_paths(t, TABLE_stack, derived, err));
	return OW_OK;
}

const struct table_source relation_stack = {
	.name = "stack",
	.doc = "a call stack as a prefix tree: a frame called from a parent stack",
	.is_table = true,
	.table = TABLE_stack,
	.describe = describe,
};
