/* relation_metric.c: the relation `metric`: the quantities that samples measure. */
#include "relation/columns.h"

const struct table_source relation_metric = {
	.name = "metric",
	.doc = "a metric that samples measure: time, cycles, bytes",
	.is_table = true,
	.table = TABLE_metric,
};
