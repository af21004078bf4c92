/*
 * tree_out.h: what the sinks that draw trees share (folded, flamegraph, pprof): the chosen metric, totals of children, and the part of a name
 * that its parent does not have.
 */
#ifndef SINK_TREE_OUT_H
#define SINK_TREE_OUT_H

#include "table/tree/tree.h"
#include "sink/sink.h"

struct metric_info {
	const char *name;  /* as after --select */
	const char *title; /* "total time" */
	enum column_unit unit;
};
extern const struct metric_info metric_infos[METRIC_COUNT];

/* The metric of that name, micros for NULL; METRIC_COUNT when there is none. */
enum metric metric_find(const char *name);

/* The metric that is drawn, and its title. */
struct tree_measure {
	enum metric metric;
	enum column_unit unit;
	struct str title;
};

/* Finds the metric of options->metric. An unknown name is an error that lists the metrics. A tree of samples has only one. */
ow_status tree_out_measure(const struct tree *tree, const struct sink_options *options,
			   struct tree_measure *measure, struct ow_error *err);

/* The total of a node, but not less than 0: negative numbers must not make boxes of negative width. */
static inline int64_t tree_out_total(const struct tree *tree, const struct tree_node *node,
				     enum metric metric)
{
	int64_t total = tree_total(tree, node, metric);

	return MAX(total, 0);
}

/* Per node the sum of its displayed children's totals; release with tree_out_release. */
ow_status tree_out_child_sums(const struct tree *tree, enum metric metric, struct mem *mem,
			      int64_t **sums, struct ow_error *err);
void tree_out_release(const struct tree *tree, struct mem *mem, int64_t *sums);

/* How many bytes of the name are its displayed parent's name and the '/' after it (scope view). */
size_t tree_out_prefix(const struct tree *tree, const struct tree_node *node);

#endif
