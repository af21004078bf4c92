/* relation_step.c: the relation `step`: one training or inference step. */
#include "relation/columns.h"

const struct relation relation_step = {
	.name = "step",
	.doc = "one training or inference step",
	.is_table = true,
	.table = TABLE_step,
};
