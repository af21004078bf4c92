/* relation_loss.c: the relation `loss`: damage, loss or doubt found while importing. */
#include "relation/columns.h"

static const struct path_column derived[] = {
	{ "source", "source.path", "path of the input" },
	{ NULL, NULL, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	OW_TRY(columns_paths(t, TABLE_note, derived, err));
	return OW_OK;
}

const struct table_source relation_loss = {
	.name = "loss",
	.doc = "damage, loss or doubt in an input",
	.is_table = true,
	.table = TABLE_note,
	.describe = describe,
};
