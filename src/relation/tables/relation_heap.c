/* relation_heap.c: the relation `heap`: one change of the memory of a device or process, in time. */
#include "relation/columns.h"

static const struct path_column derived[] = {
	{ "device", "device.name", "name of the device" },
	{ "device_kind", "device.kind", NULL },
	{ "op", "op.name", "name of the op" },
	{ "op_type", "op.type", NULL },
	{ "step", "step.number", "number of the step" },
	{ "track", "track.name", "name of the thread or stream" },
	{ "rank", "source.rank", NULL },
	{ NULL, NULL, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	OW_TRY(columns_paths(t, TABLE_heap, derived, err));
	return OW_OK;
}

const struct table_source relation_heap = {
	.name = "heap",
	.doc = "one change of the memory in use on a device or in a process, with its time",
	.is_table = true,
	.table = TABLE_heap,
	.describe = describe,
};
