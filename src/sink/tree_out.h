/*
 * tree_out.h: what the sinks that draw trees share (folded, flamegraph, pprof): the chosen metric, totals of children, and the part of a name
 * that its parent does not have.
 */
#ifndef SINK_TREE_OUT_H
#define SINK_TREE_OUT_H

#include "table/tree/tree.h"
#include "sink/sink.h"

struct metric_info {
	const char *name;  /* name of the metric as given to --select */
	const char *title; /* for example "total time" */
	enum column_unit unit;
};
extern const struct metric_info metric_infos[METRIC_COUNT];

/* The metric with this name (NULL: micros); METRIC_COUNT when there is none. */
enum metric metric_find(const char *name);

/* The metric that is drawn, and its title. */
struct tree_measure {
	enum metric metric;
	enum column_unit unit;
	struct str title;
};

/* Finds the metric named by options->metric. An unknown name is an error whose message lists the metrics. A tree of
 * samples has only one metric. */
ow_status tree_out_measure(const struct tree *tree, const struct sink_options *options,
			   struct tree_measure *measure, struct ow_error *err);

/* The total of a node, but at least 0, because a negative number would make a box of negative width. */
static inline int64_t tree_out_total(const struct tree *tree, const struct tree_node *node,
				     enum metric metric)
{
	int64_t total = tree_total(tree, node, metric);

	return MAX(total, 0);
}

/* For each node, the sum of its displayed children's totals; the caller frees it with tree_out_release. */
ow_status tree_out_child_sums(const struct tree *tree, enum metric metric, struct mem *mem,
			      int64_t **sums, struct ow_error *err);
void tree_out_release(const struct tree *tree, struct mem *mem, int64_t *sums);

/* The number of bytes at the beginning of a name that are the displayed parent's name and a '/' (scope view). */
size_t tree_out_prefix(const struct tree *tree, const struct tree_node *node);

#endif
