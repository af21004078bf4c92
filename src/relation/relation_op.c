/* relation_op.c: the relation `op`: what runs: a graph node, or a distinct operation of a trace. */
#include "relation/columns.h"

const struct relation relation_op = {
	.name = "op",
	.doc = "what runs: a graph node, or a distinct operation of a trace",
	.is_table = true,
	.table = TABLE_op,
};
