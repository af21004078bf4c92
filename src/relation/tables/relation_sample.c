/* relation_sample.c: the relation `sample`: one sample of a call stack, with its leaf frame. */
#include "relation/columns.h"

static const struct path_column derived[] = {
	{ "metric", "metric.name", "name of the metric: what was measured" },
	{ "unit", "metric.unit", "unit of the weight" },
	{ "function", "stack.frame.function", "function that was running" },
	{ "file", "stack.frame.file", NULL },
	{ "line", "stack.frame.line", NULL },
	{ "module", "stack.frame.module", NULL },
	{ "step", "step.number", NULL },
	{ "thread", "track.name", "name of the thread" },
	{ "process", "track.process", NULL },
	{ "pid", "track.pid", NULL },
	{ "tid", "track.tid", NULL },
	{ "rank", "track.source.rank", NULL },
	{ NULL, NULL, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	return columns_paths(t, TABLE_sample, derived, err);
}

const struct table_source relation_sample = {
	.name = "sample",
	.doc = "one sample: a call stack and its weight in the unit of a metric",
	.is_table = true,
	.table = TABLE_sample,
	.describe = describe,
};
