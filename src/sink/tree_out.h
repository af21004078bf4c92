/*
 * tree_out.h: what the sinks that draw trees share: the metric asked for, totals of children, the
 * part of a name that its parent does not say.
 */
#ifndef SINK_TREE_OUT_H
#define SINK_TREE_OUT_H

#include "sink/human.h"
#include "sink/sink.h"

/* What is drawn, and what it is called. */
struct tree_measure {
	enum metric metric;
	enum result_unit unit;
	struct str title;
};

/* The metric of options->metric, refused with a list of those that exist. A tree of samples has but one
 * thing to show. */
ow_status tree_out_measure(const struct tree *tree, const struct sink_options *options,
			   struct tree_measure *measure, struct error *err);

/* The total of a node, never negative: hidden or hostile numbers must not turn boxes around. */
static inline int64_t tree_out_total(const struct tree *tree, const struct tree_node *node,
				     enum metric metric)
{
	int64_t total = tree_total(tree, node, metric);

	return MAX(total, 0);
}

/* Per node the sum of its displayed children's totals; release with tree_out_release. */
ow_status tree_out_child_sums(const struct tree *tree, enum metric metric, struct mem *mem,
			      int64_t **sums, struct error *err);
void tree_out_release(const struct tree *tree, struct mem *mem, int64_t *sums);

/* How many bytes of the name are its displayed parent's name and the '/' after it (scope view). */
size_t tree_out_prefix(const struct tree *tree, const struct tree_node *node);

#endif
