/* relation_counter.c: the relation `counter`: one sample of a counter. */
#include "relation/columns.h"

static const struct path_column derived[] = {
	{ "track", "track.name", "name of the track" },
	{ "process", "track.process", NULL },
	{ "device", "track.device.name", "name of the device" },
	{ "rank", "track.source.rank", NULL },
	{ NULL, NULL, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	OW_TRY(columns_paths(t, TABLE_counter, derived, err));
	return OW_OK;
}

const struct table_source relation_counter = {
	.name = "counter",
	.doc = "one sample of a counter",
	.is_table = true,
	.table = TABLE_counter,
	.describe = describe,
};
