/* relation_metric.c: the relation `metric`: what samples measure. */
#include "relation/columns.h"

const struct relation relation_metric = {
	.name = "metric",
	.doc = "what samples measure: time, cycles, bytes",
	.is_table = true,
	.table = TABLE_metric,
};
