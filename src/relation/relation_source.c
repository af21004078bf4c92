/* relation_source.c: the relation `source`: one input file, or one member of a container. */
#include "relation/columns.h"

const struct relation relation_source = {
	.name = "source",
	.doc = "one input file, or one member of a container",
	.is_table = true,
	.table = TABLE_source,
};
