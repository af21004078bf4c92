/* relation_track.c: the relation `track`: a line of events: a host thread, a device stream, a device's executor. */
#include "relation/columns.h"

static const struct path_column derived[] = {
	{ "device", "device.name", "name of the device" },
	{ "source", "source.path", "path of the input" },
	{ "rank", "source.rank", NULL },
	{ NULL, NULL, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	OW_TRY(columns_paths(t, TABLE_track, derived, err));
	return OW_OK;
}

const struct table_source relation_track = {
	.name = "track",
	.doc = "a row of the timeline: a host thread, a device stream, a device's executor",
	.is_table = true,
	.table = TABLE_track,
	.describe = describe,
};
