/* relation_frame.c: the relation `frame`: a source line. */
#include "relation/columns.h"

const struct table_source relation_frame = {
	.name = "frame",
	.doc = "a source line",
	.is_table = true,
	.table = TABLE_frame,
};
