/* relation_link.c: the relation `link`: joins two events: a launch and its kernel, a send and its receive, work and
 * the call that waits for it. */
#include "relation/columns.h"

static const struct path_column derived[] = {
	{ "src_op", "src.op.name", "op of the cause" },
	{ "dst_op", "dst.op.name", "op of the effect" },
	{ "src_track_id", "src.track", "track of the cause" },
	{ "dst_track_id", "dst.track", "track of the effect" },
	{ NULL, NULL, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	OW_TRY(columns_paths(t, TABLE_link, derived, err));
	return OW_OK;
}

const struct table_source relation_link = {
	.name = "link",
	.doc = "a pair of events: launch and kernel, send and receive",
	.is_table = true,
	.table = TABLE_link,
	.describe = describe,
};
